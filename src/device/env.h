/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * env.h: what the device needs of the process, and what both the target and the daemon
 * call. The daemon sees device.h besides, the target task.h.
 */
#ifndef DEVICE_ENV_H
#define DEVICE_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/xtime.h"

struct dev_server; /* the logical units of the process, and its target ports */
struct dev_lu;
struct dev_map; /* the units that a nexus can access, by LUN */
struct dev_refresh;
struct dev_regroup;
struct dev_save;

struct dev_msg {
	void (*run)(struct dev_msg *m);
	struct dev_msg *next;
};

struct dev_env {
	unsigned nworkers;
	/* Calls m->run on the worker's thread from its event loop, never
	 * from within post, even on the calling worker. m is borrowed until
	 * then. */
	void (*post)(void *arg, unsigned worker, struct dev_msg *m);
	/*
	 * Saves the record of s, so that it survives a power loss; calls
	 * s->done on s->worker once the record is on the medium. Called on
	 * worker 0, with one record of each kind at a time, and with one more for
	 * each unit with .clustered. NULL: no record can be saved.
	 */
	void (*save)(void *arg, struct dev_save *s);
	/* For units with .clustered (shared.h), which need them and `save`. refresh:
	 * puts the newest common state in force, regroup: changes access states;
	 * both call done later or from within, on worker 0, the calling one. fenced: a
	 * request to the backstore ended with ERR_TERMINATED: this gateway was fenced;
	 * once until dev_lu_replace_backstore, on worker 0, from the event loop. */
	void (*refresh)(void *arg, struct dev_refresh *r);
	void (*regroup)(void *arg, struct dev_regroup *r);
	void (*fenced)(void *arg, struct dev_lu *lu);
	/* Allocate and free data buffers for reads, writes and parameter
	 * lists, aligned to 4,096 bytes, from the worker's pool. buf_get
	 * returns NULL: no memory. */
	void *(*buf_get)(void *arg, unsigned worker, size_t len);
	void (*buf_put)(void *arg, unsigned worker, void *buf, size_t len);
	/* How much buffer memory the commands of a worker may hold (share.h):
	 * the reserve holds the largest command. All 0: no limits. */
	size_t buf_common, buf_reserve, buf_burst;
	/* Milliseconds since 1970 UTC, for REPORT TIMESTAMP; NULL: the units
	 * do not have that command. Any worker. */
	uint64_t (*wall_ms)(void *arg);
	/* Unpredictable random bytes; NULL: no ROD tokens. Any worker. */
	void (*random)(void *arg, uint8_t *p, size_t n);
	/* Posts m to the calling worker after ms milliseconds. NULL: erase_rate
	 * is ignored. */
	void (*later)(void *arg, unsigned worker, unsigned ms,
		      struct dev_msg *m);
	/* Calls m->run on the calling worker in a later turn, once the worker has served what
	 * else there is, as it does for all messages of this kind, one after the other. NULL:
	 * commands that work in steps end in one turn. */
	void (*give_way)(void *arg, unsigned worker, struct dev_msg *m);
	/* The time of a monotonic clock on the calling worker: at the beginning
	 * of the turn, or exactly. With `later`, for dev_limits; NULL: they are
	 * ignored. */
	xtime (*time)(void *arg, unsigned worker, bool exact);
	void *arg;
};

/* dev_lu_name returns dev_lu_config.name, borrowed, for messages; on any worker. */
const char *dev_lu_name(const struct dev_lu *lu);

/* dev_map_get counts one more user of m and returns m; dev_map_put releases one, and
 * frees m with the last. On any worker; NULL: no effect. */
struct dev_map *dev_map_get(struct dev_map *m);
void dev_map_put(struct dev_map *m);
/* dev_map_has returns whether a nexus with the map m (NULL: every unit) can access the
 * unit. dev_map_equal returns whether two maps, or NULL, give the same access. */
bool dev_map_has(const struct dev_map *m, const struct dev_lu *lu);
bool dev_map_equal(const struct dev_map *a, const struct dev_map *b);

#endif
