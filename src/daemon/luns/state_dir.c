/* SPDX-License-Identifier: BSD-2-Clause */
/* state_dir.c: the state directory, and its files that are not of one unit. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/hex.h"
#include "base/record_header.h"
#include "daemon/log/say.h"
#include "daemon/luns/private.h"
#include "daemon/luns/state_internal.h"

const struct state_kind state_kinds[DEV_KEPT_KINDS] = {
	[DEV_KEPT_RESERVATIONS] = { "reservations",
				    "the persistent reservations",
				    "reservations" },
	[DEV_KEPT_UNIT] = { "unit",
			    "the saved mode pages and identifying information",
			    "them (a SANITIZE or FORMAT UNIT may have been in "
			    "progress: then send the command again)" },
};

void state_name_file(const uint8_t uuid[16], const char *suffix,
		     char out[STATE_NAME])
{
	hex_put(out, uuid, 16);
	snprintf(out + 32, STATE_NAME - 32, ".%s", suffix);
}

const char *state_damage(int err)
{
	switch (err) {
	case ERR_DATA_DIGEST:
		return "its checksum is wrong";
	case ERR_TRUNCATED:
		return "it is cut off";
	case ERR_NOT_FOUND:
		return "it belongs to another store";
	case ERR_NOMEM:
		return "out of memory";
	default:
		return "its format is not valid";
	}
}

/* ---- open, close ---- */

/* Two processes would overwrite the files of each other. */
static bool lock_directory(const struct state *s)
{
	if (!flock(s->dir, LOCK_EX | LOCK_NB))
		return true;
	say("--state %s: %s", s->path,
	    errno == EWOULDBLOCK
		    ? "another iserd uses it; give each iserd its own "
		      "directory"
		    : strerror(errno));
	return false;
}

static bool sync_parent(const struct state *s)
{
	int fd = openat(s->dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int err = fd < 0 || fsync(fd) ? errno : 0;

	if (err)
		say("--state %s: %s", s->path, strerror(err));
	if (fd >= 0)
		close(fd);
	return !err;
}

/* A user who may write to the directory could replace its files. */
static bool is_own_directory(const struct state *s)
{
	const char *why = NULL;
	struct stat st;

	if (fstat(s->dir, &st))
		why = strerror(errno);
	else if (!private_owner_ok(&st))
		why = "belongs to another user; chown it to the user that "
		      "iserd runs as";
	else if (st.st_mode & 022)
		why = "others may write there; use chmod go-w";
	if (why)
		say("--state %s: %s", s->path, why);
	return !why;
}

static bool give_to(const struct state *s, uid_t uid, gid_t gid)
{
	if (uid == geteuid() || !fchown(s->dir, uid, gid))
		return true;
	say("--state %s: cannot change its owner to the user of --user: %s",
	    s->path, strerror(errno));
	return false;
}

struct state *state_open(const char *path, struct io_loop *loop, bool may_lose,
			 uid_t uid, gid_t gid)
{
	struct state *s = calloc(1, sizeof(*s));
	bool is_new;

	if (!s) {
		say("out of memory");
		return NULL;
	}
	s->path = path;
	s->loop = loop;
	s->may_lose = may_lose;
	list_init(&s->waiting);
	is_new = !mkdir(path, 0700); /* open reports errors, too */
	s->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir >= 0 && is_own_directory(s) && lock_directory(s) &&
	    (!is_new || (give_to(s, uid, gid) && sync_parent(s))))
		return s;
	if (s->dir < 0)
		say("--state %s: %s; give a directory that iserd may write to",
		    path, strerror(errno));
	else
		close(s->dir);
	free(s);
	return NULL;
}

struct state *state_look(const char *path)
{
	struct state *s = calloc(1, sizeof(*s));
	struct stat st;

	if (!s)
		return NULL;
	s->path = path;
	s->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* its files are those of its owner */
	if (s->dir >= 0 && !fstat(s->dir, &st) &&
	    (!geteuid() || st.st_uid == geteuid()))
		return s;
	state_close(s);
	return NULL;
}

bool state_usable(const struct state *s)
{
	if (!faccessat(s->dir, ".", W_OK | X_OK, AT_EACCESS))
		return true;
	say("--state %s: %s; let the user that iserd runs as write there",
	    s->path, strerror(errno));
	return false;
}

void state_close(struct state *s)
{
	if (!s)
		return;
	if (s->dir >= 0)
		close(s->dir);
	free(s);
}

/* ---- files of the directory, on worker 0 ---- */

const char *state_path(const struct state *s)
{
	return s->path;
}

bool state_has_unit(const struct state *s, const uint8_t uuid[16],
		    char name[STATE_NAME])
{
	for (unsigned i = 0; i < DEV_KEPT_KINDS; i++) {
		state_name_file(uuid, state_kinds[i].suffix, name);
		if (!faccessat(s->dir, name, F_OK, AT_SYMLINK_NOFOLLOW))
			return true;
	}
	return false;
}

/* Reads at most max bytes. Returns 0, or -Exxx. */
static int read_file(const struct state *s, const char *name, size_t max,
		     char **text, size_t *len)
{
	int fd = private_open(s->dir, name, O_RDONLY, 0), err = 0;
	char *p = fd < 0 ? NULL : malloc(max + 1);
	size_t n = 0;
	ssize_t got = 1;

	if (fd < 0)
		return fd;
	while (p && n < max && got > 0) {
		got = read(fd, p + n, max - n);
		n += got > 0 ? (size_t)got : 0;
	}
	if (!p || got < 0)
		err = p ? -errno : -ENOMEM;
	close(fd);
	if (err) {
		free(p);
		return err;
	}
	p[n] = '\0';
	*text = p;
	*len = n;
	return 0;
}

static void report_record(const struct state *s, const struct state_record *r,
			  int err)
{
	say("%s/%s: damaged: %s; restore a copy of the file, or remove it: %s",
	    s->path, r->name, state_damage(err), r->without);
}

void state_record_damaged(const struct state *s, const struct state_record *r)
{
	report_record(s, r, ERR_FORMAT);
}

static const uint8_t no_owner[16];

/* The last character of a type is the version; each version has the same header. */
static bool is_later(const struct state_record *r, const char *file, size_t len)
{
	return len >= RECORD_HEADER_LEN && !memcmp(file, r->type, 7) &&
	       file[7] > r->type[7] &&
	       !record_header_check((const uint8_t *)file, len, file, no_owner);
}

/* Finds the text in a file of len bytes. Returns 0, or the error. */
static int find_text(const struct state_record *r, const char *file, size_t len,
		     size_t *at)
{
	int err;

	if (r->older && !strncmp(file, r->older, strlen(r->older))) {
		*at = strlen(r->older);
	} else {
		err = record_header_check((const uint8_t *)file, len, r->type,
					  no_owner);
		if (err)
			return err;
		*at = RECORD_HEADER_LEN;
	}
	return strlen(file + *at) == len - *at ? 0 : ERR_FORMAT;
}

bool state_record_read(const struct state *s, const struct state_record *r,
		       char **text)
{
	char *file = NULL;
	size_t len, at = 0;
	int err = read_file(s, r->name, r->max, &file, &len);

	*text = NULL;
	if (err == -ENOENT)
		return true;
	if (err) {
		say("%s/%s: %s", s->path, r->name, private_refusal(err));
		return false;
	}
	err = find_text(r, file, len, &at);
	if (err) {
		if (is_later(r, file, len))
			say("%s/%s: was written by a later version of iserd; "
			    "use that version, or remove the file: %s",
			    s->path, r->name, r->without);
		else
			report_record(s, r, err);
		free(file);
		return false;
	}
	memmove(file, file + at, len - at + 1);
	*text = file;
	return true;
}

static bool has_bytes(const struct state *s, const char *name, const void *data,
		      size_t len)
{
	char *text = NULL;
	size_t got = 0;
	bool same = !read_file(s, name, len + 1, &text, &got) && got == len &&
		    !memcmp(text, data, len);

	free(text);
	return same;
}

bool state_record_save(const struct state *s, const struct state_record *r,
		       const char *text)
{
	size_t len = RECORD_HEADER_LEN + strlen(text);
	uint8_t *file = malloc(len);
	int err = file ? 0 : -ENOMEM;

	if (file) {
		memcpy(file + RECORD_HEADER_LEN, text, strlen(text));
		record_header_put(file, len, r->type, no_owner);
	}
	if (file && !has_bytes(s, r->name, file, len)) {
		err = private_replace(s->dir, "new", r->name, file, len);
		if (!err && fsync(s->dir))
			err = -errno;
	}
	free(file);
	if (err)
		say("%s/%s: cannot save it: %s; mend that before the next "
		    "start: %s",
		    s->path, r->name, strerror(-err), r->without);
	return !err;
}
