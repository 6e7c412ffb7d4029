/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * successor.c: starts the next iserd (successor.h). The process runs in the control
 * group and the sandbox of this one, so that systemd accepts it as the main process
 * of the service. All descriptors but 0 to 2 are closed by exec.
 */
#include "daemon/upgrade/successor.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/daemon.h"
#include "daemon/log/say.h"
#include "daemon/upgrade/service.h"

#define TAKEOVER "--takeover"
#define STACK	 (256u << 10) /* of the next process until exec */

/* A list of strings that ends with NULL. */
struct strings {
	char **v;
	size_t n;
	char *text; /* what the strings are in, or NULL */
};

static bool add_string(struct strings *s, const char *one)
{
	char **more = reallocarray(s->v, s->n + 2, sizeof(char *));

	if (!more)
		return false;
	s->v = more;
	s->v[s->n++] = (char *)(uintptr_t)one;
	s->v[s->n] = NULL;
	return true;
}

static void free_strings(struct strings *s)
{
	free(s->v);
	free(s->text);
}

/* Reads /proc/self/cmdline. Returns its length, with a NUL after it; -1: errno has
 * the reason. */
static ssize_t read_cmdline(char **text)
{
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	size_t size = 0, n = 0;
	ssize_t got = -1;
	char *more;

	*text = NULL;
	while (fd >= 0) {
		if (n + 1 >= size) {
			size = size ? 2 * size : 4096;
			more = realloc(*text, size);
			if (!more)
				break;
			*text = more;
		}
		got = read(fd, *text + n, size - n - 1);
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	if (fd >= 0)
		close(fd);
	if (got)
		return -1;
	(*text)[n] = '\0';
	return (ssize_t)n;
}

/* The arguments of this process, and --takeover. */
static bool make_arguments(struct strings *s)
{
	ssize_t len = read_cmdline(&s->text);
	bool has = false;

	for (ssize_t at = 0; at < len;
	     at += (ssize_t)strlen(s->text + at) + 1) {
		has |= !strcmp(s->text + at, TAKEOVER);
		if (!add_string(s, s->text + at))
			return false;
	}
	if (!s->n && len >= 0)
		errno = EINVAL;
	return s->n && (has || add_string(s, TAKEOVER));
}

/* The environment of this process, and the variable that service_open has
 * removed. */
static bool make_environment(const struct daemon *d, struct strings *s)
{
	bool good = true;

	for (char **e = environ; *e && good; e++)
		good = add_string(s, *e);
	s->text = service_variable(d->service);
	return good && (!s->text || add_string(s, s->text));
}

/* What start_next needs; err: why the program was not started. */
struct start {
	const struct strings *args, *env;
	int err;
};

/* The next process, until exec: it shares the memory of this one, which waits. Signals are
 * as for a program that a shell starts: this process blocks or ignores some. */
static int start_next(void *arg)
{
	struct start *s = arg;
	sigset_t none;

	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execvpe(s->args->v[0], s->args->v, s->env->v);
	s->err = errno;
	_exit(EXIT_ERROR);
}

/* The next process is a child of the parent of this one. systemd supervises such a main
 * process; it would not wait for the end of any other one, and kill it at once. */
static int spawn(pid_t *pid, const struct strings *args,
		 const struct strings *env)
{
	struct start s = { .args = args, .env = env };
	char *stack = malloc(STACK);
	sigset_t all, old;
	int err;

	if (!stack)
		return ENOMEM;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	*pid = clone(start_next, stack + STACK,
		     CLONE_VM | CLONE_VFORK | CLONE_PARENT | SIGCHLD, &s);
	err = *pid < 0 ? errno : s.err;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	free(stack);
	return err;
}

static const char *complaint(const struct daemon *d)
{
	if (d->phase != DAEMON_SERVING)
		return "iserd is ending";
	if (!d->options.control)
		return "there is no control socket; give --control";
	if (getpid() == 1)
		return "this is process 1, and all processes of its container "
		       "end with it; start another container";
	if (d->options.user && geteuid() != 0)
		return "iserd gave up root (--user), which the next one needs; "
		       "start it with " TAKEOVER;
	return NULL;
}

void successor_start(struct daemon *d)
{
	struct strings args = { 0 }, env = { 0 };
	const char *why = complaint(d);
	pid_t pid = 0;
	int err;

	if (why) {
		say("SIGUSR2: %s", why);
		return;
	}
	if (!make_arguments(&args) || !make_environment(d, &env))
		err = errno;
	else
		err = spawn(&pid, &args, &env);
	if (err)
		say("SIGUSR2: cannot start the next iserd: %s", strerror(err));
	else
		trace_emit(&d->log.trace, TRACE_START,
			   "SIGUSR2: started process %ld, which takes over",
			   (long)pid);
	free_strings(&args);
	free_strings(&env);
}
