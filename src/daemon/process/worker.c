/* SPDX-License-Identifier: BSD-2-Clause */
/* worker.c: workers: loop, buffers, the target's clock, threads. */
#include <errno.h>
#ifdef __GLIBC__
# include <malloc.h>
#endif
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/daemon.h"
#include "daemon/log/say.h"

#define CHORES_TIME (5 * XTIME_S)

/* ---- functions of dev_env ---- */

void worker_post(void *arg, unsigned worker, struct dev_msg *msg)
{
	struct daemon *d = arg;

	mailbox_put(&d->workers[worker].mail, msg);
}

static void tour_end(struct dev_msg *m)
{
	struct tour *t = container_of(m, struct tour, msg);

	t->done(t);
}

static void tour_next(struct dev_msg *m)
{
	struct tour *t = container_of(m, struct tour, msg);
	struct daemon *d = t->daemon;

	t->visit(t, &d->workers[t->worker]);
	if (++t->worker == d->nworkers) {
		t->worker = 0;
		m->run = tour_end;
	}
	worker_post(d, t->worker, m);
}

void workers_visit(struct daemon *d, struct tour *t,
		   void (*visit)(struct tour *t, struct worker *w),
		   void (*done)(struct tour *t))
{
	*t = (struct tour){
		.msg.run = tour_next, .daemon = d, .visit = visit, .done = done
	};
	worker_post(d, 0, &t->msg);
}

void *worker_buf_get(void *arg, unsigned worker, size_t len)
{
	struct daemon *d = arg;

	return bufpool_get(&d->workers[worker].bufs, len);
}

void worker_buf_put(void *arg, unsigned worker, void *buf, size_t len)
{
	struct daemon *d = arg;

	bufpool_put(&d->workers[worker].bufs, buf, len);
}

/* ---- time ---- */

uint64_t worker_wall_ms(void *arg)
{
	struct timespec ts;

	(void)arg;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

#define LATER_MAX 1000 /* ms: bounds how long a shutdown waits */

struct delayed {
	struct io_timer timer;
	struct dev_msg *msg;
};

static void run_delayed(struct io_timer *t)
{
	struct delayed *l = container_of(t, struct delayed, timer);
	struct dev_msg *m = l->msg;

	free(l);
	m->run(m);
}

void worker_later(void *arg, unsigned worker, unsigned ms, struct dev_msg *m)
{
	struct daemon *d = arg;
	struct io_loop *loop = d->workers[worker].loop;
	struct delayed *l = calloc(1, sizeof(*l));

	if (l) {
		l->timer.fire = run_delayed;
		l->msg = m;
	}
	if (!l || io_timer_set(loop, &l->timer,
			       io_now(loop) + MIN(ms, LATER_MAX) * XTIME_MS)) {
		free(l);
		worker_post(arg, worker, m); /* without a delay */
	}
}

static void run_step(struct io_defer *d)
{
	struct worker *w = container_of(d, struct worker, steps.run);
	struct dev_msg *m = w->steps.first;

	w->steps.first = m->next;
	if (w->steps.first)
		io_loop_give_way(w->loop, d);
	else
		w->steps.last = &w->steps.first;
	m->run(m); /* may free it, or give way again */
}

void worker_give_way(void *arg, unsigned worker, struct dev_msg *m)
{
	struct daemon *d = arg;
	struct worker *w = &d->workers[worker];

	m->next = NULL;
	*w->steps.last = m;
	w->steps.last = &m->next;
	io_loop_give_way(w->loop, &w->steps.run);
}

xtime worker_time(void *arg, unsigned worker, bool exact)
{
	const struct daemon *d = arg;

	return exact ? io_now_exact() : io_now(d->workers[worker].loop);
}

static void count_commands(struct io_defer *d)
{
	tgt_worker_count(container_of(d, struct worker, count)->target);
}

void worker_count_later(void *arg, unsigned worker)
{
	struct daemon *d = arg;

	io_loop_defer(d->workers[worker].loop, &d->workers[worker].count);
}

/* The target looks at every connection for the next deadline, and when one has
 * passed. With many connections it does so less often, so that this costs a
 * small part of a CPU: every 0.2 s with 10,000. */
#define CLOCK_PAUSE (20 * XTIME_US) /* for each connection */

static void set_clock(struct worker *w, xtime at)
{
	xtime pause = tgt_worker_conns(w->target) * CLOCK_PAUSE;

	io_timer_set(w->loop, &w->clock, MAX(at, w->clock_ran + pause));
}

void worker_set_clock(struct worker *w)
{
	set_clock(w, tgt_worker_deadline(w->target));
}

static void expire_deadlines(struct io_timer *t)
{
	struct worker *w = container_of(t, struct worker, clock);

	w->clock_ran = io_now(w->loop);
	tgt_worker_expire(w->target, w->clock_ran);
	worker_set_clock(w);
}

/* Lets the timer fire in the next turn instead of setting it to the deadline: in
 * a turn with many changes the deadline is calculated once. */
void worker_rearm(void *arg, unsigned worker)
{
	struct daemon *d = arg;
	struct worker *w = &d->workers[worker];

	set_clock(w, io_now(w->loop));
}

/* After a flood of connections the heap is fragmented: its free pages go back
 * to the system. */
static void give_back_memory(void)
{
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}

/* Runs every CHORES_TIME while there is something to age. An idle worker without
 * cached buffers does not wake up. */
static void do_chores(struct io_timer *t)
{
	struct worker *w = container_of(t, struct worker, chores);
	bool remembered, shrunk;

	bufpool_trim(&w->bufs);
	log_flush(&w->daemon->log);
	remembered = w->age(w->daemon, &shrunk);
	if (shrunk)
		give_back_memory();
	w->chores_set = w->bufs.kept || !list_empty(&w->conns) || remembered;
	if (w->chores_set)
		io_timer_set(w->loop, t, io_now(w->loop) + CHORES_TIME);
}

void worker_busy(struct worker *w)
{
	worker_rearm(w->daemon, w->index);
	if (w->chores_set)
		return;
	w->chores_set = true;
	io_timer_set(w->loop, &w->chores, io_now(w->loop) + CHORES_TIME);
}

/* ---- life ---- */

static int worker_init(struct daemon *d, struct worker *w, unsigned index)
{
	int err;

	w->daemon = d;
	w->index = index;
	list_init(&w->conns);
	list_init(&w->leaving);
	list_init(&w->kicked);
	w->clock.fire = expire_deadlines;
	w->chores.fire = do_chores;
	w->count.run = count_commands;
	list_init(&w->count.link);
	w->steps.run.run = run_step;
	list_init(&w->steps.run.link);
	w->steps.last = &w->steps.first;
	bufpool_init(&w->bufs, bufpool_limit(d->nworkers));
	w->loop = io_loop_new(d->options.io, &err);
	if (!w->loop) {
		say("--io %s: cannot make an event loop: %s%s",
		    io_backend_name(d->options.io), strerror(-err),
		    d->options.io == IO_URING ? "; try --io epoll" : "");
		return EXIT_ERROR;
	}
	io_loop_set_spin(w->loop, d->options.threads.spin_us * XTIME_US);
	mailbox_init(&w->mail, w->loop);
	d->loops[index] = w->loop;
	return 0;
}

/* glibc takes large blocks from its heap once one was freed; calloc then writes to
 * them. The zeros that each ram: and null: backstore lends would become memory, and
 * a change of the configuration would write gigabytes on worker 0. The tasks and the
 * look-ahead buffer of a session would be memory before they are used, and remain
 * memory of the process after the session has ended.
 * backstore/rbd/cluster.c takes this back, once there is an image of Ceph. */
static void map_large_blocks(void)
{
#ifdef __GLIBC__
	mallopt(M_MMAP_THRESHOLD, 64 << 10);
#endif
}

int workers_open(struct daemon *d, worker_age *age)
{
	map_large_blocks();
	d->nworkers = d->options.workers;
	d->workers = calloc(d->nworkers, sizeof(*d->workers));
	d->loops = calloc(d->nworkers, sizeof(*d->loops));
	if (!d->workers || !d->loops) {
		say("out of memory");
		return EXIT_ERROR;
	}
	for (unsigned i = 0; i < d->nworkers; i++) {
		int err = worker_init(d, &d->workers[i], i);

		if (err)
			return err;
		d->workers[i].age = age;
	}
	return 0;
}

void workers_close(struct daemon *d)
{
	for (unsigned i = 0; d->workers && i < d->nworkers; i++) {
		struct worker *w = &d->workers[i];

		if (!w->loop)
			continue;
		io_timer_clear(w->loop, &w->clock);
		io_timer_clear(w->loop, &w->chores);
		io_timer_clear(w->loop, &w->drain_tick);
		io_defer_cancel(&w->count);
		io_defer_cancel(&w->steps.run);
		mailbox_fini(&w->mail);
		bufpool_fini(&w->bufs);
		io_loop_free(w->loop);
	}
	free(d->workers);
	free(d->loops);
}

/* Binds the calling thread to one of the CPUs that the process may use. After a
 * failure the thread runs on any of them. */
static void pin_to_cpu(const struct worker *w)
{
	cpu_set_t allowed, one;
	unsigned nth = 0;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return;
	nth = w->index % (unsigned)CPU_COUNT(&allowed);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed) || nth--)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
		return;
	}
}

static void *thread_main(void *arg)
{
	struct worker *w = arg;
	int err;

	if (w->daemon->options.threads.pin)
		pin_to_cpu(w);
	err = io_loop_run(w->loop);
	if (err)
		say("worker %u: %s", w->index, strerror(-err));
	return NULL;
}

int workers_start(struct daemon *d)
{
	for (unsigned i = 1; i < d->nworkers; i++) {
		struct worker *w = &d->workers[i];
		int err = pthread_create(&w->thread, NULL, thread_main, w);

		if (err) {
			say("worker %u: cannot start: %s; give fewer --workers",
			    i, strerror(err));
			return EXIT_ERROR;
		}
		w->started = true;
	}
	if (d->options.threads.pin)
		pin_to_cpu(&d->workers[0]);
	return 0;
}

void workers_stop(struct daemon *d)
{
	for (unsigned i = 1; d->workers && i < d->nworkers; i++) {
		struct worker *w = &d->workers[i];

		if (!w->started)
			continue;
		io_loop_stop(w->loop);
		pthread_join(w->thread, NULL);
		w->started = false;
	}
}
