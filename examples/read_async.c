/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * read_async.c: reads a whole unit with eight requests in progress, in a loop of its own around
 * poll, and prints the sum of all bytes.
 *   cc read_async.c $(pkg-config --cflags --libs libiser)
 */
#include <iser/unit.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define PIECE 65536

static uint64_t next, size, sum;
static unsigned in_progress;

static void submit(struct iser_unit *u, struct iser_request *r)
{
	if (next == size)
		return;
	r->op = ISER_OP_READ;
	r->offset = next;
	r->length = r->iov->iov_len = size - next < PIECE ? size - next : PIECE;
	next += r->length;
	in_progress++;
	iser_unit_submit(u, r);
}

static void done(struct iser_request *r)
{
	const uint8_t *p = r->iov->iov_base;
	char why[128];

	in_progress--;
	if (r->err) {
		iser_request_describe(r, why, sizeof(why));
		fprintf(stderr, "offset %llu: %s\n",
			(unsigned long long)r->offset, why);
		exit(1);
	}
	for (uint64_t i = 0; i < r->length; i++)
		sum += p[i];
	submit(r->arg, r); /* the next piece, with the same memory */
}

int main(int argc, char **argv)
{
	static uint8_t memory[8][PIECE];
	static struct iovec iov[8];
	static struct iser_request requests[8];
	struct iser_context *ctx = iser_context_new(NULL);
	struct iser_unit_info info;
	struct iser_session *s;
	struct iser_unit *u;
	struct iser_url url;
	char why[256];
	int err;

	if (argc != 2 || !ctx ||
	    iser_url_parse(&url, argv[1], false, why, sizeof(why))) {
		fprintf(stderr, "usage: %s URL\n", argv[0]);
		return 2;
	}
	s = iser_connect(ctx, &url, &err);
	u = s ? iser_unit_open(s, url.lun, &err) : NULL;
	if (!u) {
		fprintf(stderr, "%s\n", iser_message(ctx));
		return 1;
	}
	iser_unit_get_info(u, &info);
	size = info.bytes;
	for (int i = 0; i < 8; i++) {
		iov[i].iov_base = memory[i];
		requests[i] = (struct iser_request){
			.iov = &iov[i], .niov = 1, .done = done, .arg = u
		};
		submit(u, &requests[i]);
	}
	while (in_progress) {
		struct pollfd p = { iser_get_fd(ctx),
				    (short)iser_which_events(ctx), 0 };

		poll(&p, 1, iser_next_timeout(ctx));
		iser_service(ctx, 0);
	}
	printf("%llu bytes, sum %llu\n", (unsigned long long)size,
	       (unsigned long long)sum);
	iser_unit_close(u);
	iser_disconnect(s);
	iser_context_free(ctx);
	return 0;
}
