/* SPDX-License-Identifier: BSD-2-Clause */
/* backed.c: the table of memory that is a mapping of a file. Written before the
 * first stream starts, only read afterwards. */
#include "net/backed.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "net/net.h"

struct backed {
	uintptr_t base;
	size_t len;
	int fd;
};

static struct {
	struct backed *entry;
	unsigned n;
} table;

static void remove_file(int fd)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < table.n; i++)
		if (table.entry[i].fd != fd)
			table.entry[kept++] = table.entry[i];
	table.n = kept;
	if (kept == 0) {
		free(table.entry);
		table.entry = NULL;
	}
}

/* sendfile has no MSG_NOSIGNAL; a closed connection must not end the
 * process. */
static void ignore_sigpipe(void)
{
	struct sigaction now;

	if (sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
		signal(SIGPIPE, SIG_IGN);
}

int net_file_backed(const void *base, size_t len, int fd)
{
	struct backed *entry;

	remove_file(fd);
	if (!base)
		return 0;
	entry = realloc(table.entry, (table.n + 1) * sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	ignore_sigpipe();
	table.entry = entry;
	entry[table.n++] = (struct backed){ (uintptr_t)base, len, fd };
	return 0;
}

bool net_backed_find(const struct iovec *piece, int *fd, int64_t *off)
{
	for (unsigned i = 0; i < table.n; i++) {
		const struct backed *b = &table.entry[i];
		uintptr_t at = (uintptr_t)piece->iov_base - b->base;

		if ((uintptr_t)piece->iov_base >= b->base &&
		    range_ok(at, piece->iov_len, b->len)) {
			*fd = b->fd;
			*off = (int64_t)at;
			return true;
		}
	}
	return false;
}
