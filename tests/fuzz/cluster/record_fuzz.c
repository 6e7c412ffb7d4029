/* SPDX-License-Identifier: BSD-2-Clause */
/* record_fuzz.c: the record of a shared unit and the notes of gateways: any bytes. The
 * CRC is made right, so that the fuzzer gets past it; the first byte says whether. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "cluster/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void record(const uint8_t *p, size_t n)
{
	static struct cluster_record r;
	uint8_t *again;
	enum cluster_rivalry why;

	if (cluster_record_decode(&r, p, n))
		return;
	if (cluster_record_size(&r) != n)
		abort();
	again = malloc(n);
	if (!again || cluster_record_encode(&r, again) != n ||
	    memcmp(again, p, n) != 0)
		abort();
	free(again);
	if (cluster_record_changed(&r) > r.version)
		abort();
	for (unsigned i = 0; i < r.ngateways; i++)
		if (cluster_record_rival(&r, &r.gateways[i], &why) ||
		    cluster_record_gateway(&r, r.gateways[i].id) !=
			    &r.gateways[i])
			abort();
}

static void right_crc(uint8_t *p, size_t n)
{
	uint32_t crc = crc32c_update(CRC32C_SEED, p, 16);

	put_be32(p + 12, (uint32_t)n);
	crc = crc32c_update(CRC32C_SEED, p, 16);
	crc = crc32c_update(crc, p + 20, n - 20);
	put_be32(p + 16, crc32c_wire(crc));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cluster_note_body b;
	uint8_t *copy;

	if (size < 1)
		return 0;
	copy = malloc(size);
	if (!copy)
		return 0;
	memcpy(copy, data + 1, size - 1);
	if ((data[0] & 1) && size - 1 >= 20)
		right_crc(copy, size - 1);
	record(copy, size - 1);
	if (!cluster_note_decode(&b, copy, size - 1) && b.kind == 0)
		abort();
	free(copy);
	return 0;
}
