/* SPDX-License-Identifier: BSD-2-Clause */
/* table_fixture.h: a unit with all features, the rows of the command table for the
 * unit, and the conditions that the end of each command fulfils. */
#ifndef TESTS_DEVICE_TABLE_FIXTURE_H
#define TESTS_DEVICE_TABLE_FIXTURE_H

#include "crypt_fixture.h"
#include "dev_case.h"
#include "device/primary/mode.h"
#include "device/reserve/reserve.h"
#include "table_lists.h"

#define MAX_ROWS 512

/* ---- the unit: all features; the test counts changes of the backstore ---- */

static bool descriptors; /* sense data in descriptor format */
static bool protected;	 /* the unit is read-only */
static uint8_t pi_type;	 /* of protection information */
static unsigned changes; /* requests that change the medium */
static struct dev_command const *rows[MAX_ROWS];
static unsigned nrows;

/* The least number of rows, or the like, of a type of unit. */
static inline unsigned of_type(unsigned disk, unsigned cd)
{
	return type == DEV_CD ? cd : disk;
}

/* Blocks of the medium. */
static inline uint64_t nblocks(void)
{
	return FX_BLOCKS * FX_BLOCK / (type == DEV_CD ? 2048u : FX_BLOCK);
}

static inline void eye(void *arg, const struct bs_req *req)
{
	(void)arg;
	if (req->op == BS_WRITE || req->op == BS_ZERO || req->op == BS_UNMAP ||
	    req->op == BS_REKEY)
		changes++;
	if (req->op != BS_FLUSH && req->op != BS_SIZE && req->op != BS_SPACE &&
	    req->op != BS_REKEY)
		assert_true(range_ok(req->off, req->len, FX_BLOCKS * FX_BLOCK));
}

static inline uint64_t a_clock(void *arg)
{
	(void)arg;
	return 1234567;
}

static inline void no_chance(void *arg, uint8_t *p, size_t n)
{
	(void)arg;
	memset(p, 0x5a, n);
}

static inline void keep(void *arg, struct dev_save *s)
{
	(void)arg;
	s->result = 0;
	s->done(s);
}

static inline void add_group(struct dev_server *s)
{
	const struct dev_group g = { .id = 1, .nports = 1, .ports = { 1 } };
	uint16_t rtpi;

	assert_int_equal(dev_group_add(s, &g), 0);
	assert_int_equal(dev_port_add(s, "iqn.t,t,0x0001", &rtpi), 0);
}

static inline int open_all(void **state)
{
	static struct dev_lu_config lu = { .removable = true, .keeps = true };
	struct bs *store;

	(void)state;
	lu.type = type;
	memset(R, 0, sizeof(*R));
	R->lu = &lu;
	R->wall_ms = a_clock;
	R->random = no_chance;
	R->save = keep;
	R->set_up = add_group;
	R->two_initiators = true;
	store = fx_encrypted(fx_ram(R));
	if (pi_type)
		store = fx_protected(R, store, pi_type);
	fx_open(R, bs_trace_new(store, eye, NULL), protected);
	memset(R->medium, 0x11, FX_BLOCKS * FX_BLOCK);
	dev_ctl_store(&dev_lu_get(R->server, 0)->ctl,
		      &(struct dev_control){ .d_sense = descriptors });
	fx_take_attentions(R);
	changes = 0;
	return 0;
}

static inline void fresh(void)
{
	close_fixture(NULL);
	open_all(NULL);
}

static inline void find_row(uint8_t op, uint16_t sa)
{
	const uint8_t cdb[CDB_MAX] = {
		op, (uint8_t)(sa & 0x1f), [8] = (uint8_t)(sa >> 8), (uint8_t)sa
	};
	const struct dev_lu *lu = dev_lu_get(R->server, 0);
	bool known;
	const struct dev_command *c =
		dev_command_find(R->server, type, cdb, &known);

	if (!c || !dev_command_has(lu, c) || (nrows && rows[nrows - 1] == c))
		return;
	assert_true(nrows < MAX_ROWS);
	rows[nrows++] = c;
}

/* find_rows uses the lookup that serves commands, so that no row is left
 * out. */
static inline int find_rows(void **state)
{
	open_all(state);
	nrows = 0;
	for (unsigned op = 0; op < 256; op++)
		for (unsigned sa = 0; sa < 32; sa++)
			find_row((uint8_t)op, (uint16_t)sa);
	return close_fixture(state);
}

static inline int find_rows_of_type_2(void **state)
{
	pi_type = 2;
	return find_rows(state);
}

/* open_disk, open_protected_disk and open_cd find the rows of a unit and open it. */
static inline int open_disk(void **state)
{
	type = DEV_DISK;
	pi_type = 0;
	return find_rows(state) || open_all(state);
}

static inline int open_protected_disk(void **state)
{
	type = DEV_DISK;
	return find_rows_of_type_2(state) || open_all(state);
}

static inline int open_cd(void **state)
{
	type = DEV_CD;
	pi_type = 0;
	return find_rows(state) || open_all(state);
}

/* run_for_each_type runs an array of tests for the rows of each type of unit, and
 * returns how many failed. */
#define run_for_each_type(tests) \
 run_types(tests, sizeof(tests) / sizeof((tests)[0]))

static inline int run_types(const struct CMUnitTest *tests, size_t n)
{
	int failed = 0;

	for (unsigned i = 0; i < DEV_NTYPES; i++) {
		type = (enum dev_type)i;
		failed += _cmocka_run_group_tests(i == DEV_CD ? "CD/DVD device"
							      : "disk",
						  tests, n, find_rows, NULL);
	}
	type = DEV_DISK;
	return failed + _cmocka_run_group_tests("disk with type 2 protection",
						tests, n, find_rows_of_type_2,
						NULL);
}

#define for_rows(c)                             \
 for (const struct dev_command **p_ = rows, *c; \
      p_ < rows + nrows && (c = *p_); p_++)

/* ---- conditions of the end of each command ---- */

/* The state of the unit except its blocks. */
struct print {
	struct dev_control ctl;
	const struct rsv_state *rsv;
	uint8_t condition;
	uint64_t preventions, clock;
	enum dev_access access;
};

static inline struct print print(void)
{
	const struct dev_lu *lu = dev_lu_get(R->server, 0);

	return (struct print){ .ctl = dev_ctl_load(&lu->ctl),
			       .rsv = lu->rsv[0],
			       .condition = lu->condition,
			       .preventions = lu->prevented.ordinary,
			       .clock = lu->clock.offset,
			       .access = R->nexus->access };
}

static inline bool same(const struct print *a, const struct print *b)
{
	return a->ctl.tst == b->ctl.tst && a->ctl.qerr == b->ctl.qerr &&
	       a->ctl.d_sense == b->ctl.d_sense && a->ctl.swp == b->ctl.swp &&
	       a->ctl.tas == b->ctl.tas &&
	       a->ctl.write_through == b->ctl.write_through &&
	       a->rsv == b->rsv && a->condition == b->condition &&
	       a->preventions == b->preventions && a->clock == b->clock &&
	       a->access == b->access;
}

static inline void failure(const char *what, const uint8_t *cdb)
{
	print_message("%s: CDB", what);
	for (unsigned i = 0; i < CDB_MAX; i++)
		print_message(" %02x", cdb[i]);
	print_message(": status %02x key %x asc %04x field %s%u bit %d\n",
		      R->task.status, R->sense.key, R->sense.asc,
		      R->sense.has_field ? R->sense.in_cdb ? "c" : "p" : "-",
		      R->sense.field, R->sense.has_bit ? R->sense.bit : -1);
}

#define CHECK_THAT(x)        \
 do {                        \
  if (!(x)) {                \
   failure(#x, R->task.cdb); \
   fail();                   \
  }                          \
 } while (0)

/* SPC-4 §4.5.2.4.2: the field pointer is within the data that the initiator
 * sent. */
static inline void check_pointer(const struct dev_task *t)
{
	const struct scsi_sense *s = &R->sense;

	if (s->asc == ASC_INVALID_FIELD_IN_CDB) {
		CHECK_THAT(s->has_field && s->in_cdb);
		CHECK_THAT(s->field < (t->own.row	   ? t->own.row->len
				       : t->cdb[0] == 0x7f ? 9
							   : 2));
	}
	if (s->asc == ASC_INVALID_FIELD_IN_PARAMETERS) {
		CHECK_THAT(s->has_field && !s->in_cdb);
		CHECK_THAT(s->field < t->out_len);
	}
	/* The fixed format has 32 bits for the LBA (§4.5.3). */
	if (s->asc == ASC_LBA_OUT_OF_RANGE &&
	    (descriptors ||
	     (t->lba <= UINT32_MAX && t->own.row->op != SCSI_UNMAP &&
	      t->own.row->op != SCSI_EXTENDED_COPY)))
		CHECK_THAT(s->has_info);
}

/* A refused command has changed nothing. */
static inline void check_end(uint32_t in, const struct print *before)
{
	const struct dev_task *t = &R->task;
	struct print now = print();

	CHECK_THAT(R->done);
	CHECK_THAT(R->in_len <= in);
	CHECK_THAT(t->status == SCSI_GOOD ||
		   t->status == SCSI_CHECK_CONDITION ||
		   t->status == SCSI_RESERVATION_CONFLICT);
	CHECK_THAT((t->status == SCSI_CHECK_CONDITION) == (t->sense.len != 0));
	if (t->status == SCSI_GOOD)
		return;
	CHECK_THAT(R->in_len == 0);
	CHECK_THAT(same(before, &now));
	if (t->status != SCSI_CHECK_CONDITION)
		return;
	CHECK_THAT(R->sense.key && scsi_asc_str(R->sense.asc));
	if (R->sense.key != SENSE_ILLEGAL_REQUEST)
		return;
	CHECK_THAT(changes == 0);
	check_pointer(t);
}

/* After a command that may have changed the unit, the next command gets a new
 * unit. */
static inline void run(const uint8_t *cdb, uint16_t cdb_len, const void *data,
		       uint32_t out, uint32_t in)
{
	static bool stale;
	struct print before;

	if (stale)
		fresh();
	stale = false;
	before = print();
	changes = 0;
	assert_int_equal(fx_begin(R, cdb, CDB_MAX, out, in), 0);
	if (cdb_len !=
	    CDB_MAX) { /* CDBs of the fixture have 16 bytes at least */
		dev_task_end(&R->task);
		R->task.cdb_len = cdb_len;
		assert_int_equal(dev_task_begin(&R->task), 0);
	}
	CHECK_THAT(R->task.out_len <= out);
	CHECK_THAT(fx_execute(R, data) >= 0);
	fx_finish(R);
	check_end(in, &before);
	stale = R->task.status == SCSI_GOOD && R->task.own.row->dir != DIR_IN;
}

static inline bool refused(uint16_t asc)
{
	return R->task.status == SCSI_CHECK_CONDITION &&
	       R->sense.key == SENSE_ILLEGAL_REQUEST && R->sense.asc == asc;
}

#endif
