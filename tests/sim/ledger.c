/* SPDX-License-Identifier: BSD-2-Clause */
/* ledger.c: see ledger.h. */
#include "sim/ledger.h"

#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"
#include "sim/mangler.h"

#define SLOTS (LEDGER_BLOCKS / LEDGER_SLOT)

struct ledger {
	unsigned n, max;
	struct entry *entries;
};

struct ledger *ledger_new(unsigned n)
{
	struct ledger *l = calloc(1, sizeof(*l));

	l->max = n;
	l->entries = calloc(n, sizeof(*l->entries));
	assert_non_null(l->entries);
	return l;
}

void ledger_free(struct ledger *l)
{
	free(l->entries);
	free(l);
}

/* ---- what blocks contain ---- */

/* Of WRITE `number`, or 0 for a block that was never written. */
static uint32_t word_of(uint32_t number, uint32_t lba)
{
	return number ? number << 8 | lba : 0;
}

static void fill_block(uint8_t *p, uint32_t word)
{
	for (unsigned i = 0; i < LEDGER_BLOCK / 4; i++)
		memcpy(p + 4 * i, &word, 4);
}

/* The number of the WRITE that this is a block of; no block is a mix of two. */
static uint32_t number_in(const uint8_t *p, uint32_t lba)
{
	uint8_t whole[LEDGER_BLOCK];
	uint32_t word;

	memcpy(&word, p, 4);
	fill_block(whole, word);
	assert_memory_equal(p, whole, LEDGER_BLOCK);
	assert_int_equal(word, word_of(word >> 8, lba));
	return word >> 8;
}

/* ---- commands ---- */

struct entry *ledger_begin(struct ledger *l, bool write, uint32_t lba,
			   uint32_t blocks, bool ordered)
{
	struct entry *e = &l->entries[l->n];
	size_t len = blocks * LEDGER_BLOCK;

	assert_true(l->n < l->max);
	*e = (struct entry){ .number = ++l->n,
			     .lba = lba,
			     .blocks = blocks,
			     .write = write,
			     .ordered = ordered };
	e->iov = (struct iovec){ e->data, len };
	memset(e->data, 0xee, len);
	for (uint32_t i = 0; write && i < blocks; i++)
		fill_block(e->data + i * LEDGER_BLOCK,
			   word_of(e->number, lba + i));
	return e;
}

static bool is_busy(const struct ledger *l, uint32_t slot)
{
	for (unsigned i = 0; i < l->n; i++)
		if (!l->entries[i].ended &&
		    l->entries[i].lba / LEDGER_SLOT == slot)
			return true;
	return false;
}

struct entry *ledger_begin_any(struct ledger *l, uint32_t *seed)
{
	uint32_t slot =
		mangler_random(seed, 2) ? mangler_random(seed, SLOTS) : 0;
	uint32_t blocks = 1 + mangler_random(seed, LEDGER_SLOT);
	uint32_t lba;
	bool write = mangler_random(seed, 2);

	if (slot && is_busy(l, slot))
		slot = 0;
	lba = slot * LEDGER_SLOT +
	      mangler_random(seed, LEDGER_SLOT - blocks + 1);
	return ledger_begin(l, write, lba, blocks, slot == 0);
}

void ledger_end(struct entry *e)
{
	assert_false(e->ended);
	e->ended = true;
	e->good = e->task.err == 0 && e->task.status == 0;
	if (e->good)
		assert_int_equal(e->task.moved, e->blocks * LEDGER_BLOCK);
}

/* ---- the oracle ---- */

static bool touches(const struct entry *e, uint32_t lba)
{
	return lba >= e->lba && lba - e->lba < e->blocks;
}

static uint32_t number_at(const struct entry *e, uint32_t lba)
{
	return number_in(e->data + (lba - e->lba) * LEDGER_BLOCK, lba);
}

/* Whether the block may have this content after the first n commands: of the last
 * command that shows what it had, or of a failed WRITE after that. */
static bool may_have(const struct ledger *l, unsigned n, uint32_t lba,
		     uint32_t number)
{
	while (n-- > 0) {
		const struct entry *e = &l->entries[n];

		if (!touches(e, lba))
			continue;
		if (e->write && e->number == number)
			return true;
		if (e->good)
			return number_at(e, lba) == number;
	}
	return number == 0;
}

static void check_block(const struct ledger *l, unsigned n, uint32_t lba,
			uint32_t number)
{
	if (!may_have(l, n, lba, number))
		fail_msg("block %u has the data of command %u when command %u "
			 "is due",
			 lba, number, n + 1);
}

void ledger_check(const struct ledger *l)
{
	for (unsigned n = 0; n < l->n; n++) {
		const struct entry *e = &l->entries[n];

		assert_true(e->ended);
		for (uint32_t i = 0; !e->write && e->good && i < e->blocks; i++)
			check_block(l, n, e->lba + i, number_at(e, e->lba + i));
	}
}

void ledger_check_medium(const struct ledger *l, const uint8_t *medium)
{
	for (uint32_t lba = 0; lba < LEDGER_BLOCKS; lba++)
		check_block(l, l->n, lba,
			    number_in(medium + lba * LEDGER_BLOCK, lba));
}
