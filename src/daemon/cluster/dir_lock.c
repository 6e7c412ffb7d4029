/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dir_lock.c: the lock of the data of a unit, a flock of the file `lock`, whose text
 * names the process that has it. The fence ends that process. Writes that the process
 * gave to Linux (io_uring) may reach the disk even later, but keep the open file
 * that they use: the owner has a flock of that, too, and the next one waits for it. On
 * helper threads.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "cluster/blob.h"
#include "daemon/cluster/dir_internal.h"

#define TEXT_MAX   512u
#define END_TIME   10000 /* ms until a process that was killed has ended */
#define DATA_TRIES 500	 /* 10 s until its I/O has ended */
#define LOOK_TRIES 15
#define LOOK_PAUSE 20000000L /* ns */

/* The process that has the lock. */
struct holder {
	char id[CLUSTER_ID_SIZE];
	char boot[40]; /* of the machine; as Linux has it */
	int pid;
	uint64_t start; /* proc(5), /proc/pid/stat (22) */
	uint64_t space; /* the inode of the namespace that knows pid */
};

/* ---- processes ---- */

/* Reads a small file of /proc. False: it does not exist, or is too long. */
static bool read_text(const char *path, char *text, size_t size)
{
	size_t n = io_read_text(path, text, size);

	if (n == 0 || n == size)
		return false;
	text[n] = '\0';
	return true;
}

/* 0: there is no such process. The name in parentheses may have spaces and
 * parentheses. */
static uint64_t start_of(int pid)
{
	char path[32], text[2048], *at;
	uint64_t start = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (!read_text(path, text, sizeof(text)))
		return 0;
	at = strrchr(text, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (at)
		start = strtoull(at + 1, NULL, 10);
	return start;
}

static uint64_t own_space(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) ? 0 : st.st_ino;
}

static void own_boot(char boot[40])
{
	if (!read_text("/proc/sys/kernel/random/boot_id", boot, 40))
		boot[0] = '\0';
	boot[strcspn(boot, "\n")] = '\0';
}

/* has_flock returns whether Linux knows the process as the holder of the flock of
 * the file; false, too, if /proc/locks cannot be read. */
static bool has_flock(int pid, int fd)
{
	FILE *f = fopen("/proc/locks", "re");
	unsigned long long inode;
	bool found = false;
	char line[256];
	struct stat st;
	int holder;

	if (fstat(fd, &st))
		st.st_ino = 0;
	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%*d: FLOCK %*s WRITE %d %*x:%*x:%llu",
			       &holder, &inode) == 2 &&
			holder == pid && inode == st.st_ino;
	if (f)
		fclose(f);
	return found;
}

/* ---- the text of the lock ---- */

static int write_holder(struct dir_lane *l)
{
	char text[TEXT_MAX], boot[40];
	int n;

	own_boot(boot);
	n = snprintf(text, sizeof(text),
		     "gateway %s\npid %d\nstart %" PRIu64 "\nnamespace %" PRIu64
		     "\nboot %s\n",
		     l->s->store.id, getpid(), start_of(getpid()), own_space(),
		     boot);
	if (ftruncate(l->s->lock, 0))
		return dir_err(errno);
	return pwrite(l->s->lock, text, (size_t)n, 0) == n
		       ? 0
		       : dir_err(errno ? errno : EIO);
}

static bool read_holder(const struct dir_lane *l, struct holder *h)
{
	char text[TEXT_MAX];
	ssize_t n = pread(l->s->lock, text, sizeof(text) - 1, 0);
	int end = 0;

	if (n <= 0)
		return false;
	text[n] = '\0';
	*h = (struct holder){ .pid = 0 };
	return sscanf(text,
		      "gateway %63[A-Za-z0-9._-]\npid %9d\nstart %" SCNu64
		      "\nnamespace %" SCNu64 "\nboot %39[0-9a-f-]%n",
		      h->id, &h->pid, &h->start, &h->space, h->boot,
		      &end) == 5 &&
	       end == (int)n - 1 && text[n - 1] == '\n' && h->pid > 1 &&
	       strlen(text) == (size_t)n;
}

/* ---- the I/O of the previous owner ---- */

/* Waits until no other process has I/O in progress that it began as the owner. The lock
 * is shared in the end, so that udev can look at a device. */
static int lock_data(struct dir_lane *l)
{
	int fd = l->s->data, err;

	if (fd < 0)
		return 0;
	err = dir_flock(fd, DATA_TRIES, LOOK_PAUSE);
	if (err == EWOULDBLOCK) {
		dir_say(l,
			"the previous owner has ended, but its writes have not "
			"in 10 s; its device may not answer");
		return ERR_RESET;
	}
	if (err) {
		dir_say(l, "lock of the data: %s", strerror(err));
		return dir_err(err);
	}
	return flock(fd, LOCK_SH) ? dir_err(errno) : 0;
}

static void unlock_data(const struct dir_store *s)
{
	if (s->data >= 0)
		flock(s->data, LOCK_UN);
}

/* ---- lock, unlock ---- */

static int take_now(struct dir_lane *l)
{
	struct dir_store *s = l->s;
	int err;

	if (s->has_lock)
		return 0;
	if (flock(s->lock, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? ERR_AGAIN : dir_err(errno);
	if (dir_is_file(s, s->lock, "lock")) {
		err = write_holder(l);
		if (err)
			dir_say(l, "lock: cannot be written");
		else
			err = lock_data(l);
	} else {
		err = ERR_DENIED;
		dir_say(l, "its files were removed or replaced; restart iserd");
	}
	if (err) {
		unlock_data(s);
		flock(s->lock, LOCK_UN);
	}
	s->has_lock = !err;
	return err;
}

const struct dir_kind dir_take = {
	.run = take_now,
};

static int give_now(struct dir_lane *l)
{
	struct dir_store *s = l->s;

	if (!s->has_lock)
		return 0;
	unlock_data(s);
	if (ftruncate(s->lock, 0) || flock(s->lock, LOCK_UN))
		return dir_err(errno);
	s->has_lock = false;
	return 0;
}

const struct dir_kind dir_give = {
	.run = give_now,
};

/* ---- fence ---- */

static bool is_free(const struct dir_lane *l)
{
	if (flock(l->s->lock, LOCK_SH | LOCK_NB))
		return false;
	flock(l->s->lock, LOCK_UN);
	return true;
}

/* Whether the text names the process that has the lock: not while that process is
 * writing it. */
static bool knows_holder(const struct dir_lane *l, struct holder *h, int *fd)
{
	char boot[40];

	if (!read_holder(l, h))
		return false;
	own_boot(boot);
	if (strcmp(h->boot, boot) || h->space != own_space())
		return true; /* refused by end_holder */
	*fd = (int)syscall(SYS_pidfd_open, h->pid, 0);
	if (*fd < 0)
		return false;
	if (start_of(h->pid) == h->start && has_flock(h->pid, l->s->lock))
		return true;
	close(*fd);
	*fd = -1;
	return false;
}

static int end_holder(struct dir_lane *l, const struct holder *h, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (h->pid == getpid()) {
		dir_say(l, "lock: gateway %s is this process", h->id);
		return ERR_DENIED;
	}
	if (fd < 0) {
		dir_say(l,
			"lock: gateway %s runs on another machine or in "
			"another PID namespace, where this iserd cannot end "
			"it; end it there",
			h->id);
		return ERR_DENIED;
	}
	if (syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) &&
	    errno != ESRCH) {
		dir_say(l,
			"cannot end gateway %s, process %d: %s; run all "
			"gateways as one user",
			h->id, h->pid, strerror(errno));
		return ERR_DENIED;
	}
	if (poll(&p, 1, END_TIME) == 1) {
		dir_say(l, "ended gateway %s, process %d, to take the unit",
			h->id, h->pid);
		return 0;
	}
	dir_say(l,
		"gateway %s, process %d, was killed and has not ended in 10 "
		"s; its device may not answer",
		h->id, h->pid);
	return ERR_RESET;
}

static int fence_now(struct dir_lane *l)
{
	const struct timespec pause = { .tv_nsec = LOOK_PAUSE };
	struct holder h;
	int fd = -1, err;

	for (unsigned i = 0; !l->s->has_lock; i++) {
		if (is_free(l))
			return ERR_NOT_FOUND;
		if (knows_holder(l, &h, &fd))
			break;
		if (i == LOOK_TRIES) {
			dir_say(l,
				"lock: does not name the process that has the "
				"lock; end that process");
			return ERR_DENIED;
		}
		nanosleep(&pause, NULL);
	}
	if (l->s->has_lock)
		return 0;
	if (l->whom[0] && strcmp(l->whom, h.id))
		err = ERR_AGAIN;
	else
		err = end_holder(l, &h, fd);
	if (fd >= 0)
		close(fd);
	return err ? err : take_now(l);
}

const struct dir_kind dir_fence = {
	.run = fence_now,
};
