/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * path_cost.c: 4 KiB reads and writes at depth 32 between libiser and a target with
 * one ram disk, by iSCSI or iSER over TCP on the loopback device, in one thread: the
 * loops of the two ends take turns, so that each run has the same batches. cost.py counts the
 * instructions of each end under callgrind, as those that `read_all` and `write_all`
 * spend in `client_turn` and `target_turn`. Without callgrind the program prints the
 * CPU time of each end in nanoseconds, which no wake-up of another thread disturbs.
 * With two workers of the target, each with a client of its own on the same unit,
 * shared_lines.py counts the cache lines that the workers share.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "backstore/backstore.h"
#include "base/bytes.h"
#include "daemon/process/bufpool.h"
#include "device/device.h"
#include "io/io.h"
#include "iser/iser.h"
#include "net/conn.h"
#include "target/directory.h"
#include "target/target.h"

#define TARGET	  "iqn.2026-01.org.example:disk"
#define OP	  4096u
#define DEPTH_MAX 256u
#define WORKERS	  2u /* at most */

static struct {
	const char *transport;
	unsigned reads, writes, depth, mib; /* mib: size of the disk */
	unsigned level;			    /* ErrorRecoveryLevel */
	unsigned workers;
} options = { "iscsi", 2048, 2048, 32, 16, 0, 1 };

#define NOINLINE __attribute__((noinline))

/* A clock for the loops, which callgrind does not slow down: the time that a turn may take
 * must not end sooner than without callgrind. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	static _Thread_local long ns = XTIME_MS;

	if (clock != CLOCK_MONOTONIC)
		return (int)syscall(SYS_clock_gettime, clock, now);
	ns += XTIME_US;
	*now = (struct timespec){ .tv_sec = ns / XTIME_S,
				  .tv_nsec = ns % XTIME_S };
	return 0;
}

/* a worker of the target, with the listener for its client */
struct target {
	_Alignas(64) struct io_loop *loop;
	struct bufpool bufs;
	struct tgt_worker *worker;
	struct net_listener *listener;
	struct net_conn *conn;
	struct io_defer count;
	struct dev_msg *mail;
};

struct job {
	struct client *c;
	struct iser_io io;
	struct iovec iov;
};

struct client {
	struct iser_context *ctx;
	struct iser_session *s;
	struct target *target;
	struct job jobs[DEPTH_MAX];
	uint8_t *memory;
	unsigned left, in_progress; /* operations */
	uint64_t next;
	uint64_t first, places; /* its part of the disk, in operations */
	bool write, logged_in;
	xtime ns[2]; /* of target_turn, of client_turn */
};

static void fail(const char *what)
{
	fprintf(stderr, "path_cost: %s\n", what);
	exit(1);
}

/* ---- target: what iserd has of a worker ---- */

static void post(void *arg, unsigned worker, struct dev_msg *m)
{
	struct target *t = (struct target *)arg + worker;

	m->next = t->mail;
	t->mail = m;
}

static void *buf_get(void *arg, unsigned worker, size_t len)
{
	return bufpool_get(&((struct target *)arg)[worker].bufs, len);
}

static void buf_put(void *arg, unsigned worker, void *buf, size_t len)
{
	bufpool_put(&((struct target *)arg)[worker].bufs, buf, len);
}

static xtime worker_time(void *arg, unsigned worker, bool exact)
{
	return exact ? io_now_exact()
		     : io_now(((struct target *)arg)[worker].loop);
}

static void count_commands(struct io_defer *d)
{
	tgt_worker_count(container_of(d, struct target, count)->worker);
}

static void count_later(void *arg, unsigned worker)
{
	struct target *t = (struct target *)arg + worker;

	io_loop_defer(t->loop, &t->count);
}

static void rearm(void *arg, unsigned worker)
{
	(void)arg;
	(void)worker;
}

static int conn_opened(void *arg, struct dm_conn *dm)
{
	const struct tgt_conn_info info = { .peer = "127.0.0.1:1",
					    .local = "127.0.0.1:2",
					    .portal_group = 1 };
	struct target *t = arg;

	return tgt_conn_accept(t->worker, dm, &info, io_now(t->loop));
}

static void conn_closed(void *arg, int err)
{
	(void)arg;
	(void)err;
}

static const struct net_conn_ops conn_ops = {
	.opened = conn_opened,
	.closed = conn_closed,
};

static void accepted(void *arg, int fd, const struct net_addr *peer)
{
	struct target *t = arg;
	struct net_conn_config cfg;

	(void)peer;
	net_conn_config_default(&cfg, ISCSI_TARGET);
	t->conn = net_conn_new(t->loop, fd, &cfg);
	if (!t->conn || net_conn_start(t->conn, &conn_ops, t))
		fail("cannot start the connection of the target");
}

static struct tgt_directory *make_directory(void)
{
	const struct tgt_portal_group_config group = { .tag = 1 };
	const struct tgt_target_config target = { .name = TARGET };
	struct tgt_directory *d = tgt_directory_new();

	if (!d || tgt_portal_group_add(d, &group) ||
	    tgt_target_add(d, &target) || tgt_target_portal_group(d, 0, 0))
		fail("cannot make the directory");
	return d;
}

static void open_worker(struct target *t)
{
	struct net_addr a;
	int err;

	t->loop = io_loop_new(IO_EPOLL, &err);
	if (!t->loop)
		fail("cannot open a loop");
	bufpool_init(&t->bufs, 64u << 20);
	t->count.run = count_commands;
	list_init(&t->count.link);
	net_addr_parse(&a, "127.0.0.1:0", 0);
	t->listener = net_listen(t->loop, &a, accepted, t, &err);
	if (!t->listener)
		fail("cannot listen");
}

static struct dev_server *open_unit(const struct dev_env *env)
{
	const struct dev_lu_config lu = { .lun = 0 };
	const size_t size = (size_t)options.mib << 20;
	void *memory = aligned_alloc(OP, size);
	struct dev_server *server = dev_server_new(env, 64u << 20);

	memset(memory, 0x5a, size);
	if (!server ||
	    dev_lu_add(server, &lu,
		       bs_ram_new("ram", memory, size, 512, free, memory)))
		fail("cannot open the unit");
	return server;
}

static void open_target(struct target *workers)
{
	struct tgt_config cfg;
	struct tgt *tgt;

	for (unsigned i = 0; i < options.workers; i++)
		open_worker(&workers[i]);
	tgt_config_default(&cfg);
	cfg.env = (struct dev_env){ .nworkers = options.workers,
				    .post = post,
				    .buf_get = buf_get,
				    .buf_put = buf_put,
				    .buf_common = 256u << 20,
				    .buf_reserve = 64u << 20,
				    .buf_burst = 8u << 20,
				    .time = worker_time,
				    .arg = workers };
	cfg.want.error_recovery_level = (uint8_t)options.level;
	cfg.want.default_time2retain = options.level == 2 ? 20 : 0;
	cfg.rearm = rearm;
	cfg.clock = worker_time;
	cfg.count_later = count_later;
	cfg.random = io_random;
	cfg.arg = workers;
	cfg.server = open_unit(&cfg.env);
	tgt = tgt_new(&cfg);
	for (unsigned i = 0; i < options.workers; i++)
		workers[i].worker = tgt_worker(tgt, i);
	if (tgt_begin(tgt, make_directory()))
		fail("cannot begin the target");
}

static NOINLINE void target_turn(struct target *t)
{
	struct dev_msg *m;

	io_loop_turn(t->loop, 0);
	while ((m = t->mail)) {
		t->mail = m->next;
		m->run(m);
	}
}

/* ---- client ---- */

static NOINLINE void client_turn(struct client *c)
{
	iser_service(c->ctx, 0);
}

static void submit_job(struct job *j)
{
	struct client *c = j->c;
	iser_prep_rw(&j->io, 0, c->write,
		     (c->first + c->next % c->places) * (OP / 512), OP / 512);
	/* far from the last one, so that no prefetcher finds it */
	c->next += 4099 * 97;
	c->left--;
	c->in_progress++;
	iser_submit(c->s, &j->io);
}

static void job_completed(struct iser_io *io)
{
	struct job *j = io->arg;

	if (io->err)
		fail("a command failed");
	j->c->in_progress--;
	if (j->c->left)
		submit_job(j);
}

static xtime cpu_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * XTIME_S + t.tv_nsec;
}

static inline __attribute__((always_inline)) void take_turns(struct client *c)
{
	xtime t[3] = { cpu_time() };

	while (c->in_progress) {
		client_turn(c);
		t[1] = cpu_time();
		target_turn(c->target);
		t[2] = cpu_time();
		c->ns[0] += t[2] - t[1];
		c->ns[1] += t[1] - t[0];
		t[0] = t[2];
	}
}

static void begin(struct client *c, bool write, unsigned ops)
{
	c->write = write;
	c->left = ops;
	for (unsigned i = 0; i < options.depth; i++)
		submit_job(&c->jobs[i]);
}

static NOINLINE void read_all(struct client *c, unsigned ops)
{
	begin(c, false, ops);
	take_turns(c);
}

static NOINLINE void write_all(struct client *c, unsigned ops)
{
	begin(c, true, ops);
	take_turns(c);
}

/* The attention of the first command, and what grows at first. */
static NOINLINE void warm_up(struct client *c)
{
	begin(c, false, 4 * options.depth);
	take_turns(c);
	begin(c, true, 4 * options.depth);
	take_turns(c);
}

/* Whether a worker takes its turn: shared_lines.py looks for the stores. */
static volatile bool executing[WORKERS];

/* Each client has `ops` operations with its worker; the workers take turns. */
static void take_turns_of_workers(struct client *clients, bool write,
				  unsigned ops)
{
	bool busy = true;

	for (unsigned i = 0; i < options.workers; i++)
		begin(&clients[i], write, ops);
	while (busy) {
		busy = false;
		for (unsigned i = 0; i < options.workers; i++) {
			client_turn(&clients[i]);
			executing[i] = true;
			target_turn(clients[i].target);
			executing[i] = false;
			busy = busy || clients[i].in_progress;
		}
	}
}

static void run_workers(struct client *clients)
{
	printf("executing %p turns %p stack %p thread %p\n", (void *)executing,
	       (void *)take_turns_of_workers, (void *)&clients,
	       (void *)pthread_self());
	fflush(stdout);
	for (unsigned i = 0; i < options.workers; i++)
		warm_up(&clients[i]);
	if (options.reads)
		take_turns_of_workers(clients, false, options.reads);
	if (options.writes)
		take_turns_of_workers(clients, true, options.writes);
}

static void connected(void *arg, struct iser_session *s, int err)
{
	struct client *c = arg;

	(void)s;
	if (err)
		fail(iser_message(c->ctx));
	c->logged_in = true;
}

static void open_client(struct client *c, struct target *workers,
			struct target *t)
{
	struct iser_url url;
	struct net_addr a;
	char text[128], why[128];
	int err;

	net_listener_addr(t->listener, &a);
	snprintf(text, sizeof(text),
		 "%s://127.0.0.1:%u/" TARGET "/0?error_recovery_level=%u",
		 options.transport, net_addr_port(&a), options.level);
	if (iser_url_parse(&url, text, false, why, sizeof(why)))
		fail(why);
	c->target = t;
	c->places = ((uint64_t)options.mib << 20) / OP / options.workers;
	c->first = c->places * (uint64_t)(t - workers);
	c->ctx = iser_context_new(NULL);
	c->s = iser_connect_start(c->ctx, &url, connected, c, &err);
	if (!c->s)
		fail(iser_message(c->ctx));
	while (!c->logged_in) { /* a login has steps at other workers */
		client_turn(c);
		for (unsigned i = 0; i < options.workers; i++)
			target_turn(&workers[i]);
	}
	c->memory = aligned_alloc(OP, OP * options.depth);
	memset(c->memory, 0xa5, OP * options.depth);
	for (unsigned i = 0; i < options.depth; i++) {
		struct job *j = &c->jobs[i];

		j->c = c;
		j->iov = (struct iovec){ c->memory + i * OP, OP };
		j->io.iov = &j->iov;
		j->io.niov = 1;
		j->io.done = job_completed;
		j->io.arg = j;
	}
}

static void print_phase(struct client *c, const char *name, unsigned ops)
{
	printf("%-5s %7u operations, ns of an operation: target %lld, client "
	       "%lld\n",
	       name, ops, (long long)c->ns[0] / ops, (long long)c->ns[1] / ops);
	c->ns[0] = c->ns[1] = 0;
}

static void run(struct client *c)
{
	warm_up(c);
	c->ns[0] = c->ns[1] = 0;
	if (options.reads) {
		read_all(c, options.reads);
		print_phase(c, "read", options.reads);
	}
	if (options.writes) {
		write_all(c, options.writes);
		print_phase(c, "write", options.writes);
	}
}

static void parse(int argc, char **argv)
{
	unsigned *const values[] = { &options.reads, &options.writes,
				     &options.depth, &options.mib,
				     &options.level, &options.workers };

	if (argc > 1)
		options.transport = argv[1];
	for (int i = 2; i < argc && i <= 1 + (int)ARRAY_LEN(values); i++)
		*values[i - 2] = (unsigned)strtoul(argv[i], NULL, 10);
	if (options.depth > DEPTH_MAX || !options.mib || !options.workers ||
	    options.workers > WORKERS)
		fail("usage: path_cost [iscsi|iser [READS [WRITES [DEPTH "
		     "[MIB [LEVEL [WORKERS]]]]]]]");
}

int main(int argc, char **argv)
{
	static struct target workers[WORKERS];
	static struct client clients[WORKERS];

	parse(argc, argv);
	open_target(workers);
	for (unsigned i = 0; i < options.workers; i++)
		open_client(&clients[i], workers, &workers[i]);
	if (options.workers > 1)
		run_workers(clients);
	else
		run(&clients[0]);
	return 0;
}
