/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * identity_file.c: the identity of a regular file. The extended attribute has it,
 * together with the place that it was made for: a copy has the same attribute at another
 * place. Where there can be no attribute, the state directory has the identity.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "daemon/log/say.h"
#include "daemon/luns/identity_internal.h"
#include "daemon/luns/state.h"

#define ATTRIBUTE "user.openiser.identity"
#define LOCKS	  80 /* tries, 25 ms after each other */

enum seen {
	SEEN_NONE, /* or it cannot be read */
	SEEN_OWN,
	SEEN_OF_OTHER, /* made for another place */
	SEEN_DAMAGED,
	SEEN_NEWER,
};

/* Reads the attribute, whatever its length; the caller frees it. NULL: there is none. */
static char *read_attribute(int fd, size_t *len)
{
	char *text = malloc(XATTR_SIZE_MAX);
	ssize_t n = text ? fgetxattr(fd, ATTRIBUTE, text, XATTR_SIZE_MAX) : -1;

	if (n >= 0) {
		*len = (size_t)n;
		return text;
	}
	free(text);
	return NULL;
}

static enum seen look(const struct finding *f, struct identity_record *r)
{
	size_t len;
	char *text = read_attribute(f->fd, &len);
	enum identity_verdict v;

	if (!text)
		return SEEN_NONE;
	v = identity_record_get(r, text, len);
	free(text);
	if (v == IDENTITY_NEWER)
		return SEEN_NEWER;
	/* without an inode it would agree with each copy */
	if (v == IDENTITY_DAMAGED || !r->place.inode)
		return SEEN_DAMAGED;
	return identity_place_agrees(&r->place, &f->here) ? SEEN_OWN
							  : SEEN_OF_OTHER;
}

/* ---- writing ---- */

/* Opens the file once more: the open file of the unit has the locks of gateways
 * (daemon/cluster). Returns -1 if it cannot be opened or locked, which file systems without
 * locks do; -EBUSY: another process has it locked for long. */
static int lock_file(const struct finding *f)
{
	const struct timespec pause = { .tv_nsec = 25000000 };
	char path[32];
	int fd, tries = LOCKS;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -1;
	while (flock(fd, LOCK_EX | LOCK_NB)) {
		bool is_busy = errno == EWOULDBLOCK;

		if (is_busy && tries--) {
			nanosleep(&pause, NULL);
			continue;
		}
		close(fd);
		return is_busy ? -EBUSY : -1;
	}
	return fd;
}

/* flags: XATTR_CREATE: -EEXIST if there is one. */
static int put_attribute(const struct finding *f,
			 const struct identity_record *r, int flags)
{
	char text[IDENTITY_TEXT_MAX];
	size_t len = identity_record_put(r, text);

	if (f->q->read_only && identity_place_is_lower(f->fd))
		return -EROFS;
	if (fsetxattr(f->fd, ATTRIBUTE, text, len, flags) || fsync(f->fd))
		return -errno;
	return 0;
}

/* Writes the attribute, unless another iserd has done that meanwhile: then *r and *seen
 * become those of it. 0 or -Exxx. */
static int write_attribute(const struct finding *f, struct identity_record *r,
			   enum seen *seen)
{
	struct identity_record now;
	enum seen meanwhile;
	int lock, err;

	if (f->q->is_check)
		return 0;
	if (*seen == SEEN_NONE) {
		err = put_attribute(f, r, XATTR_CREATE);
		if (err != -EEXIST)
			return err;
	}
	lock = lock_file(f);
	if (lock == -EBUSY)
		return lock;
	meanwhile = look(f, &now);
	err = 0;
	if (meanwhile == SEEN_OWN || meanwhile == SEEN_NEWER) {
		*r = now;
		*seen = meanwhile;
	} else if (meanwhile == SEEN_NONE) {
		err = -EACCES; /* there is one, which cannot be read */
	} else {
		err = put_attribute(f, r, 0);
	}
	if (lock >= 0)
		close(lock);
	return err;
}

/* ---- what is new ---- */

/* The identity of the path is kept where it is certain that this file was served under
 * it, by an earlier release. What this release has served is recorded: the file with this
 * identity may have another path now. */
static bool is_upgrade(struct finding *f, uint8_t uuid[16])
{
	const struct state *s = identities_state(f->all);
	char file[STATE_NAME];

	return !f->is_backing && identity_of_name(f->all, f->q->spec, uuid) &&
	       (f->q->was_served || (s && state_has_unit(s, uuid, file))) &&
	       !identities_has(f->all, uuid);
}

static void report_other(const struct finding *f, enum seen seen,
			 const struct identity_record *old)
{
	const struct identity_record *other;

	if (seen == SEEN_DAMAGED)
		identity_say(
			f,
			"its attribute user.openiser.identity is damaged; the unit has a new identity");
	if (seen == SEEN_OF_OTHER)
		identity_changed(
			f,
			"its attribute user.openiser.identity was made for another file or machine (this is "
			"a copy, or restored)",
			old->uuid);
	if (seen == SEEN_OF_OTHER || f->is_backing)
		return;
	identities_find(f->all, IDENTITY_AT_PATH, f->q->spec->store, &f->here,
			&other);
	if (other && memcmp(other->uuid, f->id->uuid, 16) != 0)
		identity_changed(f,
				 "another file than at an earlier start "
				 "(restored, perhaps)",
				 other->uuid);
}

static void keep_elsewhere(struct finding *f, const struct identity_record *r,
			   int err)
{
	bool is_certain = identity_place_is_certain(&f->here);
	char why[200];

	if ((is_certain || !f->is_backing) &&
	    identity_keep(f, is_certain ? IDENTITY_OF_FILE : IDENTITY_AT_PATH,
			  is_certain ? NULL : f->q->spec->store, r)) {
		identity_take(f, r->uuid, IDENTITY_STATE);
		return;
	}
	snprintf(why, sizeof(why),
		 "no extended attribute can be written (%s), and there is no "
		 "state directory",
		 strerror(-err));
	identity_for_now(f, why);
}

static bool refuse(const struct finding *f, enum seen seen)
{
	char line[IDENTITY_LINE];
	uint8_t uuid[16];

	identity_random(uuid);
	say(seen == SEEN_NEWER
		    ? "%s: its attribute user.openiser.identity was written by a later version of iserd; use that "
		      "version, or give an identity, for example %s"
		    : "%s: another process has locked it, so it cannot get an "
		      "identity; stop that process, or give one, for example "
		      "%s",
	    f->q->spec->store, identity_line(f, uuid, line));
	return false;
}

/* What the state directory has for this file: where there can be no attribute, or the
 * attribute was removed. */
static const struct identity_record *find_kept(const struct finding *f)
{
	const struct identity_record *r = NULL;

	if (identity_place_is_certain(&f->here))
		r = identities_find(f->all, IDENTITY_OF_FILE, NULL, &f->here,
				    NULL);
	if (r || f->is_backing)
		return r;
	return identities_find(f->all, IDENTITY_AT_PATH, f->q->spec->store,
			       &f->here, NULL);
}

static bool find_new(struct finding *f, enum seen seen,
		     const struct identity_record *old)
{
	const struct identity_record *kept = find_kept(f);
	struct identity_record r = { .place = f->here };
	enum seen meanwhile = seen;
	int err;

	if (kept)
		memcpy(r.uuid, kept->uuid, 16);
	else if (seen == SEEN_NONE && is_upgrade(f, r.uuid))
		f->id->is_old = true;
	else
		identity_random(r.uuid);
	err = write_attribute(f, &r, &meanwhile);
	if (meanwhile == SEEN_NEWER || err == -EBUSY)
		return refuse(f, meanwhile);
	identity_take(f, r.uuid, IDENTITY_ATTRIBUTE);
	if (err)
		keep_elsewhere(f, &r, err);
	if (!kept && meanwhile != SEEN_OWN)
		report_other(f, seen, old);
	return true;
}

/* The file, or the user that iserd runs as, may now show more of the place. */
static void take_own(struct finding *f, struct identity_record *r)
{
	int lock;

	identity_take(f, r->uuid, IDENTITY_ATTRIBUTE);
	if (!identity_place_learn(&r->place, &f->here) || f->q->is_check)
		return;
	lock = lock_file(f);
	if (lock < 0)
		return;
	(void)put_attribute(f, r, 0);
	close(lock);
}

bool identity_find_file(struct finding *f)
{
	struct identity_record r = { .uuid = { 0 } };
	enum seen seen;
	bool good = true;

	identity_place_read(f->fd, identities_machine(f->all), &f->here);
	seen = look(f, &r);
	if (seen == SEEN_NEWER)
		return refuse(f, seen);
	if (seen == SEEN_OWN)
		take_own(f, &r);
	else
		good = find_new(f, seen, &r);
	if (!good || f->is_backing || f->id->source == IDENTITY_PROCESS)
		return good;
	memcpy(r.uuid, f->id->uuid, 16);
	r.place = f->here;
	identity_keep(f, IDENTITY_AT_PATH, f->q->spec->store, &r);
	return true;
}
