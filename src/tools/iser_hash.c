/* SPDX-License-Identifier: BSD-2-Clause */
/* iser_hash.c: iser hash URL|FILE: a digest of all bytes, in order. */
#include <getopt.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "end.h"

#define PIECE  (1u << 20)
#define PIECES 8

struct piece {
	bool ready, failed;
	size_t len;
	struct iser_io io;
	struct iovec iov;
	uint8_t *buf;
};

struct hash {
	struct end src;
	struct iser_context *ctx;
	EVP_MD_CTX *md;
	struct piece pieces[PIECES];
	size_t piece_len;
	uint64_t next, total;
	struct progress bar;
};

static void read_done(struct iser_io *io)
{
	struct piece *p = io->arg;

	p->ready = true;
	p->failed = io->err != 0;
}

static void start(struct hash *h, struct piece *p)
{
	uint64_t left = h->src.size - h->next;

	p->ready = p->failed = false;
	p->len = left < h->piece_len ? (size_t)left : h->piece_len;
	if (p->len == 0)
		return;
	end_prep(&h->src, &p->io, &p->iov, false, h->next, p->buf, p->len);
	h->next += p->len;
	p->io.done = read_done;
	p->io.arg = p;
	iser_submit(h->src.session, &p->io);
}

static int read_failed(struct hash *h, const struct piece *p)
{
	char text[200];

	iser_io_describe(&p->io, text, sizeof(text));
	say("%s: %s", h->src.name, text);
	return exit_of(p->io.err);
}

/* Waits for whatever is still on its way into our memory. */
static void settle(struct hash *h)
{
	for (unsigned i = 0; i < PIECES; i++)
		while (h->pieces[i].len && !h->pieces[i].ready &&
		       !iser_service(h->ctx, -1))
			;
}

static int hash_unit(struct hash *h)
{
	for (unsigned i = 0; i < PIECES; i++)
		start(h, &h->pieces[i]);
	for (unsigned i = 0; h->pieces[i].len; i = (i + 1) % PIECES) {
		struct piece *p = &h->pieces[i];

		while (!p->ready)
			if (iser_service(h->ctx, -1))
				return failed(h->ctx, ISER_E_SYSTEM);
		if (p->failed) {
			settle(h);
			return read_failed(h, p);
		}
		EVP_DigestUpdate(h->md, p->buf, p->len);
		h->total += p->len;
		progress_add(&h->bar, p->len);
		start(h, p);
	}
	return 0;
}

static int hash_file(struct hash *h)
{
	for (;;) {
		int64_t n = end_read_file(&h->src, h->total, h->pieces[0].buf,
					  h->piece_len);

		if (n < 0)
			return EXIT_GENERIC;
		if (n == 0)
			return 0;
		EVP_DigestUpdate(h->md, h->pieces[0].buf, (size_t)n);
		h->total += (uint64_t)n;
		progress_add(&h->bar, (uint64_t)n);
	}
}

static int run_hash(struct hash *h, const char *name)
{
	int code = end_open_source(&h->src, h->ctx, name);

	if (code)
		return code;
	h->piece_len = PIECE;
	if (h->src.max_transfer && h->src.max_transfer < PIECE)
		h->piece_len = (size_t)h->src.max_transfer;
	for (unsigned i = 0; i < PIECES; i++) {
		h->pieces[i].buf = aligned_alloc(4096, PIECE);
		if (!h->pieces[i].buf)
			return EXIT_NOMEM;
	}
	progress_start(&h->bar, "hash",
		       h->src.size == UINT64_MAX ? 0 : h->src.size);
	code = h->src.kind == END_UNIT ? hash_unit(h) : hash_file(h);
	progress_end(&h->bar);
	return code;
}

static void print_hash(struct hash *h, const struct common *common,
		       const char *algo, const char *name)
{
	unsigned char md[EVP_MAX_MD_SIZE];
	char hex[2 * EVP_MAX_MD_SIZE + 1];
	unsigned n = 0;

	EVP_DigestFinal_ex(h->md, md, &n);
	for (unsigned i = 0; i < n; i++)
		snprintf(hex + 2 * i, 3, "%02x", md[i]);
	if (common->json)
		print_json(json_pack("{s:s,s:s,s:I,s:s}", "name", name,
				     "algorithm", algo, "bytes",
				     (json_int_t)h->total, "hash", hex));
	else
		printf("%s  %s\n", hex, name);
}

static int hash(const struct common *common, const char *algo, const char *name)
{
	const EVP_MD *type = EVP_get_digestbyname(algo);
	struct hash *h;
	int code;

	if (!type) {
		say("no hash '%s'; sha256, sha512, sha1, md5, blake2b512, ...",
		    algo);
		return EXIT_INVALID;
	}
	h = calloc(1, sizeof(*h));
	if (!h)
		return EXIT_NOMEM;
	h->src.fd = -1;
	h->ctx = open_context(common);
	h->md = EVP_MD_CTX_new();
	code = h->ctx && h->md && EVP_DigestInit_ex(h->md, type, NULL)
		       ? run_hash(h, name)
		       : EXIT_NOMEM;
	if (!code)
		print_hash(h, common, algo, name);
	end_close(&h->src, false);
	for (unsigned i = 0; i < PIECES; i++)
		free(h->pieces[i].buf);
	EVP_MD_CTX_free(h->md);
	iser_context_free(h->ctx);
	free(h);
	return code;
}

static int run(int argc, char **argv)
{
	static const struct option options[] = {
		COMMON_OPTIONS,
		{ "algo", required_argument, NULL, 'a' },
		{ 0 },
	};
	struct common common = { 0 };
	const char *algo = "sha256";
	int o;

	optind = 1;
	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (o == 'a')
			algo = optarg;
		else if (!common_option(&common, o, optarg))
			return EXIT_INVALID;
	}
	if (optind + 1 != argc) {
		say("hash takes one URL or file; iser hash --help");
		return EXIT_INVALID;
	}
	return hash(&common, algo, argv[optind]);
}

const struct command command_hash = {
	.name = "hash",
	.synopsis = "[--algo NAME] URL | FILE",
	.summary = "a digest of a unit's bytes",
	.help = "  --algo NAME          sha256 (default), sha512, md5, ...\n",
	.run = run,
};
