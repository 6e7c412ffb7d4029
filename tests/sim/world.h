/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * world.h: a target with one ram disk and one worker, without a socket, a
 * thread or a clock of its own.
 */
#ifndef TESTS_SIM_WORLD_H
#define TESTS_SIM_WORLD_H

#include "backstore/backstore.h"
#include "target/target.h"

#define TARGET	  "iqn.2026-01.org.example:disk"
#define INITIATOR "iqn.2026-01.org.example:host"
#define BLOCK	  512u
#define BLOCKS	  4096u

struct world {
	struct tgt *tgt;
	struct dev_server *server;
	struct tgt_config cfg;
	struct dev_msg *mail, **mail_end;
	uint8_t *medium;
	struct bs *hold; /* keeps requests until it is told, or NULL */
	size_t buffers;	 /* bytes lent out */
	xtime now;
	uint16_t isid;
};

void world_open(struct world *w);
/* world_open_seen: seen gets every request of the device to its store. */
void world_open_seen(struct world *w,
		     void (*seen)(void *arg, const struct bs_req *req),
		     void *arg);
/* world_open_held: requests wait in w->hold (bs_hold_release). */
void world_open_held(struct world *w);
/* world_open_protected: blocks have protection information of this type. */
void world_open_protected(struct world *w, uint8_t type);
void world_run_mail(struct world *w);
void world_close(struct world *w);

#endif
