/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * world.h: a target with one ram disk and one worker, without socket, thread
 * or clock, and functions that connect initiators to the target.
 */
#ifndef TESTS_SIM_WORLD_H
#define TESTS_SIM_WORLD_H

#include "backstore/backstore.h"
#include "initiator/initiator.h"
#include "sim/transport.h"
#include "target/directory.h"
#include "target/target.h"

#define TARGET	  "iqn.2026-01.org.example:disk"
#define INITIATOR "iqn.2026-01.org.example:host"
#define TAG	  1 /* of the portal group */
#define BLOCK	  512u
#define BLOCKS	  4096u

struct world {
	struct tgt *tgt;
	struct dev_server *server;
	struct tgt_config cfg;
	struct dev_msg *mail, **mail_end;
	uint8_t *medium;
	struct bs *hold; /* holds requests until bs_hold_release, or NULL */
	size_t buffers;	 /* allocated bytes */
	size_t common, reserve, burst;
	size_t limit; /* of buffers; 0: none */
	xtime now;
	xtime clock; /* the timer of the target's deadlines */
	uint16_t isid;
	uint16_t connections; /* of a session; 0: one */
	uint8_t level;	      /* the target's ErrorRecoveryLevel */
	bool pings;	      /* the target pings initiators */
	bool any_order;	      /* the initiators choose the order of data */
	struct trace *trace;  /* of the target; may be NULL */
};

void world_open(struct world *w);
/* world_open_level: the target accepts this ErrorRecoveryLevel. */
void world_open_level(struct world *w, uint8_t level);
/* world_open_recovery: both, and the target has all its timers; for world_run_clock.
 * trace may be NULL. */
void world_open_recovery(struct world *w, uint8_t level, uint16_t connections,
			 struct trace *trace);
/* world_run_clock: the timer of the target, as a worker of iserd has it: it is set
 * only when it fires and when the target calls tgt_config.rearm. */
void world_run_clock(struct world *w, xtime now);
/* world_open_seen: seen gets every request of the device to its backstore. */
void world_open_seen(struct world *w,
		     void (*seen)(void *arg, const struct bs_req *req),
		     void *arg);
/* world_open_wide: a session may have so many connections. */
void world_open_wide(struct world *w, uint16_t connections);
/* world_open_held: requests wait in w->hold (bs_hold_release). */
void world_open_held(struct world *w);
/* world_open_protected: blocks have protection information of this type. */
void world_open_protected(struct world *w, uint8_t type);
/* world_open_limited: limits the memory of commands (share.h); the backstore
 * lends no memory. */
void world_open_limited(struct world *w, size_t common, size_t reserve,
			size_t burst);
void world_run_mail(struct world *w);
void world_close(struct world *w);

/* world_host_config: an initiator with the name INITIATOR and its own ISID, which
 * logs in to TARGET and has no timers. The caller sets logged_in, closed, arg. */
void world_host_config(struct world *w, struct ini_config *cfg, unsigned depth);
/* world_connect connects an initiator to w's target with a wire, and starts the
 * login. way sets some members of cfg. world_disconnect frees all three. */
struct ini_session *world_connect(struct world *w, struct wire *wire,
				  struct sim_transport ends[2],
				  enum sim_way way, struct ini_config *cfg);
void world_disconnect(struct ini_session *ini, struct wire *wire,
		      struct sim_transport ends[2]);

#endif
