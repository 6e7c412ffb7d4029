/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unit.h: the types and functions that all rooms of the device use: nexuses, units,
 * the server, the end of a command and its I/O. docs/ARCHITECTURE.md lists the rooms;
 * each other header of this room has one job.
 */
#ifndef DEVICE_UNIT_H
#define DEVICE_UNIT_H

#include "backstore/backstore.h"
#include "base/bytes.h"
#include "base/counter.h"
#include "base/err.h"
#include "device/device.h"
#include "device/task.h"
#include "device/unit/lun_table.h"
#include "scsi/cdb.h"
#include "scsi/sense.h"

#define DEV_MAX_WORKERS 64
#define DEV_PARAM_MAX	8192 /* bytes of parameter data of one command */
#define DEV_CHUNK	(256u << 10) /* of commands that work in steps */

struct dev_rows;
struct dev_token;

/* The state of a copy. */
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

/* What RECEIVE COPY RESULTS reports of a copy, by its list identifier; copied.c. */
struct dev_copy {
	enum dev_copy_state state;
	enum dev_copy_kind kind;
	/* the unit that got the command; compared only */
	const struct dev_lu *lu;
	bool discard; /* the initiator asked for no report */
	bool partial; /* the token had fewer blocks than the ranges */
	uint8_t sa;   /* service action of the command */
	struct dev_token *token; /* that was made or used; counted */
	uint64_t list_id;
	uint16_t segments; /* copied completely */
	uint8_t sense[SCSI_SENSE_MAX];
	uint8_t sense_len; /* 0 unless the copy failed */
	uint64_t bytes;	   /* copied, or of the token */
	uint64_t age;	   /* dev_nexus.copies_begun; the oldest is replaced */
};

#define DEV_COPIES 16 /* of one nexus */

struct dev_alua;
struct dev_change;
struct dev_command;
struct dev_lu_change;
struct dev_record;
struct dev_shared;
struct rsv_op;
struct rsv_state;

#define DEV_DEPARTED 64

/* Writes of a nexus to one unit that may not be durable; flush.c. */
struct dev_unflushed {
	uint64_t flushes; /* begun so far */
	/* wrote: 1 + the number of flushes begun when the latest write ended; 0:
	 * no write since the last good flush. lost: the same of a write after
	 * which a flush failed. */
	uint64_t wrote, lost;
	uint64_t reported_at; /* dev_env.wall_ms */
	uint32_t failures;    /* bs_flush_failures at that write */
	uint32_t reports;     /* in a row, repetitions included */
};

/*
 * An I_T_L nexus: what a nexus has at one unit (itl.h). The worker of the nexus reads
 * and writes it. READ and WRITE use the first members. Another worker uses no memory in its
 * lines of the cache.
 */
struct dev_itl {
	_Alignas(64) uint32_t attention; /* BIT(enum dev_ua); attention.h */
	uint16_t denied; /* RSV_* that reservations of others deny; reserve.c */
	uint16_t special;    /* ORDERED, HEAD OF QUEUE tasks; taskset.c */
	uint8_t aca;	     /* the ACA that blocks its tasks; aca.c */
	uint8_t priority;    /* by SET PRIORITY; 0: the unit's initial one */
	uint8_t media_event; /* enum cd_event; medium.c */
	bool read_only;	     /* for this nexus */
	uint16_t lun;	     /* by which the nexus knows the unit */
	uint8_t access;	 /* enum dev_access, of a shared unit; lu_groups.c */
	bool is_dropped; /* the gateway was fenced; dev_lu_drop */
	struct dev_lu *lu;
	struct dev_nexus *nexus;
	struct list link; /* dev_lane.itls, or dev_nexus.left */
	/* After the nexus lost the unit, this stays until no task and no copy of
	 * the nexus uses the unit, and until its reservation is released. */
	uint32_t users; /* tasks that have begun and not ended */
	bool is_released;
	uint64_t left_age; /* dev_nexus.copies_begun at that time */
	/* while a new map is being compared: i stays, read-only or not */
	bool stays, stays_read_only;
	uint32_t replaces; /* attentions: another unit had its LUN before */
	uint32_t prevents; /* medium removal: generation + 1; prevent.c */
	uint32_t persists; /* the same of MMC-6's persistent kind */
	struct dev_unflushed unflushed;
	/*
	 * task.c: the latest command that does not write, and the latest one that
	 * writes, that the checks of admission let through, and dev_lu_changes
	 * before those checks. While the unit does not change they let the same
	 * row through again.
	 */
	struct {
		const struct dev_command *row;
		uint32_t changes;
		bool unlimited; /* the unit had no limits (rate.h) */
	} admitted[2];
};

struct dev_nexus {
	struct dev_server *server;
	struct dev_copy copies[DEV_COPIES];
	uint8_t *echo; /* of WRITE BUFFER; spc_more.c */
	uint16_t echo_len;
	uint64_t copies_begun;
	struct dev_nexus_config cfg;
	const struct dev_ports *ports; /* of its target; NULL: not known yet */
	struct dev_map *map;   /* counted; NULL: every unit, by its number */
	struct lun_table itls; /* struct dev_itl by LUN */
	struct list left;      /* struct dev_itl of units that it has lost */
	/* dev_nexus_set_map in progress */
	struct {
		struct dev_map *next; /* counted */
		void (*done)(void *arg);
		void *arg;
		struct dev_msg retry;
		bool is_retrying; /* `retry` is posted */
	} mapping;
	struct list link;	   /* dev_server.nexuses[worker] */
	enum dev_access access;	   /* of its target port; alua.c */
	struct share_owner memory; /* what its commands hold; memory.c */
	/* taskset.c, aca.c */
	struct list tasks;   /* that have not ended, in their order */
	uint32_t ndormant;   /* of tasks: DORMANT or HELD */
	uint32_t naca;	     /* units where an ACA blocks tasks of the nexus */
	struct dev_msg wake; /* posted while is_waking */
	unsigned nclearing;  /* CLEAR ACAs in progress: no task wakes before */
	bool is_waking, is_closed;
	/* lu_change.c */
	bool abort_due;			/* the target has to abort its tasks */
	struct dev_lu_change *aborting; /* waits until they are aborted */
	/* nexus.c: the end of the nexus */
	struct rsv_op *parting; /* releases what RESERVE reserved */
	bool is_parting, has_parted;
	void (*parted)(void *arg);
	void *parted_arg;
};

/* What LOG SENSE counts of a unit's commands; log.c. */
enum dev_count {
	COUNT_READS,
	COUNT_WRITES,
	COUNT_CACHED,  /* writes that ended while data were in the cache */
	COUNT_FLUSHES, /* commands that flushed the cache */
	DEV_NCOUNTS,
};

struct dev_counter {
	uint64_t commands, blocks;
};

/* The part of a unit that belongs to one worker. Only that worker uses it, except
 * for the counters, which LOG SENSE reads on any worker. */
struct dev_lane {
	_Alignas(64) struct list touching; /* dev_range: SHARED */
	struct {
		struct list list; /* dev_task.mem.loan; loan.c */
		unsigned n;
	} loans;
	struct list waiting; /* dev_range: until a fence ends */
	struct list fences;  /* struct fence_part of range.c */
	struct dev_counter counts[DEV_NCOUNTS];
	uint64_t since_probe;	/* bytes written; see provisioning.c */
	struct list tokens;	/* struct dev_token_part; tokens.h */
	struct list priorities; /* struct assigned of priority.c */
	struct list itls;	/* dev_itl: the nexuses that have the unit */
	/* tasks that wait because of a limit, and their timer; rate.c */
	struct {
		struct list waiting;
		struct dev_msg msg;
		struct dev_lu *lu; /* while the timer is set */
	} pace;
	/* the nexus whose ACA blocks all others, or NULL; only compared (aca.c) */
	const struct dev_nexus *faulted;
};

/* Blocks and the application tag that they must have; apptag.c. */
struct dev_tag_range {
	uint64_t lba, blocks;
	uint16_t tag;
	bool last;
};

#define DEV_TAG_RANGES	  8u
#define DEV_TAGS_PAGE_LEN 208u

/*
 * The mode values that MODE SELECT can change (mode.c). All zero is the default.
 * Any worker may write and read each member by itself, through DEV_CTL and
 * dev_ctl_store; two members are not consistent with each other. (While MODE
 * SELECT changes the tags of a unit, no other command is in progress there.)
 */
struct dev_control {
	uint8_t tst, qerr;
	bool d_sense, swp, tas;
	bool tmf_only; /* no command with the ACA attribute passes an ACA */
	bool write_through; /* WCE is 0 */
	/* protection information: the application client owns the application
	 * tags; nothing is checked if the CDB has 000b */
	bool ato, dpicz;
	bool atmpe; /* tags[] is in use */
	struct dev_tag_range tags[DEV_TAG_RANGES];
	/* logical block provisioning: soft threshold */
	bool unreported;       /* LBPERE is 0 */
	bool single_attention; /* SITUA */
	bool soft_enabled;
	uint32_t soft_count;	  /* threshold sets available, or fewer */
	uint8_t initial_priority; /* of commands; control extension */
};

#define DEV_CTL(lu, member) __atomic_load_n(&(lu)->ctl.member, __ATOMIC_RELAXED)

/* Any worker; FORMAT UNIT changes it while no other command is in progress. */
#define DEV_PROTECTION(lu) __atomic_load_n(&(lu)->protection, __ATOMIC_RELAXED)

/* The generations of ORWRITE; orwrite.c. Atomic. Except for resets, they change
 * while no other command is in progress. */
struct dev_generation {
	uint32_t now, before;
	uint8_t policy;
};

/*
 * A visit to every worker in turn: visit runs on each worker and calls
 * dev_round_next there, at once or later; done runs on the worker that began.
 */
struct dev_round {
	struct dev_msg msg;
	struct dev_server *server;
	unsigned at, from;
	void (*visit)(struct dev_round *r, unsigned worker);
	void (*done)(struct dev_round *r);
};

enum dev_rated {
	DEV_OPS,
	DEV_BYTES,
	DEV_RESETS, /* its limit is constant */
	DEV_NRATES,
};

/* A limit of a unit, in use by all workers, atomic; rate.c. */
struct dev_rate {
	int64_t per_second; /* 0: no limit */
	xtime burst, due;
};

struct dev_lu {
	struct dev_server *server;
	struct dev_counter counted_before[DEV_NCOUNTS];
	/* SET TIMESTAMP; spc_more.c */
	struct {
		uint64_t offset; /* added to wall_ms */
		bool set;
	} clock;
	uint32_t changes;  /* dev_lu_changed */
	uint8_t condition; /* enum dev_condition; condition.c */
	uint8_t power;	   /* 0: active; power.c */
	bool unrestricted; /* EXIT FAILURE MODE is allowed (AUSE) */
	bool soft_told;	   /* the threshold was reported; provisioning.c */
	/* How many nexuses prevent medium removal, as generation << 32 | number;
	 * prevent.c. */
	struct {
		uint64_t ordinary, persistent;
	} prevented;
	uint32_t medium; /* counts exchanges of the medium; medium.c */
	uint8_t uuid[16];
	struct dev_generation generation;
	struct {
		/* SANITIZEs and FORMAT UNITs begun (erase.c), and losses of the
		 * access of this gateway: copies end */
		uint32_t begun;
		uint16_t progress; /* of 65536 */
	} erasure;
	struct dev_shared *shared;     /* unit/shared.h; NULL: not shared */
	struct dev_control ctl, saved; /* mode values: current, saved */
	struct dev_record *kept;       /* keep.h; NULL: nothing persists */
	struct dev_lane *lanes;	       /* [worker] */
	struct list fence_queue;       /* range.c, the home worker's alone */
	/* Which writes may not be durable; flush.c, any worker. */
	struct {
		/* values of bs_flush_failures: after which a write ended; after
		 * which a flush succeeded */
		uint32_t rewritten, settled;
		/* the newest nexuses that ended with writes that may not be
		 * durable: CRC of the initiator port << 32 |
		 * bs_flush_failures; 0: none */
		uint64_t departed[DEV_DEPARTED];
		uint32_t departures;
	} flushes;
	struct bs *bs;
	/* A passthrough unit; pass.c. All zero: another unit. */
	struct {
		struct pass *device;
		/* Whether the daemon executes the commands of a row itself;
		 * NULL: all. */
		bool (*owns)(const struct dev_lu *lu,
			     const struct dev_command *c);
		uint16_t attention; /* atomic: ASC of UA_OF_DEVICE */
	} pass;
	struct dev_lu_config cfg;
	uint64_t blocks;
	uint32_t block_size;
	unsigned block_shift;
	/* what dev_lu_configure changes, atomic; settings.h */
	struct {
		bool read_only, rotational, write_through;
		const struct dev_names *names;
		struct dev_rate rates[DEV_NRATES];
		struct settings_change *change; /* in progress, on worker 0 */
	} settings;
	uint8_t protection; /* type 1, 2, 3; 0: none. DEV_PROTECTION */
	/* live.c, lu_life.c */
	struct {
		bool is_there; /* new nexuses without a map get it; atomic */
		bool leaving;  /* dev_lu_remove was called; atomic */
		unsigned refs; /* atomic */
		struct dev_round arrival;
		struct dev_msg gone; /* after the last reference */
		struct removal *removal;
		struct list link; /* dev_server.leaving */
	} live;
	const struct rsv_state
		*rsv[DEV_MAX_WORKERS]; /* each read and written by its worker */
};

/*
 * dev_lu_changed: call it after a change of something that decides whether the
 * unit admits a command: access state, reservations, condition, power condition,
 * medium, write protection. Commands that have begun are then checked again before
 * they run, and later commands again when they begin (dev_itl.admitted). On any
 * worker; if the change is one of per-worker data, on each worker.
 */
static inline void dev_lu_changed(struct dev_lu *lu)
{
	(void)__atomic_add_fetch(&lu->changes, 1, __ATOMIC_RELEASE);
}

static inline uint32_t dev_lu_changes(const struct dev_lu *lu)
{
	return __atomic_load_n(&lu->changes, __ATOMIC_ACQUIRE);
}

/* The memory for the commands of one worker, which alone uses it; memory.c. */
struct dev_memory {
	_Alignas(64) struct share share;
	struct dev_msg serve; /* posted while share.serve_due */
};

/* A queue of changes, which the home worker decides one after the other;
 * change.c. */
struct dev_changes {
	struct list waiting;
	struct list saving;	    /* changes of shared units, see change.h */
	struct dev_change *current; /* NULL: none is in progress */
	bool is_pumping;
};

struct dev_server {
	struct dev_env env;
	struct dev_memory memory[DEV_MAX_WORKERS];
	uint32_t max_transfer;		      /* bytes */
	struct lun_table lus;		      /* struct dev_lu by number */
	struct list nexuses[DEV_MAX_WORKERS]; /* each used by its worker only */
	bool has_opened;     /* a nexus was opened; live.c, atomic */
	bool is_ending;	     /* dev_server_free was called */
	struct list leaving; /* units that are being removed; worker 0 */
	bool stopping;
	unsigned nbackground;
	uint32_t next_port; /* the next relative target port identifier */
	uint32_t own_ports[65536 / 32]; /* bits by identifier; atomic */
	struct dev_port *known_ports;	/* whose identifiers are reserved */
	bool has_groups;		/* ALUA; atomic */
	struct dev_changes alua_changes;
	struct dev_alua *alua_first; /* until the first change */
	const struct dev_alua *alua[DEV_MAX_WORKERS]; /* of each worker */
	struct dev_ports *ports;		      /* ports.h; atomic */
	struct list closing[DEV_MAX_WORKERS];	      /* nexuses that end */
	struct dev_changes lu_changes;		      /* lu_change.h */
	struct dev_changes keep_changes;	      /* keep.c */
	const struct dev_rows *const *rows; /* NULL at the end; command.c */
	/* by operation code, those without service actions */
	const struct dev_command *row_of[DEV_NTYPES][256];
};

/* ---- everywhere.c ---- */

/* dev_round_start begins a visit on worker `here`. The caller has set server, visit
 * and done; r stays valid until done. */
void dev_round_start(struct dev_round *r, unsigned here);
/* dev_round_next ends the visit of the current worker. */
void dev_round_next(struct dev_round *r);
/* dev_round_go calls run on worker `to`: at once if that is the calling one. */
void dev_round_go(struct dev_round *r, unsigned here, unsigned to,
		  void (*run)(struct dev_msg *m));

/* ---- lookup.c: what a unit is and has ---- */

/* dev_denied_at: whether a reservation of another nexus denies commands with
 * these RSV_* columns to the nexus of i. */
bool dev_denied_at(const struct dev_itl *i, unsigned columns);
/* dev_lu_after returns the unit with the next higher number, or NULL. */
struct dev_lu *dev_lu_after(const struct dev_lu *lu);

/* dev_is_cd returns whether the unit is a CD/DVD device. */
bool dev_is_cd(const struct dev_lu *lu);
/* dev_access_is_active returns whether a port in this state serves the medium (SPC-4
 * §5.16.2.4). */
static inline bool dev_access_is_active(enum dev_access state)
{
	return state <= DEV_ACCESS_NON_OPTIMIZED;
}
/* dev_access_at returns the access state of the nexus's port at the unit, on the nexus's
 * worker; unavailable if the nexus does not have the unit. */
enum dev_access dev_access_at(const struct dev_nexus *n,
			      const struct dev_lu *lu);
/* dev_is_not_shared returns whether no other gateway has the unit: for the rows of
 * commands that other gateways would not know of. */
bool dev_is_not_shared(const struct dev_lu *lu);
/* dev_keeps returns whether the unit can persist a record. */
bool dev_keeps(const struct dev_lu *lu);
/* dev_has_type_2 returns whether the unit has protection type 2. */
bool dev_has_type_2(const struct dev_lu *lu);
/* dev_has_groups returns whether the unit has target port groups: its own, or those of
 * the server. */
bool dev_has_groups(const struct dev_lu *lu);
/* The offset of the only threshold in mode page 1Ch/02h. */
#define DEV_THRESHOLD_AT 16u
static inline bool dev_setting(const bool *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

/* dev_is_read_only returns whether no nexus can write to the unit. */
static inline bool dev_is_read_only(const struct dev_lu *lu)
{
	return dev_setting(&lu->settings.read_only);
}

/* dev_has_cache returns whether writes may be volatile at their end. */
static inline bool dev_has_cache(const struct dev_lu *lu)
{
	return (lu->bs->caps & BS_CAP_WRITE_CACHE) &&
	       !dev_setting(&lu->settings.write_through);
}

/* dev_writes_through returns whether each write has to be durable at its end: WCE is
 * 0. */
static inline bool dev_writes_through(const struct dev_lu *lu)
{
	return DEV_CTL(lu, write_through) ||
	       dev_setting(&lu->settings.write_through);
}

/* Flags of a write: BS_FUA if its FUA bit asks for it, or WCE is 0. */
static inline unsigned dev_fua(const struct dev_lu *lu, bool asked)
{
	return asked || dev_writes_through(lu) ? BS_FUA : 0;
}

/* ---- ending.c: how a command ends ---- */

/*
 * Where a command goes from the files that do its work: set by dev_task_begin,
 * so that those files call nothing above them.
 */
struct dev_flow {
	/* dev_finish was called: t has its status and no I/O. Leads to
	 * dev_complete, now or when task set, NACA and QERR permit it. */
	void (*ended)(struct dev_task *t);
	/* The task set lets t run that had to wait (taskset.c). */
	void (*enabled)(struct dev_task *t);
	/* The limits of the unit let t run that had to wait (rate.c). */
	void (*paced)(struct dev_task *t);
	/* dev_task_execute was called while t waited for memory, which it has
	 * now (memory.c). */
	void (*execute)(struct dev_task *t);
};

/* dev_finish: t->status and sense data are set, no I/O is in progress. It gives
 * back t's range. */
void dev_finish(struct dev_task *t);
/* dev_complete returns t to its owner: calls done, or released after an abort. */
void dev_complete(struct dev_task *t);
/* dev_good ends t with GOOD. */
void dev_good(struct dev_task *t);
/*
 * While dev_task_begin checks t (prepare) these refuse it, and dev_task_execute
 * ends it; else they end it now. All of them return 1.
 */
int dev_end(struct dev_task *t,
	    enum scsi_status status); /* without sense data */
/* CHECK CONDITION */
int dev_sense(struct dev_task *t, const struct scsi_sense *s);
int dev_check(struct dev_task *t, uint8_t key, uint16_t asc);
/* Invalid field in CDB (bit -1: the byte) / in the parameter list. */
int dev_bad_field(struct dev_task *t, unsigned byte, int bit);
int dev_bad_parameter(struct dev_task *t, unsigned byte);
/* PARAMETER LIST LENGTH ERROR; LOGICAL BLOCK ADDRESS OUT OF RANGE. */
int dev_bad_length(struct dev_task *t);
int dev_bad_lba(struct dev_task *t, uint64_t lba);
/* failure.c: dev_check with the sense data of that failure. */
void dev_check_failure(struct dev_task *t, enum dev_failure why);
/* dev_no_resources: no memory: ABORTED COMMAND, INSUFFICIENT RESOURCES.
 * dev_busy: no buffer: BUSY, which asks the initiator to send the command again. */
void dev_no_resources(struct dev_task *t);
void dev_busy(struct dev_task *t);
/* dev_io_failed: a request to the backstore at byte offset off failed. */
void dev_io_failed(struct dev_task *t, int err, uint64_t off);
/* dev_hold: t is never answered, because this gateway was fenced; it ends when the target
 * aborts it, with its session. */
int dev_hold(struct dev_task *t);
/* dev_param_buf: DEV_PARAM_MAX zero bytes as t->mem.buf; NULL: t was ended BUSY. */
uint8_t *dev_param_buf(struct dev_task *t);
/* dev_return: GOOD with parameter data: len bytes of t->mem.buf, at most alloc. */
void dev_return(struct dev_task *t, size_t len, size_t alloc);
/* dev_buf: len bytes as t->mem.buf; false: t was ended BUSY. */
bool dev_buf(struct dev_task *t, size_t len);

/* The additional sense code of ERR_PI_*; 0: another error. */
uint16_t dev_protect_asc(int err);

/* ---- io.c: I/O of a command ---- */

/* dev_submit: t->req goes to the unit's backstore; then gets the result unless t
 * was aborted in the meantime. */
void dev_submit(struct dev_task *t, enum bs_op op, unsigned flags, uint64_t off,
		uint64_t len, void (*then)(struct dev_task *t, int result));
/* dev_flush: flushes the whole backstore, then ends t with GOOD. */
void dev_flush(struct dev_task *t, unsigned flags);
/*
 * dev_steps: a command of several requests: calls step until step has ended t and
 * returns false. step returns true after exactly one call of dev_step_*, whose
 * result is in t->steps.result (0 at first) in the next call. The stack stays
 * flat even if the backstore completes at once.
 */
void dev_steps(struct dev_task *t, bool (*step)(struct dev_task *t));
void dev_step_io(struct dev_task *t, enum bs_op op, unsigned flags,
		 uint64_t off, uint64_t len);
/* dev_step_io_on: a request to another unit's backstore. dev_step_range: takes a
 * range in place of a request, shared unless `alone` or the unit's protection
 * information needs exclusive access. */
void dev_step_io_on(struct dev_task *t, struct dev_lu *lu, enum bs_op op,
		    unsigned flags, uint64_t off, uint64_t len);
void dev_step_range(struct dev_task *t, struct dev_lu *lu, uint64_t lba,
		    uint64_t blocks, bool alone);
/* dev_step_source: takes a shared range that is only read. */
void dev_step_source(struct dev_task *t, struct dev_lu *lu, uint64_t lba,
		     uint64_t blocks);
/* dev_aux: a second buffer; false: no memory, t is not ended. */
bool dev_aux(struct dev_task *t, size_t len);

/* The bytes that the initiator transfers for one block. */
static inline uint32_t dev_wire_block(const struct dev_task *t)
{
	return t->lu->block_size + (t->own.protect.field ? 8u : 0);
}
/* dev_pi_buf: t->mem.pi for so many blocks; false: t was ended BUSY. */
bool dev_pi_buf(struct dev_task *t, uint64_t blocks);

/* dev_range: checks the LBA range of a CDB; 1: t was refused. */
static inline int dev_range(struct dev_task *t, uint64_t lba, uint64_t blocks)
{
	if (range_ok(lba, blocks, t->lu->blocks))
		return 0;
	return dev_bad_lba(t, MAX(lba, t->lu->blocks));
}

/* dev_wall_ms: the time of day, where the process has a clock (dev_env.wall_ms). */
static inline uint64_t dev_wall_ms(const struct dev_lu *lu)
{
	const struct dev_env *env = &lu->server->env;

	return env->wall_ms(env->arg);
}

/* dev_count counts one more command of t's unit, and its blocks. */
static inline void dev_count(const struct dev_task *t, enum dev_count what,
			     uint64_t blocks)
{
	struct dev_counter *c =
		&t->lu->lanes[t->nexus->cfg.worker].counts[what];

	counter_add(&c->commands, 1);
	counter_add(&c->blocks, blocks);
}

#endif
