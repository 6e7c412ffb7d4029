/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dev_rig.h: a device server over one store, one worker, two nexuses, and a
 * command at a time. No cmocka here: the fuzz target uses it, too.
 */
#ifndef TESTS_DEVICE_DEV_RIG_H
#define TESTS_DEVICE_DEV_RIG_H

#include <stdlib.h>
#include <string.h>

#include "backstore/protect.h"
#include "base/bytes.h"
#include "base/err.h"
#include "device/device.h"
#include "scsi/cdb.h"
#include "scsi/sense.h"

#define RIG_BLOCK  512u
#define RIG_BLOCKS 1024u
#define RIG_MAX	   (256u << 10)

struct dev_rig {
	struct dev_env env;
	struct dev_server *server;
	struct dev_nexus *nexus, *other;
	uint8_t *medium, *pi;
	size_t out;		 /* bytes of buffers lent out */
	unsigned fail_buf_after; /* 0: never; n: the nth get fails */
	/* before rig_open, where the test wants its own */
	uint64_t (*wall_ms)(void *arg);
	void (*post)(void *arg, unsigned worker, struct dev_msg *m);
	void (*later)(void *arg, unsigned worker, unsigned ms,
		      struct dev_msg *m);
	void (*random)(void *arg, uint8_t *p, size_t n);
	void (*save)(void *arg, struct dev_save *s);
	void (*set_up)(struct dev_server *s); /* before the nexuses */
	bool two_initiators; /* nexus and other have names of their own */
	const struct dev_lu_config *lu;
	uint64_t lun; /* of the next command */
	/* the last command */
	struct dev_task task;
	bool done, released;
	uint8_t in[RIG_MAX];
	size_t in_len;
	struct scsi_sense sense;
	uint8_t attr; /* of commands; 0: SIMPLE */
};

static inline void rig_post(void *arg, unsigned worker, struct dev_msg *m)
{
	(void)arg;
	(void)worker;
	m->run(m);
}

static inline void *rig_get(void *arg, unsigned worker, size_t len)
{
	struct dev_rig *r = arg;

	(void)worker;
	if (r->fail_buf_after && --r->fail_buf_after == 0)
		return NULL;
	r->out += len;
	return malloc(len);
}

static inline void rig_put(void *arg, unsigned worker, void *buf, size_t len)
{
	struct dev_rig *r = arg;

	(void)worker;
	r->out -= len;
	free(buf);
}

static inline struct bs *rig_ram(struct dev_rig *r)
{
	r->medium = calloc(RIG_BLOCKS, RIG_BLOCK);
	return bs_ram_new("ram:test", r->medium, RIG_BLOCKS * RIG_BLOCK,
			  r->lu && r->lu->type == DEV_CD ? 2048 : RIG_BLOCK,
			  free, r->medium);
}

/* With protection information of this type. */
static inline struct bs *rig_protected(struct dev_rig *r, struct bs *data,
				       uint8_t type)
{
	struct bs_protect_config cfg = { .data = data, .type = type };
	struct bs *b;

	r->pi = calloc(RIG_BLOCKS, 8);
	cfg.pi = bs_ram_new("ram:pi", r->pi, RIG_BLOCKS * 8, 8, free, r->pi);
	b = bs_protect_new(&cfg);
	if (!b)
		abort();
	return b;
}

static inline void rig_open(struct dev_rig *r, struct bs *store, bool read_only)
{
	struct dev_lu_config lu = r->lu ? *r->lu : (struct dev_lu_config){ 0 };
	struct dev_nexus_config n = { .initiator_port = "iqn.i,i,0x1",
				      .target_port = "iqn.t,t,0x0001",
				      .target_name = "iqn.t",
				      .relative_target_port = 1 };

	r->env = (struct dev_env){ .nworkers = 1,
				   .post = r->post ? r->post : rig_post,
				   .later = r->later,
				   .random = r->random,
				   .save = r->save,
				   .buf_get = rig_get,
				   .buf_put = rig_put,
				   .wall_ms = r->wall_ms,
				   .arg = r };
	lu.read_only = read_only;
	r->server = dev_server_new(&r->env, RIG_MAX);
	if (!r->server || dev_lu_add(r->server, &lu, store))
		abort();
	if (r->set_up)
		r->set_up(r->server);
	r->nexus = dev_nexus_open(r->server, &n);
	if (r->two_initiators)
		strcpy(n.initiator_port, "iqn.j,i,0x2");
	r->other = dev_nexus_open(r->server, &n);
}

static inline void rig_close(struct dev_rig *r)
{
	dev_nexus_close(r->nexus);
	dev_nexus_close(r->other);
	dev_server_free(r->server);
	if (r->out)
		abort(); /* a buffer was not given back */
}

static inline void rig_reset_done(void *arg, int err)
{
	(void)arg;
	if (err)
		abort();
}

static inline void rig_reset(struct dev_lu *lu)
{
	if (dev_lu_reset_state(lu, 0, rig_reset_done, NULL))
		abort();
}

static inline void rig_done(struct dev_task *t)
{
	container_of(t, struct dev_rig, task)->done = true;
}

static inline void rig_released(struct dev_task *t)
{
	container_of(t, struct dev_rig, task)->released = true;
}

/* Begins a command; returns what dev_task_begin said. */
static inline int rig_begin(struct dev_rig *r, const uint8_t *cdb, size_t len,
			    uint32_t edtl_out, uint32_t edtl_in)
{
	struct dev_task *t = &r->task;

	memset(t, 0, sizeof(*t));
	r->done = r->released = false;
	r->in_len = 0;
	t->nexus = r->nexus;
	t->lun = r->lun << 48;
	t->attr = r->attr ? r->attr : DEV_ATTR_SIMPLE;
	memcpy(t->cdb, cdb, len);
	t->cdb_len = (uint16_t)MAX(len, (size_t)16); /* iSCSI: 16 at least */
	t->edtl_out = edtl_out;
	t->edtl_in = edtl_in;
	t->done = rig_done;
	return dev_task_begin(t);
}

/* Brings data in, runs, keeps what came back, ends. Returns the status, or
 * -1 while it is under way. */
static inline int rig_execute(struct dev_rig *r, const void *data)
{
	struct dev_task *t = &r->task;

	if (t->out_len)
		bufv_copy_in(&t->out, 0, data, t->out_len);
	dev_task_execute(t);
	return r->done ? t->status : -1;
}

static inline int rig_finish(struct dev_rig *r)
{
	struct dev_task *t = &r->task;

	r->in_len = bufv_copy_out(&t->in, 0, r->in, MIN(t->in.len, RIG_MAX));
	memset(&r->sense, 0, sizeof(r->sense));
	if (t->sense_len)
		scsi_sense_parse(&r->sense, t->sense, t->sense_len);
	dev_task_end(t);
	return t->status;
}

static inline int rig_run(struct dev_rig *r, const uint8_t *cdb, size_t len,
			  const void *data, uint32_t out, uint32_t in)
{
	if (rig_begin(r, cdb, len, out, in))
		return SCSI_BUSY;
	if (rig_execute(r, data) < 0)
		return -1;
	return rig_finish(r);
}

/* TEST UNIT READY. */
static inline int rig_test(struct dev_rig *r)
{
	return rig_run(r, (const uint8_t[6]){ 0 }, 6, NULL, 0, 0);
}

/* What comes next, the other nexus asks. */
static inline void rig_swap(struct dev_rig *r)
{
	struct dev_nexus *n = r->nexus;

	r->nexus = r->other;
	r->other = n;
}

/* One attention of each nexus, such as POWER ON. */
static inline void rig_take_attentions(struct dev_rig *r)
{
	for (int i = 0; i < 2; i++) {
		rig_test(r);
		rig_swap(r);
	}
}

#endif
