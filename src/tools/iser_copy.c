/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iser_copy.c: iser copy SRC DST. A fixed number of pieces, each of which is
 * read and then written; all may be in progress at once. Holes stay holes.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/end.h"

#define PIECE  (512u << 10)
#define PIECES 16

enum piece_state {
	PIECE_FREE,
	PIECE_READING, /* a READ of the source is in progress */
	PIECE_READ,    /* its data wait to be written */
	PIECE_WRITING, /* a WRITE of the destination is in progress */
};

struct piece {
	enum piece_state state;
	struct copy *copy;
	uint64_t off;
	size_t len; /* bytes of the source */
	struct iser_request request;
	struct iovec iov;
	uint8_t *buf;
};

struct copy {
	struct end src, dst;
	struct iser_context *ctx;
	struct piece pieces[PIECES];
	uint64_t next;	  /* offset of the next byte to read ... */
	uint64_t stop;	  /* ... of the data run that ends here */
	uint64_t written; /* files and pipes: offset after the last write */
	uint64_t zeros;	  /* bytes that were holes in the source */
	bool eof;
	int code; /* exit code of the first failure, which ends the copy */
	struct progress bar;
};

/* ---- writing ---- */

static void free_piece(struct piece *p)
{
	progress_add(&p->copy->bar, p->len);
	p->state = PIECE_FREE;
}

static void write_completed(struct iser_request *r)
{
	struct piece *p = r->arg;
	struct copy *c = p->copy;

	if (r->err && !c->code)
		c->code = say_request(c->dst.unit, r, "%s", c->dst.name);
	free_piece(p);
}

static void write_unit(struct copy *c, struct piece *p)
{
	p->state = PIECE_WRITING;
	if (p->off + p->len > c->dst.size) {
		say("%s: no room after %llu bytes; use a larger destination",
		    c->dst.name, (unsigned long long)c->dst.size);
		c->code = EXIT_INVALID;
	}
	if (c->code) {
		free_piece(p);
		return;
	}
	p->request.done = write_completed;
	end_submit(&c->dst, &p->request, &p->iov, true, p->off, p->buf, p->len);
}

static void write_file(struct copy *c, struct piece *p)
{
	if (!c->code)
		c->code = end_write_file(&c->dst, p->off, p->buf, p->len);
	c->written = p->off + p->len;
	free_piece(p);
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

static void read_completed(struct iser_request *r)
{
	struct piece *p = r->arg;
	struct copy *c = p->copy;

	p->state = r->err ? PIECE_FREE : PIECE_READ;
	if (r->err && !c->code)
		c->code = say_request(c->src.unit, r, "%s", c->src.name);
}

static void read_file(struct copy *c, struct piece *p)
{
	int64_t n = end_read_file(&c->src, p->off, p->buf, p->len);

	if (n < 0) {
		c->code = EXIT_GENERIC;
		return;
	}
	if ((size_t)n < p->len) { /* the end of a pipe, or of a cut file */
		c->eof = true;
		p->len = (size_t)n;
		c->next = p->off + p->len;
		if (c->src.kind == END_FILE)
			c->code = end_cut(&c->src, c->next);
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
	p->request.done = read_completed;
	end_submit(&c->src, &p->request, &p->iov, false, p->off, p->buf, len);
}

/* Moves on to the next run of data; the hole in front of it becomes zeros. */
static void next_run(struct copy *c)
{
	uint64_t start, block = c->dst.block;

	if (c->next == c->src.size) {
		c->eof = true;
		return;
	}
	end_next_data(&c->src, c->next, &start, &c->stop);
	/* a block of the sink that is only partly a hole is copied as data */
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
			   left < PIECE ? (size_t)left : PIECE);
	}
}

/* ---- the copy ---- */

/* Whether any piece is in use; *waiting: whether one waits for a unit. */
static bool has_pieces(const struct copy *c, bool *waiting)
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
		if (!has_pieces(c, &waiting) && (c->eof || c->code))
			break;
		if (waiting && iser_service(c->ctx, -1)) {
			c->code = say_failed(c->ctx, ISER_E_SYSTEM);
			break;
		}
	}
	if (!c->code)
		c->code = end_check_source(&c->src);
	/* a hole at the end has no piece: a pipe gets its zeros here */
	if (!c->code && c->dst.kind == END_PIPE && c->written < c->next)
		c->code = end_zero(&c->dst, c->written, c->next - c->written);
}

static int alloc_pieces(struct copy *c)
{
	for (unsigned i = 0; i < PIECES; i++) {
		c->pieces[i].buf = alloc_pages(PIECE);
		c->pieces[i].copy = c;
		c->pieces[i].request.arg = &c->pieces[i];
		if (!c->pieces[i].buf)
			return say_no_memory();
	}
	return 0;
}

static int open_ends(struct copy *c, const char *src, const char *dst)
{
	int code = end_open_source(&c->src, c->ctx, src);

	if (!code)
		code = end_open_sink(&c->dst, c->ctx, dst, &c->src);
	if (!code && c->src.kind == END_PIPE)
		c->stop = UINT64_MAX;
	if (!code)
		code = alloc_pieces(c);
	return code ? code : end_begin(&c->dst, c->src.size);
}

static void print_result(const struct copy *c, bool json, uint64_t ns)
{
	char total[32], rate[32], holes[32];
	double s = (double)ns / 1e9;

	if (json) {
		print_json(json_pack("{s:o,s:o,s:I,s:I,s:f}", "source",
				     json_text(c->src.name), "destination",
				     json_text(c->dst.name), "bytes",
				     (json_int_t)c->next, "hole_bytes",
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
		return say_no_memory();
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
		print_result(c, common->json, now_ns() - start);
	for (unsigned i = 0; i < PIECES; i++)
		free(c->pieces[i].buf);
	iser_context_free(c->ctx);
	free(c);
	return code;
}

struct args {
	bool quiet;
};

static const struct opt_row rows[] = {
	{ .name = "quiet",
	  .letter = 'q',
	  OPT_FLAG(struct args, quiet),
	  .help = "print neither progress nor the last line" },
};

static int run_copy_command(const struct call *call)
{
	const struct args *a = call->args;

	return copy(call->common, a->quiet, call->operands);
}

const struct command command_copy = {
	.name = "copy",
	.synopsis = "[--quiet] SRC DST",
	.summary = "copy between units, files and pipes; holes stay holes",
	.notes = "SRC and DST are a URL, a file, a block device, or - for "
		 "standard input or\noutput.\n",
	.rows = rows,
	.nrows = ARRAY_LEN(rows),
	.args_size = sizeof(struct args),
	.min_operands = 2,
	.max_operands = 2,
	.run = run_copy_command,
};
