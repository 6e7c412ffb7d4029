/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iser_copy.c: iser copy SRC DST. A ring of pieces, each read and then
 * written; many are under way at once. Holes stay holes.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "end.h"

#define PIECE  (512u << 10)
#define PIECES 16

enum piece_state {
	PIECE_FREE,
	PIECE_READING,
	PIECE_READ,
	PIECE_WRITING,
};

struct piece {
	enum piece_state state;
	struct copy *copy;
	uint64_t off;
	size_t len; /* bytes of the source */
	struct iser_io io;
	struct iovec iov;
	uint8_t *buf;
};

struct copy {
	struct end src, dst;
	struct iser_context *ctx;
	struct piece pieces[PIECES];
	size_t piece_len;
	uint64_t next;	  /* the next byte to read ... */
	uint64_t stop;	  /* ... of a data run up to here */
	uint64_t written; /* pipes: everything before it went out */
	uint64_t zeros;
	bool eof;
	int code; /* the first failure; nothing new is begun after it */
	struct progress bar;
};

/* ---- writing ---- */

static void piece_over(struct piece *p)
{
	progress_add(&p->copy->bar, p->len);
	p->state = PIECE_FREE;
}

static void write_done(struct iser_io *io)
{
	struct piece *p = io->arg;

	if (io->err && !p->copy->code) {
		char text[200];

		iser_io_describe(io, text, sizeof(text));
		say("%s: at byte %llu: %s", p->copy->dst.name,
		    (unsigned long long)p->off, text);
		p->copy->code = exit_of(io->err);
	}
	piece_over(p);
}

/* The source ends inside a block of the unit: what lies behind stays. */
static bool fill_last_block(struct copy *c, struct piece *p, size_t *len)
{
	uint32_t block = c->dst.block;
	size_t torn = p->len % block;
	uint8_t *last;

	*len = p->len - torn;
	if (torn == 0)
		return true;
	last = malloc(block);
	if (!last || iser_read(c->dst.session, c->dst.url.lun, block,
			       (p->off + *len) / block, last, block)) {
		c->code = last ? failed(c->ctx, ISER_E_SCSI) : EXIT_NOMEM;
		free(last);
		return false;
	}
	memcpy(p->buf + p->len, last + torn, block - torn);
	free(last);
	*len += block;
	return true;
}

static void write_unit(struct copy *c, struct piece *p)
{
	size_t len;

	p->state = PIECE_WRITING;
	if (p->off + p->len > c->dst.size) {
		say("%s is full after %llu bytes", c->dst.name,
		    (unsigned long long)c->dst.size);
		c->code = EXIT_INVALID;
	}
	if (c->code || !fill_last_block(c, p, &len)) {
		piece_over(p);
		return;
	}
	end_prep(&c->dst, &p->io, &p->iov, true, p->off, p->buf, len);
	p->io.done = write_done;
	p->io.arg = p;
	iser_submit(c->dst.session, &p->io);
}

static void write_file(struct copy *c, struct piece *p)
{
	if (!c->code)
		c->code = end_write_file(&c->dst, p->off, p->buf, p->len);
	c->written = p->off + p->len;
	piece_over(p);
}

/* A pipe takes pieces in their order, and holes as zeros. */
static bool in_turn(struct copy *c, const struct piece *p)
{
	if (c->dst.kind != END_PIPE || c->code || p->off == c->written)
		return true;
	for (unsigned i = 0; i < PIECES; i++)
		if (c->pieces[i].state != PIECE_FREE &&
		    c->pieces[i].off < p->off)
			return false;
	c->code = end_zero(&c->dst, c->written, p->off - c->written);
	return true;
}

static void start_writes(struct copy *c)
{
	for (unsigned i = 0; i < PIECES; i++) {
		struct piece *p = &c->pieces[i];

		if (p->state != PIECE_READ || !in_turn(c, p))
			continue;
		if (c->dst.kind == END_UNIT)
			write_unit(c, p);
		else
			write_file(c, p);
	}
}

/* ---- reading ---- */

static void read_done(struct iser_io *io)
{
	struct piece *p = io->arg;

	p->state = PIECE_READ;
	if (!io->err)
		return;
	if (!p->copy->code) {
		char text[200];

		iser_io_describe(io, text, sizeof(text));
		say("%s: at byte %llu: %s", p->copy->src.name,
		    (unsigned long long)p->off, text);
		p->copy->code = exit_of(io->err);
	}
	p->state = PIECE_FREE;
}

static void read_file(struct copy *c, struct piece *p)
{
	int64_t n = end_read_file(&c->src, p->off, p->buf, p->len);

	if (n < 0) {
		c->code = EXIT_GENERIC;
		return;
	}
	if ((size_t)n < p->len) { /* a pipe's end, or a file cut meanwhile */
		c->eof = true;
		p->len = (size_t)n;
		c->next = p->off + p->len;
	}
	if (n > 0)
		p->state = PIECE_READ;
}

static void start_read(struct copy *c, struct piece *p, size_t len)
{
	p->off = c->next;
	p->len = len;
	c->next += len;
	if (c->src.kind != END_UNIT) {
		read_file(c, p);
		return;
	}
	p->state = PIECE_READING;
	end_prep(&c->src, &p->io, &p->iov, false, p->off, p->buf, len);
	p->io.done = read_done;
	p->io.arg = p;
	iser_submit(c->src.session, &p->io);
}

/* Goes on to the next run of data; what lies between becomes zeros. */
static void next_run(struct copy *c)
{
	uint64_t start, block = c->dst.block;

	if (c->next == c->src.size) {
		c->eof = true;
		return;
	}
	end_next_data(&c->src, c->next, &start, &c->stop);
	/* a hole that begins or ends inside a block of the sink is data */
	start -= start % block;
	if (start <= c->next) {
		start = c->next;
	} else {
		c->zeros += start - c->next;
		if (c->dst.kind != END_PIPE)
			c->code = end_zero(&c->dst, c->next, start - c->next);
		progress_add(&c->bar, start - c->next);
	}
	if (c->stop < c->src.size)
		c->stop += (block - c->stop % block) % block;
	if (c->stop > c->src.size)
		c->stop = c->src.size;
	if (c->stop < start)
		c->stop = start;
	c->next = start;
}

static void start_reads(struct copy *c)
{
	for (unsigned i = 0; i < PIECES && !c->eof && !c->code; i++) {
		uint64_t left;

		while (c->next == c->stop && !c->eof && !c->code)
			next_run(c);
		if (c->pieces[i].state != PIECE_FREE || c->eof || c->code)
			continue;
		left = c->stop - c->next;
		start_read(c, &c->pieces[i],
			   left < c->piece_len ? (size_t)left : c->piece_len);
	}
}

/* ---- the whole ---- */

static bool busy(const struct copy *c, bool *waiting)
{
	bool any = false;

	*waiting = false;
	for (unsigned i = 0; i < PIECES; i++) {
		any |= c->pieces[i].state != PIECE_FREE;
		*waiting |= c->pieces[i].state == PIECE_READING ||
			    c->pieces[i].state == PIECE_WRITING;
	}
	return any;
}

static void run_copy(struct copy *c)
{
	bool waiting;

	for (;;) {
		start_reads(c);
		start_writes(c);
		if (!busy(c, &waiting) && (c->eof || c->code))
			break;
		if (waiting && iser_service(c->ctx, -1)) {
			c->code = failed(c->ctx, ISER_E_SYSTEM);
			break;
		}
	}
	/* a pipe's hole at the end */
	if (!c->code && c->dst.kind == END_PIPE && c->written < c->next)
		c->code = end_zero(&c->dst, c->written, c->next - c->written);
}

static int alloc_pieces(struct copy *c)
{
	uint64_t most = PIECE;

	if (c->src.max_transfer && c->src.max_transfer < most)
		most = c->src.max_transfer;
	if (c->dst.max_transfer && c->dst.max_transfer < most)
		most = c->dst.max_transfer;
	c->piece_len = (size_t)most;
	for (unsigned i = 0; i < PIECES; i++) {
		/* a block more, for a torn end */
		c->pieces[i].buf = aligned_alloc(4096, most + 65536);
		c->pieces[i].copy = c;
		if (!c->pieces[i].buf)
			return EXIT_NOMEM;
	}
	return 0;
}

static int open_ends(struct copy *c, const char *src, const char *dst)
{
	int code = end_open_source(&c->src, c->ctx, src);

	if (!code)
		code = end_open_sink(&c->dst, c->ctx, dst, c->src.size);
	if (!code && c->src.kind == END_PIPE)
		c->stop = UINT64_MAX;
	return code ? code : alloc_pieces(c);
}

static void report(const struct copy *c, bool json, uint64_t ns)
{
	char total[32], rate[32], holes[32];
	double s = (double)ns / 1e9;

	if (json) {
		print_json(json_pack("{s:s,s:s,s:I,s:I,s:f}", "source",
				     c->src.name, "destination", c->dst.name,
				     "bytes", (json_int_t)c->next, "hole_bytes",
				     (json_int_t)c->zeros, "seconds", s));
		return;
	}
	fprintf(stderr, "%s copied (%s of it holes) in %.2f s, %s/s\n",
		human(c->next, total), human(c->zeros, holes), s,
		human((uint64_t)((double)c->next / (s > 0 ? s : 1)), rate));
}

static int copy(const struct common *common, bool quiet, char **names)
{
	struct copy *c = calloc(1, sizeof(*c));
	uint64_t start = now_ns();
	int code = EXIT_NOMEM, close_code;

	if (!c)
		return EXIT_NOMEM;
	c->src.fd = c->dst.fd = -1;
	c->ctx = open_context(common);
	if (c->ctx)
		code = open_ends(c, names[0], names[1]);
	if (!code) {
		progress_start(&c->bar, "copy",
			       c->src.size == UINT64_MAX ? 0 : c->src.size);
		c->bar.on &= !quiet && !common->json;
		run_copy(c);
		progress_end(&c->bar);
		code = c->code;
	}
	close_code = end_close(&c->dst, code == 0);
	if (!code)
		code = close_code;
	end_close(&c->src, false);
	if (!code && (!quiet || common->json))
		report(c, common->json, now_ns() - start);
	for (unsigned i = 0; i < PIECES; i++)
		free(c->pieces[i].buf);
	iser_context_free(c->ctx);
	free(c);
	return code;
}

static int run(int argc, char **argv)
{
	static const struct option options[] = {
		COMMON_OPTIONS,
		{ "quiet", no_argument, NULL, 'q' },
		{ 0 },
	};
	struct common common = { 0 };
	bool quiet = false;
	int o;

	optind = 1;
	while ((o = getopt_long(argc, argv, "q", options, NULL)) != -1) {
		if (o == 'q')
			quiet = true;
		else if (!common_option(&common, o, optarg))
			return EXIT_INVALID;
	}
	if (optind + 2 != argc) {
		say("copy takes a source and a destination; iser copy --help");
		return EXIT_INVALID;
	}
	return copy(&common, quiet, argv + optind);
}

const struct command command_copy = {
	.name = "copy",
	.synopsis = "[--quiet] SRC DST",
	.summary = "copy between units, files and pipes; holes stay holes",
	.help = "  SRC, DST             a URL, a file or block device, or -\n"
		"  --quiet              no progress, no last line\n",
	.run = run,
};
