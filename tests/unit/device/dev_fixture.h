/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dev_fixture.h: a device server with one backstore, one worker, two nexuses,
 * and one command at a time. The fuzz targets use this file, too, so it does
 * not use cmocka.
 */
#ifndef TESTS_DEVICE_DEV_FIXTURE_H
#define TESTS_DEVICE_DEV_FIXTURE_H

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/protect.h"
#include "base/bytes.h"
#include "base/err.h"
#include "device/device.h"
#include "scsi/cdb.h"
#include "scsi/sense.h"
#include "unit/device/ended.h"

#define FX_BLOCK  512u
#define FX_BLOCKS 1024u
#define FX_MAX	  (256u << 10)

struct dev_fixture {
	struct dev_env env;
	struct dev_server *server;
	struct dev_nexus *nexus, *other;
	uint8_t *medium, *pi;
	size_t out;		 /* bytes of buffers in use */
	unsigned fail_buf_after; /* 0: never; n: the nth request for a buffer fails */
	/* set before fx_open; NULL: a default */
	uint64_t (*wall_ms)(void *arg);
	void (*post)(void *arg, unsigned worker, struct dev_msg *m);
	void (*later)(void *arg, unsigned worker, unsigned ms,
		      struct dev_msg *m);
	void (*give_way)(void *arg, unsigned worker, struct dev_msg *m);
	uint32_t most; /* bytes of a transfer; 0: FX_MAX */
	void (*random)(void *arg, uint8_t *p, size_t n);
	void (*save)(void *arg, struct dev_save *s);
	void (*set_up)(struct dev_server
			       *s); /* called before the nexuses are opened */
	bool two_initiators; /* nexus and other belong to two initiators */
	const struct dev_lu_config *lu;
	uint64_t lun; /* of the next command */
	/* the last command */
	struct dev_task task;
	bool done, released;
	uint8_t in[FX_MAX];
	size_t in_len;
	struct scsi_sense sense;
	uint8_t attr; /* of commands; 0: SIMPLE */
};

static inline void fx_post(void *arg, unsigned worker, struct dev_msg *m)
{
	(void)arg;
	(void)worker;
	m->run(m);
}

static inline void *fx_get(void *arg, unsigned worker, size_t len)
{
	struct dev_fixture *r = arg;

	(void)worker;
	if (r->fail_buf_after && --r->fail_buf_after == 0)
		return NULL;
	r->out += len;
	return malloc(len);
}

static inline void fx_put(void *arg, unsigned worker, void *buf, size_t len)
{
	struct dev_fixture *r = arg;

	(void)worker;
	r->out -= len;
	free(buf);
}

/* The medium of the unit that was closed last. Programs open thousands of units, and
 * with sanitizers fresh memory of this size costs more than a case. */
static void *fx_spare;

static inline void fx_put_medium(void *medium)
{
	free(fx_spare);
	fx_spare = medium;
}

static inline uint8_t *fx_get_medium(void)
{
	uint8_t *medium = fx_spare ? fx_spare : malloc(FX_BLOCKS * FX_BLOCK);

	fx_spare = NULL;
	if (!medium)
		abort();
	return memset(medium, 0, FX_BLOCKS * FX_BLOCK);
}

static inline struct bs *fx_ram(struct dev_fixture *r)
{
	r->medium = fx_get_medium();
	return bs_ram_new("ram:test", r->medium, FX_BLOCKS * FX_BLOCK,
			  r->lu && r->lu->type == DEV_CD ? 2048 : FX_BLOCK,
			  fx_put_medium, r->medium);
}

/* With protection information of this type. */
static inline struct bs *fx_protected(struct dev_fixture *r, struct bs *data,
				      uint8_t type)
{
	struct bs_protect_config cfg = { .data = data, .type = type };
	struct bs *b;

	r->pi = calloc(FX_BLOCKS, 8);
	cfg.pi = bs_ram_new("ram:pi", r->pi, FX_BLOCKS * 8, 8, free, r->pi);
	b = bs_protect_new(&cfg);
	if (!b)
		abort();
	return b;
}

static inline void fx_open(struct dev_fixture *r, struct bs *store,
			   bool read_only)
{
	struct dev_lu_config lu = r->lu ? *r->lu : (struct dev_lu_config){ 0 };
	struct dev_nexus_config n = { .initiator_port = "iqn.i,i,0x1",
				      .target_port = "iqn.t,t,0x0001",
				      .target_name = "iqn.t",
				      .relative_target_port = 1 };

	r->env = (struct dev_env){ .nworkers = 1,
				   .post = r->post ? r->post : fx_post,
				   .later = r->later,
				   .give_way = r->give_way,
				   .random = r->random,
				   .save = r->save,
				   .buf_get = fx_get,
				   .buf_put = fx_put,
				   .wall_ms = r->wall_ms,
				   .arg = r };
	lu.read_only = read_only;
	r->server = dev_server_new(&r->env, r->most ? r->most : FX_MAX);
	if (!r->server || dev_lu_add(r->server, &lu, store))
		abort();
	if (r->set_up)
		r->set_up(r->server);
	r->nexus = dev_nexus_open(r->server, &n);
	if (r->two_initiators)
		strcpy(n.initiator_port, "iqn.j,i,0x2");
	r->other = dev_nexus_open(r->server, &n);
}

static inline void fx_close(struct dev_fixture *r)
{
	dev_nexus_close(r->nexus);
	dev_nexus_close(r->other);
	dev_server_free(r->server);
	if (r->out)
		abort(); /* a buffer was not returned */
}

static inline void fx_reset_done(void *arg, int err)
{
	(void)arg;
	if (err)
		abort();
}

static inline void fx_reset(struct dev_lu *lu)
{
	if (dev_lu_reset_state(lu, 0, fx_reset_done, NULL))
		abort();
}

static inline void fx_done(struct dev_task *t)
{
	no_more_steps(t);
	container_of(t, struct dev_fixture, task)->done = true;
}

static inline void fx_released(struct dev_task *t)
{
	container_of(t, struct dev_fixture, task)->released = true;
}

/* fx_begin begins a command and returns the result of dev_task_begin. */
static inline int fx_begin(struct dev_fixture *r, const uint8_t *cdb,
			   size_t len, uint32_t edtl_out, uint32_t edtl_in)
{
	struct dev_task *t = &r->task;
	int err;

	memset(t, 0, sizeof(*t));
	r->done = r->released = false;
	r->in_len = 0;
	t->nexus = r->nexus;
	t->lun = r->lun << 48;
	t->attr = r->attr ? r->attr : DEV_ATTR_SIMPLE;
	memcpy(t->cdb, cdb, len);
	t->cdb_len = (uint16_t)MAX(
		len, (size_t)16); /* iSCSI transfers 16 bytes at least */
	t->edtl.out = edtl_out;
	t->edtl.in = edtl_in;
	t->done = fx_done;
	err = dev_task_begin(t);
	/* the initiator sends no data for a command that is refused */
	assert(err || !t->own.begun.refused || t->out_len == 0);
	return err;
}

/* fx_execute copies the data of the command and executes it. Returns the
 * status, or -1 while the command is in progress. */
static inline int fx_execute(struct dev_fixture *r, const void *data)
{
	struct dev_task *t = &r->task;

	if (t->out_len && data)
		bufv_copy_in(&t->out, 0, data, t->out_len);
	dev_task_execute(t);
	return r->done ? t->status : -1;
}

static inline int fx_finish(struct dev_fixture *r)
{
	struct dev_task *t = &r->task;

	r->in_len = bufv_copy_out(&t->in, 0, r->in, MIN(t->in.len, FX_MAX));
	memset(&r->sense, 0, sizeof(r->sense));
	if (t->sense.len)
		scsi_sense_parse(&r->sense, t->sense.data, t->sense.len);
	dev_task_end(t);
	return t->status;
}

static inline int fx_run(struct dev_fixture *r, const uint8_t *cdb, size_t len,
			 const void *data, uint32_t out, uint32_t in)
{
	if (fx_begin(r, cdb, len, out, in))
		return SCSI_BUSY;
	if (fx_execute(r, data) < 0)
		return -1;
	return fx_finish(r);
}

/* TEST UNIT READY. */
static inline int fx_test(struct dev_fixture *r)
{
	return fx_run(r, (const uint8_t[6]){ 0 }, 6, NULL, 0, 0);
}

/* fx_swap makes the other nexus send the following commands. */
static inline void fx_swap(struct dev_fixture *r)
{
	struct dev_nexus *n = r->nexus;

	r->nexus = r->other;
	r->other = n;
}

/* fx_take_attentions takes one attention of each nexus, such as POWER ON. */
static inline void fx_take_attentions(struct dev_fixture *r)
{
	for (int i = 0; i < 2; i++) {
		fx_test(r);
		fx_swap(r);
	}
}

/* fx_add adds the unit while the nexuses exist, and takes their attentions: REPORTED
 * LUNS DATA HAS CHANGED at LUN 0, POWER ON at the new unit. */
static inline void fx_add(struct dev_fixture *r, uint16_t lun, struct bs *store)
{
	const struct dev_lu_config cfg = { .lun = lun };

	if (dev_lu_add(r->server, &cfg, store))
		abort();
	fx_take_attentions(r);
	r->lun = lun;
	fx_take_attentions(r);
	r->lun = 0;
}

#endif
