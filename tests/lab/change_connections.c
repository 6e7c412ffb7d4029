/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * change_connections.c: removes connections of a session and adds others while commands
 * are in progress, and compares all data afterwards.
 *   change_connections URL ROUNDS     the URL has connections=N, N at least 2
 */
#include <iser/iser.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WRITERS	 8
#define BLOCKS	 32 /* of 512 bytes, in a command */
#define RANGES	 64 /* each writer writes to them in turn */
#define BYTES	 (BLOCKS * 512)
#define MOST	 16 /* connections */
#define TIMEOUT	 30 /* of a removal, in seconds */
#define PAUSE_MS 50

struct writer {
	struct iser_io io;
	struct iovec iov;
	struct iser_session *s;
	unsigned number, writes;
	bool busy, failed;
	uint8_t data[BYTES];
	uint8_t last[RANGES]; /* the byte of each range */
};

static struct writer writers[WRITERS];
static bool stops;
static int lun;

static uint64_t lba_of(const struct writer *w, unsigned range)
{
	return ((uint64_t)w->number * RANGES + range) * BLOCKS;
}

static void written(struct iser_io *io);

static void submit(struct writer *w)
{
	unsigned range = w->writes % RANGES;

	w->last[range] = (uint8_t)(1 + w->writes % 251);
	memset(w->data, w->last[range], BYTES);
	memset(&w->io, 0, sizeof(w->io));
	iser_prep_rw(&w->io, lun, true, lba_of(w, range), BLOCKS);
	w->iov = (struct iovec){ w->data, BYTES };
	w->io.iov = &w->iov;
	w->io.niov = 1;
	w->io.done = written;
	w->io.arg = w;
	w->busy = true;
	w->writes++;
	iser_submit(w->s, &w->io);
}

static void written(struct iser_io *io)
{
	struct writer *w = io->arg;
	char text[256];

	w->busy = false;
	if (io->err) {
		iser_io_describe(io, text, sizeof(text));
		printf("writer %u, write %u: %s\n", w->number, w->writes, text);
		w->failed = true;
	} else if (!stops) {
		submit(w);
	}
}

static bool is_busy(void)
{
	for (unsigned i = 0; i < WRITERS; i++)
		if (writers[i].busy)
			return true;
	return false;
}

static bool service(struct iser_context *ctx, unsigned turns)
{
	for (unsigned i = 0; i < turns; i++)
		if (iser_service(ctx, 1))
			return false;
	for (unsigned i = 0; i < WRITERS; i++)
		if (writers[i].failed)
			return false;
	return true;
}

/* Removes 1 to all but one connection, and adds as many. */
static bool change(struct iser_context *ctx, struct iser_session *s,
		   unsigned round, unsigned n)
{
	uint16_t cids[MOST];
	unsigned gone = 1 + round % (n - 1), cid, at;

	for (unsigned i = 0; i < gone; i++) {
		at = (round + i) % iser_get_connections(s, cids, MOST);
		cid = cids[at];
		if (iser_remove_connection(s, cid, TIMEOUT)) {
			printf("removing connection %u: %s\n", cid,
			       iser_message(ctx));
			return false;
		}
	}
	if (!service(ctx, PAUSE_MS) ||
	    iser_get_connections(s, cids, MOST) != n - gone)
		return false;
	for (unsigned i = 0; i < gone; i++)
		if (iser_add_connection(s, &cid)) {
			printf("adding a connection: %s\n", iser_message(ctx));
			return false;
		}
	printf("round %u: %u of %u connections replaced\n", round, gone, n);
	return service(ctx, PAUSE_MS) &&
	       iser_get_connections(s, cids, MOST) == n;
}

static int read_blocks(struct iser_session *s, uint64_t lba, void *buf)
{
	struct iovec iov = { buf, BYTES };
	struct iser_io io = { .iov = &iov, .niov = 1 };

	iser_prep_rw(&io, lun, false, lba, BYTES / 512);
	return iser_run(s, &io);
}

static bool is_all_there(struct iser_session *s, const struct writer *w)
{
	static uint8_t back[BYTES];

	for (unsigned range = 0; range < RANGES && range < w->writes; range++) {
		if (read_blocks(s, lba_of(w, range), back))
			return false;
		for (unsigned i = 0; i < BYTES; i++)
			if (back[i] != w->last[range]) {
				printf("writer %u, range %u, byte %u: %u, not %u\n",
				       w->number, range, i, back[i],
				       w->last[range]);
				return false;
			}
	}
	return w->writes > 0;
}

static bool run(struct iser_context *ctx, struct iser_session *s,
		unsigned rounds, unsigned n)
{
	unsigned writes = 0;
	bool ok = true;

	for (unsigned i = 0; i < WRITERS; i++) {
		writers[i].s = s;
		writers[i].number = i;
		submit(&writers[i]);
	}
	for (unsigned i = 0; i < rounds && ok; i++)
		ok = change(ctx, s, i, n);
	stops = true;
	while (is_busy())
		if (iser_service(ctx, 100))
			return false;
	for (unsigned i = 0; i < WRITERS && ok; i++) {
		writes += writers[i].writes;
		ok = is_all_there(s, &writers[i]);
	}
	printf("%u writes\n", writes);
	return ok;
}

int main(int argc, char **argv)
{
	struct iser_context *ctx =
		iser_context_new("iqn.2026-01.org.openiser:lab");
	struct iser_session *s;
	struct iser_url url;
	char why[256];
	bool ok;
	int err;

	if (argc != 3 || !ctx) {
		fprintf(stderr, "usage: change_connections URL ROUNDS\n");
		return 2;
	}
	if (iser_url_parse(&url, argv[1], false, why, sizeof(why)) ||
	    url.connections < 2 || url.lun < 0) {
		fprintf(stderr, "change_connections: %s: not such a URL\n",
			argv[1]);
		return 2;
	}
	lun = url.lun;
	s = iser_connect(ctx, &url, &err);
	if (!s) {
		fprintf(stderr, "change_connections: %s\n", iser_message(ctx));
		return 1;
	}
	ok = run(ctx, s, (unsigned)atoi(argv[2]), url.connections);
	if (!ok)
		printf("failed: %s\n", iser_message(ctx));
	iser_disconnect(s);
	iser_context_free(ctx);
	return ok ? 0 : 1;
}
