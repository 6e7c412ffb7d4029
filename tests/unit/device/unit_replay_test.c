/* SPDX-License-Identifier: BSD-2-Clause */
/* unit_replay_test.c: how the device decodes and encodes the state files of
 * units, for the corpus of unit_fuzz.c with single bits inverted (flips.h). */
#include "device/keep/keep.h"
#include "device/primary/mode.h"
#include "unit/flips.h"

static int seen_decode(const struct dev_lu *lu, const uint8_t *p, size_t len,
		       struct dev_record *to)
{
	struct dev_control modes;
	int err = keep_decode(lu, p, len, to);

	if (!err)
		err = dev_mode_from_record(lu, to, &modes);
	see_number((uint64_t)(int64_t)err);
	return err;
}

static size_t seen_encode(const struct dev_lu *lu, const struct dev_record *r,
			  uint8_t *to)
{
	size_t n = keep_encode(lu, r, to);

	see(to, n);
	return n;
}

#define keep_decode seen_decode
#define keep_encode seen_encode
#include "fuzz/device/unit_fuzz.c"

int main(int argc, char **argv)
{
	return flips_main(argc, argv, "unit");
}
