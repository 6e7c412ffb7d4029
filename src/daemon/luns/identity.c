/* SPDX-License-Identifier: BSD-2-Clause */
/* identity.c: which identity each kind of store has (identity.h). Files are in
 * identity_file.c. */
#include "daemon/luns/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/loop.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "backstore/backstore.h"
#include "base/bytes.h"
#include "base/hex.h"
#include "daemon/config/setters.h"
#include "daemon/log/say.h"
#include "daemon/luns/device_id.h"
#include "daemon/luns/identities.h"
#include "daemon/luns/identity_internal.h"
#include "daemon/luns/state.h"
#include "io/io.h"

const char *identity_source_name(enum identity_source source)
{
	static const char *const names[] = {
		[IDENTITY_FIELD] = "field",
		[IDENTITY_ATTRIBUTE] = "attribute",
		[IDENTITY_DEVICE] = "device",
		[IDENTITY_IMAGE] = "image",
		[IDENTITY_STATE] = "state",
		[IDENTITY_MACHINE] = "machine",
		[IDENTITY_PROCESS] = "process",
	};

	return names[source];
}

/* ---- for all kinds ---- */

void identity_say(const struct finding *f, const char *format, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (!f->q->is_command_line)
		say_note("backstore %s: %s: %s", f->q->backstore,
			 f->q->spec->store, text);
	else
		say_note("%s: %s", f->q->spec->store, text);
}

const char *identity_line(const struct finding *f, const uint8_t uuid[16],
			  char out[IDENTITY_LINE])
{
	char text[37];

	cfg_uuid_text(uuid, text);
	snprintf(out, IDENTITY_LINE,
		 f->q->is_command_line ? ",uuid=%s" : "uuid: %s", text);
	return out;
}

void identity_changed(const struct finding *f, const char *why,
		      const uint8_t old[16])
{
	static const char lost[] =
		"so the unit has a new identity, without the persistent "
		"reservations and saved mode pages of the old one";
	const char *owner = f->q->owner ? f->q->owner(f->q->arg, old) : NULL;
	char line[IDENTITY_LINE];

	if (owner)
		identity_say(f, "%s, %s; backstore %s has that identity", why,
			     lost, owner);
	else
		identity_say(f, "%s, %s; %s keeps the old one", why, lost,
			     identity_line(f, old, line));
}

bool identity_keep(struct finding *f, enum identity_kind kind, const char *key,
		   const struct identity_record *r)
{
	if (f->q->is_check)
		return identities_state(f->all) != NULL;
	return identities_put(f->all, kind, key, r);
}

void identity_take(struct finding *f, const uint8_t uuid[16],
		   enum identity_source source)
{
	memcpy(f->id->uuid, uuid, 16);
	f->id->source = source;
}

void identity_random(uint8_t uuid[16])
{
	io_random(NULL, uuid, 16);
	uuid[6] = (uint8_t)(0x40 | (uuid[6] & 0x0f)); /* RFC 9562 §5.4 */
	uuid[8] = (uint8_t)(0x80 | (uuid[8] & 0x3f)); /* RFC 9562 §4.1 */
}

void identity_for_now(struct finding *f, const char *why)
{
	char line[IDENTITY_LINE];
	uint8_t uuid[16];

	if (f->q->inherited)
		memcpy(uuid, f->q->inherited, 16);
	else
		identity_random(uuid);
	identity_take(f, uuid, IDENTITY_PROCESS);
	if (why)
		identity_say(
			f,
			"%s: initiators see another disk after each start; "
			"give it %s",
			why, identity_line(f, uuid, line));
}

bool identity_of_name(const struct identities *all, const struct lun_spec *spec,
		      uint8_t uuid[16])
{
	const struct machine *m = identities_machine(all);
	char key[64 + PATH_MAX], real[PATH_MAX];

	if (spec->kind == LUN_NBD)
		bs_uuid_derive(uuid, spec->store, strlen(spec->store));
	if (spec->kind != LUN_FILE || !m->id_len)
		return spec->kind == LUN_NBD;
	if (!realpath(spec->store, real))
		snprintf(real, sizeof(real), "%s", spec->store);
	memcpy(key, m->id, m->id_len);
	memcpy(key + m->id_len, real, strlen(real));
	bs_uuid_derive(uuid, key, m->id_len + strlen(real));
	return true;
}

/* An identity that the state directory keeps under a text, on this machine. */
static void find_kept(struct finding *f, enum identity_kind kind,
		      const char *key)
{
	const struct identity_record *r, *other;
	struct identity_record made = { .place = f->here };

	r = identities_find(f->all, kind, key, &f->here, &other);
	if (r) {
		made = *r;
		identity_take(f, made.uuid, IDENTITY_STATE);
		if (identity_place_learn(&made.place, &f->here))
			identity_keep(f, kind, key, &made);
		return;
	}
	if (f->q->inherited)
		memcpy(made.uuid, f->q->inherited, 16);
	else
		identity_random(made.uuid);
	if (other)
		identity_changed(
			f, "the state directory comes from another machine",
			other->uuid);
	identity_take(f, made.uuid, IDENTITY_STATE);
	identity_keep(f, kind, key, &made);
}

/* ---- block devices ---- */

/* Numbers of the kernel move, and two machines may have one name for different exports: what
 * earlier releases saved under a name may be of another store, and is not used. */
static void warn_of_old_state(const struct finding *f)
{
	const struct state *s = identities_state(f->all);
	char line[IDENTITY_LINE], file[STATE_NAME], naa[17];
	uint8_t old[16];

	if (!s || !identity_of_name(f->all, f->q->spec, old) ||
	    !state_has_unit(s, old, file))
		return;
	hex_put(naa, old, 8);
	naa[0] = '3';
	identity_say(f,
		     "%s/%s belongs to the identity that earlier releases made "
		     "of the name (NAA %s): if it is of this store, give it "
		     "%s; else remove the file",
		     state_path(s), file, naa, identity_line(f, old, line));
}

/* A name that another machine may have, too. */
static void find_in_series(struct finding *f, const char *name)
{
	const struct machine *m = identities_machine(f->all);
	char key[DEVICE_TEXT + 64 + PLACE_DIGITS];
	uint8_t uuid[16];
	int n;

	if (identities_state(f->all)) {
		find_kept(f, IDENTITY_OF_DEVICE, name);
		return;
	}
	if (!m->id_len) {
		identity_for_now(f, "the serial number of the device is not "
				    "unique, and there is neither a state "
				    "directory nor /etc/machine-id");
		return;
	}
	n = snprintf(key, sizeof(key), "%.*s%s %s", (int)m->id_len, m->id,
		     m->product, name);
	bs_uuid_derive(uuid, key, (size_t)n);
	identity_take(f, uuid, IDENTITY_MACHINE);
}

/* Opens the file of a loop device; -1: it cannot be found. */
static int open_backing(const struct loop_info64 *info, dev_t rdev)
{
	char name[64], path[PATH_MAX + 2];
	struct stat st;
	size_t n;
	int fd;

	snprintf(name, sizeof(name), "/sys/dev/block/%u:%u/loop/backing_file",
		 major(rdev), minor(rdev));
	n = io_read_text(name, path, sizeof(path) - 1);
	path[n] = '\0';
	path[strcspn(path, "\n")] = '\0';
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return -1;
	/* the numbers have the form of the kernel (huge_encode_dev) */
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) &&
	    st.st_ino == info->lo_inode &&
	    major(st.st_dev) == (info->lo_device >> 8 & 0xfff) &&
	    minor(st.st_dev) == ((info->lo_device & 0xff) |
				 (info->lo_device >> 12 & 0xfff00)))
		return fd;
	close(fd);
	return -1;
}

/* A loop device and its file are one disk; a part of the file is another one. */
static bool find_loop(struct finding *f, const char *start, dev_t rdev)
{
	struct loop_info64 info;
	int fd = -1;
	bool good;

	if (!ioctl(f->fd, LOOP_GET_STATUS64, &info))
		fd = open_backing(&info, rdev);
	if (fd < 0) {
		identity_for_now(f, "the file of the loop device cannot be "
				    "found");
		return true;
	}
	f->fd = fd;
	f->is_backing = true;
	good = identity_find_file(f);
	close(fd);
	if (good && (info.lo_offset || info.lo_sizelimit || *start)) {
		uint8_t uuid[16];
		char key[128];
		int n = 16;

		memcpy(key, f->id->uuid, 16);
		n += snprintf(key + 16, sizeof(key) - 16, " %llu %llu %.40s",
			      (unsigned long long)info.lo_offset,
			      (unsigned long long)info.lo_sizelimit, start);
		bs_uuid_derive(uuid, key, (size_t)n);
		if (f->id->source == IDENTITY_PROCESS && f->q->inherited)
			memcpy(uuid, f->q->inherited, 16);
		identity_take(f, uuid, f->id->source);
	}
	return good;
}

static bool find_device(struct finding *f, dev_t rdev)
{
	char name[DEVICE_TEXT], key[DEVICE_TEXT + 8];
	uint8_t uuid[16];
	int n;

	memcpy(f->here.machine, identities_machine(f->all)->product,
	       sizeof(f->here.machine));
	switch (device_name(rdev, name)) {
	case DEVICE_UNIQUE:
		n = snprintf(key, sizeof(key), "device %s", name);
		bs_uuid_derive(uuid, key, (size_t)n);
		identity_take(f, uuid, IDENTITY_DEVICE);
		break;
	case DEVICE_OF_SERIES:
		find_in_series(f, name);
		break;
	case DEVICE_LOOP:
		if (!find_loop(f, name, rdev))
			return false;
		break;
	case DEVICE_NAMELESS:
		identity_for_now(f, "the kernel knows no identity of this "
				    "device");
		break;
	}
	warn_of_old_state(f);
	return true;
}

/* ---- all kinds ---- */

static bool find_open_file(struct finding *f)
{
	struct stat st;

	if (fstat(f->fd, &st)) {
		say("%s: %s", f->q->spec->store, strerror(errno));
		return false;
	}
	return S_ISBLK(st.st_mode) ? find_device(f, st.st_rdev)
				   : identity_find_file(f);
}

/* What only the state directory can keep. */
static void find_by_name(struct finding *f, enum identity_kind kind,
			 const char *key, const char *why)
{
	memcpy(f->here.machine, identities_machine(f->all)->product,
	       sizeof(f->here.machine));
	if (identities_state(f->all))
		find_kept(f, kind, key);
	else
		identity_for_now(f, why);
}

static bool find_any(struct finding *f)
{
	const struct identity_query *q = f->q;
	static const uint8_t none[16];

	if (q->given) {
		identity_take(f, q->given, IDENTITY_FIELD);
		return true;
	}
	switch (q->spec->kind) {
	case LUN_FILE:
		return find_open_file(f);
	case LUN_CD:
		find_by_name(f, IDENTITY_OF_DRIVE, q->backstore, NULL);
		return true;
	case LUN_NBD:
		warn_of_old_state(f);
		find_by_name(f, IDENTITY_OF_EXPORT, q->spec->store,
			     "an NBD export has no identity, and there is no "
			     "state directory");
		return true;
	case LUN_NULL:
		identity_for_now(f, NULL);
		return true;
	default:
		break;
	}
	/* the store has one: that of its image or device, or of this start */
	if (q->own && memcmp(q->own, none, 16) != 0)
		identity_take(f, q->own,
			      q->spec->kind == LUN_RBD	  ? IDENTITY_IMAGE
			      : q->spec->kind == LUN_SCSI ? IDENTITY_DEVICE
							  : IDENTITY_PROCESS);
	else
		identity_for_now(f, NULL);
	return true;
}

/* Initiators would take one disk for two, and gateways would not find each other. */
static bool is_common(const struct finding *f)
{
	enum lun_kind kind = f->q->spec->kind;

	return (kind != LUN_FILE && kind != LUN_NBD) ||
	       (f->id->source != IDENTITY_STATE &&
		f->id->source != IDENTITY_PROCESS);
}

bool identity_find(struct identities *all, const struct identity_query *q,
		   struct identity *id)
{
	struct finding f = { .all = all, .q = q, .id = id, .fd = q->fd };
	char line[IDENTITY_LINE];

	if (!find_any(&f))
		return false;
	if (!q->is_shared || q->read_only || is_common(&f))
		return true;
	say("%s: is shared, but other iserd cannot see its identity; give it "
	    "the same one at each of them: %s",
	    q->spec->store, identity_line(&f, id->uuid, line));
	return false;
}
