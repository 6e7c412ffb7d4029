/* SPDX-License-Identifier: BSD-2-Clause */
/* open.c: opens an export: what the server can do, and the size. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/nbd/internal.h"
#include "base/err.h"

/* The largest piece of data, if the server does not say what it takes. */
#define PIECE ((uint64_t)32 << 20)

/* The store that is being opened, and the buffer for the error message. */
struct opening {
	const struct bs_module_config *cfg;
	struct bsnbd *n;
	char *why;
	size_t why_size;
};

__attribute__((format(printf, 3, 4))) static int
refuse(struct opening *o, int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	err_why(o->why, o->why_size, o->cfg->name, format, args);
	va_end(args);
	return err;
}

static int connect_server(struct opening *o)
{
	struct bsnbd *n = o->n;

	/* "nbd:nbd+unix://...", or "nbd://..." itself */
	n->uri = strdup(strncmp(o->cfg->operand, "//", 2) ? o->cfg->operand
							  : o->cfg->name);
	n->h = bsnbd_configure();
	if (!n->uri || !n->h)
		return refuse(o, -ENOMEM, "out of memory");
	if (nbd_connect_uri(n->h, n->uri))
		return refuse(o, -ENOTCONN,
			      "cannot connect to the NBD server: %s; give "
			      "nbd://HOST[:PORT]/EXPORT or "
			      "nbd+unix:///EXPORT?socket=PATH",
			      nbd_get_error());
	return 0;
}

static bool has(int answer)
{
	return answer == 1;
}

static void ask_abilities(struct bsnbd *n)
{
	struct nbd_handle *h = n->h;
	int64_t most = nbd_get_block_size(h, LIBNBD_SIZE_MAXIMUM);

	n->can_flush = has(nbd_can_flush(h));
	n->can_fua = has(nbd_can_fua(h));
	n->can_zero = has(nbd_can_zero(h));
	n->can_extents =
		has(nbd_can_meta_context(h, LIBNBD_CONTEXT_BASE_ALLOCATION));
	n->piece = most > 0 ? MIN((uint64_t)most, PIECE) : PIECE;
	n->bs.caps = BS_CAP_SIZE | BS_CAP_CHECK;
	if (n->can_flush)
		n->bs.caps |= BS_CAP_WRITE_CACHE;
	if (n->can_fua)
		n->bs.caps |= BS_CAP_FUA;
	if (n->can_zero)
		n->bs.caps |= BS_CAP_UNMAP;
	if (n->can_extents)
		n->bs.caps |= BS_CAP_EXTENTS;
}

static int check_access(struct opening *o)
{
	struct bsnbd *n = o->n;
	bool is_read_only = has(nbd_is_read_only(n->h));

	if (is_read_only && !o->cfg->read_only)
		return refuse(o, -EROFS,
			      "the server exports it read-only; serve it "
			      "read-only");
	if (o->cfg->read_only)
		n->bs.caps |= BS_CAP_READ_ONLY;
	return 0;
}

static int measure(struct opening *o)
{
	struct bsnbd *n = o->n;
	struct bs *b = &n->bs;
	int64_t size = nbd_get_size(n->h);
	int64_t least = nbd_get_block_size(n->h, LIBNBD_SIZE_MINIMUM);
	int64_t good = nbd_get_block_size(n->h, LIBNBD_SIZE_PREFERRED);

	b->block_size = o->cfg->block_size;
	n->grain = least > 0 ? (uint32_t)least : 1;
	if (n->grain > b->block_size)
		return refuse(o, -EINVAL,
			      "the server needs blocks of %u bytes; give "
			      "--block-size 4096, or serve it with smaller "
			      "blocks",
			      n->grain);
	if (size <= 0 || (uint64_t)size % b->block_size)
		return refuse(o, -EINVAL,
			      "its %lld bytes are not whole blocks of %u; "
			      "serve an export of another size",
			      (long long)size, b->block_size);
	b->size = n->size_now = (uint64_t)size;
	b->phys_block = good >= (int64_t)b->block_size && good <= 65536 &&
					!(good & (good - 1))
				? (uint32_t)good
				: 4096;
	b->unmap_grain = b->phys_block;
	return 0;
}

static int open_all(struct opening *o)
{
	struct bsnbd *n = o->n;
	int err = connect_server(o);

	if (err)
		return err;
	ask_abilities(n);
	err = check_access(o);
	if (!err)
		err = measure(o);
	if (!err)
		err = bsnbd_start(n);
	return err;
}

static struct bsnbd *new_store(const struct bs_module_config *cfg)
{
	struct bsnbd *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->loops = calloc(cfg->nloops, sizeof(n->loops[0]));
	if (!n->loops) {
		free(n);
		return NULL;
	}
	memcpy(n->loops, cfg->loops, cfg->nloops * sizeof(n->loops[0]));
	n->nloops = cfg->nloops;
	n->say = cfg->say;
	n->bs.failures[0] = &n->bs.own_failures;
	bs_set_name(&n->bs, cfg->name);
	return n;
}

static struct bs *open_store(const struct bs_module_config *cfg, int *err,
			     char *why, size_t size)
{
	struct opening o = { .cfg = cfg, .why = why, .why_size = size };

	o.n = new_store(cfg);
	if (!o.n) {
		*err = refuse(&o, -ENOMEM, "out of memory");
		return NULL;
	}
	*err = open_all(&o);
	if (!*err) {
		o.n->bs.ops = &bsnbd_ops;
		o.n->bs.state = BS_OPEN;
		return &o.n->bs;
	}
	if (o.n->h)
		nbd_close(o.n->h);
	free(o.n->loops);
	free(o.n->uri);
	free(o.n);
	return NULL;
}

__attribute__((
	visibility("default"))) extern const struct bs_module openiser_store;
const struct bs_module openiser_store = {
	.abi = BS_MODULE_ABI,
	.open = open_store,
};
