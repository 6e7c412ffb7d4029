/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * internal.h: what the files of the device share: nexuses, units, the server,
 * how a command ends. Each job has its header, and these files:
 *   device.h     what the target calls
 *     server.c      units, nexuses, LUNs
 *     task.c        begin, execute, finish, abort; buffers
 *     everywhere.c  visits to all workers
 *   table.h      commands as rows
 *     table.c       which commands there are; usage masks; most rows
 *     rows_block.c  of what else a block device has
 *     rows_alua.c, rows_cd.c, rows_protect.c, rows_reserve.c
 *   handlers.h   what the rows name
 *     spc.c         INQUIRY, REPORT LUNS, REQUEST SENSE, ...
 *     spc_more.c    TIMESTAMP, echo buffer
 *     identify.c    IDENTIFYING INFORMATION
 *     vpd.c         vital product data
 *     log.c         LOG SENSE
 *     defects.c     READ DEFECT DATA
 *     rw.c          READ, WRITE, SYNCHRONIZE CACHE, capacity
 *     verify.c      VERIFY, WRITE AND VERIFY
 *     thin.c        UNMAP, WRITE SAME, GET LBA STATUS
 *     provisioning.c  how much space is left, soft threshold
 *     caw.c         COMPARE AND WRITE, WRITE ATOMIC
 *     orwrite.c     ORWRITE, and its generations
 *     alua.c        target port groups
 *   mode.h       MODE SENSE, MODE SELECT
 *     mode.c, mode_pages.c
 *   protect.h    protection information on the wire
 *     protect.c
 *     apptag.c      the Application Tag mode page
 *   copy.h       copies between units
 *     copy.c        chunk by chunk
 *     copy_list.c   EXTENDED COPY
 *     token.c       POPULATE TOKEN, WRITE USING TOKEN
 *     copied.c      what is told about them: RECEIVE COPY RESULTS, VPD 8Fh
 *   range.h      who may touch which blocks at once
 *     range.c
 *   taskset.h    who waits for whom
 *     taskset.c     task attributes
 *     priority.c    command priorities
 *     aca.c         auto contingent allegiance, QERR
 *   attention.h  unit attentions
 *     attention.c
 *   condition.h  is the unit ready
 *     condition.c
 *     power.c       power conditions
 *     removal.c     START STOP UNIT, PREVENT ALLOW MEDIUM REMOVAL
 *   erase.h      the whole unit at once, in the background
 *     erase.c       overwriting or erasing
 *     sanitize.c    SANITIZE, FORMAT UNIT
 *   reserve.h    reservations
 *     reserve.c     how they change; RESERVE, RELEASE
 *     pr_state.c, pr_out.c, pr_in.c, pr_save.c  persistent ones
 *   keep.h       what outlives a power loss
 *     keep.c, keep_save.c
 *   seal.h       the front of what outlives one
 *     seal.c
 *   cd.h         the CD/DVD device; its files are listed there
 *   pass.h, pass_unit.h  a real device's unit
 *     pass.c, pass_cdb.c, pass_tell.c
 */
#ifndef DEVICE_INTERNAL_H
#define DEVICE_INTERNAL_H

#include "base/bytes.h"
#include "base/err.h"
#include "device/device.h"
#include "scsi/cdb.h"
#include "scsi/sense.h"

#define DEV_MAX_LUNS	256
#define DEV_MAX_WORKERS 64
#define DEV_MAX_PORTS	65535u
#define DEV_PARAM_MAX	8192	     /* largest parameter data we return */
#define DEV_CHUNK	(256u << 10) /* of commands that work in steps */
#define UNMAP_MAX_DESCS 256

struct dev_token;

/* How a copy went, by its list identifier; held for who asks. */
enum dev_copy_state {
	COPY_NONE,
	COPY_RUNS,
	COPY_DONE,
	COPY_FAILED,
	COPY_ABORTED, /* by task management */
};

/* Each kind has list identifiers of its own. */
enum dev_copy_kind {
	COPY_BY_LID1,
	COPY_BY_TOKEN, /* POPULATE TOKEN, WRITE USING TOKEN */
};

struct dev_copy {
	enum dev_copy_state state;
	enum dev_copy_kind kind;
	uint16_t lun; /* whose copy manager it was given to */
	bool discard; /* nobody will ask */
	bool partial; /* less was written than there was room for */
	uint8_t sa;
	struct dev_token *token; /* that was made; counted */
	uint32_t list_id;
	uint16_t segments; /* carried out */
	uint8_t sense[SCSI_SENSE_MAX];
	uint8_t sense_len; /* of one that failed */
	uint64_t bytes;
	uint64_t age;
};

#define DEV_COPIES 16 /* of one nexus */

struct dev_alua;
struct alua_op;
struct dev_record;
struct keep_op;
struct rsv_op;
struct rsv_state;

struct dev_nexus {
	struct dev_server *server;
	struct dev_copy copies[DEV_COPIES];
	uint8_t *echo; /* of WRITE BUFFER; spc_more.c */
	uint16_t echo_len;
	uint64_t copies_begun;
	/* removal.c: generation + 1 */
	uint32_t prevents[DEV_MAX_LUNS], persists[DEV_MAX_LUNS];
	uint8_t media_event[DEV_MAX_LUNS]; /* enum cd_event; medium.c */
	struct dev_nexus_config cfg;
	struct list link;		  /* dev_server.nexuses[worker] */
	uint32_t attention[DEV_MAX_LUNS]; /* BIT(enum dev_ua); attention.h */
	enum dev_access access;		  /* its port's; alua.c */
	/* RSV_* that others' reservations deny to this nexus; reserve.c */
	uint16_t denied[DEV_MAX_LUNS];
	/* taskset.c: its commands that have not ended, in their order */
	struct list tasks;
	uint16_t special[DEV_MAX_LUNS]; /* ORDERED, HEAD OF QUEUE among them */
	uint32_t ndormant;
	uint32_t naca;		   /* units where an ACA hinders it; aca.c */
	uint8_t aca[DEV_MAX_LUNS]; /* what does */
	/* by SET PRIORITY; 0: the unit's initial one */
	uint8_t priority[DEV_MAX_LUNS];
	struct dev_msg wake;
	unsigned nclearing; /* CLEAR ACAs under way: nothing is woken before */
	bool is_waking, is_closed;
	bool abort_due;		 /* reserve.c: its tasks are to go */
	struct rsv_op *aborting; /* waits until they are gone */
	struct rsv_op *parting;	 /* gives back what RESERVE got */
	bool is_parting;
	void (*parted)(void *arg);
	void *parted_arg;
};

/* What LOG SENSE tells of a unit's commands; log.c. */
enum dev_count {
	COUNT_READS,
	COUNT_WRITES,
	COUNT_CACHED,  /* writes that ended before the medium had them */
	COUNT_FLUSHES, /* commands that brought them there */
	DEV_NCOUNTS,
};

struct dev_counter {
	uint64_t commands, blocks;
};

/* What one worker knows of a unit: its own, nobody else looks at it. */
struct dev_lane {
	_Alignas(64) struct list touching; /* dev_range: SHARED */
	struct list waiting;		   /* dev_range: for a fence to fall */
	struct list fences;		   /* struct fence_part of range.c */
	/* counted here, read by any worker (LOG SENSE) */
	struct dev_counter counts[DEV_NCOUNTS];
	uint64_t since_probe;	/* bytes written; see provisioning.c */
	struct list tokens;	/* struct token_part of token.c */
	struct list priorities; /* struct assigned of priority.c */
	/* whose ACA hinders all nexuses; compared only (aca.c) */
	const struct dev_nexus *faulted;
};

/* Blocks that are to have this application tag; apptag.c. */
struct dev_tag_range {
	uint64_t lba, blocks;
	uint16_t tag;
	bool last;
};

#define DEV_TAG_RANGES	  8u
#define DEV_TAGS_PAGE_LEN 208u

/*
 * What MODE SELECT can change (mode.c). All zero is the default. Any worker
 * may write, any may read: each member alone, through DEV_CTL and
 * dev_ctl_store, no two of them together. (Where there are tags nothing is under
 * way while MODE SELECT changes them.)
 */
struct dev_control {
	uint8_t tst, qerr;
	bool d_sense, swp, tas;
	bool tmf_only; /* no command ends an ACA, or gets past one of its own */
	bool write_through; /* WCE is 0 */
	/* protection information: application tags are the application's; it
	 * is not checked where the CDB says 000b */
	bool ato, dpicz;
	bool atmpe; /* the tags count */
	struct dev_tag_range tags[DEV_TAG_RANGES];
	/* logical block provisioning: soft threshold */
	bool unreported;       /* LBPERE is 0 */
	bool single_attention; /* SITUA */
	bool soft_enabled;
	uint32_t soft_count;	  /* threshold sets available, or fewer */
	uint8_t initial_priority; /* of commands; control extension */
};

#define DEV_CTL(lu, member) __atomic_load_n(&(lu)->ctl.member, __ATOMIC_RELAXED)

/* Any worker; FORMAT UNIT changes it while nothing is under way. */
#define DEV_PROTECTION(lu) __atomic_load_n(&(lu)->protection, __ATOMIC_RELAXED)

/* Of ORWRITE; orwrite.c. Atomic: changed while nothing is under way, but for
 * resets. */
struct dev_generation {
	uint32_t now, before;
	uint8_t policy;
};

struct dev_lu {
	struct dev_server *server;
	struct dev_counter counted_before[DEV_NCOUNTS];
	uint64_t clock_offset; /* SET TIMESTAMP: added to wall_ms */
	bool clock_set;
	bool soft_told;	       /* the threshold was crossed; provisioning.c */
	uint8_t condition;     /* enum dev_condition; condition.c */
	uint8_t power;	       /* 0: active; power.c */
	bool unrestricted;     /* EXIT FAILURE MODE is allowed (AUSE) */
	uint16_t progress;     /* of 65536 */
	uint64_t preventions;  /* generation << 32 | how many; removal.c */
	uint64_t persistences; /* the same, of persistent prevention */
	uint32_t medium;       /* number of the one inside; medium.c */
	uint32_t erasures;     /* SANITIZEs and FORMAT UNITs begun; erase.c */
	uint8_t uuid[16];
	struct dev_generation generation;
	struct dev_control ctl, saved; /* mode values: current, saved */
	struct dev_record *kept;       /* keep.h; NULL: nothing can be */
	struct dev_lane *lanes;	       /* [worker] */
	struct list fence_queue;       /* range.c, the home worker's alone */
	struct bs *bs;
	struct pass *pass;	 /* NULL: not a real device's unit */
	uint16_t pass_attention; /* atomic: ASC of UA_OF_DEVICE */
	struct dev_lu_config cfg;
	uint64_t blocks;
	uint32_t block_size;
	unsigned block_shift;
	bool read_only;
	uint8_t protection; /* type 1, 2, 3; 0: none. DEV_PROTECTION */
	const struct rsv_state *rsv[DEV_MAX_WORKERS]; /* each its worker's */
};

struct dev_server {
	struct dev_env env;
	uint32_t max_transfer; /* bytes */
	struct dev_lu *lus[DEV_MAX_LUNS];
	struct list nexuses[DEV_MAX_WORKERS]; /* each its worker's alone */
	bool stopping;
	unsigned nbackground;
	uint16_t first_port; /* relative target ports count from here */
	unsigned nports;
	bool has_groups;
	struct list alua_waiting; /* changes, on the home worker */
	struct alua_op *alua_current;
	struct dev_alua *alua_first;		      /* while it is set up */
	const struct dev_alua *alua[DEV_MAX_WORKERS]; /* each its worker's */
	char (*ports)[256];
	struct list closing[DEV_MAX_WORKERS]; /* nexuses that part */
	/* reserve.c, the home worker's alone */
	struct list rsv_waiting;
	struct rsv_op *rsv_current;
	bool rsv_pumping;
	/* keep.c, the home worker's alone */
	struct list keep_waiting;
	struct keep_op *keep_current;
	bool keep_pumping;
	/* by operation code, those without service actions; table.c */
	const struct dev_command *row_of[DEV_NTYPES][256];
};

/* ---- everywhere.c ---- */

/*
 * A visit to every worker in turn: visit runs on each and has dev_round_next
 * called there, at once or later; then done, where the round began.
 */
struct dev_round {
	struct dev_msg msg;
	struct dev_server *server;
	unsigned at, from;
	void (*visit)(struct dev_round *r, unsigned worker);
	void (*done)(struct dev_round *r);
};

void dev_round_start(struct dev_round *r, unsigned here);
void dev_round_next(struct dev_round *r);
/* run on worker `to`; at once if that is here. */
void dev_round_go(struct dev_round *r, unsigned here, unsigned to,
		  void (*run)(struct dev_msg *m));

/* ---- what a unit is and has ---- */

/* server.c: the unit that the nexus knows as this LUN, or NULL: all that a
 * command may reach besides its own unit goes through here. */
struct dev_lu *dev_nexus_lu(const struct dev_nexus *n, uint16_t lun);

/* vpd.c: one of the unit's own names, as code set, kind, reserved, length,
 * name: at most 12 bytes; whether this is one of them. */
void dev_lu_put_name(const struct dev_lu *lu, uint8_t *p);
bool dev_lu_has_name(const struct dev_lu *lu, uint8_t code_set, uint8_t type,
		     const uint8_t *name, size_t len);

uint8_t dev_peripheral_type(const struct dev_lu *lu);
bool dev_is_cd(const struct dev_lu *lu); /* cd_mode.c */
/* keep.c: whether anything of the unit outlives a power loss. */
bool dev_keeps(const struct dev_lu *lu);
bool dev_has_unmap(const struct dev_lu *lu);
bool dev_has_type_2(const struct dev_lu *lu);
bool dev_has_generations(const struct dev_lu *lu); /* orwrite.c */
bool dev_has_tokens(const struct dev_lu *lu);
bool dev_has_timestamp(const struct dev_lu *lu);
bool dev_has_rekey(const struct dev_lu *lu);
bool dev_has_groups(const struct dev_lu *lu);
bool dev_has_atomic(const struct dev_lu *lu);
/* The most blocks one WRITE ATOMIC may have (VPD B0h); 0: there is none. */
uint32_t dev_atomic_max(const struct dev_lu *lu);
/* A threshold set is 2^n blocks; 0: the store cannot tell its space. */
unsigned dev_threshold_exponent(const struct dev_lu *lu);
/* Where in mode page 1Ch/02h the only threshold is. */
#define DEV_THRESHOLD_AT 16u
/* Flags of a write: asked for by its FUA bit, or by WCE = 0. */
static inline unsigned dev_fua(const struct dev_lu *lu, bool asked)
{
	return asked || DEV_CTL(lu, write_through) ? BS_FUA : 0;
}

/* ---- vpd.c ---- */

void dev_vpd(struct dev_task *t, uint8_t page, size_t alloc);
/* Designators of the nexus's target port and device (VPD 83h); returns where
 * they end. */
#define DEV_PORT_NAMES_MAX 512u
uint8_t *dev_put_port_names(const struct dev_task *t, uint8_t *p);

/* ---- task.c: how a command ends ---- */

void dev_good(struct dev_task *t);
void dev_end(struct dev_task *t, enum scsi_status status); /* no sense */
void dev_sense(struct dev_task *t, const struct scsi_sense *s);
void dev_check(struct dev_task *t, uint8_t key, uint16_t asc);
/* No memory, for what need not be tried again at once. */
void dev_no_resources(struct dev_task *t);
/* The result of backstore I/O at a byte offset. */
void dev_io_failed(struct dev_task *t, int err, uint64_t off);
/* During prepare: the task is refused; returns 1. */
int dev_refuse(struct dev_task *t, uint8_t key, uint16_t asc);
int dev_refuse_field(struct dev_task *t, unsigned byte, int bit);
int dev_refuse_lba(struct dev_task *t, uint64_t lba);
/* In run: CHECK CONDITION, invalid field in CDB / parameter list. */
void dev_bad_field(struct dev_task *t, unsigned byte, int bit);
void dev_bad_parameter(struct dev_task *t, unsigned byte);
/* PARAMETER LIST LENGTH ERROR: of the list that came; of the length that the
 * CDB announces, before it comes (returns as dev_refuse). */
void dev_bad_length(struct dev_task *t);
int dev_refuse_length(struct dev_task *t);
/* Parameter data: len bytes were built in t->buf; at most alloc of them are
 * returned. */
uint8_t *dev_param_buf(struct dev_task *t); /* NULL: task was ended BUSY */
void dev_return(struct dev_task *t, size_t len, size_t alloc);
/* A buffer of len bytes as t->buf; false: the task was ended BUSY. */
bool dev_buf(struct dev_task *t, size_t len);

/* ---- task.c: I/O of a command ---- */

/* One request to the unit's backstore; done gets it back, unless the task
 * was aborted meanwhile. */
void dev_submit(struct dev_task *t, enum bs_op op, unsigned flags, uint64_t off,
		uint64_t len, void (*then)(struct dev_task *t, int result));
/* All of the store; then GOOD. */
void dev_flush(struct dev_task *t, unsigned flags);
/*
 * Commands of several I/Os: step is called until it ended the task and returns
 * false. It returns true after exactly one dev_step_io, whose result it finds
 * in t->io_result (0 at first) when it is called again. The stack stays flat
 * even on a store that completes at once.
 */
void dev_steps(struct dev_task *t, bool (*step)(struct dev_task *t));
void dev_step_io(struct dev_task *t, enum bs_op op, unsigned flags,
		 uint64_t off, uint64_t len);
/* The same on another unit's store, and for a range (shared) instead of I/O. */
void dev_step_io_on(struct dev_task *t, struct dev_lu *lu, enum bs_op op,
		    unsigned flags, uint64_t off, uint64_t len);
void dev_step_range(struct dev_task *t, struct dev_lu *lu, uint64_t lba,
		    uint64_t blocks);
/* To read only: of a store whose blocks must not change meanwhile. */
void dev_step_source(struct dev_task *t, struct dev_lu *lu, uint64_t lba,
		     uint64_t blocks);
/* A second buffer; false: none left (the task is not ended). */
bool dev_aux(struct dev_task *t, size_t len);

/* LBA range of a CDB inside the unit; non-zero: refused. */
int dev_range(struct dev_task *t, uint64_t lba, uint64_t blocks);

/* One more command of t's unit, and its blocks; on t's worker. */
static inline void dev_count(const struct dev_task *t, enum dev_count what,
			     uint64_t blocks)
{
	struct dev_counter *c =
		&t->lu->lanes[t->nexus->cfg.worker].counts[what];

	__atomic_store_n(&c->commands, c->commands + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&c->blocks, c->blocks + blocks, __ATOMIC_RELAXED);
}

/* ---- provisioning.c ---- */

/* The end of a command that wrote: GOOD, maybe after a look at the space. */
void dev_written(struct dev_task *t, uint64_t bytes);

/* ---- reserve.c ---- */

/* Of a new unit, of a new nexus, at the end of either. */
void dev_lu_reservations_init(struct dev_lu *lu);
void dev_nexus_reservations_init(struct dev_nexus *n);
void dev_server_reservations_fini(struct dev_server *s);
/* Whether another's reservation forbids this command; whether nobody knows
 * any more who has reserved the unit, which does, too. */
bool dev_denied(const struct dev_task *t);
bool dev_denied_by_loss(const struct dev_task *t);
/* Whether one forbids the nexus what has these RSV_* columns at a unit: of
 * commands that reach other units than their own. */
bool dev_denied_at(const struct dev_nexus *n, const struct dev_lu *lu,
		   unsigned columns);
void dev_nexus_free(struct dev_nexus *n);

/* ---- alua.c ---- */

void dev_nexus_access_init(struct dev_nexus *n);
uint16_t dev_nexus_group(const struct dev_nexus *n); /* 0: none */
/* The peripheral qualifier of INQUIRY data by way of the nexus's port. */
uint8_t dev_peripheral_qualifier(const struct dev_nexus *n);
/* Why the port's access state forbids the command (NOT READY), or 0. */
uint16_t dev_inaccessible(const struct dev_task *t);
void dev_server_groups_fini(struct dev_server *s);

/* ---- pass.c ---- */

/* Whether the unit is a real device's, which this command is for. */
bool dev_pass_takes(const struct dev_task *t);
/* What find_row, prepare and run are for other commands. */
int dev_pass_find_row(struct dev_task *t);
int dev_pass_prepare(struct dev_task *t, uint64_t *out_len);
void dev_pass_run(struct dev_task *t);
/* Whether the task's command was kept from being sent. */
bool dev_pass_withdraw(struct dev_task *t);
/* Of a passthrough unit: is the command one of those that we carry out? */
bool dev_pass_owns(const struct dev_lu *lu, const struct dev_command *c);

#endif
