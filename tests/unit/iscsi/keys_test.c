/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * keys_test.c: what each text key (RFC 7143 §13, RFC 7144 §7, RFC 7145 §6)
 * leads to in each stage and situation, for each role, as a proposal and as an
 * answer, and what each role offers: tests/vectors/keys. And characters of
 * iSCSI names: names.txt.
 */
#include "iscsi/keys.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "iscsi/names.h"
#include "unit/transcript.h"

static struct transcript script;
static struct iscsi_negotiation n;
static char text[4096];
static struct iscsi_text_out out;

/* ---- situations ---- */

struct situation {
	const char *name;
	bool rdma, agreed, discovery, following, first_over, operational_over;
	bool few; /* values are enough */
};

static const struct situation situations[] = {
	{ .name = "plain" },
	{ .name = "RDMA", .rdma = true, .agreed = true },
	{ .name = "RDMA wanted", .rdma = true, .few = true },
	{ .name = "discovery", .discovery = true, .few = true },
	{ .name = "RDMA discovery",
	  .rdma = true,
	  .discovery = true,
	  .few = true },
	{ .name = "following", .following = true, .few = true },
	{ .name = "first request over", .first_over = true, .few = true },
	{ .name = "first operational over",
	  .operational_over = true,
	  .few = true },
};

/* Within the limits of each key, and neither default nor limit. */
static void set_wants(struct iscsi_params *p)
{
	iscsi_params_defaults(p);
	p->max_recv_dsl = 4096;
	p->max_connections = 8;
	p->initial_r2t = false;
	p->max_burst_length = 2048;
	p->first_burst_length = 1024;
	p->default_time2wait = 5;
	p->default_time2retain = 7;
	p->max_outstanding_r2t = 9;
	p->data_pdu_in_order = false;
	p->data_sequence_in_order = false;
	p->error_recovery_level = 1;
	p->protocol_level = 2;
	p->task_reporting = ISCSI_FAST_ABORT;
	p->target_recv_dsl = 16384;
	p->initiator_recv_dsl = 32768;
	p->max_outstanding_unexpected_pdus = 11;
	p->max_ahs_length = 64;
	p->tagged_buffer_for_solicited_data_only = true;
	p->iser_hello_required = true;
}

static int take_text(void *arg, enum iscsi_key_id id, const char *value)
{
	(void)arg;
	fprintf(script.out, "(text %d %s) ", id, value);
	return 0;
}

static void negotiate(enum iscsi_role role, const struct situation *s)
{
	struct iscsi_params want;

	set_wants(&want);
	want.rdma_extensions = s->rdma;
	iscsi_negotiation_init(&n, role, &want);
	n.discovery = s->discovery;
	n.leading = !s->following;
	n.first_over = s->first_over;
	n.first_operational_over = s->operational_over;
	n.header_digests = ISCSI_DIGEST_NONE | ISCSI_DIGEST_CRC;
	n.data_digests = ISCSI_DIGEST_NONE | ISCSI_DIGEST_CRC;
	n.text = take_text;
	n.result.rdma_extensions = s->agreed;
	memset(text, 0, sizeof(text));
	out = (struct iscsi_text_out){ .buf = text, .max = sizeof(text) };
}

/* ---- what is printed ---- */

static uint32_t number_at(const struct iscsi_params *p, size_t at, size_t size)
{
	const uint8_t *b = (const uint8_t *)p + at;
	uint16_t v16;
	uint32_t v32 = *b;

	if (size == 2) {
		memcpy(&v16, b, 2);
		return v16;
	}
	if (size == 4)
		memcpy(&v32, b, 4);
	return v32;
}

#define M(m)                                                                  \
 {                                                                            \
#  m, offsetof(struct iscsi_params, m), sizeof(((struct iscsi_params *)0)->m) \
 }

static const struct {
	const char *name;
	size_t at, size;
} members[] = {
	M(header_digest),
	M(data_digest),
	M(max_recv_dsl),
	M(max_send_dsl),
	M(max_connections),
	M(initial_r2t),
	M(immediate_data),
	M(max_burst_length),
	M(first_burst_length),
	M(default_time2wait),
	M(default_time2retain),
	M(max_outstanding_r2t),
	M(data_pdu_in_order),
	M(data_sequence_in_order),
	M(error_recovery_level),
	M(protocol_level),
	M(task_reporting),
	M(rdma_extensions),
	M(target_recv_dsl),
	M(initiator_recv_dsl),
	M(max_outstanding_unexpected_pdus),
	M(max_ahs_length),
	M(tagged_buffer_for_solicited_data_only),
	M(iser_hello_required),
};

/* The members in which b differs from a. */
static void print_changes(const struct iscsi_params *a,
			  const struct iscsi_params *b)
{
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		uint32_t v = number_at(b, members[i].at, members[i].size);

		if (v != number_at(a, members[i].at, members[i].size))
			fprintf(script.out, " %s=%u", members[i].name, v);
	}
	if (a->declared != b->declared)
		fprintf(script.out, " declared %llx",
			(unsigned long long)(b->declared ^ a->declared));
	if (a->refused != b->refused)
		fprintf(script.out, " refused %llx",
			(unsigned long long)(b->refused ^ a->refused));
}

static void print_text(void)
{
	for (size_t at = 0; at < out.len; at += strlen(text + at) + 1)
		fprintf(script.out, " [%s]", text + at);
}

static void print_key(unsigned stage, const char *key, const char *value)
{
	struct iscsi_params before = n.result;
	size_t len = out.len;
	int err;

	fprintf(script.out, " %s: ", value);
	err = iscsi_negotiation_key(&n, stage, key, value, &out);
	if (err) /* and the clause, at the end of the reason */
		fprintf(script.out, "error %d %s", -err, strrchr(n.why, '('));
	else
		fprintf(script.out, "taken");
	if (out.len > len)
		fprintf(script.out, " [%s]", text + len);
	print_changes(&before, &n.result);
	iscsi_negotiation_finish(&n);
	fputc('\n', script.out);
}

/* ---- values ---- */

struct values {
	char v[16][24];
	unsigned count;
};

static void add(struct values *to, const char *value)
{
	assert_true(to->count < ARRAY_LEN(to->v));
	snprintf(to->v[to->count++], sizeof(to->v[0]), "%s", value);
}

static void add_number(struct values *to, uint64_t v)
{
	char s[24];

	snprintf(s, sizeof(s), "%llu", (unsigned long long)v);
	add(to, s);
}

static void add_numbers(struct values *to, const struct iscsi_key *k)
{
	if (k->min)
		add_number(to, k->min - 1);
	add_number(to, k->min);
	add_number(to, k->min + 4);
	add_number(to, k->max);
	add_number(to, k->max + 1ull);
	add(to, "0");
	add(to, "0x400");
	add(to, "12a");
	add(to, "Yes");
}

static struct values values_of(const struct iscsi_key *k, bool few)
{
	struct values v = { .count = 0 };

	switch (k->kind) {
	case ISCSI_KEY_TEXT:
		add(&v, "x");
		break;
	case ISCSI_KEY_LIST:
		add(&v, k->name[0] == 'T' ? "RFC3720" : "None");
		if (few)
			break;
		add(&v, k->name[0] == 'T' ? "ResponseFence" : "CRC32C");
		add(&v, "CRC32C,None");
		add(&v, "ResponseFence,RFC3720");
		add(&v, "FastAbort");
		add(&v, "CRC16");
		break;
	case ISCSI_KEY_OBSOLETE_BOOL:
	case ISCSI_KEY_OBSOLETE_RANGE:
	case ISCSI_KEY_DECLARED_BOOL:
	case ISCSI_KEY_AND:
	case ISCSI_KEY_OR:
		add(&v, "Yes");
		add(&v, "No");
		if (few)
			break;
		add(&v, "yes");
		add(&v, "1");
		break;
	default:
		if (few)
			add_number(&v, k->min + 3);
		else
			add_numbers(&v, k);
		break;
	}
	if (few)
		return v;
	add(&v, "Reject");
	add(&v, "Irrelevant");
	add(&v, "NotUnderstood");
	return v;
}

/* ---- proposals and answers ---- */

static const struct {
	unsigned stage;
	const char *name;
} stages[] = {
	{ ISCSI_KEY_SECURITY, "security" },
	{ ISCSI_KEY_OPERATIONAL, "operational" },
	{ ISCSI_KEY_FFP, "full feature" },
};

static void one_key(enum iscsi_role role, const struct situation *s,
		    const struct iscsi_key *k, unsigned stage, bool offered)
{
	bool few = s->few || stages[stage].stage != ISCSI_KEY_OPERATIONAL ||
		   s->rdma != !!(k->flags & ISCSI_KEY_RDMA);
	struct values v = values_of(k, few);

	for (unsigned i = 0; i < v.count; i++) {
		negotiate(role, s);
		fprintf(script.out, "  %s%s", stages[stage].name,
			offered ? ", offered" : "");
		if (offered)
			n.offered = 1ull << (k - iscsi_keys);
		print_key(stages[stage].stage, k->name, v.v[i]);
		if (i || few)
			continue;
		fprintf(script.out, "  again");
		print_key(stages[stage].stage, k->name, v.v[i]);
	}
}

static void one_situation(enum iscsi_role role, const struct situation *s)
{
	for (unsigned i = 0; i < ISCSI_KEY_COUNT; i++) {
		const struct iscsi_key *k = &iscsi_keys[i];

		fprintf(script.out, "%s, %s\n", k->name, s->name);
		for (unsigned stage = 0; stage < 3; stage++)
			if (stage == 1 || !s->few)
				one_key(role, s, k, stage, false);
		if (k->kind != ISCSI_KEY_TEXT && !s->few)
			one_key(role, s, k, 1, true);
	}
}

static void compare(enum iscsi_role role, const char *name)
{
	transcript_begin(&script);
	for (size_t i = 0; i < ARRAY_LEN(situations); i++)
		one_situation(role, &situations[i]);
	transcript_compare(&script, name);
}

/* [RFC 7143: 6.2 #5 #8 #10-12, 6.2.2 #1-2 #4-5, 6.3 #6, 11.12.10 #2, 12
 * #1, 13.24 #1, 13.25 #2-3, 13.26.1 #2, 13.26.2 #1-3] */
static void test_keys_at_a_target(void **state)
{
	(void)state;
	compare(ISCSI_TARGET, "target");
}

/* [RFC 7143: 6.2 #7 #9, 6.2.1 #4, 11.13.8 #2] */
static void test_keys_at_an_initiator(void **state)
{
	(void)state;
	compare(ISCSI_INITIATOR, "initiator");
}

/* [RFC 7143: 6.2 #6] */
static void test_a_key_that_is_not_ours(void **state)
{
	static const struct {
		const char *value, *answer;
	} rows[] = {
		{ "1", "X-org.example=NotUnderstood" },
		{ "", "X-org.example=NotUnderstood" },
		{ "NotUnderstood", "" },
		{ "Reject", "" },
		{ "Irrelevant", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		negotiate(ISCSI_TARGET, &situations[0]);
		assert_int_equal(iscsi_negotiation_key(
					 &n, ISCSI_KEY_OPERATIONAL,
					 "X-org.example", rows[i].value, &out),
				 0);
		assert_string_equal(text, rows[i].answer);
	}
}

/* [RFC 7143: 13.14 #1] */
static void test_first_burst_is_answered_within_max_burst(void **state)
{
	(void)state;
	negotiate(ISCSI_TARGET, &situations[0]);
	n.want.first_burst_length = n.want.max_burst_length = 262144;
	assert_int_equal(iscsi_negotiation_key(&n, ISCSI_KEY_OPERATIONAL,
					       "MaxBurstLength", "4096", &out),
			 0);
	assert_int_equal(iscsi_negotiation_key(&n, ISCSI_KEY_OPERATIONAL,
					       "FirstBurstLength", "8192",
					       &out),
			 0);
	assert_memory_equal(text, "MaxBurstLength=4096\0FirstBurstLength=4096",
			    sizeof("MaxBurstLength=4096\0FirstBurstLength="
				   "4096"));
}

/* ---- offers, and what follows at the end ---- */

static const struct {
	const char *name;
	unsigned digests;
	bool prefer, defaults;
} tastes[] = {
	{ "none", ISCSI_DIGEST_NONE, false, false },
	{ "CRC", ISCSI_DIGEST_CRC, false, false },
	{ "both", ISCSI_DIGEST_NONE | ISCSI_DIGEST_CRC, false, false },
	{ "both, preferred", ISCSI_DIGEST_NONE | ISCSI_DIGEST_CRC, true,
	  false },
	{ "defaults", ISCSI_DIGEST_NONE, false, true },
};

static void print_offer(const struct situation *s, unsigned taste)
{
	struct iscsi_params before;

	negotiate(ISCSI_INITIATOR, s);
	if (tastes[taste].defaults) {
		iscsi_params_defaults(&n.want);
		n.want.rdma_extensions = s->rdma;
	}
	n.header_digests = n.data_digests = tastes[taste].digests;
	n.prefer_digests = tastes[taste].prefer;
	fprintf(script.out, "%s, %s\n ", s->name, tastes[taste].name);
	before = n.result;
	iscsi_negotiation_offer(&n, &out);
	print_text();
	print_changes(&before, &n.result);
	fprintf(script.out, " offered %llx\n", (unsigned long long)n.offered);
}

static void print_finish(enum iscsi_role role, bool rdma, uint32_t first)
{
	struct iscsi_params before;

	negotiate(role, &situations[0]);
	set_wants(&n.result);
	n.result.rdma_extensions = rdma;
	n.result.header_digest = n.result.data_digest = true;
	n.result.first_burst_length = first;
	before = n.result;
	iscsi_negotiation_finish(&n);
	fprintf(script.out, "finish %d %d %u\n ", role, rdma, first);
	print_changes(&before, &n.result);
	fputc('\n', script.out);
}

/* [RFC 7143: 6.1 #3, 6.2 #16, 13 #1, 13.14 #1, 13.23 #2] */
static void test_offers_and_ends(void **state)
{
	static const struct iscsi_params zero;
	struct iscsi_params p;

	(void)state;
	transcript_begin(&script);
	memset(&p, 0xff, sizeof(p));
	iscsi_params_defaults(&p);
	fprintf(script.out, "defaults\n ");
	print_changes(&zero, &p);
	fputc('\n', script.out);
	for (size_t i = 0; i < ARRAY_LEN(situations); i++)
		for (unsigned t = 0; t < ARRAY_LEN(tastes); t++)
			print_offer(&situations[i], t);
	for (unsigned i = 0; i < 12; i++)
		print_finish(i % 2 ? ISCSI_TARGET : ISCSI_INITIATOR, i / 2 % 2,
			     2047 + i / 4);
	transcript_compare(&script, "offers");
}

static void test_numbers_rfc7143_6_1(void **state)
{
	static const struct {
		const char *text;
		int err;
		uint32_t value;
	} rows[] = {
		{ "0", 0, 0 },
		{ "7", 0, 7 },
		{ "0007", 0, 7 },
		{ "4294967295", 0, UINT32_MAX },
		{ "4294967296", ERR_FORMAT, 0 },
		{ "99999999999999999999", ERR_FORMAT, 0 },
		{ "0x0", 0, 0 },
		{ "0xff", 0, 255 },
		{ "0XFf", 0, 255 },
		{ "0xffffffff", 0, UINT32_MAX },
		{ "0x100000000", ERR_FORMAT, 0 },
		{ "", ERR_FORMAT, 0 },
		{ "0x", ERR_FORMAT, 0 },
		{ "0xg", ERR_FORMAT, 0 },
		{ "1x1", ERR_FORMAT, 0 },
		{ "a", ERR_FORMAT, 0 },
		{ "1a", ERR_FORMAT, 0 },
		{ "-1", ERR_FORMAT, 0 },
		{ "1 ", ERR_FORMAT, 0 },
		{ "00x1", ERR_FORMAT, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint32_t v = 77;

		assert_int_equal(iscsi_number_parse(rows[i].text, &v),
				 rows[i].err);
		assert_int_equal(v, rows[i].err ? 77 : rows[i].value);
	}
}

/* ---- names ---- */

static size_t put_character(char *p, uint32_t c)
{
	size_t len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	for (size_t i = len; i-- > 1; c >>= 6)
		p[i] = (char)(0x80 | (c & 0x3f));
	p[0] = (char)(len == 1 ? c : (0xf00u >> len & 0xff) | c);
	return len;
}

/* 0: refused; else what becomes of the character, read back as a number. */
static uint32_t becomes(uint32_t c, bool strict)
{
	static const char begin[] = "iqn.2026-01.x:";
	char name[32], prepared[ISCSI_NAME_MAX + 1], why[ISCSI_NAME_WHY];
	size_t at = sizeof(begin) - 1;
	const uint8_t *p = (const uint8_t *)prepared + at;

	strcpy(name, begin);
	name[at + put_character(name + at, c)] = '\0';
	if (c == 0 || iscsi_name_prepare(prepared, name, strict, why))
		return 0;
	if (p[0] < 0x80)
		return p[0];
	if (p[0] < 0xe0)
		return (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
	assert_memory_equal(prepared, name, strlen(name) + 1);
	return c;
}

/* The characters of RFC 3722 §6, as Python's stringprep module has them, and
 * the mapping of capitals. */
static void test_characters_of_names_rfc3722_6(void **state)
{
	const uint32_t end = 0x110000;

	(void)state;
	transcript_begin(&script);
	for (uint32_t c = 1, from; c < end; c++) {
		uint32_t b = becomes(c, true);

		from = c;
		if (b == c)
			continue;
		while (c + 1 < end &&
		       (b ? becomes(c + 1, true) == b + c + 1 - from
			  : becomes(c + 1, true) == 0))
			c++;
		if (b)
			fprintf(script.out, "%04x-%04x: %04x\n", from, c, b);
		else
			fprintf(script.out, "%04x-%04x: refused\n", from, c);
	}
	fprintf(script.out, "underscore: %x\n", becomes('_', false));
	transcript_compare(&script, "names");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys_at_a_target),
		cmocka_unit_test(test_keys_at_an_initiator),
		cmocka_unit_test(test_a_key_that_is_not_ours),
		cmocka_unit_test(test_first_burst_is_answered_within_max_burst),
		cmocka_unit_test(test_offers_and_ends),
		cmocka_unit_test(test_numbers_rfc7143_6_1),
		cmocka_unit_test(test_characters_of_names_rfc3722_6),
	};

	if (!transcript_args(argc, argv))
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
