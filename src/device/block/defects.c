/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * defects.c: READ DEFECT DATA(10) and (12) (SBC-3 §§5.19, 5.20): both defect
 * lists are valid and empty, because the backstore replaces defective blocks
 * itself.
 */
#include "device/block/block.h"
#include "device/unit/unit.h"

#define LIST_BITS   0x18 /* REQ_PLIST, REQ_GLIST */
#define FORMAT_BITS 0x07

static void empty_list(struct dev_task *t, uint8_t request, size_t header,
		       size_t alloc)
{
	uint8_t *p = dev_param_buf(t);

	if (!p)
		return;
	p[1] = request & (LIST_BITS | FORMAT_BITS);
	dev_return(t, header, alloc);
}

void dev_read_defects_10(struct dev_task *t)
{
	empty_list(t, t->cdb[2], 4, get_be16(t->cdb + 7));
}

/* An address descriptor index beyond the end of the list is valid and gives
 * an empty list (SBC-3 §5.20.1). */
void dev_read_defects_12(struct dev_task *t)
{
	empty_list(t, t->cdb[1], 8, get_be32(t->cdb + 6));
}
