/* SPDX-License-Identifier: BSD-2-Clause */
/* spc_more.c: REPORT and SET TIMESTAMP (SPC-4 §§6.38, 6.46), and the echo
 * buffer of READ and WRITE BUFFER (§§6.18, 6.49). */
#include <stdlib.h>
#include <string.h>

#include "device/primary/primary.h"
#include "device/unit/attention.h"

/* ---- time stamp ---- */

#define ORIGIN_SET   0x02 /* by SET TIMESTAMP */
#define ORIGIN_OTHER 0x03 /* by a method outside this standard */
#define STAMP_LEN    12

bool dev_has_timestamp(const struct dev_lu *lu)
{
	return lu->server->env.wall_ms != NULL;
}

static void put_be48(uint8_t *p, uint64_t v)
{
	put_be16(p, (uint16_t)(v >> 32));
	put_be32(p + 2, (uint32_t)v);
}

void dev_report_timestamp(struct dev_task *t)
{
	struct dev_lu *lu = t->lu;
	bool set = __atomic_load_n(&lu->clock.set, __ATOMIC_ACQUIRE);
	uint64_t off = __atomic_load_n(&lu->clock.offset, __ATOMIC_RELAXED);
	uint8_t *p = dev_param_buf(t);

	if (!p)
		return;
	put_be16(p, STAMP_LEN - 2);
	p[2] = set ? ORIGIN_SET : ORIGIN_OTHER;
	put_be48(p + 4, dev_wall_ms(lu) + off);
	dev_return(t, STAMP_LEN, get_be32(t->cdb + 6));
}

int dev_prepare_set_timestamp(struct dev_task *t, uint64_t *out_len)
{
	uint32_t len = get_be32(t->cdb + 6);

	if (len && len != STAMP_LEN)
		return dev_bad_length(t);
	*out_len = len;
	return 0;
}

void dev_set_timestamp(struct dev_task *t)
{
	const uint8_t *p = t->own.mem.buf;
	uint64_t to;

	if (get_be32(t->cdb + 6) == 0) {
		dev_good(t);
		return;
	}
	if (t->out_len < STAMP_LEN) {
		dev_bad_length(t);
		return;
	}
	to = (uint64_t)get_be16(p + 4) << 32 | get_be32(p + 6);
	__atomic_store_n(&t->lu->clock.offset, to - dev_wall_ms(t->lu),
			 __ATOMIC_RELAXED);
	__atomic_store_n(&t->lu->clock.set, true, __ATOMIC_RELEASE);
	dev_attention_others(t, UA_TIMESTAMP_CHANGED, dev_good);
}

/* ---- echo buffer: each nexus has its own ---- */

#define MODE_DESCRIPTOR	     0x03
#define MODE_ECHO	     0x0a
#define MODE_ECHO_DESCRIPTOR 0x0b
#define ECHO_MAX	     4096u
/* no other nexus overwrites the buffer */
#define EBOS 0x01000000u

int dev_prepare_write_buffer(struct dev_task *t, uint64_t *out_len)
{
	uint32_t len = get_be24(t->cdb + 6);

	if ((t->cdb[1] & 0x1f) != MODE_ECHO)
		return dev_bad_field(t, 1, 4);
	if (len > ECHO_MAX)
		return dev_bad_field(t, 6, -1);
	*out_len = len;
	return 0;
}

void dev_write_buffer(struct dev_task *t)
{
	struct dev_nexus *n = t->nexus;

	if (!n->echo)
		n->echo = malloc(ECHO_MAX);
	if (!n->echo) {
		dev_no_resources(t);
		return;
	}
	if (t->out_len)
		memcpy(n->echo, t->own.mem.buf, t->out_len);
	n->echo_len = (uint16_t)t->out_len;
	dev_good(t);
}

void dev_read_buffer(struct dev_task *t)
{
	const struct dev_nexus *n = t->nexus;
	unsigned mode = t->cdb[1] & 0x1f;
	uint32_t alloc = get_be24(t->cdb + 6);
	uint8_t *p;

	if (mode != MODE_ECHO && mode != MODE_ECHO_DESCRIPTOR &&
	    mode != MODE_DESCRIPTOR) {
		dev_bad_field(t, 1, 4);
		return;
	}
	if (mode == MODE_ECHO && n->echo_len == 0) {
		dev_check(t, SENSE_ILLEGAL_REQUEST, ASC_COMMAND_SEQUENCE);
		return;
	}
	p = dev_param_buf(t);
	if (!p)
		return;
	if (mode == MODE_ECHO)
		memcpy(p, n->echo, n->echo_len);
	else if (mode == MODE_ECHO_DESCRIPTOR)
		put_be32(p, EBOS | ECHO_MAX);
	/* MODE_DESCRIPTOR: zeros, because the unit has no other buffers */
	dev_return(t, mode == MODE_ECHO ? n->echo_len : 4u, alloc);
}
