/* SPDX-License-Identifier: BSD-2-Clause */
/* look.c: whether what a configuration names is there. */
#include "daemon/apply/look.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "backstore/uring/bs_file.h"
#include "base/opt.h"
#include "daemon/luns/encrypt.h"
#include "daemon/luns/keyfile.h"
#include "daemon/luns/memory.h"
#include "daemon/luns/private.h"
#include "device/sg/sg.h"
#include "net/net.h"

struct look {
	const struct cfg_model *m;
	/* later: what can be there at the start although it is not now, and what
	 * the configured user may not do: files are opened before */
	struct cfg_errors *errors, *later;
	const bool *is_new; /* backstores; NULL: all are */
	const char *user;   /* that denials are of; NULL: this one */
};

/* ---- errors ---- */

/* The place of a field; that of its noun if the file does not have the field. */
static struct cfg_place place_of(const struct cfg_places *p, const json_t *noun,
				 const char *field)
{
	const json_t *v = field ? json_object_get(noun, field) : NULL;

	return v ? cfg_spot_of(p, v)->key : cfg_spot_of(p, noun)->at;
}

static struct cfg_place place_in(const struct cfg_head *h, const char *field)
{
	return place_of(h->places, h->given, field);
}

/* Goes behind what is missing: a check only warns of it. */
static const char *what_then(const struct look *l)
{
	return l->errors == l->later ? "" : "; a start here would be refused";
}

static void complain(struct cfg_errors *e, const struct cfg_head *h,
		     const char *field, const char *path, const char *why)
{
	cfg_error(e, place_in(h, field), "backstore %.80s: %s%s%.300s: %s",
		  h->name, field ? field : "", field ? ": " : "", path, why);
}

static struct cfg_place place_in_daemon(const struct look *l, const char *field)
{
	const json_t *given = json_object_get(l->m->head.given, "daemon");

	return place_of(&l->m->places, given, field);
}

/* ---- files of backstores ---- */

/* Writes the directory of a file to out. */
static void folder_of(const char *path, char out[PATH_MAX])
{
	char *slash;

	snprintf(out, PATH_MAX, "%s", path);
	slash = strrchr(out, '/');
	if (slash)
		slash[slash == out] = '\0';
	else
		strcpy(out, ".");
}

/* Whether a device node is missing, which may belong to another machine or come later. */
static bool lacks_device(enum lun_kind kind, const char *path)
{
	struct stat st;

	return (kind == LUN_SCSI || !strncmp(path, "/dev/", 5)) &&
	       stat(path, &st) && errno == ENOENT;
}

/* Returns whether the opening of the file or device would get as far as it can without the
 * right to. */
static bool can_be_store(const struct cfg_backstore *b, enum lun_kind kind,
			 const char *path, char *why, size_t size)
{
	const struct sg_config scsi = { .path = path };
	const struct bs_file_config file = {
		.path = path,
		.read_only = true, /* look_right has the right to write */
		.block_size = kind == LUN_CD ? 2048 : b->lun.block_size,
	};
	int err;

	if (kind == LUN_SCSI)
		return sg_look(&scsi, why, size);
	err = bs_file_look(&file, why, size);
	return !err || err == -EACCES || err == -EPERM;
}

static void look_store(const struct look *l, const struct cfg_backstore *b,
		       enum lun_kind kind, const char *path)
{
	char why[512];

	if (lacks_device(kind, path))
		cfg_error(l->later, cfg_head_at(&b->head, NULL),
			  "backstore %.80s: %.300s: no such file; name an "
			  "existing device%s",
			  b->head.name, path, what_then(l));
	else if (!can_be_store(b, kind, path, why, sizeof(why)))
		cfg_error(l->errors, cfg_head_at(&b->head, NULL),
			  "backstore %.80s: %s", b->head.name, why);
}

static void look_folder(const struct look *l, const struct cfg_head *h,
			const char *field, const char *path)
{
	char folder[PATH_MAX];
	struct stat st;

	if (!path || !strncmp(path, "credential:", 11))
		return;
	folder_of(path, folder);
	if (stat(folder, &st) && errno == ENOENT)
		complain(l->errors, h, field, path,
			 "there is no such directory; make it first");
}

static void look_key(const struct look *l, const struct cfg_backstore *b)
{
	const char *why = NULL;
	struct stat st;

	look_folder(l, &b->head, "key", b->key);
	look_folder(l, &b->head, "new-key", b->new_key);
	if (b->new_key && keyfile_exists(b->new_key))
		complain(l->errors, &b->head, "new-key", b->new_key,
			 keyfile_not_new);
	/* who the owner is, look_right and the start decide */
	if (b->key && !stat(b->key, &st) && st.st_mode & 077)
		why = private_complaint(&st);
	if (why)
		complain(l->errors, &b->head, "key", b->key, why);
}

static void look_memory(const struct look *l, const struct cfg_backstore *b,
			const char *text)
{
	uint64_t size;
	char why[128];

	if (opt_size(text, &size) && !lun_memory_fits(size, why, sizeof(why)))
		complain(l->errors, &b->head, NULL, b->store, why);
}

static void look_backstore(const struct look *l, const struct cfg_backstore *b)
{
	const char *path, *why;
	enum lun_kind kind = lun_spec_kind(b->store, &path);

	if ((kind == LUN_FILE || kind == LUN_CD || kind == LUN_SCSI) && *path)
		look_store(l, b, kind, path);
	else if (kind == LUN_RAM)
		look_memory(l, b, path);
	why = lun_lacks_key(kind, path, b->key || b->new_key, b->lun.read_only);
	if (why)
		complain(l->errors, &b->head, "store", path, why);
	look_key(l, b);
	look_folder(l, &b->head, "pi", b->pi);
}

/* ---- one file as two backstores ---- */

struct file {
	dev_t dev;
	ino_t ino;
	unsigned index; /* of the backstore */
};

static int compare_files(const void *a, const void *b)
{
	const struct file *x = a, *y = b;

	if (x->dev != y->dev)
		return x->dev > y->dev ? 1 : -1;
	if (x->ino != y->ino)
		return x->ino > y->ino ? 1 : -1;
	return (x->index > y->index) - (x->index < y->index);
}

static bool may_be_twice(const struct cfg_backstore *b)
{
	return b->lun.shared || b->lun.read_only;
}

static void compare_stores(const struct look *l, const struct file *a,
			   const struct file *b)
{
	const struct cfg_backstore *x = &l->m->backstores.v[a->index];
	const struct cfg_backstore *y = &l->m->backstores.v[b->index];

	if (may_be_twice(x) && may_be_twice(y))
		return;
	cfg_error(
		l->errors, place_in(&y->head, "store"),
		"backstore %.80s: %.200s: already backstore %.80s, as %.200s; "
		"give it once, or give both \"shared: yes\"",
		y->head.name, y->store, x->head.name, x->store);
}

static void look_for_twins(const struct look *l)
{
	struct file *all = calloc(l->m->backstores.n + 1, sizeof(*all));
	unsigned n = 0;

	for (unsigned i = 0; all && i < l->m->backstores.n; i++) {
		const char *path;
		struct stat st;

		if (lun_spec_kind(l->m->backstores.v[i].store, &path) !=
			    LUN_FILE ||
		    stat(path, &st))
			continue;
		all[n++] = S_ISBLK(st.st_mode)
				   ? (struct file){ 0, st.st_rdev, i }
				   : (struct file){ st.st_dev, st.st_ino, i };
	}
	if (n)
		qsort(all, n, sizeof(*all), compare_files);
	for (unsigned i = 1; i < n; i++)
		if (all[i - 1].dev == all[i].dev &&
		    all[i - 1].ino == all[i].ino)
			compare_stores(l, &all[i - 1], &all[i]);
	free(all);
}

/* ---- rights ---- */

static const char *denial(int err)
{
	return err == EROFS ? "is on a read-only file system; let iserd write "
			      "there (a service: ReadWritePaths=), or give "
			      "\"read-only: yes\""
			    : "permission denied; give the file to the user "
			      "that iserd runs as";
}

/* Reports a file that exists, but that the user may not use. */
static void look_right(const struct look *l, const struct cfg_head *h,
		       const char *field, const char *path, int mode)
{
	if (!path || !strncmp(path, "credential:", 11) ||
	    !faccessat(AT_FDCWD, path, mode, AT_EACCESS) ||
	    (errno != EACCES && errno != EROFS && errno != EPERM))
		return;
	if (l->user)
		cfg_error(l->later, place_in(h, field),
			  "backstore %.80s: %.300s: user %.64s: %s", h->name,
			  path, l->user, denial(errno));
	else
		complain(l->errors, h, NULL, path, denial(errno));
}

static void look_secret(const struct look *l, const struct cfg_auth *g,
			const struct cfg_account *a)
{
	if (l->user && strncmp(a->secret_file, "credential:", 11) != 0 &&
	    faccessat(AT_FDCWD, a->secret_file, R_OK, AT_EACCESS))
		cfg_error(l->later, place_in(&a->head, "secret-file"),
			  "auth group %.80s: secret-file: %.300s: user %.64s: "
			  "%s",
			  g->head.name, a->secret_file, l->user, denial(errno));
}

static void look_secrets(const struct look *l)
{
	for (unsigned i = 0; i < l->m->auths.n; i++) {
		const struct cfg_auth *g = &l->m->auths.v[i];

		for (unsigned k = 0; k < g->accounts.n; k++)
			look_secret(l, g, &g->accounts.v[k]);
		for (unsigned k = 0; k < g->mutual.n; k++)
			look_secret(l, g, &g->mutual.v[k]);
	}
}

static void look_store_rights(const struct look *l,
			      const struct cfg_backstore *b)
{
	const char *path, *key = b->key ? b->key : b->new_key;
	enum lun_kind kind = lun_spec_kind(b->store, &path);
	bool reads_only = kind == LUN_CD || b->lun.read_only;
	char folder[PATH_MAX];

	if ((kind == LUN_FILE || kind == LUN_CD || kind == LUN_SCSI) && *path)
		look_right(l, &b->head, "store", path,
			   reads_only ? R_OK : R_OK | W_OK);
	if (!key || !strncmp(key, "credential:", 11))
		return;
	folder_of(key, folder); /* CRYPTO ERASE replaces the file */
	look_right(l, &b->head, b->key ? "key" : "new-key", folder,
		   W_OK | X_OK);
}

/* ---- the user ---- */

/* Becomes the user for a moment, if this process may. False: it is not the user. */
static bool become(const struct passwd *pw, const gid_t *groups, int ngroups)
{
	if (pw)
		return !initgroups(pw->pw_name, pw->pw_gid) &&
		       !setegid(pw->pw_gid) && !seteuid(pw->pw_uid);
	return !seteuid(0) && !setegid(0) &&
	       !setgroups((size_t)ngroups, groups);
}

/* Looks at the rights of the configured user, if this process is root's. */
static void look_as_user(struct look *l, const struct passwd *pw)
{
	gid_t groups[64];
	int n = getgroups(64, groups);

	if (n < 0)
		return;
	l->user = pw->pw_name;
	if (become(pw, NULL, 0)) {
		look_secrets(l);
		for (unsigned i = 0; i < l->m->backstores.n; i++)
			look_store_rights(l, &l->m->backstores.v[i]);
	}
	(void)become(NULL, groups, n);
}

static void look_user(struct look *l)
{
	const char *name = l->m->options.user;
	const struct passwd *pw = name ? getpwnam(name) : NULL;

	if (name && !pw) {
		cfg_error(l->errors, place_in_daemon(l, "user"),
			  "daemon: user %.64s: not found; give a user of this "
			  "machine",
			  name);
		return;
	}
	if (pw)
		private_user(pw->pw_uid);
	if (pw && !geteuid() && pw->pw_uid)
		look_as_user(l, pw);
	else if (!name || pw->pw_uid == geteuid())
		for (unsigned i = 0; i < l->m->backstores.n; i++)
			look_store_rights(l, &l->m->backstores.v[i]);
}

/* ---- directories of the process ---- */

static void look_directory(const struct look *l, const char *field,
			   const char *path)
{
	char folder[PATH_MAX];
	struct stat st;

	if (!path || *path == '\0')
		return;
	folder_of(path, folder);
	if (stat(folder, &st) && errno == ENOENT)
		cfg_error(l->errors, place_in_daemon(l, field),
			  "daemon: %s %.300s: there is no such directory; make "
			  "it first",
			  field, path);
}

/* iserd makes the directory of a socket. */
static void look_socket(const struct look *l, const char *field,
			const char *path)
{
	char folder[PATH_MAX] = "";

	if (path)
		folder_of(path, folder);
	look_directory(l, field, folder);
	if (path && strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		cfg_error(l->errors, place_in_daemon(l, field),
			  "daemon: %s %.120s: longer than the path of a socket "
			  "may be; give a shorter one",
			  field, path);
}

/* ---- addresses ---- */

static bool has_address(const struct cfg_model *m, const char *text)
{
	for (unsigned i = 0; m && i < m->portals.n; i++)
		for (unsigned k = 0; k < m->portals.v[i].listen.n; k++)
			if (!strcmp(m->portals.v[i].listen.v[k], text))
				return true;
	return false;
}

/* Returns whether the machine has the address now; true if that is not known. */
static bool is_local(const char *text)
{
	struct net_addr a;
	bool is = true;
	int fd;

	if (net_addr_parse_listen(&a, text, 0))
		return true;
	fd = socket(a.sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return true;
	is = !bind(fd, (struct sockaddr *)&a.sa, a.len) ||
	     errno != EADDRNOTAVAIL;
	close(fd);
	return is;
}

static const char no_address[] =
	"this machine has no such address; give one that it has";

static void look_addresses(const struct look *l, const struct cfg_model *now)
{
	for (unsigned i = 0; i < l->m->portals.n; i++) {
		const struct cfg_portal *p = &l->m->portals.v[i];

		for (unsigned k = 0; k < p->listen.n; k++)
			if (!has_address(now, p->listen.v[k]) &&
			    !is_local(p->listen.v[k]))
				cfg_error(l->later,
					  place_in(&p->head, "listen"),
					  "portal group %.80s: %.64s: %s%s",
					  p->head.name, p->listen.v[k],
					  no_address, what_then(l));
	}
}

/* ---- all ---- */

static void look_stores(const struct look *l)
{
	for (unsigned i = 0; i < l->m->backstores.n; i++)
		if (!l->is_new || l->is_new[i])
			look_backstore(l, &l->m->backstores.v[i]);
	look_for_twins(l);
}

void cfg_look(const struct cfg_model *m, struct cfg_errors *errors,
	      struct cfg_errors *warnings)
{
	struct look l = { .m = m, .errors = errors, .later = warnings };
	const char *metrics = m->options.numbers.metrics;

	look_stores(&l);
	look_socket(&l, "control", m->options.control);
	look_socket(&l, "metrics", metrics && *metrics == '/' ? metrics : NULL);
	look_directory(&l, "state", m->options.state);
	if (metrics && *metrics != '/' && !is_local(metrics))
		cfg_error(warnings, place_in_daemon(&l, "metrics"),
			  "daemon: metrics %.64s: %s%s", metrics, no_address,
			  what_then(&l));
	look_addresses(&l, NULL);
	look_user(&l);
}

void cfg_look_change(const struct cfg_model *now, const struct cfg_model *m,
		     const bool *is_new, struct cfg_errors *errors)
{
	const struct look l = {
		.m = m, .errors = errors, .later = errors, .is_new = is_new
	};

	look_stores(&l);
	look_addresses(&l, now);
	for (unsigned i = 0; i < m->backstores.n; i++)
		if (is_new[i])
			look_store_rights(&l, &m->backstores.v[i]);
}
