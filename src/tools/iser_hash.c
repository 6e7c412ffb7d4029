/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iser_hash.c: iser hash URL|FILE: a digest of all bytes, in order. Several
 * reads of a unit are in progress at once, in a ring of pieces.
 */
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "tools/end.h"

#define PIECE  (1u << 20)
#define PIECES 8

struct piece {
	bool ready; /* its read has ended */
	size_t len; /* 0: the unit ended before this piece */
	struct iser_request request;
	struct iovec iov;
	uint8_t *buf;
};

struct hash {
	struct end src;
	struct iser_context *ctx;
	EVP_MD_CTX *md;
	struct piece pieces[PIECES];
	uint64_t next, total;
	struct progress bar;
};

static void read_completed(struct iser_request *r)
{
	struct piece *p = r->arg;

	p->ready = true;
}

static void start_read(struct hash *h, struct piece *p)
{
	uint64_t left = h->src.size - h->next;

	p->ready = false;
	p->len = left < PIECE ? (size_t)left : PIECE;
	if (p->len == 0)
		return;
	p->request.done = read_completed;
	p->request.arg = p;
	end_submit(&h->src, &p->request, &p->iov, false, h->next, p->buf,
		   p->len);
	h->next += p->len;
}

/* The ring keeps the order of the bytes: each piece is hashed in its turn and then
 * read again. A piece without bytes is after the last one. After an error end_close
 * waits for the other reads. */
static int hash_unit(struct hash *h)
{
	for (unsigned i = 0; i < PIECES; i++)
		start_read(h, &h->pieces[i]);
	for (unsigned i = 0; h->pieces[i].len; i = (i + 1) % PIECES) {
		struct piece *p = &h->pieces[i];

		while (!p->ready)
			if (iser_service(h->ctx, -1))
				return say_failed(h->ctx, ISER_E_SYSTEM);
		if (p->request.err)
			return say_request(h->src.unit, &p->request, "%s",
					   h->src.name);
		EVP_DigestUpdate(h->md, p->buf, p->len);
		h->total += p->len;
		progress_add(&h->bar, p->len);
		start_read(h, p);
	}
	return 0;
}

static int hash_file(struct hash *h)
{
	for (;;) {
		int64_t n = end_read_file(&h->src, h->total, h->pieces[0].buf,
					  PIECE);

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
	for (unsigned i = 0; i < PIECES; i++) {
		h->pieces[i].buf = alloc_pages(PIECE);
		if (!h->pieces[i].buf)
			return say_no_memory();
	}
	progress_start(&h->bar, "hash",
		       h->src.size == UINT64_MAX ? 0 : h->src.size);
	code = h->src.kind == END_UNIT ? hash_unit(h) : hash_file(h);
	progress_end(&h->bar);
	return code ? code : end_check_source(&h->src);
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
	if (common->json) {
		print_json(json_pack("{s:o,s:s,s:I,s:s}", "name",
				     json_text(name), "algorithm", algo,
				     "bytes", (json_int_t)h->total, "hash",
				     hex));
		return;
	}
	printf("%s  ", hex);
	print_text(name, strlen(name));
	putchar('\n');
}

static int hash(const struct common *common, const char *algo, const char *name)
{
	const EVP_MD *type = EVP_get_digestbyname(algo);
	struct hash *h;
	int code;

	if (!type) {
		say("hash: --algo %s: no such digest; give sha256, sha512, "
		    "sha1, md5, blake2b512 or another one of OpenSSL",
		    algo);
		return EXIT_INVALID;
	}
	h = calloc(1, sizeof(*h));
	if (!h)
		return say_no_memory();
	h->src.fd = -1;
	h->ctx = open_context(common);
	h->md = EVP_MD_CTX_new();
	if (!h->ctx)
		code = EXIT_NOMEM;
	else if (!h->md || !EVP_DigestInit_ex(h->md, type, NULL))
		code = say_no_memory();
	else
		code = run_hash(h, name);
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

struct args {
	const char *algo;
};

static const struct opt_row rows[] = {
	{ .name = "algo",
	  .arg = "NAME",
	  .initial = "sha256",
	  OPT_TEXT(struct args, algo),
	  .help = "the digest: sha256, sha512, sha1, md5, blake2b512 or "
		  "another one of OpenSSL" },
};

static int run_hash_command(const struct call *call)
{
	const struct args *a = call->args;

	return hash(call->common, a->algo, call->operands[0]);
}

const struct command command_hash = {
	.name = "hash",
	.synopsis = "[--algo NAME] URL | FILE",
	.summary = "print a digest of the bytes of a unit or file",
	.rows = rows,
	.nrows = ARRAY_LEN(rows),
	.args_size = sizeof(struct args),
	.min_operands = 1,
	.max_operands = 1,
	.run = run_hash_command,
};
