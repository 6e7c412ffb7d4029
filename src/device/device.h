/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * device.h: the SCSI device server (SPC-4, SBC-3): logical units over
 * backstores, their tasks, and what all units of a target share. It knows
 * nothing of iSCSI; the target hands it CDBs and gets data, status and sense.
 *
 * Threads: a dev_task and its nexus belong to one worker. A logical unit is
 * shared by all workers; what one worker must tell the others goes through
 * dev_env.post.
 */
#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H

#include "backstore/backstore.h"
#include "base/bufv.h"
#include "base/list.h"
#include "base/xtime.h"
#include "device/pass.h"

struct dev_server; /* the logical units behind one target (SCSI device) */
struct dev_lu;
struct dev_nexus;
struct dev_task;

/* ---- what the device needs from its process ---- */

struct dev_msg {
	void (*run)(struct dev_msg *m);
	struct dev_msg *next;
};

/* What is kept of a unit over a power loss, each by itself. */
enum dev_kept {
	DEV_KEPT_RESERVATIONS, /* persistent ones (SPC-4 §5.13.5) */
	/* saved mode pages, identifying information, SANITIZE or FORMAT UNIT
	 * under way */
	DEV_KEPT_UNIT,
	DEV_KEPT_KINDS,
};

struct dev_save {
	struct list link; /* the keeper's */
	struct dev_lu *lu;
	enum dev_kept kind;
	unsigned worker;
	const uint8_t *data; /* borrowed until done */
	size_t len;	     /* 0: nothing any more */
	int result;
	void (*done)(struct dev_save *s);
};

struct dev_env {
	unsigned nworkers;
	/* Runs m->run on worker's thread, soon; m is borrowed until then. With
	 * the calling worker as the goal it still comes later, from the loop. */
	void (*post)(void *arg, unsigned worker, struct dev_msg *m);
	/*
	 * Keeps what s has, for the life after a power loss: s->done on
	 * s->worker once it is on the medium. From worker 0; there may be one
	 * of each kind at a time. NULL: nothing can be kept.
	 */
	void (*save)(void *arg, struct dev_save *s);
	/* Data buffers for reads, writes and parameter lists, 4096-aligned,
	 * from the worker's pool. NULL: none left now. */
	void *(*buf_get)(void *arg, unsigned worker, size_t len);
	void (*buf_put)(void *arg, unsigned worker, void *buf, size_t len);
	/* Milliseconds since 1970 UTC, for REPORT TIMESTAMP; NULL: the units
	 * do not have that command. Any worker. */
	uint64_t (*wall_ms)(void *arg);
	/* Bytes that nobody can guess; NULL: no ROD tokens. Any worker. */
	void (*random)(void *arg, uint8_t *p, size_t n);
	/* Posts m to the calling worker ms from now. NULL: erase_rate does not
	 * count. */
	void (*later)(void *arg, unsigned worker, unsigned ms,
		      struct dev_msg *m);
	void *arg;
};

/* ---- units ---- */

/* What a unit is; which commands, pages and data it has follows (table.c). */
enum dev_type {
	DEV_DISK, /* direct access block device, SBC-3 */
	DEV_CD,	  /* CD/DVD device, MMC-6: 2,048-byte blocks, read only */
	DEV_NTYPES,
};

struct dev_lu_config {
	uint16_t lun;
	enum dev_type type;
	bool read_only;
	bool rotational; /* VPD B1h */
	bool removable;	 /* the medium can be ejected */
	bool strict;	 /* to the letter where the world does otherwise */
	/* Bytes per second that SANITIZE OVERWRITE writes at most; 0: as
	 * fast as they can. */
	uint64_t erase_rate;
	/* what dev_env.save got will be found again: APTPL, saved mode pages */
	bool keeps;
	/* INQUIRY: padded with spaces; empty: ours */
	char vendor[9], product[17], revision[5];
	char serial[37];  /* VPD 80h; empty: from the UUID */
	uint8_t uuid[16]; /* the unit's own; all zero: its backstore's */
};

/* dev_server_new: env is copied, what it points to borrowed. max_transfer:
 * the most bytes one command may move (VPD B0h). NULL: out of memory. */
struct dev_server *dev_server_new(const struct dev_env *env,
				  uint32_t max_transfer);
/* dev_server_resume: goes on with what the last process was erasing, as
 * dev_lu_restore told. Once all units are there, on worker 0. */
void dev_server_resume(struct dev_server *s);
/*
 * dev_server_stop: what goes on in the background (SANITIZE, FORMAT UNIT) is
 * to end; dev_server_is_busy tells whether any of it is left.
 */
void dev_server_stop(struct dev_server *s);
bool dev_server_is_busy(const struct dev_server *s);
/* dev_server_free: nothing in the background, no nexus, no task left; closes the backstores. */
void dev_server_free(struct dev_server *s);

/* dev_lu_add takes over b; DEV_CD: NULL is a drive with no medium in it. ERR_BUSY:
 * the LUN is taken; ERR_RANGE: LUN beyond 255 (peripheral / flat addressing of
 * SAM-5). */
int dev_lu_add(struct dev_server *s, const struct dev_lu_config *cfg,
	       struct bs *b);
/* dev_lu_add_pass: a unit whose commands p carries out; takes it over. Codes as
 * dev_lu_add's, and ERR_NOMEM. Of cfg the LUN, read_only and keeps count. */
int dev_lu_add_pass(struct dev_server *s, const struct dev_lu_config *cfg,
		    struct pass *p);
/* dev_lu_get: NULL when there is none. */
struct dev_lu *dev_lu_get(struct dev_server *s, uint16_t lun);
uint16_t dev_lu_lun(const struct dev_lu *lu);
/* dev_lu_backstore: that of a passthrough unit has its name and UUID, but no
 * blocks; of a DEV_CD
 * it is for worker 0 only, and NULL without a medium. */
struct bs *dev_lu_backstore(const struct dev_lu *lu);
enum dev_type dev_lu_type(const struct dev_lu *lu); /* NULL: DEV_DISK */
/* dev_is_locked: an initiator wants the medium to stay where it is (PREVENT
 * ALLOW MEDIUM REMOVAL). */
bool dev_is_locked(const struct dev_lu *lu);

/*
 * dev_lu_change_medium: b (read only, as large in its blocks) is the medium of a
 * DEV_CD from now on, and the device's; NULL: none is. The one before is closed.
 * done, maybe from within, when that is so and all initiators are told. On
 * worker 0. ERR_UNSUPPORTED: no such unit; ERR_FORMAT: no such medium; ERR_BUSY:
 * an initiator holds it and was asked to let go (force: ejected all the same);
 * ERR_AGAIN: it is just being changed; ERR_NOMEM. After an error b is still the
 * caller's.
 */
int dev_lu_change_medium(struct dev_lu *lu, struct bs *b, bool force,
			 void (*done)(void *arg, int err), void *arg);

/*
 * dev_lu_restore gives the unit what dev_env.save kept of it; before the first
 * nexus. ERR_DATA_DIGEST, ERR_TRUNCATED, ERR_FORMAT, ERR_LIMIT: it is damaged;
 * ERR_NOT_FOUND: it is another store's; ERR_NOMEM.
 */
int dev_lu_restore(struct dev_lu *lu, enum dev_kept kind, const uint8_t *data,
		   size_t len);

/* dev_lu_lose_reservations: there were some, and what they were is not known:
 * the unit refuses next to everything until REPLACE LOST RESERVATION (SPC-4
 * §5.13.5.3). Before the first nexus, on a unit that keeps them. */
void dev_lu_lose_reservations(struct dev_lu *lu);

/* What a person may want to know of a unit's reservations; names are borrowed
 * for the call. On worker 0. */
struct dev_registration {
	const char *initiator_port;
	uint16_t target_port;
	uint64_t key;
	bool holds;
};

struct dev_reservation {
	const char *type;     /* "Write Exclusive"; NULL: none */
	const char *reserved; /* whose by RESERVE(6/10); NULL: nobody's */
	uint32_t generation;
	bool aptpl;
	bool lost; /* what there was can't be read */
};

void dev_lu_reservation(const struct dev_lu *lu, struct dev_reservation *r);
void dev_lu_registrations(const struct dev_lu *lu,
			  void (*fn)(void *arg,
				     const struct dev_registration *r),
			  void *arg);

/* dev_lun_decode reads an 8-byte LUN as a number (SAM-5 §4.7: simple,
 * peripheral and flat addressing, one level). ERR_NOT_FOUND: another form. */
int dev_lun_decode(uint64_t wire, uint16_t *lun);
uint64_t dev_lun_encode(uint16_t lun);

/* dev_port_add: a target port of the device, by its SCSI name; the relative
 * target port identifier of one that is there already stays. Before the first
 * nexus. ERR_LIMIT: there are 65,535; ERR_TOO_LONG; ERR_NOMEM. */
int dev_port_add(struct dev_server *s, const char *name, uint16_t *rtpi);

/* dev_server_first_port: relative target port identifiers count from here (1);
 * before the first port. */
void dev_server_first_port(struct dev_server *s, uint16_t rtpi);

/* ---- target port groups (ALUA, SPC-4 §5.11) ---- */

#define DEV_MAX_GROUPS	16
#define DEV_GROUP_PORTS 16
#define DEV_MAX_OFFLINE 16

enum dev_access { /* SPC-4 table 307 */
	DEV_ACCESS_OPTIMIZED,
	DEV_ACCESS_NON_OPTIMIZED,
	DEV_ACCESS_STANDBY,
	DEV_ACCESS_UNAVAILABLE,
	DEV_ACCESS_OFFLINE = 0xe, /* secondary: of a port, not of a group */
	DEV_ACCESS_TRANSITIONING = 0xf,
};

struct dev_group {
	uint16_t id; /* not 0 */
	enum dev_access state;
	bool preferred;
	uint8_t status; /* 0: as it was set up; 1, 2: SPC-4 table 265 */
	unsigned nports;
	/* relative target ports, ours and those of others on the same store */
	uint16_t ports[DEV_GROUP_PORTS];
};

struct dev_group_change {
	uint16_t id;
	enum dev_access state;
	bool set_preferred, preferred;
};

/* dev_group_add: with the first one the device has ALUA; before the first
 * nexus. ERR_BUSY: the id or a port is taken; ERR_LIMIT; ERR_NOMEM. */
int dev_group_add(struct dev_server *s, const struct dev_group *g);
/* dev_groups copies them; returns how many. On worker 0. */
unsigned dev_groups(const struct dev_server *s,
		    struct dev_group out[DEV_MAX_GROUPS]);
/* dev_offline_ports copies which target ports are offline; how many. */
unsigned dev_offline_ports(const struct dev_server *s,
			   uint16_t out[DEV_MAX_OFFLINE]);
/*
 * dev_port_set tells of a target port of another daemon on the same store that
 * it is offline (SPC-4 §5.16.2.4.6), or is back. As dev_group_set; a port of
 * ours is ERR_UNSUPPORTED: it answers. ERR_LIMIT.
 */
int dev_port_set(struct dev_server *s, uint16_t port, bool offline,
		 void (*done)(void *arg, int err), void *arg);
/*
 * dev_group_set changes a group's state; done, maybe from within, when it is
 * in force everywhere, all initiators are told, and, where it took access away,
 * no command that was admitted before is at the medium any more: until then it
 * is transitioning. On worker 0. ERR_NOT_FOUND, now or to done: no such group;
 * ERR_NOMEM: it is as it was.
 */
int dev_group_set(struct dev_server *s, const struct dev_group_change *c,
		  void (*done)(void *arg, int err), void *arg);

/* ---- nexus: one initiator port, one target port ---- */

struct dev_nexus_config {
	unsigned worker;
	/* SCSI names: "iqn...,i,0x<isid>" and "iqn...,t,0x<tpgt>" */
	char initiator_port[256], target_port[256];
	uint16_t relative_target_port; /* VPD 83h */
	char target_name[224];	       /* VPD 83h */
	/*
	 * All tasks of this nexus at the unit are to go but for `except`:
	 * another initiator aborts them (PREEMPT AND ABORT, SPC-4
	 * §5.13.11.2.6; QERR, §7.5.8), or, where there is an exception, one of
	 * their own. dev_nexus_tasks_gone once they are. On the nexus's
	 * worker. NULL: there never are any.
	 */
	void (*abort_tasks)(void *arg, uint64_t lun,
			    const struct dev_task *except);
	void *arg;
};

/* dev_nexus_open: establishes POWER ON unit attentions. NULL: no memory. */
struct dev_nexus *dev_nexus_open(struct dev_server *s,
				 const struct dev_nexus_config *cfg);
/* dev_nexus_part begins the I_T nexus loss: gives back what RESERVE got; then
 * done, maybe from within. No task of it may be left, none comes any more. */
void dev_nexus_part(struct dev_nexus *n, void (*done)(void *arg), void *arg);
/* dev_nexus_close parts, unless that was done, and frees n; from now on n is
 * the device's. */
void dev_nexus_close(struct dev_nexus *n);
void dev_nexus_tasks_gone(struct dev_nexus *n);
/*
 * dev_nexus_clear_aca: CLEAR ACA (SAM-5 §7.4). The nexus's tasks of the ACA
 * attribute are the target's to abort first. done, maybe from within, once it
 * is in force everywhere; ERR_NOMEM: the ACA is still there. On the nexus's
 * worker.
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

/* What a task does to the blocks it names (range.c). */
enum dev_hold {
	DEV_HOLD_NONE,
	DEV_HOLD_WAITS,
	DEV_HOLD_SHARED, /* as READ and WRITE do */
	DEV_HOLD_ALONE,	 /* nobody else touches them meanwhile */
};

struct dev_fence;
struct dev_copy;

struct dev_range {
	enum dev_hold state;
	struct list link; /* dev_lane.touching or .waiting */
	struct dev_lu *lu;
	unsigned worker;
	uint64_t lba, blocks;
	void (*go)(struct dev_range *r);
	struct dev_fence *fence; /* ALONE, or on the way there */
};

/* Task attributes, as iSCSI numbers them (RFC 7143 §11.3.1). */
enum dev_attr {
	DEV_ATTR_UNTAGGED,
	DEV_ATTR_SIMPLE,
	DEV_ATTR_ORDERED,
	DEV_ATTR_HEAD_OF_QUEUE,
	DEV_ATTR_ACA, /* beyond: refused */
};

enum dev_task_phase {
	DEV_TASK_NEW,
	DEV_TASK_WANTS_DATA, /* dev_task_begin returned; data under way */
	DEV_TASK_RUNNING,    /* dev_task_execute; I/O may be under way */
	DEV_TASK_DONE,	     /* done was called; data still lent */
};

/*
 * One command. The target embeds it. Life: fill the first group,
 * dev_task_begin, (bring in out_len bytes to out), dev_task_execute, done,
 * (send `in`), dev_task_end.
 */
struct dev_task {
	/* set by the target before dev_task_begin */
	struct dev_nexus *nexus;
	uint64_t lun; /* 8 bytes of wire, as a number */
	uint8_t attr; /* SAM-5 task attribute, as iSCSI numbers it (§11.3.1) */
	uint8_t priority;
	uint8_t cdb[DEV_CDB_MAX];
	uint16_t cdb_len;
	uint32_t edtl_out; /* bytes the initiator is ready to send */
	uint32_t edtl_in;  /* bytes the initiator is ready to take */
	/* Called once, from dev_task_execute or later, on the nexus's worker;
	 * not called if the task was aborted (see dev_abort). */
	void (*done)(struct dev_task *t);
	/* set by dev_task_begin */
	uint32_t out_len; /* bytes of data-out to bring in, <= edtl_out */
	struct bufv out;  /* where they go; lent until dev_task_end */
	/* set before done */
	uint8_t status; /* enum scsi_status */
	uint16_t sense_len;
	uint8_t sense[DEV_SENSE_MAX];
	struct bufv in; /* data-in, <= edtl_in bytes; lent until dev_task_end */
	/* What the command would have moved had the initiator been ready for
	 * all of it: the residual is this minus EDTL (RFC 7143 §11.4.5). */
	uint64_t in_total, out_total;
	/* the device's own */
	enum dev_task_phase phase;
	bool aborted;
	struct dev_lu *lu;
	uint32_t medium; /* dev_lu.medium when it began */
	const struct dev_command *row;
	struct dev_range range;
	struct list in_set; /* nexus's tasks, until it ends (taskset.c) */
	bool dormant;	    /* waits for others there */
	bool held;	    /* ... at its end (aca.c) */
	bool past_aca;	    /* an ACA does not block it */
	uint8_t attention;  /* 1 + that which it tells of; attention.c */
	void *buf;
	size_t buf_len;
	struct iovec iov[2];
	uint64_t lba;
	uint64_t blocks;
	uint8_t protect; /* RDPROTECT, WRPROTECT and their like */
	uint8_t judged;	 /* the type of protection they were judged by; or 0 */
	bool alone;	 /* it wants all of the unit to itself */
	void *pi;	 /* protection information of out, or of in */
	size_t pi_len;
	bool refused, in_step, step_again, step_io; /* see task.c */
	uint64_t at, end; /* commands that work in steps: byte offsets */
	void *aux;	  /* a second buffer */
	size_t aux_len;
	uint32_t count;
	struct dev_copy *copy; /* the nexus's record of it, while it runs */
	void (*then)(struct dev_task *t, int result);
	bool (*step)(struct dev_task *t);
	int io_result;
	void (*released)(struct dev_task *t);
	/* Lets go of what the task waits for, when it is aborted; NULL: its
	 * own I/O, which comes to an end. */
	void (*let_go)(struct dev_task *t);
	void *waits_for;
	/* pass.c: to the real device; it is there now; whole blocks of data */
	bool passes, sent, of_blocks;
	union {
		struct bs_req req;
		struct pass_req pass;
	};
};

/*
 * dev_task_begin looks at the CDB (unit, opcode, usage mask, range, unit
 * attention, reservation) and says in out_len/out how much data it wants.
 * A command that already failed wants none; go on to dev_task_execute just
 * the same, which then reports the failure. ERR_BUSY: no buffer left; the
 * target answers TASK SET FULL / BUSY.
 */
int dev_task_begin(struct dev_task *t);

/* dev_task_execute runs the command; out_len bytes are in `out`. */
void dev_task_execute(struct dev_task *t);

/*
 * dev_task_fail ends a begun task that can't get its data: done is called
 * with CHECK CONDITION and this sense (key, ASC << 8 | ASCQ).
 */
void dev_task_fail(struct dev_task *t, uint8_t key, uint16_t asc);

/* dev_task_end gives back buffers. After done, or after `released`. */
void dev_task_end(struct dev_task *t);

/*
 * dev_task_abort: the task is to vanish without status. released is called
 * (maybe from within) once no I/O touches its buffers; done is not. A task
 * whose done was called already is past aborting: ERR_NOT_FOUND.
 */
int dev_task_abort(struct dev_task *t, void (*released)(struct dev_task *t));

/* ---- resets (SAM-5 §7) ---- */

/*
 * dev_lu_reset_state: resets the unit's state (mode values, reservations of
 * RESERVE(6/10), unit attention 29h/03h for every nexus), everywhere; then
 * done, maybe from within, on this worker. The tasks are the targets' to abort
 * first. ERR_NOMEM: nothing was done.
 */
int dev_lu_reset_state(struct dev_lu *lu, unsigned worker,
		       void (*done)(void *arg, int err), void *arg);
/* dev_lu_hard_reset: what outlives a reset of the unit alone, but no hard reset:
 * the generations of ORWRITE (SBC-4 §4.27.3). Before dev_lu_reset_state. */
void dev_lu_hard_reset(struct dev_lu *lu);

/* dev_lu_interrupt: before the tasks of a unit are aborted by a reset of it:
 * one that has them from elsewhere resets that, too. */
void dev_lu_interrupt(struct dev_lu *lu, unsigned worker);

/* Of the control mode page (SPC-4 §7.5.8): commands that another initiator
 * aborts end TASK ABORTED; each nexus has a task set of its own. */
bool dev_lu_tas(const struct dev_lu *lu);
bool dev_lu_own_task_sets(const struct dev_lu *lu);

/* dev_nexus_commands_cleared: another initiator cleared commands of this one
 * (CLEAR TASK SET, TAS = 0): unit attention 2Fh/00h. On the nexus's worker. */
void dev_nexus_commands_cleared(struct dev_nexus *n, uint64_t lun);
/* dev_nexus_attention: whether a unit attention waits there; info gets what
 * QUERY ASYNCHRONOUS EVENT tells of it (SAM-5 §7.9). On the nexus's worker. */
bool dev_nexus_attention(const struct dev_nexus *n, uint64_t lun,
			 uint8_t info[3]);

#endif
