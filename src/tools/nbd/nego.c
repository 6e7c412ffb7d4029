/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nego.c: the server of the fixed newstyle negotiation. One option is received
 * and answered at a time; struct nbd_nego is all the memory that a client can
 * use.
 */
#include <stdio.h>
#include <string.h>

#include "tools/nbd/proto.h"

#define GREETING      0x4e42444d41474943ull /* "NBDMAGIC" */
#define OPTION_MAGIC  0x49484156454f5054ull /* "IHAVEOPT" */
#define REPLY_MAGIC   0x0003e889045565a9ull
#define OPTION_HEADER 16
#define REPLY_HEADER  20
#define TEXT_MAX      512 /* bytes of the description that are sent */

enum handshake_flag {
	FIXED_NEWSTYLE = 1 << 0,
	NO_ZEROES = 1 << 1,
};

enum option {
	OPT_EXPORT_NAME = 1,
	OPT_ABORT = 2,
	OPT_LIST = 3,
	OPT_INFO = 6,
	OPT_GO = 7,
	OPT_STRUCTURED_REPLY = 8,
	OPT_LIST_META_CONTEXT = 9,
	OPT_SET_META_CONTEXT = 10,
};

enum reply {
	REP_ACK = 1,
	REP_SERVER = 2,
	REP_INFO = 3,
	REP_META_CONTEXT = 4,
	REP_ERR_UNSUP = (int)0x80000001,
	REP_ERR_INVALID = (int)0x80000003,
	REP_ERR_UNKNOWN = (int)0x80000006,
	REP_ERR_TOO_BIG = (int)0x80000009,
};

enum info {
	INFO_EXPORT = 0,
	INFO_NAME = 1,
	INFO_DESCRIPTION = 2,
	INFO_BLOCK_SIZE = 3,
};

enum export_flag {
	HAS_FLAGS = 1 << 0,
	READ_ONLY = 1 << 1,
	SEND_FLUSH = 1 << 2,
	SEND_FUA = 1 << 3,
	SEND_TRIM = 1 << 5,
	SEND_WRITE_ZEROES = 1 << 6,
	SEND_DF = 1 << 7,
	CAN_MULTI_CONN = 1 << 8,
};

static const char context_name[] = "base:allocation";

/* ---- output ---- */

static void fail_nego(struct nbd_nego *n, const char *why)
{
	n->state = NBD_NEGO_FAILED;
	snprintf(n->why, sizeof(n->why), "%s", why);
}

static void put_out(struct nbd_nego *n, const void *p, size_t len)
{
	if (len > sizeof(n->out) - n->out_len)
		len = sizeof(n->out) - n->out_len;
	memcpy(n->out + n->out_len, p, len);
	n->out_len += len;
}

static void put_zeroes(struct nbd_nego *n, size_t len)
{
	static const uint8_t zeroes[124];

	put_out(n, zeroes, len);
}

/* Replies to the option in progress: a head by the type of reply, then a text. */
static void put_reply(struct nbd_nego *n, enum reply type, const void *head,
		      size_t head_len, const char *text, size_t text_len)
{
	uint8_t b[REPLY_HEADER];

	nbd_put64(b, REPLY_MAGIC);
	nbd_put32(b + 8, n->option);
	nbd_put32(b + 12, (uint32_t)type);
	nbd_put32(b + 16, (uint32_t)(head_len + text_len));
	put_out(n, b, sizeof(b));
	put_out(n, head, head_len);
	put_out(n, text, text_len);
}

static void put_ack(struct nbd_nego *n)
{
	put_reply(n, REP_ACK, "", 0, "", 0);
}

static void refuse_option(struct nbd_nego *n, enum reply type, const char *text)
{
	put_reply(n, type, "", 0, text, strlen(text));
}

static uint16_t export_flags(const struct nbd_nego *n)
{
	const struct nbd_export *e = n->export;
	unsigned f = HAS_FLAGS | SEND_FLUSH | SEND_FUA | CAN_MULTI_CONN;

	if (e->read_only)
		f |= READ_ONLY;
	else
		f |= SEND_WRITE_ZEROES | (e->can_trim ? SEND_TRIM : 0);
	if (n->structured)
		f |= SEND_DF;
	return (uint16_t)f;
}

/* ---- the options ---- */

/* Returns whether a name is that of the only export; "" is the default
 * export. */
static bool names_export(const struct nbd_nego *n, const uint8_t *name,
			 size_t len)
{
	return len == 0 || (len == strlen(n->export->name) &&
			    !memcmp(name, n->export->name, len));
}

static void opt_export_name(struct nbd_nego *n)
{
	uint8_t b[10];

	if (!names_export(n, n->in, n->in_len)) {
		/* this option has no error reply */
		fail_nego(n, "asks for an export that does not exist");
		return;
	}
	nbd_put64(b, n->export->size);
	nbd_put16(b + 8, export_flags(n));
	put_out(n, b, sizeof(b));
	if (!n->no_zeroes)
		put_zeroes(n, 124);
	n->state = NBD_NEGO_OVER;
}

static void opt_list(struct nbd_nego *n)
{
	size_t len = strlen(n->export->name);
	uint8_t b[4];

	if (n->in_len) {
		refuse_option(n, REP_ERR_INVALID, "LIST takes no data");
		return;
	}
	nbd_put32(b, (uint32_t)len);
	put_reply(n, REP_SERVER, b, sizeof(b), n->export->name, len);
	put_ack(n);
}

static void put_infos(struct nbd_nego *n)
{
	const struct nbd_export *e = n->export;
	size_t text = strnlen(e->description, TEXT_MAX);
	uint8_t b[14];

	nbd_put16(b, INFO_EXPORT);
	nbd_put64(b + 2, e->size);
	nbd_put16(b + 10, export_flags(n));
	put_reply(n, REP_INFO, b, 12, "", 0);
	/* the server may send these without being asked */
	nbd_put16(b, INFO_BLOCK_SIZE);
	nbd_put32(b + 2, e->min_block);
	nbd_put32(b + 6, e->preferred_block);
	nbd_put32(b + 10, NBD_PAYLOAD_MAX);
	put_reply(n, REP_INFO, b, 14, "", 0);
	nbd_put16(b, INFO_NAME);
	put_reply(n, REP_INFO, b, 2, e->name, strlen(e->name));
	nbd_put16(b, INFO_DESCRIPTION);
	put_reply(n, REP_INFO, b, 2, e->description, text);
	put_ack(n);
}

/* INFO and GO: length of the name, name, number of requests, requests. */
static void opt_go(struct nbd_nego *n)
{
	size_t len = n->in_len >= 6 ? nbd_get32(n->in) : 0;

	if (n->in_len < 6 || len > n->in_len - 6 ||
	    n->in_len != 6 + len + 2u * nbd_get16(n->in + 4 + len)) {
		refuse_option(n, REP_ERR_INVALID, "the lengths do not add up");
		return;
	}
	if (!names_export(n, n->in + 4, len)) {
		refuse_option(n, REP_ERR_UNKNOWN, "no export of this name");
		return;
	}
	put_infos(n);
	if (n->option == OPT_GO)
		n->state = NBD_NEGO_OVER;
}

static void opt_structured_reply(struct nbd_nego *n)
{
	if (n->in_len) {
		refuse_option(n, REP_ERR_INVALID,
			      "STRUCTURED_REPLY takes no data");
		return;
	}
	n->structured = true;
	put_ack(n);
}

/* Returns whether a query names the context or, in a list, its namespace. */
static bool asks_for_context(const struct nbd_nego *n, const uint8_t *q,
			     size_t len)
{
	if (len == strlen(context_name) && !memcmp(q, context_name, len))
		return true;
	return n->option == OPT_LIST_META_CONTEXT && len == 5 &&
	       !memcmp(q, "base:", 5);
}

/* Returns 1 if a query asks for the context, 0 if none does, -1 if the lengths
 * do not add up. */
static int read_queries(const struct nbd_nego *n, size_t at)
{
	uint32_t count = nbd_get32(n->in + at);
	bool found = count == 0 && n->option == OPT_LIST_META_CONTEXT;

	at += 4;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t len;

		if (n->in_len - at < 4)
			return -1;
		len = nbd_get32(n->in + at);
		at += 4;
		if (len > n->in_len - at)
			return -1;
		found |= asks_for_context(n, n->in + at, len);
		at += len;
	}
	return at == n->in_len ? found : -1;
}

static void opt_meta_context(struct nbd_nego *n)
{
	size_t len = n->in_len >= 8 ? nbd_get32(n->in) : 0;
	bool set = n->option == OPT_SET_META_CONTEXT;
	uint8_t id[4];
	int found = -1;

	if (set)
		n->extents = false; /* this option replaces the last one */
	if (set && !n->structured) {
		refuse_option(n, REP_ERR_INVALID,
			      "negotiate structured replies first");
		return;
	}
	if (n->in_len >= 8 && len <= n->in_len - 8)
		found = read_queries(n, 4 + len);
	if (found < 0) {
		refuse_option(n, REP_ERR_INVALID, "the lengths do not add up");
		return;
	}
	if (!names_export(n, n->in + 4, len)) {
		refuse_option(n, REP_ERR_UNKNOWN, "no export of this name");
		return;
	}
	if (found && n->export->has_extents) {
		nbd_put32(id, set ? NBD_CONTEXT_ID : 0);
		put_reply(n, REP_META_CONTEXT, id, sizeof(id), context_name,
			  strlen(context_name));
		n->extents |= set;
	}
	put_ack(n);
}

static void run_option(struct nbd_nego *n)
{
	n->state = NBD_NEGO_OPTION;
	switch ((enum option)n->option) {
	case OPT_EXPORT_NAME:
		opt_export_name(n);
		break;
	case OPT_ABORT:
		put_ack(n);
		n->state = NBD_NEGO_ENDED;
		break;
	case OPT_LIST:
		opt_list(n);
		break;
	case OPT_INFO:
	case OPT_GO:
		opt_go(n);
		break;
	case OPT_STRUCTURED_REPLY:
		opt_structured_reply(n);
		break;
	case OPT_LIST_META_CONTEXT:
	case OPT_SET_META_CONTEXT:
		opt_meta_context(n);
		break;
	default:
		refuse_option(n, REP_ERR_UNSUP, "not supported");
	}
	n->in_len = 0;
}

/* ---- input ---- */

static void got_flags(struct nbd_nego *n)
{
	uint32_t flags = nbd_get32(n->in);

	n->in_len = 0;
	if (flags & ~(uint32_t)(FIXED_NEWSTYLE | NO_ZEROES)) {
		fail_nego(n, "sets handshake flags that were not offered");
		return;
	}
	n->no_zeroes = flags & NO_ZEROES;
	n->state = NBD_NEGO_OPTION;
}

static void got_option(struct nbd_nego *n)
{
	if (nbd_get64(n->in) != OPTION_MAGIC) {
		fail_nego(n, "not NBD: an option without its magic number");
		return;
	}
	n->option = nbd_get32(n->in + 8);
	n->left = nbd_get32(n->in + 12);
	n->in_len = 0;
	if (n->left > NBD_NEGO_IN && n->option == OPT_EXPORT_NAME)
		fail_nego(n, "asks for an export with too long a name");
	else if (n->left > NBD_NEGO_IN)
		n->state = NBD_NEGO_SKIP;
	else if (n->left)
		n->state = NBD_NEGO_DATA;
	else
		run_option(n);
}

size_t nbd_nego_want(struct nbd_nego *n, uint8_t **where)
{
	*where = n->in + n->in_len;
	switch (n->state) {
	case NBD_NEGO_FLAGS:
		return 4 - n->in_len;
	case NBD_NEGO_OPTION:
		return OPTION_HEADER - n->in_len;
	case NBD_NEGO_DATA:
		return n->left;
	case NBD_NEGO_SKIP:
		return n->left < NBD_NEGO_IN ? n->left : NBD_NEGO_IN;
	case NBD_NEGO_OVER:
	case NBD_NEGO_FAILED:
	case NBD_NEGO_ENDED:
		break;
	}
	return 0;
}

static void got_data(struct nbd_nego *n, size_t len)
{
	n->in_len += len;
	n->left -= (uint32_t)len;
	if (n->left == 0)
		run_option(n);
}

static void got_skipped(struct nbd_nego *n, size_t len)
{
	n->left -= (uint32_t)len;
	if (n->left)
		return;
	refuse_option(n, REP_ERR_TOO_BIG, "too long");
	n->state = NBD_NEGO_OPTION;
}

void nbd_nego_got(struct nbd_nego *n, size_t len)
{
	switch (n->state) {
	case NBD_NEGO_FLAGS:
		n->in_len += len;
		if (n->in_len == 4)
			got_flags(n);
		break;
	case NBD_NEGO_OPTION:
		n->in_len += len;
		if (n->in_len == OPTION_HEADER)
			got_option(n);
		break;
	case NBD_NEGO_DATA:
		got_data(n, len);
		break;
	case NBD_NEGO_SKIP:
		got_skipped(n, len);
		break;
	case NBD_NEGO_OVER:
	case NBD_NEGO_FAILED:
	case NBD_NEGO_ENDED:
		break;
	}
}

void nbd_nego_start(struct nbd_nego *n, const struct nbd_export *e)
{
	uint8_t b[18];

	memset(n, 0, sizeof(*n));
	n->export = e;
	nbd_put64(b, GREETING);
	nbd_put64(b + 8, OPTION_MAGIC);
	nbd_put16(b + 16, FIXED_NEWSTYLE | NO_ZEROES);
	put_out(n, b, sizeof(b));
}
