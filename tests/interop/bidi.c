/* SPDX-License-Identifier: BSD-2-Clause */
/* bidi.c: test_order.py compiles this program, which uses iser_submit_bidi: XDWRITEREAD of
 * 200 blocks, in lengths of the CDB of 10 and (second argument "32") 32 bytes. */
#include <iser/iser.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define LEN (200 * 512)

static unsigned char out[LEN], in[LEN], old[LEN], now[LEN];
static bool over;

static void done(struct iser_io *io)
{
	(void)io;
	over = true;
}

static int xor_blocks(struct iser_context *ctx, struct iser_session *s,
		      struct iser_bidi *b, size_t in_len)
{
	struct iovec from = { out, LEN }, to = { in, in_len };

	over = false;
	b->io.iov = &from;
	b->in_iov = &to;
	b->io.niov = b->in_niov = 1;
	b->io.done = done;
	iser_submit_bidi(s, b);
	while (!over && !iser_service(ctx, 1000))
		;
	return b->io.err;
}

static int fail(struct iser_context *ctx, const char *what, int err)
{
	printf("%s: %s: %s\n", what, iser_strerror(err),
	       ctx ? iser_message(ctx) : "");
	return 1;
}

static int move_blocks(struct iser_session *s, bool write, void *buf)
{
	struct iovec iov = { buf, LEN };
	struct iser_io io = { .iov = &iov, .niov = 1 };

	iser_prep_rw(&io, 0, write, 9, LEN / 512);
	return iser_run(s, &io);
}

int main(int argc, char **argv)
{
	struct iser_context *ctx = iser_context_new(NULL);
	struct iser_bidi b = { .io = { .cdb = { 0x53 }, .cdb_len = 10 } };
	struct iser_session *s;
	struct iser_url url;
	char why[100];
	int err = iser_url_parse(&url, argv[1], false, why, sizeof(why));

	s = err ? NULL : iser_connect(ctx, &url, &err);
	if (!s)
		return fail(ctx, "connect", err);
	for (int i = 0; i < LEN; i++) {
		old[i] = (unsigned char)(i * 3);
		out[i] = (unsigned char)(i / 7 + 1);
	}
	err = move_blocks(s, true, old);
	if (err)
		return fail(ctx, "write", err);
	b.io.cdb[5] = 9;
	b.io.cdb[8] = 200;
	if (argc > 2 && !strcmp(argv[2], "32")) {
		memset(b.io.cdb, 0, 32);
		b.io.cdb_len = 32;
		b.io.cdb[0] = 0x7f;
		b.io.cdb[7] = 0x18;
		b.io.cdb[9] = 7;
		b.io.cdb[19] = 9;
		b.io.cdb[31] = 200;
	}
	err = xor_blocks(ctx, s, &b, LEN);
	if (err)
		return fail(ctx, "bidi", err);
	for (int i = 0; i < LEN; i++)
		if (in[i] != (old[i] ^ out[i]))
			return fail(NULL, "xor differs", 0);
	err = move_blocks(s, false, now);
	if (err || memcmp(now, out, LEN))
		return fail(ctx, "blocks differ", err);
	printf("%u %u %u %u\n", b.io.transferred, b.io.resid, b.in_transferred,
	       b.in_resid);
	memset(in, 0x5a, LEN); /* less room than the unit has data */
	err = xor_blocks(ctx, s, &b, 1000);
	if (err || in[1000] != 0x5a)
		return fail(ctx, "short", err);
	printf("%u %d %u\n", b.in_transferred, b.in_overflow, b.in_resid);
	iser_disconnect(s);
	iser_context_free(ctx);
	return 0;
}
