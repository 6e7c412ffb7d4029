/* SPDX-License-Identifier: BSD-2-Clause */
/* nbd_fuzz.c: any bytes of an NBD client: the negotiation, then requests. The
 * first byte selects how the rest is cut into pieces. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/nbd/proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct nbd_export disk = {
	.name = "disk",
	.description = "a disk",
	.size = 1 << 30,
	.min_block = 512,
	.preferred_block = 4096,
	.can_trim = true,
	.has_extents = true,
};

static size_t negotiate(struct nbd_nego *n, const uint8_t *p, size_t size,
			size_t most)
{
	size_t at = 0, want;
	uint8_t *where;

	nbd_nego_start(n, &disk);
	while (at < size && (want = nbd_nego_want(n, &where)) > 0) {
		size_t len = want < most ? want : most;

		if (len > size - at)
			len = size - at;
		if (where < n->in || want > sizeof(n->in) ||
		    (size_t)(where - n->in) > sizeof(n->in) - want)
			abort();
		memcpy(where, p + at, len);
		n->out_len = 0;
		nbd_nego_got(n, len);
		at += len;
		if (n->out_len > sizeof(n->out))
			abort();
	}
	return at;
}

/* A request that passes the check must be safe to execute. */
static void check_good(const struct nbd_request *r)
{
	bool data = r->command == NBD_READ || r->command == NBD_WRITE;

	if (r->command == NBD_FLUSH)
		return;
	if (r->offset > disk.size || r->length > disk.size - r->offset)
		abort();
	if (data && r->length > NBD_PAYLOAD_MAX)
		abort();
	if (r->command != NBD_READ && r->command != NBD_BLOCK_STATUS &&
	    (r->offset % disk.min_block || r->length % disk.min_block))
		abort();
}

static void requests(const struct nbd_nego *n, const uint8_t *p, size_t size)
{
	uint8_t out[NBD_REPLY_MAX];
	struct nbd_request r;

	for (; size >= NBD_REQUEST_SIZE; size -= NBD_REQUEST_SIZE) {
		enum nbd_error err;

		if (!nbd_request_get(&r, p))
			return;
		err = nbd_request_check(n, &r);
		if (!err)
			check_good(&r);
		if (nbd_reply_put(n, &r, err, out) > sizeof(out) ||
		    nbd_status_put(&r, 1, out) > sizeof(out))
			abort();
		p += NBD_REQUEST_SIZE;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nbd_nego *n;
	size_t at;

	if (size < 1)
		return 0;
	n = malloc(sizeof(*n));
	if (!n)
		return 0;
	at = negotiate(n, data + 1, size - 1, data[0] ? data[0] : 4096);
	if (n->state == NBD_NEGO_FAILED && !n->why[0])
		abort();
	if (n->state == NBD_NEGO_OVER)
		requests(n, data + 1 + at, size - 1 - at);
	free(n);
	return 0;
}
