/* SPDX-License-Identifier: BSD-2-Clause */
/* reservations_replay_test.c: how the device decodes state files of
 * reservations and TransportIDs, for the corpus of reservations_fuzz.c with
 * single bits inverted (flips.h). */
#include "device/reserve/reserve.h"
#include "scsi/transportid.h"
#include "unit/flips.h"

static int seen_decode(const uint8_t *p, size_t len, const uint8_t uuid[16],
		       struct rsv_state **s)
{
	int err = rsv_decode(p, len, uuid, s);

	see_number((uint64_t)(int64_t)err);
	if (!err)
		see_number((*s)->n);
	return err;
}

static int seen_get(const uint8_t *p, size_t len,
		    char name[SCSI_PORT_NAME_MAX + 1], size_t *used)
{
	int err = scsi_transportid_get(p, len, name, used);

	see_number((uint64_t)(int64_t)err);
	if (err)
		return err;
	see_number(*used);
	see(name, strlen(name));
	return 0;
}

#define rsv_decode	     seen_decode
#define scsi_transportid_get seen_get
#include "fuzz/device/reservations_fuzz.c"

int main(int argc, char **argv)
{
	return flips_main(argc, argv, "reservations");
}
