/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * outcome.h: a line of a transcript: how a command ended, the state that the
 * unit reports afterwards, and all cases with that outcome.
 */
#ifndef TESTS_DEVICE_OUTCOME_H
#define TESTS_DEVICE_OUTCOME_H

#include <limits.h>

#include "base/crc32c.h"
#include "table_fixture.h"
#include "unit/transcript.h"

static struct transcript script;
static uint8_t data[FX_MAX];

/* ---- lines ---- */

#define CASES_MAX   (LIST_MAX * 8)
#define OUTCOME_MAX 400
#define NO_BIT	    UINT_MAX

struct outcome_case {
	char outcome[OUTCOME_MAX];
	char label[28];
	unsigned bit; /* NO_BIT: label names the case */
};

static struct outcome_case cases[CASES_MAX];
static unsigned ncases;

static inline struct outcome_case *next_case(unsigned bit)
{
	struct outcome_case *c = &cases[ncases];

	assert_true(ncases < CASES_MAX);
	ncases++;
	*c = (struct outcome_case){ .bit = bit };
	return c;
}

static inline bool same_outcome(unsigned a, unsigned b)
{
	return b < ncases && strcmp(cases[a].outcome, cases[b].outcome) == 0;
}

static inline bool is_next_bit(unsigned at)
{
	return cases[at].bit != NO_BIT &&
	       cases[at].bit + 1 == cases[at + 1].bit;
}

/* print_cases prints all cases with the outcome of the first one; consecutive
 * bits as a range. */
static inline void print_cases(unsigned first)
{
	for (unsigned i = first; i < ncases; i++) {
		unsigned from = i;

		if (!same_outcome(first, i))
			continue;
		if (cases[i].bit == NO_BIT) {
			fprintf(script.out, " %s", cases[i].label);
			continue;
		}
		while (same_outcome(first, i + 1) && is_next_bit(i))
			i++;
		fprintf(script.out, " %u.%u", cases[from].bit / 8,
			cases[from].bit % 8);
		if (i > from)
			fprintf(script.out, "-%u.%u", cases[i].bit / 8,
				cases[i].bit % 8);
	}
}

static inline void print_outcomes(const char *what)
{
	static bool printed[CASES_MAX];

	memset(printed, 0, sizeof(printed));
	for (unsigned i = 0; i < ncases; i++) {
		if (printed[i])
			continue;
		for (unsigned k = i; k < ncases; k++)
			printed[k] |= same_outcome(i, k);
		fprintf(script.out, "  %s: %s:", what, cases[i].outcome);
		print_cases(i);
		fputc('\n', script.out);
	}
	ncases = 0;
}

/* ---- the state of the unit ---- */

/* What a unit answers about state that a command can change. */
static const struct {
	const char *name;
	uint8_t cdb[16];
} questions[] = {
	{ "attention", { SCSI_TEST_UNIT_READY } },
	{ "ready", { SCSI_TEST_UNIT_READY } },
	{ "sense", { SCSI_REQUEST_SENSE, 1, 0, 0, 0xff } },
	{ "modes", { SCSI_MODE_SENSE_10, 0, 0x3f, 0xff, [7] = 0x10 } },
	{ "saved", { SCSI_MODE_SENSE_10, 0, 0xff, 0xff, [7] = 0x10 } },
	{ "holder", { SCSI_PERSISTENT_RESERVE_IN, 1, [7] = 0x10 } },
	{ "keys", { SCSI_PERSISTENT_RESERVE_IN, 3, [7] = 0x10 } },
	{ "identity", { SCSI_MAINTENANCE_IN, 0x05, [8] = 0x10 } },
	{ "text", { SCSI_MAINTENANCE_IN, 0x05, [8] = 0x10, 0, 0x04 } },
	{ "groups", { SCSI_MAINTENANCE_IN, 0x0a, [8] = 0x10 } },
	{ "priority", { SCSI_MAINTENANCE_IN, 0x0e, [8] = 0x10 } },
	{ "time", { SCSI_MAINTENANCE_IN, 0x0f, [8] = 0x10 } },
	{ "capacity", { SCSI_SERVICE_ACTION_IN_16, 0x10, [12] = 0x10 } },
	{ "mapped", { SCSI_SERVICE_ACTION_IN_16, 0x12, [12] = 0x10 } },
	{ "copies", { SCSI_RECEIVE_COPY_RESULTS, 0, [12] = 0x10 } },
	{ "tokens", { SCSI_RECEIVE_COPY_RESULTS, 7, [12] = 0x10 } },
	{ "buffer", { SCSI_READ_BUFFER, 0x0a, [7] = 0x10 } },
	{ "event", { SCSI_GET_EVENT_STATUS, 1, 0, 0, 0x7f, [7] = 0x10 } },
};

struct answer {
	uint16_t len;
	uint8_t bytes[3 + 4096]; /* status, sense code, data */
};

static struct answer fresh_answers[ARRAY_LEN(questions)];

static inline void ask(size_t i, struct answer *a)
{
	memset(a, 0, sizeof(*a));
	fx_run(R, questions[i].cdb, 16, NULL, 0, 4096);
	a->bytes[0] = R->task.status;
	put_be16(a->bytes + 1, R->sense.asc);
	memcpy(a->bytes + 3, R->in, R->in_len);
	a->len = (uint16_t)(3 + R->in_len);
}

/* outcomes_begin begins the transcript with the answers of a fresh unit. */
static inline void outcomes_begin(void)
{
	transcript_begin(&script);
	fresh();
	fprintf(script.out, "a fresh unit\n");
	for (size_t i = 0; i < ARRAY_LEN(questions); i++) {
		struct answer *a = &fresh_answers[i];

		ask(i, a);
		fprintf(script.out, "  %s: %u bytes %08x\n", questions[i].name,
			a->len, crc32c_update(CRC32C_SEED, a->bytes, a->len));
	}
	fresh();
}

static inline int put_crc(char *p, size_t room, const char *name,
			  const void *bytes, size_t n)
{
	uint32_t crc = crc32c_update(CRC32C_SEED, bytes, n);

	return snprintf(p, room, " %s %04x", name, (crc ^ crc >> 16) & 0xffff);
}

/* differ leaves in `a` what differs from the answer of a fresh unit; a refusal as it
 * is. Returns the number of bytes, 0 if nothing differs. */
static inline size_t differ(struct answer *a, const struct answer *was)
{
	const size_t len = MAX(a->len, was->len);
	bool differs = a->len != was->len;

	if (a->bytes[0] != was->bytes[0])
		return a->len;
	for (size_t i = 0; i < len; i++) {
		differs |= a->bytes[i] != was->bytes[i];
		a->bytes[i] ^= was->bytes[i];
	}
	return differs ? len : 0;
}

/* put_state names the answers that are not those of a fresh unit, each with a CRC
 * of the difference only, so that a new default changes none of them. */
static inline int put_state(char *p, size_t room)
{
	static struct answer a;
	const int none = snprintf(p, room, ", then");
	int n = none;
	size_t len;

	for (size_t i = 0; i < ARRAY_LEN(questions); i++) {
		ask(i, &a);
		len = differ(&a, &fresh_answers[i]);
		if (len)
			n += put_crc(p + n, room - (size_t)n, questions[i].name,
				     a.bytes, len);
	}
	if (changes)
		n += put_crc(p + n, room - (size_t)n, "medium", R->medium,
			     FX_BLOCKS * FX_BLOCK);
	if (changes && R->pi)
		n += put_crc(p + n, room - (size_t)n, "pi", R->pi,
			     FX_BLOCKS * 8);
	if (n > none)
		return n;
	*p = '\0';
	return 0;
}

/* ---- the outcome of a command ---- */

/* bit: the inverted bit of the CDB or of the list. */
static inline void put_sense(char *p, size_t room, unsigned bit, bool of_list)
{
	const struct scsi_sense *s = &R->sense;
	int n = snprintf(p, room, "%x/%04x", s->key, s->asc);
	bool here =
		s->has_field && s->in_cdb == !of_list && s->field == bit / 8;

	if (here && (!s->has_bit || s->bit == bit % 8))
		n += snprintf(p + n, room - (size_t)n, " there%s",
			      s->has_bit ? ", to the bit" : "");
	else if (s->has_field)
		n += snprintf(p + n, room - (size_t)n, " at %s %u",
			      s->in_cdb ? "CDB" : "list", s->field);
	if (s->has_field && s->has_bit && !here)
		n += snprintf(p + n, room - (size_t)n, ".%u", s->bit);
	if (s->has_info)
		n += snprintf(p + n, room - (size_t)n, " info %llx",
			      (unsigned long long)s->info);
	if (s->has_progress)
		snprintf(p + n, room - (size_t)n, " progress");
}

/* put_outcome describes the end of the last command. After a successful command
 * it also asks for the state of the unit, and replaces the unit. */
static inline void put_outcome(struct outcome_case *to, bool of_list)
{
	const struct dev_task *t = &R->task;
	bool asks = t->status == SCSI_GOOD && t->own.row &&
		    t->own.row->dir != DIR_IN;
	const size_t room = OUTCOME_MAX;
	char *p = to->outcome;
	int n;

	if (t->status == SCSI_CHECK_CONDITION) {
		put_sense(p, room, to->bit, of_list);
		return;
	}
	if (t->status != SCSI_GOOD) {
		snprintf(p, room, "status %02x", t->status);
		return;
	}
	n = snprintf(p, room, "good");
	if (t->total.out != t->out_len)
		n += snprintf(p + n, room - (size_t)n, ", wants %llu",
			      (unsigned long long)t->total.out);
	if (R->in_len || t->total.in)
		n += snprintf(p + n, room - (size_t)n, ", %zu of %llu %08x",
			      R->in_len, (unsigned long long)t->total.in,
			      crc32c_update(CRC32C_SEED, R->in, R->in_len));
	if (!asks)
		return;
	n += put_state(p + n, room - (size_t)n);
	fx_swap(R);
	fx_test(R);
	if (t->status != SCSI_GOOD)
		snprintf(p + n, room - (size_t)n, ", other %02x %x/%04x",
			 t->status, R->sense.key, R->sense.asc);
	fx_swap(R);
	fresh();
}

/* ---- the commands ---- */

static inline uint32_t wants(const uint8_t *cdb)
{
	fx_begin(R, cdb, CDB_MAX, FX_MAX, 0);
	dev_task_end(&R->task);
	return (uint32_t)MIN(R->task.total.out, (uint64_t)FX_MAX);
}

static inline void send(const struct dev_command *c, const uint8_t *cdb,
			unsigned n)
{
	if (n)
		memcpy(data, list, n);
	else
		for (unsigned i = 0; i < 8192; i++)
			data[i] = (uint8_t)(i * 7 + i / 256);
	if (c->dir == DIR_OUT)
		n = wants(cdb);
	run(cdb, CDB_MAX, data, n, 4096);
}

/* usual builds a CDB with an allocation length, or for one block. */
static inline unsigned usual(const struct dev_command *c,
			     const struct template *m, uint8_t cdb[CDB_MAX])
{
	static const uint8_t nblocks_at[] = {
		[6] = 4, [10] = 8, [12] = 9, [16] = 13, [32] = 31
	};
	unsigned n = good(c, m, cdb);

	if (m && !m->list && m->len_bytes)
		put_number(cdb, m->len_at, m->len_bytes, 252);
	if (!m && c->usage[nblocks_at[c->len]] & 1)
		cdb[nblocks_at[c->len]] |= 1;
	return n;
}

/* Offset and width of LBA and number of blocks, by the length of the CDB. */
static const struct {
	uint8_t len, lba_at, lba_bytes, n_at, n_bytes;
} places[] = { { 6, 2, 2, 4, 1 },
	       { 10, 2, 4, 7, 2 },
	       { 12, 2, 4, 6, 4 },
	       { 16, 2, 8, 10, 4 },
	       { 32, 12, 8, 28, 4 } };

#define NOT_PUT UINT64_MAX

/* usual_at builds the usual CDB with this LBA and number of blocks if the row
 * has these fields. */
static inline unsigned usual_at(const struct dev_command *c,
				const struct template *m, uint8_t cdb[CDB_MAX],
				uint64_t lba, uint64_t n)
{
	unsigned len = usual(c, m, cdb), i = 0;

	while (places[i].len != c->len)
		i++;
	if (lba != NOT_PUT)
		put_number(cdb, places[i].lba_at, places[i].lba_bytes, lba);
	if (n != NOT_PUT)
		put_number(cdb, places[i].n_at, places[i].n_bytes, n);
	for (unsigned k = 1; k < CDB_MAX; k++)
		cdb[k] &= c->usage[k];
	if (c->op == SCSI_VARIABLE_LENGTH)
		put_be16(cdb + 8, c->sa);
	else if (c->flags & CMD_SA)
		cdb[1] = (uint8_t)c->sa;
	return len;
}

/* run_after sends a command to a unit in the state that `prepare` makes, with n
 * bytes of the list or with as many bytes as the command needs. */
static inline void run_after(void (*prepare)(void), const uint8_t cdb[CDB_MAX],
			     unsigned n, struct outcome_case *to)
{
	uint32_t out = n, r;

	memset(data, 0x3c, 4096);
	memcpy(data, list, n);
	if (n == 0)
		out = wants(cdb);
	fresh();
	prepare();
	changes = 0;
	r = (uint32_t)fx_begin(R, cdb, CDB_MAX, out, 4096);
	if (r) {
		snprintf(to->outcome, OUTCOME_MAX, "not begun");
	} else if (fx_execute(R, data) < 0) {
		fail_msg("command %02x does not end", cdb[0]);
	} else {
		fx_finish(R);
		R->attr = 0;
		R->lun = 0;
		put_outcome(to, true);
	}
	fresh();
}

#endif
