/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * answers_test.c: compares all that units report about themselves with the
 * files of tests/vectors/answers, byte for byte: VPD, mode and log pages, the
 * commands with their usage data and timeouts, features, tables of contents. So
 * a commit shows each change that initiators see. The program with
 * ANSWERS=write and its arguments writes the files.
 */
#include <stdio.h>
#include <stdlib.h>

#include "table_fixture.h"

#define ROOM 8192

static const char *folder;
static FILE *out;

static void line_of(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fprintf(out, "%02x%s", p[i], i + 1 < n ? " " : "\n");
}

/* ask prints answers only; a refusal shows as a missing answer. */
static void ask(const char *what, const uint8_t *cdb, size_t len, uint32_t room)
{
	if (fx_run(R, cdb, len, NULL, 0, room) != SCSI_GOOD)
		return;
	fprintf(out, "%s\n> ", what);
	line_of(cdb, len);
	for (size_t at = 0; at < R->in_len; at += 32) {
		fprintf(out, "  %04zx  ", at);
		line_of(R->in + at, MIN(R->in_len - at, (size_t)32));
	}
}

#define ASK(what, ...) ask(what, (const uint8_t[16]){ __VA_ARGS__ }, 16, ROOM)
#define HI	       (ROOM >> 8)

static void ask_pages(void)
{
	ASK("INQUIRY", 0x12, 0, 0, HI, 0);
	for (unsigned page = 0; page < 256; page++)
		ASK("VPD", 0x12, 1, (uint8_t)page, HI, 0);
	for (unsigned pc = 0; pc < 256; pc += 0x40) {
		ASK("MODE SENSE(6)", 0x1a, 0, (uint8_t)(pc | 0x3f), 0xff, 0xff);
		ASK("MODE SENSE(10)", 0x5a, 0, (uint8_t)(pc | 0x3f), 0xff, 0, 0,
		    0, HI, 0);
		ASK("MODE SENSE(10), LLBAA", 0x5a, 0x10, (uint8_t)(pc | 0x3f),
		    0, 0, 0, 0, HI, 0);
	}
	for (unsigned page = 0; page < 0x3f; page++)
		ASK("MODE SENSE(10), DBD", 0x5a, 8, (uint8_t)page, 0, 0, 0, 0,
		    HI, 0);
	for (unsigned page = 0; page < 0x3f; page++) {
		ASK("LOG SENSE", 0x4d, 0, (uint8_t)(page | 0x40), 0, 0, 0, 0,
		    HI, 0);
		ASK("LOG SENSE, subpages", 0x4d, 0, (uint8_t)(page | 0x40),
		    0xff, 0, 0, 0, HI, 0);
	}
}

static void ask_commands(void)
{
	ASK("REPORT SUPPORTED OPERATION CODES", 0xa3, 0x0c, 0x80, 0, 0, 0, 0, 0,
	    HI, 0);
	ASK("REPORT SUPPORTED OPERATION CODES", 0xa3, 0x0c, 0, 0, 0, 0, 0, 0,
	    HI, 0);
	for_rows(c)
	{
		uint8_t how = c->flags & CMD_SA ? 0x82 : 0x81;

		ASK(c->name, 0xa3, 0x0c, how, c->op, (uint8_t)(c->sa >> 8),
		    (uint8_t)c->sa, 0, 0, HI, 0);
	}
	ASK("REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS", 0xa3, 0x0d, 0x80, 0,
	    0, 0, 0, 0, HI, 0);
}

static void ask_of_all(void)
{
	ask_pages();
	ask_commands();
	ASK("REQUEST SENSE", 0x03, 0, 0, 0, 0xff);
	ASK("REQUEST SENSE, descriptor", 0x03, 1, 0, 0, 0xff);
	ASK("READ CAPACITY(10)", 0x25);
	ASK("READ CAPACITY(16)", 0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, HI,
	    0);
	ASK("GET LBA STATUS", 0x9e, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, HI, 0);
	for (uint8_t what = 0; what < 3; what++)
		ASK("REPORT LUNS", 0xa0, 0, what, 0, 0, 0, 0, 0, HI, 0);
	for (uint8_t sa = 0; sa < 32; sa++) {
		ASK("PERSISTENT RESERVE IN", 0x5e, sa, 0, 0, 0, 0, 0, HI, 0);
		ASK("RECEIVE COPY RESULTS", 0x84, sa, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		    0, HI, 0);
		if (sa != 0x0c && sa != 0x0d)
			ASK("MAINTENANCE IN", 0xa3, sa, 0, 0, 0, 0, 0, 0, HI,
			    0);
	}
	for (uint8_t mode = 0; mode < 32; mode++)
		ASK("READ BUFFER", 0x3c, mode, 0, 0, 0, 0, 0, 0x10, 0);
	for (uint8_t which = 0; which < 0x20; which += 8)
		ASK("READ DEFECT DATA(10)", 0x37, 0, which, 0, 0, 0, 0, HI, 0);
}

static void ask_of_a_drive(void)
{
	for (uint8_t rt = 0; rt < 2; rt++)
		ASK("GET CONFIGURATION", 0x46, rt, 0, 0, 0, 0, 0, HI, 0);
	for (uint8_t feature = 0; feature < 4; feature++)
		ASK("GET CONFIGURATION, one", 0x46, 2, 0, feature, 0, 0, 0, HI,
		    0);
	for (uint8_t format = 0; format < 8; format++) {
		ASK("READ TOC", 0x43, 0, format, 0, 0, 0, 0, HI, 0);
		ASK("READ TOC, MSF", 0x43, 2, format, 0, 0, 0, 1, HI, 0);
		ASK("READ DISC INFORMATION", 0x51, format, 0, 0, 0, 0, 0, HI,
		    0);
		ASK("READ TRACK INFORMATION", 0x52, format, 0, 0, 0, 1, 0, HI,
		    0);
		ASK("GET PERFORMANCE", 0xac, 0x10, 0, 0, 0, 0, 0, 0, 0, 8,
		    format, 0);
		ASK("READ SUB-CHANNEL", 0x42, 2, 0x40, format, 0, 0, 1, HI, 0);
	}
	ASK("GET EVENT STATUS NOTIFICATION", 0x4a, 1, 0, 0, 0xff, 0, 0, HI, 0);
	ASK("MECHANISM STATUS", 0xbd, 0, 0, 0, 0, 0, 0, 0, HI, 0);
	for (unsigned format = 0; format < 256; format++)
		ASK("READ DISC STRUCTURE", 0xad, 0, 0, 0, 0, 0, 0,
		    (uint8_t)format, HI, 0);
	ASK("READ CD, all of a sector", 0xbe, 0, 0, 0, 0, 0x10, 0, 0, 1, 0xf8,
	    0, 0);
	ASK("READ HEADER", 0x44, 2, 0, 0, 0, 0x10, 0, HI, 0);
}

/* ---- the files ---- */

static size_t read_file(const char *path, char *text, size_t size)
{
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(text, 1, size - 1, f) : 0;

	if (f)
		fclose(f);
	text[n] = '\0';
	return n;
}

/* assert_same prints the first lines that differ. */
static void assert_same(const char *path, const char *is, const char *was)
{
	unsigned line = 1;
	size_t i = 0, begins = 0;

	while (is[i] && is[i] == was[i])
		if (is[i++] == '\n') {
			line++;
			begins = i;
		}
	if (is[i] == was[i])
		return;
	fail_msg("%s:%u: answered is\n%.*s\nwhere the file has\n%.*s\n"
		 "if initiators are to see that, write it anew: ANSWERS=write",
		 path, line, (int)strcspn(is + begins, "\n"), is + begins,
		 (int)strcspn(was + begins, "\n"), was + begins);
}

static void compare(const char *name, void (*more)(void))
{
	static char was[4 << 20];
	const char *how = getenv("ANSWERS");
	char path[512], *is = NULL;
	size_t len = 0;

	snprintf(path, sizeof(path), "%s/%s.txt", folder, name);
	out = open_memstream(&is, &len);
	assert_non_null(out);
	ask_of_all();
	if (more)
		more();
	fclose(out);
	if (how && !strcmp(how, "write")) {
		FILE *f = fopen(path, "w");

		assert_non_null(f);
		assert_int_equal(fwrite(is, 1, len, f), len);
		fclose(f);
	}
	read_file(path, was, sizeof(was));
	assert_same(path, is, was);
	free(is);
}

/* ---- the units ---- */

static void test_answers_of_a_disk(void **state)
{
	(void)state;
	compare("disk", NULL);
}

static void test_answers_of_a_protected_disk(void **state)
{
	(void)state;
	compare("protected", NULL);
}

/* A drive with a medium of that many blocks; reads are not served. */
static int open_large(void **state, uint64_t blocks)
{
	static const struct dev_lu_config lu = { .type = DEV_CD,
						 .removable = true };
	struct bs *b = bs_null_new("null:", blocks * 2048, 2048);

	type = DEV_CD;
	pi_type = 0;
	b->caps |= BS_CAP_READ_ONLY;
	if (find_rows(state))
		return 1;
	memset(R, 0, sizeof(*R));
	R->lu = &lu;
	fx_open(R, b, true);
	fx_take_attentions(R);
	return 0;
}

static int open_dvd(void **state)
{
	return open_large(state, 4000000); /* two layers */
}

static int open_bd(void **state)
{
	return open_large(state, 12000000);
}

static void test_answers_of_a_cd(void **state)
{
	(void)state;
	compare("cd", ask_of_a_drive);
}

static void test_answers_of_a_dvd(void **state)
{
	(void)state;
	compare("dvd", ask_of_a_drive);
}

static void test_answers_of_a_bd(void **state)
{
	(void)state;
	compare("bd", ask_of_a_drive);
}

#define U(name, open) cmocka_unit_test_setup_teardown(name, open, close_fixture)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		U(test_answers_of_a_disk, open_disk),
		U(test_answers_of_a_protected_disk, open_protected_disk),
		U(test_answers_of_a_cd, open_cd),
		U(test_answers_of_a_dvd, open_dvd),
		U(test_answers_of_a_bd, open_bd),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: %s tests/vectors/answers\n", argv[0]);
		return 2;
	}
	folder = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
