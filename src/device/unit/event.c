/* SPDX-License-Identifier: BSD-2-Clause */
/* event.c: see event.h. */
#include "device/unit/event.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* ---- write ---- */

uint64_t dev_event_nexus(const char *initiator_port, uint16_t target_port)
{
	uint8_t port[2];
	uint64_t h;

	put_be16(port, target_port);
	h = hash_add(HASH_BEGIN, port, sizeof(port));
	h = hash_add(h, initiator_port, strlen(initiator_port));
	return h == DEV_EVENT_ALL ? 1 : h;
}

size_t dev_event_put(uint8_t *p, uint64_t nexus, enum dev_ua ua, uint8_t flags)
{
	put_be64(p, nexus);
	put_be16(p + 8, ua == DEV_EVENT_NO_UA ? 0 : dev_attention_asc(ua));
	p[10] = flags;
	return DEV_EVENT_ENTRY;
}

/* ---- read ---- */

static uint32_t attention_of(const uint8_t *p)
{
	uint16_t asc = get_be16(p + 8);

	for (unsigned ua = 0; asc && ua < UA_COUNT; ua++)
		if (dev_attention_asc((enum dev_ua)ua) == asc)
			return BIT(ua);
	return 0;
}

static void take_entry(struct dev_heard *h, const uint8_t *p)
{
	uint64_t nexus = get_be64(p);
	bool aborts = p[10] & DEV_EVENT_ABORTS;

	if (p[10] & DEV_EVENT_RESETS)
		h->resets = true;
	h->aborts |= aborts;
	if (nexus == DEV_EVENT_ALL)
		h->of_all |= attention_of(p);
	else
		h->of[h->n++] = (struct dev_heard_of){
			.nexus = nexus,
			.attentions = attention_of(p),
			.aborts = aborts,
		};
}

static int compare(const void *a, const void *b)
{
	const struct dev_heard_of *x = a, *y = b;

	return x->nexus < y->nexus ? -1 : x->nexus > y->nexus;
}

/* sort makes one entry of those of the same nexus. */
static void sort(struct dev_heard *h)
{
	unsigned n = 0;

	qsort(h->of, h->n, sizeof(h->of[0]), compare);
	for (unsigned i = 0; i < h->n; i++) {
		if (n && h->of[n - 1].nexus == h->of[i].nexus) {
			h->of[n - 1].attentions |= h->of[i].attentions;
			h->of[n - 1].aborts |= h->of[i].aborts;
		} else {
			h->of[n++] = h->of[i];
		}
	}
	h->n = n;
}

struct dev_heard *dev_heard_new(const struct dev_adoption *a,
				enum dev_kept kind)
{
	struct dev_heard *h;
	size_t n = 0;

	for (unsigned i = 0; i < a->nevents; i++)
		if (a->events[i].kind == kind)
			n += a->events[i].len / DEV_EVENT_ENTRY;
	h = calloc(1, sizeof(*h) + n * sizeof(h->of[0]));
	if (!h)
		return NULL;
	h->incomplete = a->incomplete;
	for (unsigned i = 0; i < a->nevents; i++) {
		const struct dev_event *e = &a->events[i];
		size_t at = 0;

		for (; e->kind == kind && at + DEV_EVENT_ENTRY <= e->len;
		     at += DEV_EVENT_ENTRY)
			take_entry(h, e->data + at);
	}
	sort(h);
	return h;
}

const struct dev_heard_of *dev_heard_find(const struct dev_heard *h,
					  const struct dev_nexus *n)
{
	const struct dev_heard_of key = {
		.nexus = dev_event_nexus(n->cfg.initiator_port,
					 n->cfg.relative_target_port)
	};

	return h->n ? bsearch(&key, h->of, h->n, sizeof(key), compare) : NULL;
}
