/* SPDX-License-Identifier: BSD-2-Clause */
/* dir_record.c: the record of a directory store. On helper threads. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "cluster/blob.h"
#include "daemon/cluster/dir_internal.h"
#include "daemon/luns/private.h"

#define CHANGE_PAUSE 2000000L /* ns */
#define CHANGE_TRIES 1500     /* 3 s */

/* ---- read ---- */

static int refuse_file(struct dir_lane *l, const char *reason)
{
	dir_say(l,
		"record: %s; restore a copy of the file, or end all gateways "
		"and remove it, which loses the reservations and saved settings "
		"of the unit",
		reason);
	return ERR_FORMAT;
}

static int read_all(int fd, uint8_t *p, size_t len)
{
	while (len) {
		ssize_t n = read(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? dir_err(errno) : ERR_FORMAT;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Reads the open file to *blob, from malloc. */
static int load(struct dir_lane *l, int fd, uint8_t **blob, size_t *len,
		uint64_t *version)
{
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return dir_err(errno);
	if (private_complaint(&st))
		return refuse_file(l, private_complaint(&st));
	if (st.st_size > (off_t)CLUSTER_BLOB_MAX)
		return refuse_file(l, "it is too long");
	*len = (size_t)st.st_size;
	*blob = malloc(*len + 1);
	if (!*blob)
		return ERR_NOMEM;
	err = read_all(fd, *blob, *len);
	if (!err && cluster_blob_check(*blob, *len, version))
		err = refuse_file(l, "it is damaged");
	if (!err)
		return 0;
	free(*blob);
	*blob = NULL;
	return err;
}

static int read_record(struct dir_lane *l, uint8_t **blob, size_t *len,
		       uint64_t *version)
{
	int fd = private_open(l->s->dir, "record", O_RDONLY, 0), err;

	*blob = NULL;
	*len = 0;
	*version = 0;
	if (fd == -ENOENT)
		return 0;
	if (fd == -ELOOP)
		return refuse_file(l, private_refusal(fd));
	if (fd < 0)
		return dir_err(-fd);
	err = load(l, fd, blob, len, version);
	close(fd);
	return err;
}

static int read_now(struct dir_lane *l)
{
	return read_record(l, &l->blob, &l->len, &l->version);
}

const struct dir_kind dir_read = {
	.run = read_now,
};

/* ---- swap ---- */

/* The holder of this lock needs it for milliseconds, unless it is stopped. */
static int lock_changes(struct dir_lane *l)
{
	int err = dir_flock(l->s->change, CHANGE_TRIES, CHANGE_PAUSE);

	if (err == EWOULDBLOCK) {
		dir_say(l,
			"another gateway has been changing the record for 3 s; "
			"if its iserd is stopped, continue or end it");
		return ERR_RESET;
	}
	if (err)
		return dir_err(err);
	if (dir_is_file(l->s, l->s->change, "change"))
		return 0;
	flock(l->s->change, LOCK_UN);
	dir_say(l, "its files were removed or replaced; restart iserd");
	return ERR_DENIED;
}

static int compare_and_replace(struct dir_lane *l)
{
	uint64_t version;
	uint8_t *blob;
	bool renamed;
	size_t len;
	int err = read_record(l, &blob, &len, &version);

	free(blob);
	if (err)
		return err;
	if (version != l->version)
		return ERR_AGAIN;
	err = -private_replace(l->s->dir, "new", "record", l->blob, l->len);
	renamed = !err;
	if (renamed && fsync(l->s->dir))
		err = errno;
	if (err)
		dir_say(l, "record: cannot be saved: %s", strerror(err));
	else
		l->version = l->next;
	if (err && renamed)
		return ERR_RESET;
	return dir_err(err);
}

static int swap_now(struct dir_lane *l)
{
	int err = lock_changes(l);

	if (err)
		return err;
	err = compare_and_replace(l);
	flock(l->s->change, LOCK_UN);
	return err;
}

const struct dir_kind dir_swap = {
	.run = swap_now,
	.writes = true,
};
