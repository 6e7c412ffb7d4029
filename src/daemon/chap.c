/* SPDX-License-Identifier: BSD-2-Clause */
/* chap.c: reads the names and secrets of CHAP from the files that options
 * name. */
#include "daemon/chap.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/luns/private.h"
#include "daemon/say.h"

#define CHAP_SECRET_MIN 12 /* bytes; RFC 7143 §9.2.1: 96 bits */

/* Reads at most size bytes of a file that only iserd can read. Negative after a
 * message. */
static ssize_t read_private(const char *option, const char *path, char *buf,
			    size_t size)
{
	int fd = private_open(AT_FDCWD, path, O_RDONLY, 0);
	const char *why = fd < 0 ? private_refusal(fd) : NULL;
	ssize_t n = -1;
	struct stat st;

	private_no_core();
	if (!why)
		why = fstat(fd, &st) ? strerror(errno) : private_complaint(&st);
	if (!why) {
		n = read(fd, buf, size);
		why = n < 0 ? strerror(errno) : NULL;
	}
	if (why)
		say("--%s-secret-file %s: %s", option, path, why);
	if (fd >= 0)
		close(fd);
	return n;
}

/* Reads a secret of one line, without the newline. */
static int read_secret(struct iscsi_chap_secret *s, const char *option,
		       const char *path)
{
	char buf[sizeof(s->secret) + 2];
	ssize_t got = read_private(option, path, buf, sizeof(buf));
	size_t n = got < 0 ? 0 : (size_t)got;
	int err = EXIT_USAGE;

	while (n && (buf[n - 1] == '\n' || buf[n - 1] == '\r'))
		n--;
	if (n >= CHAP_SECRET_MIN && n <= sizeof(s->secret)) {
		memcpy(s->secret, buf, n);
		s->secret_len = n;
		err = 0;
	} else if (got >= 0) {
		say("--%s-secret-file %s: has %zu bytes; give a secret of %d to "
		    "%zu bytes (RFC 7143 §9.2.1)",
		    option, path, n, CHAP_SECRET_MIN, sizeof(s->secret));
	}
	explicit_bzero(buf, sizeof(buf));
	return err;
}

static int read_user(struct iscsi_chap_secret *s, const char *option,
		     const char *user, const char *path)
{
	if (!user)
		return 0;
	if (strlen(user) >= sizeof(s->name)) {
		say("--%s-user: longer than %zu bytes; give a shorter name",
		    option, sizeof(s->name) - 1);
		return EXIT_USAGE;
	}
	memcpy(s->name, user, strlen(user) + 1);
	return read_secret(s, option, path);
}

int chap_read(const struct options *o, struct tgt_chap *c)
{
	int err = read_user(&c->in, "chap", o->chap.user, o->chap.secret_file);

	if (!err)
		err = read_user(&c->out, "chap-mutual", o->chap.mutual_user,
				o->chap.mutual_secret_file);
	if (!err && c->out.name[0] && c->in.secret_len == c->out.secret_len &&
	    !memcmp(c->in.secret, c->out.secret, c->in.secret_len)) {
		say("--chap-mutual-secret-file: has the secret of "
		    "--chap-secret-file; the two must differ (RFC 7143 "
		    "§9.2.1)");
		return EXIT_USAGE;
	}
	return err;
}
