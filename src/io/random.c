/* SPDX-License-Identifier: BSD-2-Clause */
/* random.c: random bytes from the kernel. */
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "io/io.h"

void io_random(void *arg, uint8_t *p, size_t n)
{
	(void)arg;
	while (n) {
		ssize_t got = getrandom(p, n, 0);

		if (got < 0 && errno != EINTR)
			/* predictable CHAP challenges would be worse than no
			 * daemon */
			abort();
		if (got > 0) {
			p += got;
			n -= (size_t)got;
		}
	}
}
