/* SPDX-License-Identifier: BSD-2-Clause */
/* bufpool.c: data buffers of one worker. */
#include "daemon/bufpool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void bufpool_init(struct bufpool *p, size_t max_out, size_t max_kept)
{
	*p = (struct bufpool){ .max_out = max_out, .max_kept = max_kept };
}

static unsigned class_of(size_t len)
{
	unsigned c = 0;

	while (c < BUFPOOL_CLASSES && ((size_t)BUFPOOL_MIN << c) < len)
		c++;
	return c;
}

static void *map(size_t size)
{
	void *buf = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return buf == MAP_FAILED ? NULL : buf;
}

static bool fits(const struct bufpool *p, size_t size)
{
	size_t max = size > BUFPOOL_SMALL ? p->max_out / 4 * 3 : p->max_out;

	return p->out <= max && size <= max - p->out;
}

void *bufpool_get(struct bufpool *p, size_t len)
{
	unsigned c = class_of(len);
	size_t size;
	void *buf;

	if (c == BUFPOOL_CLASSES)
		return NULL;
	size = (size_t)BUFPOOL_MIN << c;
	if (!fits(p, size))
		return NULL;
	p->used = true;
	buf = p->spare[c];
	if (buf) {
		memcpy(&p->spare[c], buf, sizeof(void *));
		p->kept -= size;
	} else {
		buf = map(size);
		if (!buf)
			return NULL;
	}
	p->out += size;
	return buf;
}

void bufpool_put(struct bufpool *p, void *buf, size_t len)
{
	unsigned c = class_of(len);
	size_t size = (size_t)BUFPOOL_MIN << c;

	p->out -= size;
	if (size > p->max_kept - p->kept) {
		munmap(buf, size);
		return;
	}
	memcpy(buf, &p->spare[c], sizeof(void *));
	p->spare[c] = buf;
	p->kept += size;
}

static void release_spare(struct bufpool *p)
{
	for (unsigned c = 0; c < BUFPOOL_CLASSES; c++)
		while (p->spare[c]) {
			void *buf = p->spare[c];

			memcpy(&p->spare[c], buf, sizeof(void *));
			munmap(buf, (size_t)BUFPOOL_MIN << c);
		}
	p->kept = 0;
}

void bufpool_trim(struct bufpool *p)
{
	if (!p->used)
		release_spare(p);
	p->used = false;
}

void bufpool_fini(struct bufpool *p)
{
	release_spare(p);
}
