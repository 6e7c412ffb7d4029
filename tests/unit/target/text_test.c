/* SPDX-License-Identifier: BSD-2-Clause */
/* text_test.c: Text Requests and SendTargets (RFC 7143 Appendix C). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"
#include "fixture.h"
#include "target/internal.h"

struct env {
	struct fixture *r;
	struct peer *p, *d; /* a normal and a discovery session */
};

/* Other gateways have FIXTURE_TARGET, if the test says so. */
static bool has_others;

static void put_others(void *arg, const char *target, const struct dev_map *map,
		       tgt_put_portal *put, void *to)
{
	(void)arg;
	assert_null(map); /* every unit */
	if (!has_others || strcmp(target, FIXTURE_TARGET) != 0)
		return;
	put(to, "198.51.100.2:3260", 2);
	put(to, "127.0.0.1:3261", 2); /* of their own machine */
	put(to, "[2001:db8::3]:3260", 3);
	put(to, "[fe80::9%eth7]:3260", 4); /* of a link of their machine */
}

static void change(struct tgt_config *cfg)
{
	cfg->portals = put_others;
}

static int setup(void **state)
{
	static struct env e;

	has_others = false;
	e.r = fixture_new(1, change);
	e.p = peer_session(e.r, 0, 1);
	e.d = peer_discovery(e.r);
	*state = &e;
	return 0;
}

static int teardown(void **state)
{
	struct env *e = *state;

	fixture_free(e->r);
	return 0;
}

static struct iscsi_pdu text_pdu(struct peer *p, size_t len)
{
	return (struct iscsi_pdu){ .op = ISCSI_TEXT_REQUEST,
				   .final = true,
				   .itt = 21,
				   .ttt = ISCSI_RESERVED_TAG,
				   .cmdsn = p->cmdsn++,
				   .dsl = (uint32_t)len };
}

static struct sent *text(struct peer *p, const char *keys, size_t len)
{
	struct iscsi_pdu pdu = text_pdu(p, len);

	assert_int_equal(peer_rx(p, &pdu, keys), 0);
	return peer_next(p);
}

#define TEXT(p, keys) text(p, keys, sizeof(keys))

static void expect_text(const struct sent *s, const char *want, size_t len)
{
	assert_int_equal(s->pdu.op, ISCSI_TEXT_RESPONSE);
	assert_true(s->pdu.final);
	assert_int_equal(s->pdu.ttt, ISCSI_RESERVED_TAG);
	assert_int_equal(s->len, len);
	assert_memory_equal(s->data, want, len);
}

#define EXPECT(s, want) expect_text(s, want, sizeof(want))

#define RECORD                     \
 "TargetName=" FIXTURE_TARGET "\0" \
 "TargetAddress=192.0.2.1:3260,1"

/* [RFC 7143: 13.8 #2] */
static void test_send_targets_all_rfc7143_appendix_c(void **state)
{
	struct env *e = *state;

	EXPECT(TEXT(e->d, "SendTargets=All"), RECORD);
}

static void test_send_targets_by_name_rfc7143_appendix_c(void **state)
{
	struct env *e = *state;

	EXPECT(TEXT(e->d, "SendTargets=" FIXTURE_TARGET), RECORD);
	assert_int_equal(TEXT(e->d, "SendTargets=iqn.x")->len, 0);
}

static void test_send_targets_other_portals(void **state)
{
	struct env *e = *state;

	struct tgt_directory *d = fixture_directory(FIXTURE_TARGET);

	assert_int_equal(tgt_portal_group_address(d, 0, "192.0.2.1:3260"), 0);
	assert_int_equal(tgt_portal_group_address(d, 0, "[2001:db8::1]:3260"),
			 0);
	fixture_apply(e->r, d);
	EXPECT(TEXT(e->d, "SendTargets=All"),
	       RECORD "\0TargetAddress=[2001:db8::1]:3260,1");
}

/* The addresses that a portal group announces replace that of the connection. */
static void test_send_targets_announced(void **state)
{
	struct env *e = *state;
	const struct tgt_portal_group_config translated = {
		.tag = FIXTURE_TAG,
		.discovery = TGT_DISCOVERY_ALL,
		.announces = true,
	};
	struct tgt_directory *d = tgt_directory_new();

	assert_non_null(d);
	assert_int_equal(tgt_portal_group_add(d, &translated), 0);
	assert_int_equal(tgt_portal_group_address(d, 0, "203.0.113.7:9"), 0);
	fixture_target(d, FIXTURE_TARGET);
	fixture_apply(e->r, d);
	EXPECT(TEXT(e->d, "SendTargets=All"),
	       "TargetName=" FIXTURE_TARGET "\0TargetAddress=203.0.113.7:9,1");
	EXPECT(TEXT(e->p, "SendTargets="),
	       "TargetName=" FIXTURE_TARGET "\0TargetAddress=203.0.113.7:9,1");
}

/* An address as SendTargets reports it: RFC 4007 §11.2. */
static const char *without_zone(const char *address)
{
	static char out[TGT_ADDR_STR];
	size_t n = strcspn(address, "%");

	snprintf(out, sizeof(out), "%.*s%s", (int)n, address,
		 address + n + strcspn(address + n, "]"));
	return out;
}

/* An address that the initiator cannot reach would delay its login. Each column
 * is an address of the portal group, each row the address that the initiator has
 * connected to. */
static void test_send_targets_reachable_rfc4007_11_2(void **state)
{
	static const char *const addresses[] = {
		"198.51.100.1:3260", "[2001:db8::1]:3260", "127.0.0.1:3260",
		"[::1]:3260",	     "169.254.1.1:3260",   "[fe80::1%a]:3260",
		"[febf::1%b]:3260",  "[fec0::1]:3260",
	};
	static const struct {
		const char *local, *listed; /* a letter per address */
	} rows[] = {
		{ "192.0.2.1:3260", "yynnnnny" },
		{ "[2001:db8::9]:3260", "yynnnnny" },
		{ "127.0.0.2:3260", "yyyyynny" },
		{ "[::1]:9", "yyyyynny" },
		{ "local", "yyyyynny" },
		{ "169.254.9.9:3260", "yynnynny" },
		{ "[fe80::9%a]:3260", "yynnnyny" },
		{ "[fe80::9%b]:3260", "yynnnnyy" },
		{ "[fe80::9%ab]:3260", "yynnnnny" },
	};
	struct tgt_directory *d = fixture_directory(FIXTURE_TARGET);
	struct env *e = *state;

	for (size_t i = 0; i < ARRAY_LEN(addresses); i++)
		assert_int_equal(tgt_portal_group_address(d, 0, addresses[i]),
				 0);
	fixture_apply(e->r, d);
	for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
		struct tgt_conn *conn = e->d->dm.user;
		const struct sent *s;
		char lines[2048];

		strcpy(conn->info.local, rows[r].local);
		s = TEXT(e->d, "SendTargets=All");
		assert_true(s->len && s->len < sizeof(lines));
		for (size_t i = 0; i < s->len; i++)
			lines[i] = s->data[i] ? (char)s->data[i] : '\n';
		lines[s->len] = '\0';
		assert_non_null(strstr(lines, without_zone(rows[r].local)));
		assert_null(strchr(lines, '%'));
		for (size_t i = 0; i < ARRAY_LEN(addresses); i++)
			assert_int_equal(strstr(lines,
						without_zone(addresses[i])) !=
						 NULL,
					 rows[r].listed[i] == 'y');
	}
}

#define OTHERS                         \
 "\0TargetAddress=198.51.100.2:3260,2" \
 "\0TargetAddress=[2001:db8::3]:3260,3"

/* Portals of other gateways are listed where the initiator may log in, and as far as
 * it can reach them. */
static void test_send_targets_of_other_gateways(void **state)
{
	struct env *e = *state;
	struct tgt_directory *d = fixture_directory(FIXTURE_TARGET);
	const struct tgt_portal_group_config open = {
		.tag = FIXTURE_TAG, .discovery = TGT_DISCOVERY_ALL
	};
	const struct tgt_target_config closed = { .name = FIXTURE_TARGET,
						  .auth_group = TGT_AUTH_NONE };

	fixture_target(d, FIXTURE_SECOND);
	fixture_apply(e->r, d);
	has_others = true;
	EXPECT(TEXT(e->d, "SendTargets=" FIXTURE_TARGET), RECORD OTHERS);
	EXPECT(TEXT(e->d, "SendTargets=" FIXTURE_SECOND),
	       "TargetName=" FIXTURE_SECOND "\0"
	       "TargetAddress=192.0.2.1:3260,1");
	EXPECT(TEXT(e->p, "SendTargets="), RECORD OTHERS);
	d = tgt_directory_new();
	assert_non_null(d);
	assert_int_equal(tgt_portal_group_add(d, &open), 0);
	assert_int_equal(tgt_target_add(d, &closed), 0);
	assert_int_equal(tgt_target_portal_group(d, 0, 0), 0);
	fixture_apply(e->r, d);
	EXPECT(TEXT(e->d, "SendTargets=All"), RECORD);
}

static void test_send_targets_normal_session_rfc7143_appendix_c(void **state)
{
	struct tgt_directory *d = fixture_directory(FIXTURE_TARGET);
	struct env *e = *state;

	fixture_target(d, FIXTURE_SECOND);
	fixture_apply(e->r, d);
	EXPECT(TEXT(e->p, "SendTargets="), RECORD);
	EXPECT(TEXT(e->p, "SendTargets=" FIXTURE_TARGET), RECORD);
	assert_int_equal(TEXT(e->p, "SendTargets=" FIXTURE_SECOND)->len, 0);
	EXPECT(TEXT(e->p, "SendTargets=All"), "SendTargets=Reject");
}

/* More targets than one PDU holds: C bit, TTT, the next piece on demand. */
/* [RFC 7143: 6.2 #1, 6.4 #2-3, 11.10.4 #1 #3, 11.11.1 #1-3, 11.11.2 #1,
 * 11.11.4 #1-2, 11.11.6 #1] */
static void test_send_targets_in_pieces_rfc7143_11_10_4(void **state)
{
	struct tgt_directory *d = fixture_directory(FIXTURE_TARGET);
	static char all[65536];
	struct env *e = *state;
	struct sent *s;
	size_t len = 0;
	unsigned names = 0;

	for (int i = 0; i < 300; i++) {
		char name[64];

		snprintf(name, sizeof(name), "iqn.2026-01.org.example:many.%d",
			 i);
		fixture_target(d, name);
	}
	fixture_apply(e->r, d);
	s = TEXT(e->d, "SendTargets=All");
	for (;;) {
		struct iscsi_pdu pdu = text_pdu(e->d, 0);

		assert_int_equal(s->pdu.op, ISCSI_TEXT_RESPONSE);
		memcpy(all + len, s->data, s->len);
		len += s->len;
		if (s->pdu.final) {
			assert_int_equal(s->pdu.ttt, ISCSI_RESERVED_TAG);
			assert_false(s->pdu.cont);
			break;
		}
		assert_true(s->pdu.cont);
		assert_int_not_equal(s->pdu.ttt, ISCSI_RESERVED_TAG);
		assert_int_equal(s->len, 8192); /* the default */
		pdu.ttt = s->pdu.ttt;
		peer_rx(e->d, &pdu, NULL);
		s = peer_next(e->d);
	}
	for (size_t i = 0; i < len; i += strlen(all + i) + 1)
		names += !strncmp(all + i, "TargetName=", 11);
	assert_int_equal(names, 301);
}

/* A longer request than the target accepts is rejected, and its text
 * dropped. */
static void test_answer_too_long(void **state)
{
	struct tgt_directory *d = fixture_directory(FIXTURE_TARGET);
	struct env *e = *state;
	struct sent *s;

	for (int i = 0; i < 500; i++) {
		char name[ISCSI_NAME_MAX + 1];

		snprintf(name, sizeof(name), "iqn.2026-01.org.example:%0190d",
			 i);
		fixture_target(d, name);
	}
	for (int i = 0; i < 120; i++) {
		char address[TGT_ADDR_STR];

		snprintf(address, sizeof(address), "%060d", i);
		assert_int_equal(tgt_portal_group_address(d, 0, address), 0);
	}
	fixture_apply(e->r, d);
	s = TEXT(e->d, "SendTargets=All");
	assert_int_equal(s->pdu.op, ISCSI_REJECT);
	assert_int_equal(s->pdu.reject.reason, ISCSI_REJECT_LONG_OP);
	e->d->cmdsn--; /* not received (§7.3) */
	assert_int_equal(TEXT(e->d, "SendTargets=" FIXTURE_TARGET)->pdu.op,
			 ISCSI_TEXT_RESPONSE);
}

/* [RFC 7143: 6.2 #2] */
static void test_request_in_pieces_rfc7143_11_10_2(void **state)
{
	struct env *e = *state;
	struct iscsi_pdu pdu = text_pdu(e->d, 8);
	struct sent *s;

	pdu.final = false;
	pdu.cont = true;
	peer_rx(e->d, &pdu, "SendTarg");
	s = peer_expect(e->d, ISCSI_TEXT_RESPONSE);
	assert_false(s->pdu.final);
	assert_int_equal(s->len, 0);
	pdu = text_pdu(e->d, 8);
	pdu.ttt = s->pdu.ttt;
	peer_rx(e->d, &pdu, "ets=All");
	EXPECT(peer_next(e->d), RECORD);
}

/* C without data: an empty response with a tag, by which the keys follow. */
static void test_c_without_data_rfc7143_11_10_2(void **state)
{
	struct env *e = *state;
	uint32_t ttt = ISCSI_RESERVED_TAG;
	struct iscsi_pdu pdu;
	struct sent *s;

	for (unsigned i = 0; i < 100; i++) {
		pdu = text_pdu(e->d, 0);
		pdu.final = false;
		pdu.cont = true;
		pdu.ttt = ttt;
		peer_rx(e->d, &pdu, NULL);
		s = peer_expect(e->d, ISCSI_TEXT_RESPONSE);
		assert_false(s->pdu.final);
		assert_false(s->pdu.cont);
		assert_int_equal(s->len, 0);
		ttt = s->pdu.ttt;
		assert_int_not_equal(ttt, ISCSI_RESERVED_TAG);
	}
	pdu = text_pdu(e->d, 16);
	pdu.ttt = ttt;
	peer_rx(e->d, &pdu, "SendTargets=All");
	EXPECT(peer_next(e->d), RECORD);
}

static void test_stale_tag_rejected_rfc7143_11_10_4(void **state)
{
	struct env *e = *state;
	struct iscsi_pdu pdu = text_pdu(e->d, 0);

	pdu.ttt = 77;
	peer_rx(e->d, &pdu, NULL);
	assert_int_equal(peer_expect(e->d, ISCSI_REJECT)->pdu.reject.reason,
			 ISCSI_REJECT_INVALID_PDU_FIELD);
}

/* [RFC 7143: 4.3 #1, 13.22 #2] */
static void test_discovery_takes_no_other_key_rfc7143_13_21(void **state)
{
	struct env *e = *state;

	assert_int_equal(TEXT(e->d, "X-org.example.key=1")->pdu.op,
			 ISCSI_REJECT);
}

/* [RFC 7143: 6.2 #6] */
static void test_unknown_key_rfc7143_6_2(void **state)
{
	struct env *e = *state;

	EXPECT(TEXT(e->p, "X-org.example.key=1"),
	       "X-org.example.key=NotUnderstood");
}

static void test_login_key_rejected_rfc7143_13(void **state)
{
	struct env *e = *state;

	assert_int_equal(TEXT(e->p, "MaxConnections=4")->pdu.op, ISCSI_REJECT);
}

/* [RFC 7143: 6.1 #1] */
static void test_malformed_text_rejected_rfc7143_6_1(void **state)
{
	struct env *e = *state;

	assert_int_equal(text(e->p, "no equal sign", 13)->pdu.reject.reason,
			 ISCSI_REJECT_PROTOCOL);
	assert_int_equal(text(e->d, "SendTargets=All", 15)->pdu.reject.reason,
			 ISCSI_REJECT_PROTOCOL); /* no NUL at the end */
}

static void test_request_too_long(void **state)
{
	struct env *e = *state;
	char *big = calloc(1, 9000);
	struct iscsi_pdu pdu = text_pdu(e->p, 9000);

	memset(big, 'a', 9000);
	peer_rx(e->p, &pdu, big);
	peer_expect(e->p, ISCSI_REJECT);
	free(big);
	e->p->cmdsn = pdu.cmdsn; /* not received (§7.3) */
	EXPECT(TEXT(e->p, "SendTargets="),
	       RECORD); /* the session still works */
}

/* §13.12: may be declared in any stage. */
static void test_max_recv_dsl_declared_again(void **state)
{
	struct env *e = *state;
	struct iscsi_pdu nop = { .op = ISCSI_NOP_OUT,
				 .immediate = true,
				 .final = true,
				 .itt = 3,
				 .ttt = ISCSI_RESERVED_TAG,
				 .dsl = 4096 };
	static uint8_t data[4096];

	assert_int_equal(TEXT(e->p, "MaxRecvDataSegmentLength=1024")->pdu.op,
			 ISCSI_TEXT_RESPONSE);
	nop.cmdsn = e->p->cmdsn;
	peer_rx(e->p, &nop, data);
	assert_int_equal(peer_expect(e->p, ISCSI_NOP_IN)->len, 1024);
	assert_int_equal(e->p->params.max_send_dsl, 1024);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_send_targets_all_rfc7143_appendix_c),
		T(test_send_targets_by_name_rfc7143_appendix_c),
		T(test_send_targets_other_portals),
		T(test_send_targets_announced),
		T(test_send_targets_reachable_rfc4007_11_2),
		T(test_send_targets_of_other_gateways),
		T(test_send_targets_normal_session_rfc7143_appendix_c),
		T(test_send_targets_in_pieces_rfc7143_11_10_4),
		T(test_answer_too_long),
		T(test_request_in_pieces_rfc7143_11_10_2),
		T(test_c_without_data_rfc7143_11_10_2),
		T(test_stale_tag_rejected_rfc7143_11_10_4),
		T(test_discovery_takes_no_other_key_rfc7143_13_21),
		T(test_unknown_key_rfc7143_6_2),
		T(test_login_key_rejected_rfc7143_13),
		T(test_malformed_text_rejected_rfc7143_6_1),
		T(test_request_too_long),
		T(test_max_recv_dsl_declared_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
