/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * task.h: what the target needs of the device: nexuses and the tasks of their commands,
 * resets, and the units as a nexus sees them. device.h has the rest.
 *
 * Threads: a dev_task and its nexus belong to one worker.
 */
#ifndef DEVICE_TASK_H
#define DEVICE_TASK_H

#include "base/bufv.h"
#include "base/err.h"
#include "device/env.h"
#include "device/task_own.h"

struct dev_itl;
struct dev_nexus;
struct dev_task;

/* ---- units, LUNs and ports ---- */

/* dev_lu_from returns the first unit whose number is not below `lun`, or NULL. */
struct dev_lu *dev_lu_from(struct dev_server *s, unsigned lun);
/* dev_lu_lun returns the number of the unit. */
uint16_t dev_lu_lun(const struct dev_lu *lu);
/* dev_lu_store_name returns the name of the backstore, borrowed, for messages,
 * on any worker; NULL for a DEV_CD, where worker 0 may close the backstore at
 * any time. */
const char *dev_lu_store_name(const struct dev_lu *lu);
/* dev_lun_decode reads an 8-byte LUN as a number (SAM-5 §4.7: simple,
 * peripheral and flat addressing, one level). In the peripheral form the bus counts as the
 * upper six bits: libiscsi and QEMU send 01 2C for LUN 300. ERR_NOT_FOUND: another form.
 * dev_lun_encode returns the 8-byte LUN: peripheral addressing below 256, flat
 * addressing above. */
static inline int dev_lun_decode(uint64_t wire, uint16_t *lun)
{
	uint16_t first = (uint16_t)(wire >> 48);

	if (wire & 0x0000ffffffffffffull)
		return ERR_NOT_FOUND;
	if (first >> 14 > 1)
		return ERR_NOT_FOUND;
	*lun = first & 0x3fff;
	return 0;
}
uint64_t dev_lun_encode(uint16_t lun);

/* dev_port_add adds a target port by its SCSI name, "TARGET,t,0xTAG", and returns its
 * relative target port identifier; a port that was added before keeps its identifier.
 * The ports of one target name form one SCSI device, whose nexuses see no other ports.
 * At any time, on worker 0. ERR_LIMIT: there are 65,535 ports; ERR_TOO_LONG; ERR_NOMEM. */
int dev_port_add(struct dev_server *s, const char *name, uint16_t *rtpi);

/* ---- nexus: one initiator port, one target port ---- */

struct dev_nexus_config {
	unsigned worker;
	/* SCSI names: "iqn...,i,0x<isid>" and "iqn...,t,0x<tpgt>" */
	char initiator_port[256], target_port[256];
	uint16_t relative_target_port; /* VPD 83h */
	char target_name[224];	       /* VPD 83h */
	/* The units of the nexus; the device counts itself. NULL: every unit,
	 * by its number. */
	struct dev_map *map;
	/*
	 * Aborts all tasks of this nexus at the unit except `except`, because
	 * of another initiator (PREEMPT AND ABORT, SPC-4 §5.13.11.2.6; QERR,
	 * §7.5.8) or of the command `except` of this nexus. Calls
	 * dev_nexus_tasks_gone after the last one. On the nexus's worker. NULL:
	 * the nexus never has tasks at that time.
	 */
	void (*abort_tasks)(void *arg, const struct dev_lu *lu,
			    const struct dev_task *except);
	void *arg;
};

/* dev_nexus_open returns a new nexus with the unit attention POWER ON at
 * each unit; cfg is copied. NULL: no memory. */
struct dev_nexus *dev_nexus_open(struct dev_server *s,
				 const struct dev_nexus_config *cfg);
/* dev_nexus_unit returns the unit that n knows by this LUN in wire form, or NULL. On
 * n's worker. */
struct dev_lu *dev_nexus_unit(const struct dev_nexus *n, uint64_t wire);
/*
 * dev_nexus_set_map gives n another map, which the device counts (NULL: every unit, by
 * its number). The caller has aborted the tasks of n at the units that n loses: what n has
 * reserved by RESERVE(6/10) and the ACAs of n are released there. Units of both maps keep
 * their state, with REPORTED LUNS DATA HAS CHANGED if a LUN differs and MODE PARAMETERS
 * CHANGED if read_only differs; new units begin with POWER ON. Calls done, maybe from
 * within, on n's worker. One call at a time.
 */
void dev_nexus_set_map(struct dev_nexus *n, struct dev_map *map,
		       void (*done)(void *arg), void *arg);
/* dev_nexus_part begins the I_T nexus loss: releases the reservations of
 * RESERVE(6/10) and the ACAs of n, then calls done, maybe from within. n has
 * no task, and gets none. */
void dev_nexus_part(struct dev_nexus *n, void (*done)(void *arg), void *arg);
/* dev_nexus_close calls dev_nexus_part if the caller has not, and frees n,
 * which the caller may not use any more. */
void dev_nexus_close(struct dev_nexus *n);
/* dev_nexus_tasks_gone: call it when the last task of
 * dev_nexus_config.abort_tasks has ended. */
void dev_nexus_tasks_gone(struct dev_nexus *n);
/* dev_nexus_has_turn: if true, the target should accept no further commands
 * of n: other sessions wait until the accepted commands of n have had memory
 * (share.h). */
bool dev_nexus_has_turn(const struct dev_nexus *n);
/* dev_nexus_in_the_way returns whether other sessions wait for memory while
 * n holds more than its own share, or has the turn (share.h). */
bool dev_nexus_in_the_way(const struct dev_nexus *n);
/*
 * dev_nexus_clear_aca executes CLEAR ACA (SAM-5 §7.4), after the target has
 * aborted the nexus's tasks with the ACA attribute. Calls done, maybe from
 * within, when the ACA is cleared on every worker; ERR_NOMEM: the ACA is still
 * established. On the nexus's worker.
 */
void dev_nexus_clear_aca(struct dev_nexus *n, uint64_t lun,
			 void (*done)(void *arg, int err), void *arg);

/* ---- tasks ---- */

#define DEV_SENSE_MAX 252
#define DEV_CDB_MAX   260

/* SAM-5 status codes */
enum scsi_status {
	SCSI_GOOD = 0x00,
	SCSI_CHECK_CONDITION = 0x02,
	SCSI_CONDITION_MET = 0x04,
	SCSI_BUSY = 0x08,
	SCSI_RESERVATION_CONFLICT = 0x18,
	SCSI_TASK_SET_FULL = 0x28,
	SCSI_ACA_ACTIVE = 0x30,
	SCSI_TASK_ABORTED = 0x40,
};

/* Task attributes, as iSCSI numbers them (RFC 7143 §11.3.1). */
enum dev_attr {
	DEV_ATTR_UNTAGGED,
	DEV_ATTR_SIMPLE,
	DEV_ATTR_ORDERED,
	DEV_ATTR_HEAD_OF_QUEUE,
	DEV_ATTR_ACA, /* larger values are refused */
};

/*
 * The task of one command. The target embeds it, fills the first group of
 * members, calls dev_task_begin, receives out_len bytes to out, and calls
 * dev_task_execute; after done the target sends `in` and calls dev_task_end.
 */
struct dev_task {
	/* set by the target before dev_task_begin */
	struct dev_nexus *nexus;
	uint64_t lun; /* the 8 bytes of the PDU, big-endian */
	uint8_t attr; /* SAM-5 task attribute, as iSCSI numbers it (§11.3.1) */
	uint8_t priority;
	uint8_t cdb[DEV_CDB_MAX];
	uint16_t cdb_len;
	/* expected data transfer lengths of data-out and data-in */
	struct {
		uint32_t out, in;
		/* the initiator expects data in both directions: refused unless
		 * the command has them */
		bool both;
		/* `in` does not change until dev_task_end: the backstore lends
		 * no memory, which other commands write to */
		bool keeps;
		/* `in` may be sent again: dev_task_fix may be called */
		bool again;
	} edtl;
	/* how much unsolicited data-out may come */
	struct {
		uint32_t len;
		bool may_hold; /* the connection can delay the data */
	} unsolicited;
	/* Called when a command with data-out that waited for memory has got
	 * it: out has room for all of out_len. Not called from within
	 * dev_task_begin, nor after an abort. */
	void (*ready)(struct dev_task *t);
	/* Called once, from dev_task_execute or later, on the nexus's worker;
	 * not called if the task was aborted (dev_task_abort). */
	void (*done)(struct dev_task *t);
	/* set by dev_task_begin */
	uint32_t out_len; /* bytes of data-out to receive, <= edtl.out */
	struct bufv out;  /* memory for data-out; lent until dev_task_end */
	/* the task waits for memory; out has room for unsolicited.len bytes */
	bool waits;
	/* out has no room even for these bytes until `ready` */
	bool held_back;
	/* set before done */
	uint8_t status; /* enum scsi_status */
	struct {
		uint16_t len; /* 0: no sense data */
		uint8_t data[DEV_SENSE_MAX];
	} sense;
	struct bufv in; /* data-in, <= edtl.in bytes; lent until dev_task_end */
	/* The bytes that the command would have transferred with a large
	 * enough EDTL: the residual is total.in or total.out minus EDTL (RFC
	 * 7143 §11.4.5). */
	struct {
		uint64_t in, out;
	} total;
	struct dev_lu *lu; /* set by dev_task_begin; NULL: no unit has the LUN */
	uint64_t lba;	   /* of the CDB; the handler may change it */
	/* order/: the state of the task in the task set */
	struct {
		struct list in_set; /* dev_nexus.tasks, until the task ends */
		struct list paced;  /* dev_lane.pace.waiting; rate.c */
		bool past_aca;	    /* an ACA does not block the task */
		/* set by the caller: see dev_task_in_turn; dev_task_execute
		 * follows dev_task_begin, and nothing else between them */
		bool early, at_once;
	} order;
	struct dev_task_own own; /* private to the device */
};

/*
 * dev_task_begin validates the command (unit, operation code, usage mask,
 * range, unit attention, access, reservation) and sets out_len and out to the
 * data-out that the command needs. A refused command needs none; the target
 * calls dev_task_execute nevertheless, which reports the status. If the command
 * waits for memory (t->waits), out has room for t->unsolicited.len bytes, and the
 * target solicits no data before `ready`; the target may call dev_task_execute
 * if out_len is 0. ERR_BUSY: no memory; the target ends the command with TASK
 * SET FULL or BUSY, and does not call dev_task_end.
 */
int dev_task_begin(struct dev_task *t);

/* dev_task_in_turn: all commands before one that began with order.early have begun. The
 * target calls this before dev_task_execute; for other commands it does nothing. */
void dev_task_in_turn(struct dev_task *t);
/* dev_task_execute executes the command; out_len bytes are in `out`. */
void dev_task_execute(struct dev_task *t);
/*
 * dev_task_peek: the len bytes of write data are at `data`, not in `out`, until
 * dev_task_keep, which copies them to `out` unless the command has used them, or has
 * ended. The target may call dev_task_execute between the two.
 */
void dev_task_peek(struct dev_task *t, const uint8_t *data, size_t len);
void dev_task_keep(struct dev_task *t);

/* Why the target cannot receive the data of a command. */
enum dev_failure {
	DEV_FAILURE_DATA_CRC,	     /* the data digest does not match */
	DEV_FAILURE_UNEXPECTED_DATA, /* unsolicited data that are not allowed */
	/* fewer data than the initiator announced */
	DEV_FAILURE_DATA_MISSING,
};

/*
 * dev_task_fail ends a begun task that cannot get its data: the device calls
 * done with CHECK CONDITION and the sense data of the failure, or with the
 * status for which dev_task_begin refused the command.
 */
void dev_task_fail(struct dev_task *t, enum dev_failure why);

/* A fault of the backstore that the daemon logs at the end of a command. */
enum dev_store_fault {
	DEV_STORE_SOUND,
	DEV_STORE_FAILED, /* a read or write failed */
	DEV_STORE_FULL,	  /* the backstore has no space left */
};

/* dev_task_store_fault returns the fault that the sense data of a task
 * describe; between done and dev_task_end. */
enum dev_store_fault dev_task_store_fault(const struct dev_task *t);

/* dev_task_orders: the status of t says something about other commands of the unit, so
 * that no other status may pass it on the way to the initiator: it reports a unit
 * attention or an ACA, or commands that it aborted. Between done and dev_task_end. */
bool dev_task_orders(const struct dev_task *t);
/* dev_task_fix makes `in` of a task with edtl.again the same until dev_task_end, at the
 * same bufv, if it is not yet. False: other commands have changed the blocks since, or
 * there is no memory; the data that were sent are not there any more. Between done and
 * dev_task_end. */
bool dev_task_fix(struct dev_task *t);
/* dev_task_lose changes the outcome of a task whose data cannot be sent again: `in` is
 * empty, and the status is CHECK CONDITION (RFC 7143 §11.4.7.2, "SNACK rejected").
 * Between done and dev_task_end. */
void dev_task_lose(struct dev_task *t);

/* dev_task_end releases the buffers of t; after done, or after `released`. */
void dev_task_end(struct dev_task *t);

/*
 * dev_task_abort ends the task without status. Calls released, maybe from within,
 * when no I/O uses the buffers of t any more; does not call done. ERR_NOT_FOUND:
 * done was called already.
 */
int dev_task_abort(struct dev_task *t, void (*released)(struct dev_task *t));

/* ---- resets (SAM-5 §7) ---- */

/*
 * dev_lu_reset_state resets the unit's state on every worker (mode values,
 * reservations of RESERVE(6/10), ACAs, priorities) and establishes the unit attention
 * 29h/03h for every nexus; then calls done, maybe from within, on `worker`, the
 * calling one. Before that the targets abort the tasks. ERR_NOMEM: nothing was done.
 */
int dev_lu_reset_state(struct dev_lu *lu, unsigned worker,
		       void (*done)(void *arg, int err), void *arg);
/* dev_lu_hard_reset resets the generations of ORWRITE, which a LOGICAL UNIT
 * RESET does not (SBC-4 §4.27.3); in a hard reset, before
 * dev_lu_reset_state. */
void dev_lu_hard_reset(struct dev_lu *lu);

/* dev_lu_reset_turn gives a function that ends the commands of all initiators of the unit its
 * turn, and returns in how many milliseconds it comes, 1,000 at most; 0: now. After four in
 * a row a turn comes every 250 ms, so that the commands of others get on. Any worker. */
unsigned dev_lu_reset_turn(struct dev_lu *lu, unsigned worker);

/* dev_lu_interrupt resets the real device of a passthrough unit, so that its
 * tasks end; before a reset aborts the tasks of the unit. */
void dev_lu_interrupt(struct dev_lu *lu, unsigned worker);

/* The control mode page (SPC-4 §7.5.8): dev_lu_tas returns whether commands
 * that another initiator aborts end with TASK ABORTED; dev_lu_own_task_sets
 * returns whether each nexus has a task set of its own. */
bool dev_lu_tas(const struct dev_lu *lu);
bool dev_lu_own_task_sets(const struct dev_lu *lu);

/* dev_nexus_commands_cleared establishes unit attention 2Fh/00h, because
 * another initiator cleared commands of n (CLEAR TASK SET, TAS = 0). On the
 * nexus's worker. */
void dev_nexus_commands_cleared(struct dev_nexus *n, const struct dev_lu *lu);
/* dev_nexus_iscsi_event establishes unit attention 47h/7Fh, because commands of n
 * ended with a connection of their session, which goes on (RFC 7143 §11.14.5). On
 * the nexus's worker. */
void dev_nexus_iscsi_event(struct dev_nexus *n, const struct dev_lu *lu);
/* dev_nexus_attention returns whether a unit attention is pending at the
 * LUN; info gets the parameters of QUERY ASYNCHRONOUS EVENT (SAM-5 §7.9). On
 * the nexus's worker. */
bool dev_nexus_attention(const struct dev_nexus *n, uint64_t lun,
			 uint8_t info[3]);

#endif
