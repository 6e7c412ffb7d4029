/* SPDX-License-Identifier: BSD-2-Clause */
/* trace_test.c: one line per PDU and per change of state, only at debug level. */
#include "raw.h"

static struct raw r;
static char lines[64][256];
static unsigned nlines;

static void emit(struct trace *t, enum trace_event event,
		 const struct trace_about *about, const char *text)
{
	(void)t;
	(void)about;
	assert_true(event == TRACE_PDU || event == TRACE_STATE);
	assert_true(nlines < ARRAY_LEN(lines));
	strncpy(lines[nlines++], text, sizeof(lines[0]) - 1);
}

static struct trace debug = { TRACE_LEVEL_DEBUG, emit };
static struct trace notice = { TRACE_LEVEL_NOTICE, emit };

static void assert_said(const char *text)
{
	for (unsigned i = 0; i < nlines; i++)
		if (strstr(lines[i], text))
			return;
	fail_msg("no line has \"%s\"", text);
}

static void feed(uint8_t op, bool write, uint32_t itt, uint32_t edtl)
{
	struct iscsi_pdu p = { .op = op, .final = true, .itt = itt };

	p.cmdsn = 7;
	if (op == ISCSI_SCSI_COMMAND) {
		p.cmd.write = write;
		p.cmd.read = !write;
		p.cmd.edtl = edtl;
	}
	raw_pdu(&r, &p, NULL, RAW_GOOD);
	raw_fetch(&r);
}

static void session(struct trace *t)
{
	struct iscsi_params k = raw_params();

	nlines = 0;
	memset(lines, 0, sizeof(lines));
	raw_init(&r, ISCSI_TARGET, &k);
	dm_set_trace(r.role.dm, t, "192.0.2.9:1");
	raw_login(&r);
	feed(ISCSI_SCSI_COMMAND, false, 5, 512);
	feed(ISCSI_SCSI_COMMAND, false, 6, 0);
	feed(ISCSI_SCSI_COMMAND, true, 7, 4096);
	feed(ISCSI_TMF_REQUEST, false, 8, 0);
	raw_fini(&r);
}

static void test_every_pdu_has_its_line(void **state)
{
	(void)state;
	session(&debug);
	assert_said("192.0.2.9:1 in Login Request itt 00000001 ");
	assert_said("192.0.2.9:1 datamover: login -> full feature");
	assert_said("in SCSI Command itt 00000005 cmdsn 7 "
		    "lun 0000000000000000 cdb 00 read edtl 512 data 0 F");
	assert_said("datasn 0 offset 0 data 512 S F");
	assert_said("status 00 resid 0 flags 00 data 0 F");
	assert_said("r2tsn 0 offset 0 wants 4096");
	assert_said("in Task Management Function Request itt 00000008");
	assert_said("datamover: full feature -> terminated");
}

static void test_nothing_is_said_unasked(void **state)
{
	(void)state;
	session(&notice);
	assert_int_equal(nlines, 0);
	session(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_pdu_has_its_line),
		cmocka_unit_test(test_nothing_is_said_unasked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
