/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * attach.c: iser attach URL: a unit as the block device /dev/nbdN of Linux; iser
 * detach. The kernel sends NBD requests over socket pairs to this process, which
 * serves them like those of other NBD clients.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/nbd/device.h"
#include "tools/nbd/server.h"

/* newer than the headers of some systems */
#ifndef PR_SET_IO_FLUSHER
# define PR_SET_IO_FLUSHER 57
#endif

#define RECONNECTS   100	 /* logins, unless the URL has reconnect= */
#define CAPACITY_NS  5000000000u /* between two looks at the capacity */
#define BUFFER	     (4 << 20)	 /* bytes in a socket */
#define LONG_TIMEOUT 86400	 /* seconds: "none" for several sockets */
#define END_MS	     15000	 /* for the end of iser attach, in detach */

enum work {
	NOTHING,
	RESIZE,
	REVIVE,
	DETACH
};

struct attach {
	struct nbd_server server;
	/* the command line */
	const struct common *common;
	const char *device_name;
	unsigned block_size, timeout, dead_timeout, connections;
	bool read_only, resume;
	/* state */
	struct nbd_device device;
	char identifier[ISER_NAME_MAX + 16];
	uint64_t look_at; /* ns: when the capacity is read next */
	/* the child process that calls the kernel, and what waits for its end */
	pid_t child;
	enum work work;
	bool resize, revive, detach;
};

/* ---- sockets ---- */

/* Makes one connection: the server gets one end, a->device the other one. */
static bool add_socket(struct attach *a)
{
	struct nbd_device *d = &a->device;
	const int size = BUFFER;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds)) {
		say("attach: cannot make a socket: %s", strerror(errno));
		return false;
	}
	for (int i = 0; i < 2; i++) /* a smaller buffer is slower */
		setsockopt(fds[i], SOL_SOCKET, SO_SNDBUFFORCE, &size,
			   sizeof(size));
	if (!nbd_server_add(&a->server, fds[0])) {
		close(fds[1]);
		return false;
	}
	d->sockets[d->nsockets++] = fds[1];
	return true;
}

/* Closes the ends that the kernel has references of. */
static void close_sockets(struct attach *a)
{
	while (a->device.nsockets)
		close(a->device.sockets[--a->device.nsockets]);
}

/* ---- calls of the kernel while the device is served ---- */

/* Requests may be in progress, and the kernel may wait for this process. */
static void start_child(struct attach *a, enum work work)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(work == RESIZE ? nbd_device_resize(&a->device)
		      : work == REVIVE
			      ? nbd_device_revive(&a->device)
			      : nbd_device_disconnect(a->device.index));
	if (pid < 0) {
		say("attach: cannot make a process: %s", strerror(errno));
		nbd_server_leave(&a->server, EXIT_GENERIC);
		return;
	}
	a->child = pid;
	a->work = work;
}

/* Starts the next call that is due, one at a time. */
static void start_work(struct attach *a)
{
	if (a->child)
		return;
	if (a->detach) {
		a->detach = a->revive = a->resize = false;
		start_child(a, DETACH);
	} else if (a->revive) {
		a->revive = false;
		start_child(a, REVIVE);
		close_sockets(a);
	} else if (a->resize) {
		a->resize = false;
		start_child(a, RESIZE);
	}
}

/* Takes the result of a call: status is that of waitpid. */
static void end_work(struct attach *a, int status)
{
	int err = WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
	const int n = a->device.index;

	a->child = 0;
	if (!err && a->work == RESIZE)
		say("/dev/nbd%d: the size is now %llu bytes", n,
		    (unsigned long long)a->device.size);
	if (!err || nbd_device_server(n) < 0)
		return; /* or detached in the meantime: the sockets end */
	say("/dev/nbd%d: cannot %s: %s", n,
	    a->work == RESIZE	? "change the size"
	    : a->work == REVIVE ? "replace a connection"
				: "detach",
	    strerror(err));
	if (a->work != RESIZE)
		nbd_server_leave(&a->server, EXIT_GENERIC);
}

static void look_at_capacity(struct attach *a, uint64_t now)
{
	struct nbd_server *s = &a->server;
	const uint64_t size = s->unit.info.bytes;

	if (size != s->export.size) {
		s->export.size = a->device.size = size;
		a->resize = true;
	}
	if (now >= a->look_at && !s->leaving) {
		a->look_at = now + CAPACITY_NS;
		nbd_unit_read_capacity(&s->unit);
	}
}

static int on_turn(struct nbd_server *s)
{
	struct attach *a = container_of(s, struct attach, server);
	uint64_t now = now_ns();
	int status;

	if (a->child && waitpid(a->child, &status, WNOHANG) == a->child)
		end_work(a, status);
	look_at_capacity(a, now);
	start_work(a);
	return a->look_at > now ? (int)((a->look_at - now) / 1000000) + 1 : 1;
}

/* ---- ends ---- */

static void on_stop(struct nbd_server *s)
{
	struct attach *a = container_of(s, struct attach, server);

	if (a->work == DETACH) /* a second signal */
		nbd_server_leave(s, 0);
	a->detach = true;
}

static void on_lost(struct nbd_server *s)
{
	struct attach *a = container_of(s, struct attach, server);

	if (a->dead_timeout) {
		say("%s at %s: session lost: I/O of /dev/nbd%d waits %u s; run "
		    "iser attach --resume --device /dev/nbd%d",
		    s->unit.url.target, s->unit.url.host, a->device.index,
		    a->dead_timeout, a->device.index);
	} else {
		say("%s at %s: session lost: /dev/nbd%d is detached; attach it "
		    "again",
		    s->unit.url.target, s->unit.url.host, a->device.index);
		a->detach = true;
		start_work(a);
	}
	nbd_server_leave(s, EXIT_TRANSPORT);
}

/* The kernel gives up a socket whose request had no reply in time, and sends that
 * request again over another one. The old request has ended: a client is freed
 * only then. */
static void on_left(struct nbd_server *s, struct nbd_client *c)
{
	struct attach *a = container_of(s, struct attach, server);

	if (c->asked_to_end || s->leaving || a->work == DETACH ||
	    nbd_device_server(a->device.index) < 0)
		return;
	say("/dev/nbd%d: connection %u: lost; it is replaced", a->device.index,
	    c->number);
	if (add_socket(a))
		a->revive = true;
}

static const struct nbd_server_ops ops = {
	.stop = on_stop,
	.lost = on_lost,
	.left = on_left,
	.turn = on_turn,
};

/* ---- set-up ---- */

static bool is_power_of_two(uint32_t n)
{
	return n && !(n & (n - 1));
}

static int check_block_size(struct attach *a)
{
	uint32_t unit = a->server.unit.info.block_size;
	uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);

	if (!a->block_size)
		a->block_size = unit;
	if (is_power_of_two(a->block_size) && a->block_size >= 512 &&
	    a->block_size <= page && a->block_size % unit == 0)
		return 0;
	say("attach: a block size of %u bytes is not possible: the unit has blocks "
	    "of %u bytes, and Linux needs a power of two from 512 to %u",
	    a->block_size, unit, page);
	return EXIT_INVALID;
}

static void make_device(struct attach *a)
{
	const struct nbd_server *s = &a->server;
	unsigned flags = NBD_DEVICE_HAS_FLAGS | NBD_DEVICE_FLUSH |
			 NBD_DEVICE_FUA | NBD_DEVICE_MULTI_CONN;

	if (s->export.read_only)
		flags |= NBD_DEVICE_READ_ONLY;
	else if (s->export.can_trim)
		flags |= NBD_DEVICE_TRIM;
	snprintf(a->identifier, sizeof(a->identifier), "%s/%d",
		 s->unit.url.target, s->unit.url.lun);
	a->device.size = s->export.size;
	a->device.block_size = a->block_size;
	/* the kernel takes the default of its block layer, 30 s, for none if
	 * there are several sockets */
	a->device.timeout =
		!a->timeout && a->connections > 1 ? LONG_TIMEOUT : a->timeout;
	a->device.dead_timeout = a->dead_timeout;
	a->device.flags = (uint16_t)flags;
	a->device.identifier = a->identifier;
}

/* Memory of this process must not wait for the device that the process serves. */
static void guard_memory(void)
{
	if (prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) ||
	    mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT))
		say("attach: memory is not locked: %s; swap space must not be on "
		    "this device",
		    strerror(errno));
}

/* Prints why the kernel did not attach the device. */
static int say_refused(const struct attach *a, int err)
{
	char name[32] = "/dev/nbd";

	if (a->device.index >= 0)
		snprintf(name, sizeof(name), "/dev/nbd%d", a->device.index);
	if (err == EPERM)
		say("%s: cannot attach: %s; run as root", name, strerror(err));
	else if (err == EBUSY && !a->resume)
		say("%s: cannot attach: in use; choose another device, or give "
		    "--resume if its iser attach has ended",
		    name);
	else if (err == ENOSPC && a->resume)
		say("%s: cannot resume: its iser attach has not ended, or had "
		    "fewer connections",
		    name);
	else if (err == EINVAL && a->resume)
		say("%s: cannot resume: not attached, or to another unit than %s",
		    name, a->identifier);
	else
		say("%s: cannot attach: %s", name, strerror(err));
	return EXIT_GENERIC;
}

static int attach_device(struct attach *a)
{
	int code = check_block_size(a), err;

	if (code)
		return code;
	make_device(a);
	for (unsigned i = 0; i < a->connections; i++)
		if (!add_socket(a))
			return EXIT_GENERIC;
	err = a->resume ? nbd_device_revive(&a->device)
			: nbd_device_connect(&a->device);
	close_sockets(a);
	a->resize = !err && a->resume; /* it may have changed meanwhile */
	return err ? say_refused(a, err) : 0;
}

/* Prints the name that a script waits for. */
static void print_device(const struct attach *a)
{
	char name[32];

	snprintf(name, sizeof(name), "/dev/nbd%d", a->device.index);
	if (a->common->json)
		print_json(json_pack("{s:s,s:I,s:I,s:b}", "device", name,
				     "bytes", (json_int_t)a->device.size,
				     "block_size", (json_int_t)a->block_size,
				     "read_only", a->server.export.read_only));
	else
		puts(name);
	fflush(stdout);
}

static int serve_device(struct attach *a, const char *url)
{
	struct nbd_server *s = &a->server;
	int code = nbd_server_open(s, url), status;

	if (!code)
		code = attach_device(a);
	if (!code) {
		guard_memory();
		print_device(a);
		a->look_at = now_ns() + CAPACITY_NS;
		code = nbd_server_run(s);
	} else {
		nbd_server_leave(s, code);
		nbd_server_run(s);
	}
	close_sockets(a);
	nbd_server_close(s);
	if (a->child) /* the sockets are closed: the kernel waits no more */
		waitpid(a->child, &status, 0);
	return code;
}

/* ---- the command lines ---- */

static const struct opt_row attach_rows[] = {
	{ .name = "device",
	  .arg = "DEVICE",
	  OPT_TEXT(struct attach, device_name),
	  .help = "/dev/nbdN; without it the first one that is not in use" },
	{ .name = "read-only",
	  OPT_FLAG(struct attach, read_only),
	  .help = "refuse writes" },
	{ .name = "block-size",
	  .arg = "BYTES",
	  .initial = "0",
	  OPT_NUMBER(struct attach, block_size, 0, 65536),
	  .help = "block size of the device, 0: that of the unit" },
	{ .name = "connections",
	  .arg = "N",
	  .initial = "1",
	  OPT_NUMBER(struct attach, connections, 1, NBD_DEVICE_SOCKETS),
	  .help = "sockets between the kernel and iser, each with a queue" },
	{ .name = "timeout",
	  .arg = "SECONDS",
	  .initial = "0",
	  OPT_NUMBER(struct attach, timeout, 0, 86400),
	  .help = "time after which the kernel sends a request again, 0: none" },
	{ .name = "dead-timeout",
	  .arg = "SECONDS",
	  .initial = "0",
	  OPT_NUMBER(struct attach, dead_timeout, 0, 86400),
	  .help = "how long I/O waits for --resume after the end of iser" },
	{ .name = "resume",
	  OPT_FLAG(struct attach, resume),
	  .help = "serve a device whose iser attach has ended" },
};

static int run_attach(const struct call *call)
{
	struct attach *a = call->args;
	struct nbd_server *s = &a->server;
	int code;

	a->common = call->common;
	a->device.index =
		a->device_name ? nbd_device_index(a->device_name) : -1;
	if ((a->device_name || a->resume) && a->device.index < 0) {
		say("attach: not the name of a device: %s; give --device /dev/nbdN",
		    a->device_name ? a->device_name : "none");
		return EXIT_INVALID;
	}
	code = nbd_device_check();
	if (code)
		return code;
	nbd_server_init(s);
	s->ops = &ops;
	s->command = "attach";
	s->name = "";
	s->reconnect = RECONNECTS;
	s->once = true;
	s->read_only = a->read_only;
	s->ctx = open_context(a->common);
	code = s->ctx ? serve_device(a, call->operands[0]) : EXIT_NOMEM;
	iser_context_free(s->ctx);
	return code;
}

const struct command command_attach = {
	.name = "attach",
	.synopsis = "[OPTION]... URL",
	.summary = "make a unit the block device /dev/nbdN of Linux",
	.notes = "The name of the device is printed on standard output when "
		 "programs may open it.\niser runs until iser detach, or "
		 "SIGTERM; unmount file systems first.\n",
	.rows = attach_rows,
	.nrows = ARRAY_LEN(attach_rows),
	.args_size = sizeof(struct attach),
	.min_operands = 1,
	.max_operands = 1,
	.run = run_attach,
};

struct detach {
	bool force;
};

/* Writes the page cache of the device back. Fails if the device is in use. */
static int flush_device(int n)
{
	char name[32];
	int fd, err = 0;

	snprintf(name, sizeof(name), "/dev/nbd%d", n);
	fd = open(name, O_RDWR | O_EXCL | O_CLOEXEC);
	if (fd < 0 && (errno == EROFS || errno == EACCES))
		fd = open(name, O_RDONLY | O_EXCL | O_CLOEXEC);
	if (fd < 0 || fsync(fd))
		err = errno;
	if (fd >= 0)
		close(fd);
	if (!err)
		return 0;
	if (err == EBUSY)
		say("%s: cannot detach: in use; unmount its file systems, or give "
		    "--force",
		    name);
	else
		say("%s: cannot flush: %s; --force detaches it nevertheless",
		    name, strerror(err));
	return EXIT_GENERIC;
}

/* Waits until the process that served the device has logged out. */
static void await_end(long pid)
{
	struct pollfd p = { .events = POLLIN };

	if (pid <= 0)
		return;
	p.fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	if (p.fd < 0)
		return; /* it has ended, or this kernel is old */
	poll(&p, 1, END_MS);
	close(p.fd);
}

static int run_detach(const struct call *call)
{
	const struct detach *d = call->args;
	int n = nbd_device_index(call->operands[0]), code, err;
	long pid;

	if (n < 0) {
		say("%s: not the name of an NBD device; give /dev/nbdN",
		    call->operands[0]);
		return EXIT_INVALID;
	}
	code = nbd_device_check();
	if (code)
		return code;
	pid = nbd_device_server(n);
	if (pid < 0) {
		say("/dev/nbd%d: not attached", n);
		return EXIT_NO_OBJECTS;
	}
	code = d->force ? 0 : flush_device(n);
	if (code)
		return code;
	err = nbd_device_disconnect(n);
	if (err) {
		say("/dev/nbd%d: cannot detach: %s%s", n, strerror(err),
		    err == EPERM ? "; run as root" : "");
		return EXIT_GENERIC;
	}
	await_end(pid);
	return 0;
}

static const struct opt_row detach_rows[] = {
	{ .name = "force",
	  OPT_FLAG(struct detach, force),
	  .help = "also if the device is in use, and without a flush" },
};

const struct command command_detach = {
	.name = "detach",
	.synopsis = "[OPTION]... DEVICE",
	.summary = "end iser attach: DEVICE is /dev/nbdN",
	.rows = detach_rows,
	.nrows = ARRAY_LEN(detach_rows),
	.args_size = sizeof(struct detach),
	.min_operands = 1,
	.max_operands = 1,
	.run = run_detach,
};
