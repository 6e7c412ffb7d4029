/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * secret.c: the secrets of accounts. iserd reads a secret from a file of its own, so
 * each account gets a file in the directory tgtadm-secrets of the state directory of
 * iserd, or next to its control socket if iserd has no state directory. The file
 * belongs to the user that owns the control socket, who is the user of iserd.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/tgtadm/tgtadm.h"

#define SECRET_MIN 12 /* bytes that iserd accepts (RFC 7143 §9.2.1) */
#define SECRET_MAX 128

static const char folder_name[] = "tgtadm-secrets";

/* ---- reading ---- */

/* Reads a secret of one line. Returns the exit status after a message. */
static int read_line(struct tgtadm_request *r, int fd, const char *name)
{
	char buf[SECRET_MAX + 2];
	size_t len = 0;
	ssize_t n;

	do {
		n = read(fd, buf + len, sizeof(buf) - len);
		len += n > 0 ? (size_t)n : 0;
	} while (n > 0 && len < sizeof(buf));
	if (n < 0)
		tgtadm_say("%.200s: %s", name, strerror(errno));
	while (len && (buf[len - 1] == '\n' || buf[len - 1] == '\r'))
		len--;
	free(r->password);
	r->password = n < 0 ? NULL : strndup(buf, len);
	explicit_bzero(buf, sizeof(buf));
	return r->password ? 0 : TGTADM_REFUSED;
}

int tgtadm_secret_read(struct tgtadm_request *r)
{
	const char *path = getenv("ISER_TGTADM_PASSWORD_FILE");
	int fd, code;

	if (r->password && !strcmp(r->password, "-"))
		return read_line(r, STDIN_FILENO, "standard input");
	if (r->password || !path)
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return tgtadm_refuse("%.200s: %s", path, strerror(errno));
	code = read_line(r, fd, path);
	close(fd);
	return code;
}

/* ---- the directory ---- */

/* Writes the path of the directory to out. False: too long. */
static bool folder_path(const struct tgtadm *t, char out[PATH_MAX])
{
	const json_t *daemon = json_object_get(t->before, "daemon");
	const char *state = get_text(daemon, "state");
	const char *slash = strrchr(t->socket, '/');
	int n;

	if (*state == '/')
		n = snprintf(out, PATH_MAX, "%s/%s", state, folder_name);
	else
		n = snprintf(out, PATH_MAX, "%.*s%s",
			     slash ? (int)(slash + 1 - t->socket) : 0,
			     t->socket, folder_name);
	return n > 0 && n < PATH_MAX;
}

/* Opens the directory, which it makes if there is none, for the user of iserd. -1
 * after a message. */
static int open_folder(const char *path, const struct stat *owner)
{
	struct stat st;
	int fd = -1;
	bool is_new = !mkdir(path, 0700);

	if (is_new || errno == EEXIST)
		fd = open(path,
			  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) ||
	    (is_new && geteuid() != owner->st_uid &&
	     fchown(fd, owner->st_uid, owner->st_gid))) {
		tgtadm_say("%.300s: no directory for the secrets of accounts: "
			   "%s; run this as root or as the user of iserd",
			   path, strerror(errno));
	} else if (!is_new && st.st_uid != owner->st_uid &&
		   st.st_uid != geteuid()) {
		tgtadm_say("%.300s: belongs to another user than iserd and "
			   "than you; remove it",
			   path);
	} else if (!is_new && (st.st_mode & 077)) {
		tgtadm_say("%.300s: others may read or change it; use chmod "
			   "700",
			   path);
	} else {
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

/* ---- the file ---- */

static bool is_plain(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.';
}

/* A name that shows the account and that no other file has. */
static void file_name(const char *user, char out[128])
{
	uint64_t random = 0;
	size_t n = 0;

	for (; n < 64 && user[n]; n++)
		out[n] = (char)(is_plain(user[n]) ? user[n] : '_');
	(void)!getrandom(&random, sizeof(random), 0);
	snprintf(out + n, 128 - n, ".%016llx", (unsigned long long)random);
}

/* Writes the secret to a new file. Returns 0 or -1 with errno. */
static int write_file(int folder, const char *name, const char *secret,
		      const struct stat *owner)
{
	int fd = openat(folder, name,
			O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			0600);
	size_t len = strlen(secret);
	int err = fd < 0 ? -1 : 0;

	if (!err && write(fd, secret, len) != (ssize_t)len)
		err = -1;
	if (!err && geteuid() != owner->st_uid)
		err = fchown(fd, owner->st_uid, owner->st_gid);
	if (!err)
		err = fsync(fd);
	if (fd >= 0)
		close(fd);
	if (fd >= 0 && err)
		unlinkat(folder, name, 0);
	return err;
}

static int check_length(const char *secret)
{
	size_t len = strlen(secret);

	if (len >= SECRET_MIN && len <= SECRET_MAX)
		return 0;
	return tgtadm_refuse("%s: the secret has %zu bytes; give one of %d to "
			     "%d bytes (RFC 7143 section 9.2.1)",
			     tgtadm_invalid, len, SECRET_MIN, SECRET_MAX);
}

int tgtadm_secret_save(struct tgtadm *t)
{
	char path[PATH_MAX], name[128];
	struct stat owner;
	int folder, code = check_length(t->r->password);

	if (code || *t->made)
		return code;
	if (!folder_path(t, path) || stat(t->socket, &owner))
		return tgtadm_refuse("%.300s: no directory for the secrets of "
				     "accounts: %s",
				     t->socket, strerror(errno));
	folder = open_folder(path, &owner);
	if (folder < 0)
		return TGTADM_REFUSED;
	file_name(t->r->user, name);
	if (snprintf(t->made, sizeof(t->made), "%s/%s", path, name) >=
		    (int)sizeof(t->made) ||
	    write_file(folder, name, t->r->password, &owner)) {
		t->made[0] = '\0';
		code = tgtadm_refuse("%.300s: cannot write the secret: %s",
				     path, strerror(errno));
	}
	close(folder);
	return code;
}

void tgtadm_secret_remove(const struct tgtadm *t, const char *path)
{
	char folder[PATH_MAX];
	size_t len = folder_path(t, folder) ? strlen(folder) : 0;

	if (len && !strncmp(path, folder, len) && path[len] == '/' &&
	    !strchr(path + len + 1, '/'))
		(void)unlink(path);
}
