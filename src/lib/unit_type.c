/* SPDX-License-Identifier: BSD-2-Clause */
/* unit_type.c: the device type of the unit that was asked last. */
#include "lib/internal.h"
#include "scsi/cdb.h"

#define TARGET_CHANGED 0x3f /* TARGET OPERATING CONDITIONS HAVE CHANGED, ... */

void lib_type_note(struct iser_session *s, int lun, uint8_t type)
{
	s->typed =
		(struct lib_type){ .is_known = true, .type = type, .lun = lun };
}

int lib_type_known(const struct iser_session *s, int lun)
{
	return s->typed.is_known && s->typed.lun == lun ? s->typed.type : -1;
}

void lib_type_news(struct iser_session *s, const struct iser_io *io)
{
	struct scsi_sense sense;

	if (s->typed.is_known && io->err == ISER_E_SCSI &&
	    !scsi_sense_parse(&sense, io->sense, io->sense_len) &&
	    sense.key == SENSE_UNIT_ATTENTION &&
	    sense.asc >> 8 == TARGET_CHANGED)
		s->typed.is_known = false;
}
