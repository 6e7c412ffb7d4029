/* SPDX-License-Identifier: BSD-2-Clause */
/* sense_fuzz.c: any bytes as sense data; parsed values that are built again in
 * either format parse to the same values; CDB fields of any CDB. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "scsi/cdb.h"
#include "scsi/sense.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_encoded_sense(const struct scsi_sense *a, bool descriptor)
{
	uint8_t p[SCSI_SENSE_MAX];
	struct scsi_sense b;
	size_t n = scsi_sense_build(a, descriptor, p);

	if (n > sizeof(p) || scsi_sense_parse(&b, p, n))
		abort();
	if (b.key != a->key || b.asc != a->asc || b.deferred != a->deferred)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct scsi_sense s;

	if (!scsi_sense_parse(&s, data, size)) {
		check_encoded_sense(&s, false);
		check_encoded_sense(&s, true);
		if (!scsi_sense_key_str(s.key))
			abort();
		scsi_asc_str(s.asc);
	}
	if (size >= 16) {
		uint8_t cdb[32] = { 0 };

		memcpy(cdb, data, size < sizeof(cdb) ? size : sizeof(cdb));
		scsi_cdb_lba(cdb);
		scsi_cdb_blocks(cdb);
	}
	return 0;
}
