/* SPDX-License-Identifier: BSD-2-Clause */
/* mode_pages.c: the mode pages (SPC-4 §7.5, SBC-3 §6.5), one row each: their
 * values, their changeable bits, and how to read values from a page. */
#include "device/block/block.h"
#include "device/block/protect.h"
#include "device/cd/cd.h"
#include "device/primary/mode.h"
#include "device/primary/primary.h"

/* ---- the values ---- */

#define FOR_EACH_MEMBER(X) \
 X(tst)                    \
 X(qerr)                   \
 X(d_sense)                \
 X(swp)                    \
 X(tas)                    \
 X(tmf_only)               \
 X(write_through)          \
 X(ato)                    \
 X(dpicz)                  \
 X(atmpe)                  \
 X(unreported)             \
 X(single_attention)       \
 X(soft_enabled)           \
 X(soft_count)             \
 X(initial_priority)

#define FOR_EACH_OF_RANGE(X, i) \
 X(tags[i].lba)                 \
 X(tags[i].blocks)              \
 X(tags[i].tag)                 \
 X(tags[i].last)

/* TAS: an initiator waits in vain for a command that another one aborted, unless it gets TASK
 * ABORTED (SPC-4 §7.5.8, SAM-5 §5.3.1): Linux for its timeout of 30 s and for its error
 * handling after that, a node that PREEMPT AND ABORT has fenced, for example. LIO has 1, too. */
const struct dev_control dev_mode_defaults = { .tas = true };

struct dev_control dev_ctl_load(const struct dev_control *from)
{
	struct dev_control c = { .tst = 0 };

#define LOAD(m) c.m = __atomic_load_n(&from->m, __ATOMIC_RELAXED);
	FOR_EACH_MEMBER(LOAD)
	for (unsigned i = 0; i < DEV_TAG_RANGES; i++) {
		FOR_EACH_OF_RANGE(LOAD, i)
	}
#undef LOAD
	return c;
}

void dev_ctl_store(struct dev_control *to, const struct dev_control *c)
{
#define STORE(m) __atomic_store_n(&to->m, c->m, __ATOMIC_RELAXED);
	FOR_EACH_MEMBER(STORE)
	for (unsigned i = 0; i < DEV_TAG_RANGES; i++) {
		FOR_EACH_OF_RANGE(STORE, i)
	}
#undef STORE
}

void dev_mode_reset(struct dev_lu *lu)
{
	const struct dev_control saved = dev_ctl_load(&lu->saved);

	dev_ctl_store(&lu->ctl, &saved);
}

/* ---- functions of pages without changeable bits ---- */

static void fixed_mask(const struct dev_lu *lu, uint8_t *p)
{
	(void)lu;
	(void)p;
}

static void fixed_take(struct dev_control *c, const uint8_t *p)
{
	(void)c;
	(void)p;
}

static void fill_nothing(const struct dev_lu *lu, const struct dev_control *c,
			 uint8_t *p)
{
	(void)lu;
	(void)c;
	(void)p;
}

/* 01h, SBC-3 §6.5.8; a threshold that is set is reported unless LBPERE is
 * zero */

#define LBPERE 0x80

static bool has_threshold(const struct dev_lu *lu)
{
	return dev_threshold_exponent(lu) != 0;
}

static void fill_recovery(const struct dev_lu *lu, const struct dev_control *c,
			  uint8_t *p)
{
	p[2] = 0xc0; /* AWRE, ARRE */
	p[7] = has_threshold(lu) && !c->unreported ? LBPERE : 0;
}

static void mask_recovery(const struct dev_lu *lu, uint8_t *p)
{
	p[7] = has_threshold(lu) ? LBPERE : 0;
}

static void take_recovery(struct dev_control *c, const uint8_t *p)
{
	c->unreported = !(p[7] & LBPERE);
}

/* 1Ch, SPC-4 §7.5.14: the unit has no failure predictions and no tests */
static void fill_exceptions(const struct dev_lu *lu,
			    const struct dev_control *c, uint8_t *p)
{
	(void)lu;
	(void)c;
	p[2] = 0x08; /* DEXCPT */
}

/* ---- 08h, SBC-3 §6.5.5 ---- */

#define WCE 0x04

static void fill_caching(const struct dev_lu *lu, const struct dev_control *c,
			 uint8_t *p)
{
	p[2] = dev_has_cache(lu) && !c->write_through ? WCE : 0;
}

static void mask_caching(const struct dev_lu *lu, uint8_t *p)
{
	p[2] = dev_has_cache(lu) ? WCE : 0;
}

/* Without a cache WCE is always zero, so write_through has no effect. */
static void take_caching(struct dev_control *c, const uint8_t *p)
{
	c->write_through = !(p[2] & WCE);
}

/* ---- 0Ah, SPC-4 §7.5.8 ---- */

#define TST_MASK  0xe0
#define TMF_ONLY  0x10
#define D_SENSE	  0x04
#define QERR_MASK 0x06
#define SWP	  0x08
#define TAS	  0x40
#define DPICZ	  0x08
#define ATO	  0x80
#define ATMPE	  0x20

static void fill_control(const struct dev_lu *lu, const struct dev_control *c,
			 uint8_t *p)
{
	(void)lu;
	/* GLTSD: log parameters are not saved; reordering is unrestricted */
	p[2] = (uint8_t)(c->tst << 5 | (c->d_sense ? D_SENSE : 0) | 0x02);
	p[3] = (uint8_t)(0x10 | c->qerr << 1);
	p[4] = c->swp ? SWP : 0;
	p[2] |= (uint8_t)((c->dpicz ? DPICZ : 0) |
			  (c->tmf_only ? TMF_ONLY : 0));
	p[5] = (uint8_t)((c->tas ? TAS : 0) | (c->ato ? ATO : 0) |
			 (c->atmpe ? ATMPE : 0));
	put_be16(p + 8, 0xffff); /* busy timeout: unlimited */
}

static void mask_control(const struct dev_lu *lu, uint8_t *p)
{
	bool pi = lu->bs->protection;

	/* TST: 000b and 001b */
	p[2] = 0x20 | TMF_ONLY | D_SENSE | (pi ? DPICZ : 0);
	p[3] = QERR_MASK;
	p[4] = SWP;
	p[5] = TAS | (pi ? ATO | ATMPE : 0);
}

static void take_control(struct dev_control *c, const uint8_t *p)
{
	c->tst = p[2] >> 5;
	c->d_sense = p[2] & D_SENSE;
	c->qerr = (p[3] & QERR_MASK) >> 1;
	c->swp = p[4] & SWP;
	c->tas = p[5] & TAS;
	c->tmf_only = p[2] & TMF_ONLY;
	c->dpicz = p[2] & DPICZ;
	c->ato = p[5] & ATO;
	c->atmpe = p[5] & ATMPE;
}

/* QERR 10b is reserved (table 319). */
static unsigned bad_control(const uint8_t *p, uint64_t blocks)
{
	(void)blocks;
	return (p[3] & QERR_MASK) == 0x04 ? 3 : 0;
}

/* ---- 0Ah/01h, SPC-4 §7.5.9 ---- */

#define TCMOS  0x04 /* the timestamp is the clock of this machine, */
#define SCSIP  0x02 /* until SET TIMESTAMP changes it */
#define IALUAE 0x01

static void fill_extension(const struct dev_lu *lu, const struct dev_control *c,
			   uint8_t *p)
{
	p[4] = dev_has_timestamp(lu) ? TCMOS | SCSIP : 0;
	p[4] |= dev_has_groups(lu) ? IALUAE : 0;
	p[5] = c->initial_priority;
}

static void mask_extension(const struct dev_lu *lu, uint8_t *p)
{
	(void)lu;
	p[5] = 0x0f;
}

static void take_extension(struct dev_control *c, const uint8_t *p)
{
	c->initial_priority = p[5] & 0x0f;
}

/* ---- 1Ch/02h, SBC-3 §6.5.9: one soft threshold ---- */

#define SITUA	  0x01
#define ENABLED	  0x80
#define AVAILABLE 0x01 /* threshold resource: LBA mapping resources left */

static void fill_provisioning(const struct dev_lu *lu,
			      const struct dev_control *c, uint8_t *p)
{
	(void)lu;
	p[4] = c->single_attention ? SITUA : 0;
	p[DEV_THRESHOLD_AT] =
		c->soft_enabled ? ENABLED : 0; /* armed when decreasing */
	p[DEV_THRESHOLD_AT + 1] = AVAILABLE;
	put_be32(p + DEV_THRESHOLD_AT + 4, c->soft_count);
}

static void mask_provisioning(const struct dev_lu *lu, uint8_t *p)
{
	(void)lu;
	p[4] = SITUA;
	p[DEV_THRESHOLD_AT] = ENABLED;
	put_be32(p + DEV_THRESHOLD_AT + 4, UINT32_MAX);
}

static void take_provisioning(struct dev_control *c, const uint8_t *p)
{
	c->single_attention = p[4] & SITUA;
	c->soft_enabled = p[DEV_THRESHOLD_AT] & ENABLED;
	c->soft_count = get_be32(p + DEV_THRESHOLD_AT + 4);
}

/* ---- the table, in the order of page 3Fh ---- */

const struct dev_mode_page dev_mode_pages[] = {
	{ 0x01, 0, 12, DEV_DISK, NULL, fill_recovery, mask_recovery,
	  take_recovery },
	{ 0x02, 0, 16, DEV_DISK, NULL, fill_nothing, fixed_mask, fixed_take },
	{ 0x07, 0, 12, DEV_DISK, NULL, fill_nothing, fixed_mask, fixed_take },
	{ 0x08, 0, 20, DEV_DISK, NULL, fill_caching, mask_caching,
	  take_caching },
	{ 0x0a, 0, 12, DEV_DISK, NULL, fill_control, mask_control, take_control,
	  bad_control },
	{ 0x0a, 1, 32, DEV_DISK, NULL, fill_extension, mask_extension,
	  take_extension },
	{ 0x0a, 2, DEV_TAGS_PAGE_LEN, DEV_DISK, dev_has_tags, dev_tags_fill,
	  dev_tags_mask, dev_tags_take, dev_tags_bad },
	{ 0x1a, 0, 40, DEV_DISK, NULL, fill_nothing, fixed_mask, fixed_take },
	{ 0x1c, 0, 12, DEV_DISK, NULL, fill_exceptions, fixed_mask,
	  fixed_take },
	{ 0x1c, 2, 24, DEV_DISK, dev_has_unmap, fill_provisioning,
	  mask_provisioning, take_provisioning },
	{ 0x01, 0, 12, DEV_CD, NULL, cd_fill_recovery, fixed_mask, fixed_take },
	{ 0x0a, 0, 12, DEV_CD, NULL, fill_control, fixed_mask, fixed_take },
	{ 0x1a, 0, 12, DEV_CD, NULL, fill_nothing, fixed_mask, fixed_take },
	{ 0x1c, 0, 12, DEV_CD, NULL, fill_exceptions, fixed_mask, fixed_take },
	{ 0x1d, 0, 12, DEV_CD, NULL, cd_fill_timeout, fixed_mask, fixed_take },
	{ 0x2a, 0, 32, DEV_CD, NULL, cd_fill_capabilities, fixed_mask,
	  fixed_take },
};
const size_t dev_mode_npages = ARRAY_LEN(dev_mode_pages);

/* SPC-4 §7.5.7 */
size_t dev_mode_header_len(const struct dev_mode_page *m)
{
	return m->subpage ? 4 : 2;
}
