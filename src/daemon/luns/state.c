/* SPDX-License-Identifier: BSD-2-Clause */
/* state.c: the state files of units. A file is never changed: a new file is written,
 * synced and renamed to its name, and the directory is synced. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backstore/backstore.h"
#include "base/bytes.h"
#include "base/err.h"
#include "daemon/log/say.h"
#include "daemon/luns/private.h"
#include "daemon/luns/state_internal.h"

#define FILE_MAX (256u << 10)

static void name_of(const struct dev_lu *lu, const char *suffix,
		    char out[STATE_NAME])
{
	state_name_file(dev_lu_backstore(lu)->uuid, suffix, out);
}

/* ---- load ---- */

/* Only with --allow-lost-reservations: without reservations two initiators
 * might write at once. */
static bool may_be_lost(const struct state *s, enum dev_kept kind, int err)
{
	return kind == DEV_KEPT_RESERVATIONS && s->may_lose && err != ERR_NOMEM;
}

static bool restore_unit(const struct state *s, struct dev_lu *lu,
			 enum dev_kept kind, const char *name,
			 const uint8_t *data, size_t len)
{
	int err = dev_lu_restore(lu, kind, data, len);

	if (!err)
		return true;
	if (may_be_lost(s, kind, err)) {
		say_note(
			"%s/%s: the persistent reservations of backstore %s are "
			"lost: %s; the unit is not ready until an initiator sends "
			"REPLACE LOST RESERVATION",
			s->path, name, dev_lu_name(lu), state_damage(err));
		dev_lu_lose_reservations(lu);
		return true;
	}
	say("%s/%s: cannot restore %s of backstore %s: %s; restore a copy of the "
	    "file, or remove it to start without %s",
	    s->path, name, state_kinds[kind].what, dev_lu_name(lu),
	    state_damage(err), state_kinds[kind].without);
	return false;
}

static bool load_kind(struct state *s, struct dev_lu *lu, enum dev_kept kind)
{
	uint8_t *data = malloc(FILE_MAX);
	char name[STATE_NAME];
	bool ok = false;
	ssize_t n = -1;
	int fd;

	name_of(lu, state_kinds[kind].suffix, name);
	fd = private_open(s->dir, name, O_RDONLY, 0);
	if (fd == -ENOENT) { /* no state was saved */
		free(data);
		return true;
	}
	if (fd >= 0 && data)
		n = read(fd, data, FILE_MAX);
	if (n < 0)
		say("%s/%s: %s", s->path, name,
		    fd < 0 ? private_refusal(fd) : strerror(errno));
	else
		ok = restore_unit(s, lu, kind, name, data, (size_t)n);
	if (fd >= 0)
		close(fd);
	free(data);
	return ok;
}

bool state_load(struct state *s, struct dev_lu *lu)
{
	for (unsigned kind = 0; kind < DEV_KEPT_KINDS; kind++)
		if (!load_kind(s, lu, (enum dev_kept)kind))
			return false;
	return true;
}

/* ---- save: on a helper thread, one at a time ---- */

static int64_t save_now(struct io_file_op *op)
{
	const struct state *s = container_of(op, struct state, op);
	int err = 0;

	if (s->save->len)
		err = private_replace(s->dir, s->temp, s->name, s->save->data,
				      s->save->len);
	else if (unlinkat(s->dir, s->name, 0) && errno != ENOENT)
		err = -errno;
	if (!err && fsync(s->dir))
		err = -errno;
	return err;
}

static void save_next(struct state *s);

static void save_done(struct io_file_op *op, int64_t result)
{
	struct state *s = container_of(op, struct state, op);
	struct dev_save *save = s->save;

	s->save = NULL;
	if (result)
		say("%s/%s: cannot save %s: %s", s->path, s->name,
		    state_kinds[save->kind].what, strerror((int)-result));
	save->result = result ? ERR_MEDIUM : 0;
	save->done(save);
	save_next(s);
}

static void save_next(struct state *s)
{
	struct list *n = s->save ? NULL : list_pop_front(&s->waiting);
	struct dev_save *save;

	if (!n)
		return;
	save = list_entry(n, struct dev_save, link);
	s->save = save;
	name_of(save->lu, state_kinds[save->kind].suffix, s->name);
	name_of(save->lu, "new", s->temp);
	s->op = (struct io_file_op){
		.opcode = IO_FILE_CALL,
		.fd = -1,
		.call = save_now,
		.done = save_done,
	};
	io_file_submit(s->loop, &s->op);
}

void state_save(struct state *s, struct dev_save *save)
{
	list_push_back(&s->waiting, &save->link);
	save_next(s);
}
