/* SPDX-License-Identifier: BSD-2-Clause */
/* worker.c: workers: loop, buffers, the target's clock, threads, draining. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/daemon.h"

#define POOL_TOTAL  (512u << 20) /* data buffers of all workers together */
#define POOL_KEPT   (64u << 20)	 /* of these, kept for reuse */
#define CHORES_TIME (5 * XTIME_S)
#define DRAIN_TICK  (20 * XTIME_MS)

/* ---- what the pure rooms ask for ---- */

void worker_post(void *arg, unsigned worker, struct dev_msg *msg)
{
	struct daemon *d = arg;

	mailbox_put(&d->workers[worker].mail, msg);
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

#define LATER_MAX 1000 /* ms: nobody waits longer at the end */

struct delayed {
	struct io_timer timer;
	struct dev_msg *msg;
};

static void delay_over(struct io_timer *t)
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
		l->timer.fire = delay_over;
		l->msg = m;
	}
	if (!l || io_timer_set(loop, &l->timer,
			       io_now(loop) + MIN(ms, LATER_MAX) * XTIME_MS)) {
		free(l);
		worker_post(arg, worker, m); /* too soon is better than never */
	}
}

static void set_clock(struct worker *w)
{
	io_timer_set(w->loop, &w->clock, tgt_worker_deadline(w->target));
}

static void clock_fires(struct io_timer *t)
{
	struct worker *w = container_of(t, struct worker, clock);

	tgt_worker_expire(w->target, io_now(w->loop));
	set_clock(w);
}

/* Called from within the target: look at the deadlines soon. */
void worker_rearm(void *arg, unsigned worker)
{
	struct daemon *d = arg;
	struct worker *w = &d->workers[worker];

	io_timer_set(w->loop, &w->clock, io_now(w->loop));
}

static void do_chores(struct io_timer *t)
{
	struct worker *w = container_of(t, struct worker, chores);

	bufpool_trim(&w->bufs);
	w->chores_set = w->bufs.kept || !list_empty(&w->conns);
	if (w->chores_set)
		io_timer_set(w->loop, t, io_now(w->loop) + CHORES_TIME);
}

/* A connection came: its deadline, and buffers to look after. */
void worker_busy(struct worker *w)
{
	set_clock(w);
	if (w->chores_set)
		return;
	w->chores_set = true;
	io_timer_set(w->loop, &w->chores, io_now(w->loop) + CHORES_TIME);
}

/* ---- draining ---- */

static void report_idle(struct dev_msg *m)
{
	struct worker *w = container_of(m, struct worker, idle);
	struct daemon *d = w->daemon;

	if (++d->nidle == d->nworkers)
		io_loop_stop(d->workers[0].loop);
}

static void check_idle(struct io_timer *t)
{
	struct worker *w = container_of(t, struct worker, drain_tick);

	if (list_empty(&w->conns) && tgt_worker_idle(w->target) &&
	    !dev_server_is_busy(w->daemon->server))
		worker_post(w->daemon, 0, &w->idle);
	else
		io_timer_set(w->loop, t, io_now(w->loop) + DRAIN_TICK);
}

static void drain(struct dev_msg *m)
{
	struct worker *w = container_of(m, struct worker, drain);

	dev_server_stop(w->daemon->server);
	tgt_worker_drain(w->target, io_now(w->loop));
	set_clock(w);
	check_idle(&w->drain_tick);
}

static void kill_conns(struct dev_msg *m)
{
	struct worker *w = container_of(m, struct worker, kill);

	tgt_worker_kill(w->target);
}

/* ---- life ---- */

static int worker_init(struct daemon *d, struct worker *w, unsigned index)
{
	int err;

	w->daemon = d;
	w->index = index;
	list_init(&w->conns);
	w->clock.fire = clock_fires;
	w->chores.fire = do_chores;
	w->drain_tick.fire = check_idle;
	w->drain.run = drain;
	w->kill.run = kill_conns;
	w->idle.run = report_idle;
	bufpool_init(&w->bufs, POOL_TOTAL / d->nworkers,
		     POOL_KEPT / d->nworkers);
	w->loop = io_loop_new(d->options.io, &err);
	if (!w->loop) {
		say("no event loop (--io %s): %s%s",
		    io_backend_name(d->options.io), strerror(-err),
		    d->options.io == IO_URING ? "; try --io epoll" : "");
		return EXIT_ERROR;
	}
	io_loop_set_spin(w->loop, d->options.spin_us * XTIME_US);
	mailbox_init(&w->mail, w->loop);
	d->loops[index] = w->loop;
	return 0;
}

int workers_open(struct daemon *d)
{
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
		mailbox_fini(&w->mail);
		bufpool_fini(&w->bufs);
		io_loop_free(w->loop);
	}
	free(d->workers);
	free(d->loops);
}

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

	if (w->daemon->options.pin)
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
			say("can't start worker %u: %s; try fewer --workers", i,
			    strerror(err));
			return EXIT_ERROR;
		}
		w->started = true;
	}
	if (d->options.pin)
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
