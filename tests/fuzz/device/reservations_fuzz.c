/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reservations_fuzz.c: any contents of a state file with a correct checksum:
 * the file is refused, or has the same meaning after it is written again; and
 * any TransportID.
 */
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "device/reserve/reserve.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void transport_id(const uint8_t *data, size_t size)
{
	uint8_t again[SCSI_TRANSPORTID_MAX];
	char name[SCSI_PORT_NAME_MAX + 1], same[SCSI_PORT_NAME_MAX + 1];
	size_t used, len;

	if (!scsi_transportid_get_device(data, size, name, &used) &&
	    (used > size || !scsi_name_is_device(name)))
		abort();
	if (scsi_transportid_get(data, size, name, &used))
		return;
	len = scsi_transportid_put(name, again);
	if (used > size || len > sizeof(again) ||
	    scsi_transportid_get(again, len, same, &used) || used != len ||
	    strcmp(name, same) != 0)
		abort();
}

static void state_file(uint8_t *p, size_t size)
{
	struct rsv_state *s;
	uint8_t *again;
	size_t len;

	if (rsv_decode(p, size, p + 12, &s))
		return;
	again = malloc(rsv_encoded_max(s));
	if (!again)
		abort();
	len = rsv_encode(s, p + 12, again);
	if (len != size || memcmp(again, p, len) != 0)
		abort();
	free(again);
	rsv_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *p = malloc(size + 1);

	if (!p)
		return 0;
	transport_id(data, size);
	memcpy(p, data, size);
	if (size >= 34) {
		memcpy(p, "ISERRSV1", 8);
		put_be32(p + 8, crc32c_wire(crc32c_update(CRC32C_SEED, p + 12,
							  size - 12)));
	}
	state_file(p, size);
	free(p);
	return 0;
}
