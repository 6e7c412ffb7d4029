/* SPDX-License-Identifier: BSD-2-Clause */
/* task_own.h: what a task has that only the device uses; task.h has the rest. */
#ifndef DEVICE_TASK_OWN_H
#define DEVICE_TASK_OWN_H

#include "backstore/request.h"
#include "base/list.h"
#include "device/env.h"
#include "device/pass.h"
#include "device/share.h"

struct dev_command;
struct dev_itl;
struct dev_task;

/* The state of a fence on the blocks of a task (range.c). */
enum dev_hold {
	DEV_HOLD_NONE,
	DEV_HOLD_WAITS,
	DEV_HOLD_SHARED, /* for READ and WRITE */
	DEV_HOLD_ALONE,	 /* no other task uses the blocks */
};

struct dev_fence;
struct dev_flow;
struct dev_copy;

struct dev_range {
	enum dev_hold state;
	struct list link; /* dev_lane.touching or .waiting */
	struct dev_lu *lu;
	unsigned worker;
	uint64_t lba, blocks;
	void (*go)(struct dev_range *r);
	struct dev_fence *fence; /* of DEV_HOLD_ALONE, from dev_range_take on */
};

/* The states of a task; device/unit/task_state.h has the transitions. */
enum dev_task_state {
	DEV_TASK_NEW,	     /* before dev_task_begin, after dev_task_end */
	DEV_TASK_WANTS_DATA, /* begun; data-out is in transfer */
	DEV_TASK_DORMANT, /* has its data; waits for other tasks of the set */
	DEV_TASK_RUNNING, /* I/O may be in progress */
	DEV_TASK_HELD,	  /* was executed; an ACA delays its end */
	DEV_TASK_DONE,	  /* done or released was called; data are lent */
};

struct dev_task_own {
	const struct dev_flow *flow; /* for ending.c: how the task goes on */
	enum dev_task_state state;
	const struct dev_command *row;
	uint64_t blocks; /* of the CDB; the handler may change it, and lba */
	bool alone;	 /* needs exclusive access to the unit */
	struct dev_range range;
	uint32_t count; /* for the handler */
	/* the nexus's entry of this copy, while in progress */
	struct dev_copy *copy;
	/* task.c: results of dev_task_begin */
	struct {
		/* what the nexus has at t->lu; NULL as t->lu */
		struct dev_itl *itl;
		bool refused; /* status and sense data are set */
		bool held;    /* refused, and never answered (dev_hold) */
		/* 1 + the unit attention that the task reports; attention.c */
		uint8_t attention;
		/* no limit of the unit delays the task while `changes` stays */
		bool unlimited;
		uint32_t changes; /* dev_lu.changes, before the checks */
		uint32_t medium;  /* dev_lu.medium */
	} begun;
	/* memory.c: the buffers of the task */
	struct {
		void *buf; /* data, or parameter data */
		size_t buf_len;
		/* write data that are not in buf yet, or NULL */
		const uint8_t *peek;
		size_t peek_len;
		/* a second buffer, for commands that work in steps */
		void *aux;
		size_t aux_len;
		void *pi; /* protection information of the data */
		size_t pi_len;
		/* the backstore lends the memory of iov[0], as long as the task
		 * waits for nothing; loan.c */
		bool lent;
		struct iovec iov[2];
		/* loan.c: the backstore lends the memory of iov[0] to a
		 * command whose data may be sent again */
		struct {
			bool is;
			struct list link;    /* dev_lane.loans */
			uint64_t off, stamp; /* bs_stamp */
			size_t len;
		} loan;
	} mem;
	/* memory.c: the task's charge against the session's share, or its
	 * wait for one */
	struct {
		struct share_charge charge, burst;
		struct share_wait wait, hold;
		/* dev_task_execute was called while the task waited */
		bool execute_due;
	} share;
	struct {
		bool due; /* dev_task_abort was called */
		void (*released)(struct dev_task *t);
		/* Ends the wait for waits_for; NULL: the task waits for I/O
		 * of its own, which always ends. */
		void (*let_go)(struct dev_task *t);
		void *waits_for;
	} abort;
	/* block/protect.c */
	struct {
		uint8_t field; /* RDPROTECT, WRPROTECT or a similar field */
		uint8_t type;  /* protection type that is checked; 0: none */
	} protect;
	/* io.c: a command that works in steps */
	struct {
		bool (*next)(struct dev_task *t);
		int result; /* result of the last step */
		bool is_running, again;
		/* for the handler: the last step was a write */
		bool wrote;
		uint64_t at, end; /* for the handler: byte offsets */
		/* what the steps of this turn cost, in bytes; to go on in another turn */
		uint64_t cost;
		struct dev_msg later;
	} steps;
	/* io.c, flush.c: the request in progress */
	struct {
		void (*then)(struct dev_task *t, int result);
		struct dev_lu *lu;
		uint64_t flush; /* number of the flush */
		/* bs_flush_failures at the beginning of the request */
		uint32_t failures;
		uint32_t rewritten, departures;
		bool covers, reports;
	} io;
	/* pass/: a command for a real device */
	struct {
		bool used;	/* the task is passed to a real device */
		bool sent;	/* the real device has the command */
		bool of_blocks; /* the data are whole blocks */
	} passing;
	union {
		struct bs_req req;
		struct pass_req pass;
	};
};

#endif
