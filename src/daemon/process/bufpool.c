/* SPDX-License-Identifier: BSD-2-Clause */
/* bufpool.c: data buffers of one worker. */
#include "daemon/process/bufpool.h"

#include <stdbool.h>
#include <sys/mman.h>

#include "base/bytes.h"

#define ALL_WORKERS ((size_t)512 << 20)
#define LEAST_COMMON \
 ((size_t)64 << 20) /* what a worker has beside its reserve */

/* A cached buffer: this struct is in its first bytes. */
struct spare {
	struct list of_class, of_all;
	size_t size;
	unsigned period;
};

size_t bufpool_limit(unsigned nworkers)
{
	return MAX(ALL_WORKERS / nworkers,
		   LEAST_COMMON + BUFPOOL_RESERVE + BUFPOOL_BURST);
}

void bufpool_init(struct bufpool *p, size_t most)
{
	*p = (struct bufpool){ .most = most };
	for (unsigned c = 0; c < BUFPOOL_CLASSES; c++)
		list_init(&p->spare[c]);
	list_init(&p->all);
}

static unsigned class_of(size_t len)
{
	unsigned c = 0;

	while (c < BUFPOOL_CLASSES && ((size_t)BUFPOOL_MIN << c) < len)
		c++;
	return c;
}

static void *map_buffer(struct bufpool *p, size_t size)
{
	void *buf = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	p->maps++;
	return buf == MAP_FAILED ? NULL : buf;
}

static void take_spare(struct bufpool *p, struct spare *s)
{
	list_del(&s->of_class);
	list_del(&s->of_all);
	p->kept -= s->size;
}

/* Unmaps the least recently used buffers until at most `most` bytes are
 * cached. */
static void release_down_to(struct bufpool *p, size_t most)
{
	while (p->kept > most) {
		struct spare *s = list_entry(p->all.prev, struct spare, of_all);

		take_spare(p, s);
		munmap(s, s->size);
	}
}

/* make_room unmaps cached buffers until `size` more bytes are within the limit; false:
 * they are not. */
static bool make_room(struct bufpool *p, size_t size)
{
	bool fits = p->out + size <= p->most;

	release_down_to(p, fits ? p->most - p->out - size : 0);
	return fits;
}

void *bufpool_get(struct bufpool *p, size_t len)
{
	unsigned c = class_of(len);
	size_t size;
	void *buf;

	if (c == BUFPOOL_CLASSES)
		return NULL;
	size = (size_t)BUFPOOL_MIN << c;
	if (list_empty(&p->spare[c])) {
		make_room(p, size);
		buf = map_buffer(p, size);
		if (!buf)
			return NULL;
	} else {
		struct spare *s =
			list_entry(p->spare[c].next, struct spare, of_class);

		take_spare(p, s);
		buf = s;
	}
	p->out += size;
	return buf;
}

void bufpool_put(struct bufpool *p, void *buf, size_t len)
{
	unsigned c = class_of(len);
	size_t size = (size_t)BUFPOOL_MIN << c;
	struct spare *s = buf;

	p->out -= size;
	if (!make_room(p, size)) {
		munmap(buf, size);
		return;
	}
	s->size = size;
	s->period = p->period;
	list_push_front(&p->spare[c], &s->of_class);
	list_push_front(&p->all, &s->of_all);
	p->kept += size;
}

void bufpool_trim(struct bufpool *p)
{
	while (!list_empty(&p->all)) {
		struct spare *s = list_entry(p->all.prev, struct spare, of_all);

		if (s->period == p->period)
			break;
		take_spare(p, s);
		munmap(s, s->size);
	}
	p->period++;
}

void bufpool_fini(struct bufpool *p)
{
	release_down_to(p, 0);
}
