/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * floor_rbd.c: librbd itself: asynchronous requests to an image of Ceph at a
 * constant depth, without a cache. One thread submits all requests and gets the
 * completions by an eventfd. The configuration of Ceph is that of the environment
 * variable CEPH_CONF.
 */
#include <getopt.h>
#include <poll.h>
#include <rados/librados.h>
#include <rbd/librbd.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <sys/uio.h>

#include "loopback.h"

#define DEPTH_MAX 256u
#define STALLED	  60000 /* milliseconds without a completion */

struct load {
	char *image; /* POOL/IMAGE */
	size_t size;
	unsigned depth;
	double seconds, ramp;
	bool write, random;
	rados_t cluster;
	rados_ioctx_t pool;
	rbd_image_t rbd;
	int events;
	uint64_t blocks; /* of the image */
	uint64_t next, state;
	unsigned in_flight;
	/* what was measured, after the ramp */
	bool counts, stop;
	uint64_t done;
	uint32_t *latency; /* nanoseconds */
	size_t room;
};

struct slot {
	struct load *load;
	struct iovec iov;
	double began;
};

static int64_t must(const char *what, int64_t result)
{
	if (result < 0) {
		errno = (int)-result;
		fail(what);
	}
	return result;
}

static double cpu_time(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void open_image(struct load *l)
{
	char *slash = strchr(l->image, '/');
	uint64_t size;

	*slash = '\0';
	must("rados_create", rados_create(&l->cluster, "admin"));
	must("CEPH_CONF", rados_conf_read_file(l->cluster, NULL));
	must("rbd_cache", rados_conf_set(l->cluster, "rbd_cache", "false"));
	must("connecting to the cluster", rados_connect(l->cluster));
	must(l->image, rados_ioctx_create(l->cluster, l->image, &l->pool));
	must(slash + 1, rbd_open(l->pool, slash + 1, &l->rbd, NULL));
	must("rbd_get_size", rbd_get_size(l->rbd, &size));
	l->blocks = size / l->size;
	if (!l->blocks) {
		fputs("floor_rbd: the image is smaller than one request\n",
		      stderr);
		exit(1);
	}
	l->events = (int)must("eventfd", eventfd(0, EFD_NONBLOCK));
	must("rbd_set_image_notification",
	     rbd_set_image_notification(l->rbd, l->events, EVENT_TYPE_EVENTFD));
}

static void close_image(struct load *l)
{
	must("rbd_close", rbd_close(l->rbd));
	rados_ioctx_destroy(l->pool);
	rados_shutdown(l->cluster);
	close(l->events);
	free(l->latency);
}

static uint64_t next_block(struct load *l)
{
	if (!l->random)
		return l->next++ % l->blocks;
	l->state = l->state * 6364136223846793005u + 1442695040888963407u;
	return (l->state >> 24) % l->blocks;
}

static void submit(struct slot *s)
{
	struct load *l = s->load;
	uint64_t at = next_block(l) * l->size;
	rbd_completion_t c;

	s->began = now();
	must("rbd_aio_create_completion",
	     rbd_aio_create_completion(s, NULL, &c));
	if (l->write)
		must("write", rbd_aio_writev(l->rbd, &s->iov, 1, at, c));
	else
		must("read", rbd_aio_readv(l->rbd, &s->iov, 1, at, c));
	l->in_flight++;
}

static void count(struct load *l, double took)
{
	if (l->done == l->room) {
		l->room = l->room ? 2 * l->room : 65536;
		l->latency =
			realloc(l->latency, l->room * sizeof(l->latency[0]));
		if (!l->latency)
			fail("memory");
	}
	l->latency[l->done++] = took < 4 ? (uint32_t)(took * 1e9) : UINT32_MAX;
}

static void complete(rbd_completion_t c)
{
	struct slot *s = rbd_aio_get_arg(c);
	struct load *l = s->load;

	must(l->write ? "write" : "read", rbd_aio_get_return_value(c));
	rbd_aio_release(c);
	l->in_flight--;
	if (l->counts)
		count(l, now() - s->began);
	if (!l->stop)
		submit(s);
}

/* reap waits for completions, and takes all that there are. */
static void reap(struct load *l)
{
	struct pollfd p = { .fd = l->events, .events = POLLIN };
	rbd_completion_t ended[DEPTH_MAX];
	uint64_t value;
	int n = poll(&p, 1, STALLED);

	if (n == 0)
		errno = ETIMEDOUT;
	if (n <= 0 && errno != EINTR)
		fail("waiting for the cluster");
	if (read(l->events, &value, sizeof(value)) < 0 && errno != EAGAIN)
		fail("eventfd");
	n = (int)must("rbd_poll_io_events",
		      rbd_poll_io_events(l->rbd, ended, DEPTH_MAX));
	for (int i = 0; i < n; i++)
		complete(ended[i]);
}

static void run_for(struct load *l, double seconds)
{
	double end = now() + seconds;

	while (now() < end)
		reap(l);
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static double percentile(const struct load *l, double share)
{
	return l->latency[(size_t)((double)(l->done - 1) * share)] * 1e-3;
}

static void measure(struct load *l, struct slot *slots)
{
	double start, cpu, took;

	for (unsigned i = 0; i < l->depth; i++) {
		slots[i].load = l;
		slots[i].iov = (struct iovec){ must_alloc(l->size), l->size };
		submit(&slots[i]);
	}
	run_for(l, l->ramp);
	l->counts = true;
	start = now();
	cpu = cpu_time();
	run_for(l, l->seconds);
	took = now() - start;
	cpu = cpu_time() - cpu;
	l->counts = false;
	l->stop = true;
	while (l->in_flight)
		reap(l);
	for (unsigned i = 0; i < l->depth; i++)
		free(slots[i].iov.iov_base);
	if (!l->done) {
		fputs("floor_rbd: no request ended in time\n", stderr);
		exit(1);
	}
	qsort(l->latency, l->done, sizeof(l->latency[0]), by_value);
	printf("{\"iops\": %.1f, \"p50_us\": %.1f, \"p99_us\": %.1f, "
	       "\"cpu_us\": %.2f}\n",
	       (double)l->done / took, percentile(l, 0.5), percentile(l, 0.99),
	       cpu * 1e6 / (double)l->done);
}

static bool parse(struct load *l, int argc, char **argv)
{
	static const struct option options[] = {
		{ "size", 1, NULL, 's' },  { "depth", 1, NULL, 'd' },
		{ "time", 1, NULL, 't' },  { "ramp", 1, NULL, 'r' },
		{ "write", 0, NULL, 'w' }, { "random", 0, NULL, 'R' },
		{ "help", 0, NULL, 'h' },  { NULL, 0, NULL, 0 },
	};
	int o;

	while ((o = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (o == 's')
			l->size = strtoul(optarg, NULL, 0);
		else if (o == 'd')
			l->depth = (unsigned)strtoul(optarg, NULL, 0);
		else if (o == 't')
			l->seconds = strtod(optarg, NULL);
		else if (o == 'r')
			l->ramp = strtod(optarg, NULL);
		else if (o == 'w')
			l->write = true;
		else if (o == 'R')
			l->random = true;
		else
			return false;
	}
	if (optind != argc - 1)
		return false;
	l->image = argv[optind];
	return l->size > 0 && l->depth > 0 && l->depth <= DEPTH_MAX &&
	       l->seconds > 0 && strchr(l->image, '/');
}

int main(int argc, char **argv)
{
	static struct slot slots[DEPTH_MAX];
	struct load l = { .size = 4096, .depth = 32, .seconds = 1, .ramp = 0.1 };

	l.state = (uint64_t)getpid() * 2654435761u;
	if (!parse(&l, argc, argv)) {
		fputs("usage: floor_rbd [--size BYTES] [--depth N] [--time "
		      "SECONDS] [--ramp SECONDS]\n"
		      "                 [--write] [--random] POOL/IMAGE\n",
		      stderr);
		return 2;
	}
	open_image(&l);
	measure(&l, slots);
	close_image(&l);
	return 0;
}
