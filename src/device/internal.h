/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * internal.h: what the files of the device share.
 *   server.c   units, nexuses, LUNs
 *   task.c     begin, execute, finish, abort; buffers
 *   table.c    one row per command; usage masks; which commands there are
 *   rows_block.c  the rows of what else a block device has
 *   rows_cd.c and others  the CD/DVD device, see cd.h
 *   spc.c      INQUIRY, REPORT LUNS, REQUEST SENSE, ...
 *   spc_more.c TIMESTAMP, echo buffer
 *   identify.c IDENTIFYING INFORMATION
 *   vpd.c      vital product data
 *   mode.c     MODE SENSE, MODE SELECT
 *   mode_pages.c  the mode pages
 *   rw.c       READ, WRITE, SYNCHRONIZE CACHE, capacity
 *   verify.c   VERIFY, WRITE AND VERIFY
 *   protect.c  protection information on the wire
 *   thin.c     UNMAP, WRITE SAME, GET LBA STATUS
 *   alua.c, rows_alua.c  target port groups
 *   everywhere.c  visits to all workers
 *   reserve.c  how reservations change; RESERVE, RELEASE (reserve.h)
 *   pr_state.c, pr_out.c, pr_in.c, pr_save.c  persistent reservations
 *   rows_reserve.c  their rows
 *   rows_protect.c  the 32-byte commands
 *   defects.c  READ DEFECT DATA
 *   keep.c, keep_save.c  what outlives a power loss (keep.h)
 *   taskset.c  task attributes: who waits for whom
 *   aca.c      auto contingent allegiance, QERR
 *   priority.c command priorities
 *   condition.c  is the unit ready
 *   power.c    power conditions
 *   removal.c  START STOP UNIT, PREVENT ALLOW MEDIUM REMOVAL
 *   erase.c    overwriting or erasing a whole unit, in the background
 *   sanitize.c SANITIZE, FORMAT UNIT
 *   range.c    who may touch which blocks at once
 *   caw.c      COMPARE AND WRITE, ORWRITE, WRITE ATOMIC
 *   provisioning.c  how much space is left, soft threshold
 *   log.c      LOG SENSE
 *   copy.c     copying chunk by chunk
 *   copy_list.c  EXTENDED COPY
 *   token.c    POPULATE TOKEN, WRITE USING TOKEN
 *   copied.c   what is told about copies: RECEIVE COPY RESULTS, VPD 8Fh
 *   attention.c  unit attentions
 *   pass.c, pass_cdb.c, pass_tell.c  a real device's unit (pass.h, pass_unit.h)
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

/* Unit attentions of a nexus at a unit, in the order they are reported: power
 * on, resets, the others (SAM-5 §5.14). */
enum dev_ua {
	UA_POWER_ON,
	UA_BUS_DEVICE_RESET,
	UA_COMMANDS_CLEARED,
	UA_CAPACITY_CHANGED,
	UA_MODE_CHANGED,
	UA_LUNS_CHANGED,
	UA_RESERVATIONS_PREEMPTED,
	UA_RESERVATIONS_RELEASED,
	UA_REGISTRATIONS_PREEMPTED,
	UA_ACCESS_CHANGED,
	UA_ACCESS_CHANGE_FAILED,
	UA_SOFT_THRESHOLD,
	UA_TIMESTAMP_CHANGED,
	UA_PRIORITY_CHANGED,
	UA_DEVICE_IDENTIFIER,
	UA_MEDIUM_CHANGED,
	UA_OF_DEVICE, /* pass.c: what the real device said last */
	UA_COUNT,
};

struct dev_token;

/* How a copy went, by its list identifier; held for who asks. */
enum dev_copy_state {
	COPY_NONE,
	COPY_RUNS,
	COPY_DONE,
	COPY_FAILED,
};

/* Each kind has list identifiers of its own. */
enum dev_copy_kind {
	COPY_BY_LID1,
	COPY_BY_TOKEN, /* POPULATE TOKEN, WRITE USING TOKEN */
};

struct dev_copy {
	enum dev_copy_state state;
	enum dev_copy_kind kind;
	bool discard; /* nobody will ask */
	bool partial; /* less was written than there was room for */
	uint8_t sa;
	struct dev_token *token; /* that was made; counted */
	uint32_t list_id;
	uint16_t segments; /* carried out */
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
	uint32_t attention[DEV_MAX_LUNS]; /* BIT(enum dev_ua) */
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

/* What one worker knows of a unit: its own, nobody else looks at it. */
struct dev_lane {
	_Alignas(64) struct list touching; /* dev_range: SHARED */
	struct list waiting;		   /* dev_range: for a fence to fall */
	struct list fences;		   /* struct fence_part of range.c */
	/* counted here, read by any worker (LOG SENSE) */
	struct dev_counter {
		uint64_t commands, blocks;
	} reads, writes;
	uint64_t since_probe;	/* bytes written; see provisioning.c */
	struct list tokens;	/* struct token_part of token.c */
	struct list priorities; /* struct assigned of priority.c */
	/* whose ACA hinders all nexuses; compared only (aca.c) */
	const struct dev_nexus *faulted;
};

/*
 * What MODE SELECT can change (mode.c). All zero is the default. Any worker
 * may write, any may read: each member alone, through DEV_CTL and
 * dev_ctl_store, no two of them together.
 */
struct dev_control {
	uint8_t tst, qerr;
	bool d_sense, swp, tas;
	bool tmf_only; /* no command ends an ACA, or gets past one of its own */
	bool write_through; /* WCE is 0 */
	/* protection information: application tags are the application's; it
	 * is not checked where the CDB says 000b */
	bool ato, dpicz;
	/* logical block provisioning: soft threshold */
	bool single_attention; /* SITUA */
	bool soft_enabled;
	uint32_t soft_count;	  /* threshold sets available, or fewer */
	uint8_t initial_priority; /* of commands; control extension */
};

/* Why a unit does not serve its medium; condition.c. */
enum dev_condition {
	LU_READY,
	LU_NO_MEDIUM,
	LU_SANITIZING,
	LU_SANITIZE_FAILED,
	LU_FORMATTING,
	LU_FORMAT_FAILED,
	/* of DEV_CD */
	LU_EJECTED, /* in the open tray */
	LU_EMPTY,
	LU_EMPTY_OPEN,
	LU_CHANGING,
};

#define DEV_CTL(lu, member) __atomic_load_n(&(lu)->ctl.member, __ATOMIC_RELAXED)

/* Any worker; FORMAT UNIT changes it while nothing is under way. */
#define DEV_PROTECTION(lu) __atomic_load_n(&(lu)->protection, __ATOMIC_RELAXED)

struct dev_lu {
	struct dev_server *server;
	struct dev_counter counted_before[2]; /* reads, writes; log.c */
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

/* ---- commands ---- */

enum dev_dir {
	DIR_NONE,
	DIR_IN,
	DIR_OUT,
};

#define CMD_ANY_LUN 0x1u /* served without a unit, and past attentions */
#define CMD_WRITES  0x2u /* refused on a write-protected unit */
#define CMD_SA	    0x4u /* sa counts: service action, scsi_cdb_sa */

/*
 * The conflict column (SPC-4 §5.13, SBC-3 §4.17, SPC-2 §5.5.1): which
 * reservations of others a command conflicts with. Every row has one of
 * RSV_NEVER, RSV_UNIT, RSV_READ, RSV_WRITE.
 */
#define RSV_KNOWN 0x100u /* the row's author thought of it */
#define RSV_SPC2  0x200u /* of RESERVE(6), RESERVE(10) */
#define RSV_EA	  0x400u /* persistent, Exclusive Access types */
#define RSV_WE	  0x800u /* persistent, Write Exclusive types */
/* Served by a port in these access states, too (SPC-4 §5.11.2). */
#define ACC_STANDBY	0x1000u
#define ACC_UNAVAILABLE 0x2000u
#define ACC_ALWAYS	(ACC_STANDBY | ACC_UNAVAILABLE)

/* Served while the reservations are lost (SPC-4 §5.13.5.2). */
#define RSV_LOST_TOO 0x4000u

#define RSV_ALL	  (RSV_SPC2 | RSV_EA | RSV_WE)
#define RSV_NEVER RSV_KNOWN
#define RSV_UNIT  (RSV_KNOWN | RSV_SPC2)
#define RSV_READ  (RSV_UNIT | RSV_EA)
#define RSV_WRITE (RSV_READ | RSV_WE)
/* task.lba, task.blocks are touched as by READ and WRITE / are the command's
 * alone from its first to its last I/O (range.c) */
#define CMD_TOUCHES	 0x8u
#define CMD_ALONE	 0x10u
#define CMD_MEDIUM	 0x20u /* refused while there is none, or a broken one */
#define CMD_ALWAYS	 0x40u /* served even while the unit is being erased */
#define CMD_NO_ATTENTION 0x80u /* served past attentions, which stay */

/* Which types of units have the command; without any of them, disks do. */
#define FOR(type)    (0x1000000u << (type))
#define FOR_DISK     FOR(DEV_DISK)
#define FOR_CD	     FOR(DEV_CD)
#define FOR_ANY_TYPE 0xff000000u

struct dev_command {
	const char *name;
	uint8_t op;
	uint16_t sa;
	uint8_t len;
	enum dev_dir dir;
	unsigned flags;
	/* How many bytes of data-out this CDB asks for; NULL: none. Checks
	 * what is in the CDB: non-zero = it was refused (dev_refuse_*). */
	int (*prepare)(struct dev_task *t, uint64_t *out_len);
	void (*run)(struct dev_task *t);
	/* Bits that count, of each byte; [0] = op. In CONTROL it is NACA
	 * (SAM-5 §5.2), for every command: it need not be said here. */
	uint8_t usage[32];
	/* NULL: every unit has this command */
	bool (*has)(const struct dev_lu *lu);
};

/* The rows of one file. */
struct dev_rows {
	const struct dev_command *rows;
	size_t n;
};
extern const struct dev_rows dev_rows_block;   /* rows_block.c */
extern const struct dev_rows dev_rows_alua;    /* rows_alua.c */
extern const struct dev_rows dev_rows_cd;      /* rows_cd.c */
extern const struct dev_rows dev_rows_reserve; /* rows_reserve.c */
extern const struct dev_rows dev_rows_protect; /* rows_protect.c */

void dev_command_index(struct dev_server *s);
/* The row for a CDB to a unit of this type; *known tells that its operation
 * code is ours although its service action is not. */
const struct dev_command *dev_command_find(const struct dev_server *s,
					   enum dev_type type,
					   const uint8_t *cdb, bool *known);
/* Whether units of this type have the row; whether this one does. */
bool dev_command_is_for(const struct dev_command *c, enum dev_type type);
bool dev_command_has(const struct dev_lu *lu, const struct dev_command *c);
/* Whether the unit has any command of this operation code. */
bool dev_command_any(const struct dev_lu *lu, uint8_t op);
/* Where CONTROL is, by the operation code's group; -1: nobody knows. */
int dev_control_at(const uint8_t *cdb);
/* -1: fine; else byte << 3 | bit of the highest reserved bit set. */
int dev_command_check(const struct dev_command *row, const uint8_t *cdb);
void dev_report_opcodes(struct dev_task *t);
/* The descriptors of all commands the unit has; returns their length. */
size_t dev_put_opcodes(const struct dev_lu *lu, uint8_t *p, bool timeouts);
#define DEV_OUR_OPCODES_MAX 1024u /* of a passthrough unit */

/* server.c: the unit that the nexus knows as this LUN, or NULL: all that a
 * command may reach besides its own unit goes through here. */
struct dev_lu *dev_nexus_lu(const struct dev_nexus *n, uint16_t lun);
/* vpd.c: is this one of the unit's own names? */
/* One of them, as code set, kind, reserved, length, name: at most 12 bytes. */
void dev_lu_put_name(const struct dev_lu *lu, uint8_t *p);
bool dev_lu_has_name(const struct dev_lu *lu, uint8_t code_set, uint8_t type,
		     const uint8_t *name, size_t len);

/* ---- task.c: how a command ends ---- */

void dev_good(struct dev_task *t);
void dev_end(struct dev_task *t, enum scsi_status status); /* no sense */
void dev_sense(struct dev_task *t, const struct scsi_sense *s);
void dev_check(struct dev_task *t, uint8_t key, uint16_t asc);
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
/* One request to the unit's backstore; done gets it back, unless the task
 * was aborted meanwhile. */
void dev_submit(struct dev_task *t, enum bs_op op, unsigned flags, uint64_t off,
		uint64_t len, void (*then)(struct dev_task *t, int result));
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

/* One more command, and its blocks: by the worker that owns the counter. */
static inline void dev_count(struct dev_counter *c, uint64_t blocks)
{
	__atomic_store_n(&c->commands, c->commands + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&c->blocks, c->blocks + blocks, __ATOMIC_RELAXED);
}

/* ---- provisioning.c ---- */

/* The end of a command that wrote: GOOD, maybe after a look at the space. */
void dev_written(struct dev_task *t, uint64_t bytes);
/* A threshold set is 2^n blocks; 0: the store cannot tell its space. */
unsigned dev_threshold_exponent(const struct dev_lu *lu);

/* ---- handlers, by file ---- */

void dev_log_sense(struct dev_task *t);
void dev_log_select(struct dev_task *t);

uint8_t dev_peripheral_type(const struct dev_lu *lu);
void dev_inquiry(struct dev_task *t);
void dev_vpd(struct dev_task *t, uint8_t page, size_t alloc);
/* Designators of the nexus's target port and device (VPD 83h); returns where
 * they end. */
#define DEV_PORT_NAMES_MAX 512u
uint8_t *dev_put_port_names(const struct dev_task *t, uint8_t *p);
void dev_report_luns(struct dev_task *t);
void dev_request_sense(struct dev_task *t);
void dev_test_unit_ready(struct dev_task *t);
void dev_report_tmfs(struct dev_task *t);

bool dev_has_timestamp(const struct dev_lu *lu);
void dev_report_timestamp(struct dev_task *t);
int dev_prepare_set_timestamp(struct dev_task *t, uint64_t *out_len);
void dev_set_timestamp(struct dev_task *t);
void dev_report_identifying(struct dev_task *t);
int dev_prepare_set_identifying(struct dev_task *t, uint64_t *out_len);
void dev_set_identifying(struct dev_task *t);
int dev_prepare_write_buffer(struct dev_task *t, uint64_t *out_len);
void dev_write_buffer(struct dev_task *t);
void dev_read_buffer(struct dev_task *t);

void dev_mode_sense_6(struct dev_task *t);
void dev_mode_sense_10(struct dev_task *t);
int dev_prepare_mode_select(struct dev_task *t, uint64_t *out_len);
void dev_mode_select(struct dev_task *t);
/* Back to what is saved (SPC-4 §5.9: the rest is lost by a reset). */
void dev_mode_reset(struct dev_lu *lu);

bool dev_is_cd(const struct dev_lu *lu); /* cd_mode.c */
/* mode_pages.c: the pages, one row each. */
struct dev_mode_page {
	uint8_t code, subpage;
	uint8_t len;			      /* with its header */
	bool (*has)(const struct dev_lu *lu); /* NULL: every disk */
	/* Fill in and take out what is behind the header; p is the page's
	 * first byte. */
	void (*fill)(const struct dev_lu *lu, const struct dev_control *c,
		     uint8_t *p);
	void (*mask)(const struct dev_lu *lu, uint8_t *p); /* changeable */
	void (*take)(struct dev_control *c, const uint8_t *p);
};
extern const struct dev_mode_page dev_mode_pages[];
extern const size_t dev_mode_npages;
size_t dev_mode_header_len(const struct dev_mode_page *m);
struct dev_control dev_ctl_load(const struct dev_control *from);
void dev_ctl_store(struct dev_control *to, const struct dev_control *c);
bool dev_write_protected(const struct dev_lu *lu);
/* keep.c: whether anything of the unit outlives a power loss. */
bool dev_keeps(const struct dev_lu *lu);

/* Flags of a write: asked for by its FUA bit, or by WCE = 0. */
static inline unsigned dev_fua(const struct dev_lu *lu, bool asked)
{
	return asked || DEV_CTL(lu, write_through) ? BS_FUA : 0;
}

int dev_prepare_read(struct dev_task *t, uint64_t *out_len);
void dev_read(struct dev_task *t);
int dev_prepare_write(struct dev_task *t, uint64_t *out_len);
void dev_write(struct dev_task *t);
int dev_prepare_range(struct dev_task *t, uint64_t *out_len);
void dev_synchronize_cache(struct dev_task *t);
int dev_prepare_capacity(struct dev_task *t, uint64_t *out_len);
void dev_read_capacity_10(struct dev_task *t);
void dev_read_capacity_16(struct dev_task *t);

int dev_prepare_verify(struct dev_task *t, uint64_t *out_len);
void dev_verify(struct dev_task *t);
int dev_prepare_write_verify(struct dev_task *t, uint64_t *out_len);
void dev_write_verify(struct dev_task *t);

/* ---- protect.c ---- */

/* The byte that has RDPROTECT, DPO, FUA or the like (SBC-3 §5). */
static inline unsigned dev_flags_at(const struct dev_task *t)
{
	return t->row->len == 32 ? 10 : 1;
}

static inline uint8_t dev_flags(const struct dev_task *t)
{
	return t->cdb[dev_flags_at(t)];
}

bool dev_has_type_2(const struct dev_lu *lu);
/* In prepare, of a command with such a field: sets protect and judged. Returns
 * as dev_refuse. */
int dev_protect_look(struct dev_task *t);
static inline int dev_protect_prepare(struct dev_task *t)
{
	return (dev_flags(t) & 0xe0) || t->row->len == 32 ? dev_protect_look(t)
							  : 0;
}
/* Bytes of a block on the wire. */
static inline uint32_t dev_wire_block(const struct dev_task *t)
{
	return t->lu->block_size + (t->protect ? 8u : 0);
}
/* The most blocks of one command; on the wire they may be more bytes. */
static inline uint64_t dev_most_blocks(const struct dev_lu *lu)
{
	return lu->server->max_transfer >> lu->block_shift;
}
/* Flags for the store: ATO, DPICZ. */
unsigned dev_protect_flags(const struct dev_lu *lu);
/* Of ERR_PI_*; 0: it is none. */
uint16_t dev_protect_asc(int err);
/* Before a judged command with data-out runs: t->buf has only blocks then,
 * t->pi the rest, checked. False: the task was ended. */
bool dev_protect_take(struct dev_task *t);
void dev_protect_read(struct dev_task *t);
/* n blocks, the first of which is the command's first-th. False: ended. */
bool dev_protect_check(struct dev_task *t, const uint8_t *data,
		       const uint8_t *pi, uint64_t first, uint64_t n);
bool dev_protect_differs(const struct dev_task *t, const uint8_t *a,
			 const uint8_t *b);
/* Of the i-th block where all are like the first. */
void dev_protect_same(const struct dev_task *t, const uint8_t *first,
		      uint64_t i, uint8_t *pi);
/* t->aux: a chunk of at most DEV_CHUNK, and its information if the command is
 * judged (else NULL). False: none left. */
bool dev_aux_chunk(struct dev_task *t, uint64_t len);
/* The same for all of them at once, however many. */
bool dev_aux_blocks(struct dev_task *t, size_t len);
size_t dev_chunk_len(const struct dev_task *t);
uint8_t *dev_chunk_pi(const struct dev_task *t);
/* t->pi for so many blocks; false: the task was ended BUSY. */
bool dev_pi_buf(struct dev_task *t, uint64_t blocks);

bool dev_has_unmap(const struct dev_lu *lu);
int dev_prepare_unmap(struct dev_task *t, uint64_t *out_len);
void dev_unmap(struct dev_task *t);
int dev_prepare_write_same(struct dev_task *t, uint64_t *out_len);
void dev_write_same(struct dev_task *t);
int dev_prepare_lba_status(struct dev_task *t, uint64_t *out_len);
void dev_lba_status(struct dev_task *t);

int dev_prepare_extended_copy(struct dev_task *t, uint64_t *out_len);
void dev_extended_copy(struct dev_task *t);

/* ---- copy.c: a job is at the front of the task's aux ---- */

struct dev_segment {
	struct dev_lu *from, *to;	/* from: NULL for zeros */
	uint64_t from_off, to_off, len; /* bytes */
	uint32_t erasures;		/* of the destination, so far */
};

struct dev_job {
	struct dev_token *token; /* what is read must be as it was */
	uint32_t list_at;	 /* of the first segment descriptor, or 0 */
	uint32_t nsegments, now;
	uint64_t done; /* bytes of this segment */
	bool was_read;
	bool holds_source;
	bool use_up; /* the token is good no longer when all is done */
	struct dev_segment segments[64];
};

struct dev_job *dev_job_new(struct dev_task *t); /* NULL: task was ended */
void dev_job_run(struct dev_task *t);		 /* t->copy is begun */
/* Why the nexus may not copy between these; 0: it may. */
uint16_t dev_copy_refusal(const struct dev_nexus *n, const struct dev_lu *from,
			  const struct dev_lu *to);

/* ---- token.c ---- */

#define TOKEN_LEN	      512u
#define ROD_CHANGE_VULNERABLE 0x00800001u /* a copy until it is changed */
#define ROD_ZEROS	      0xffff0001u
#define TOKEN_RANGES	      32u
#define TOKEN_IDLE	      300u /* seconds */
#define TOKEN_IDLE_MAX	      3600u
#define TOKEN_MAX_BYTES	      ((uint64_t)256 << 20) /* of one command */

bool dev_has_tokens(const struct dev_lu *lu);
int dev_prepare_token(struct dev_task *t, uint64_t *out_len);
void dev_populate_token(struct dev_task *t);
void dev_write_using_token(struct dev_task *t);
void dev_receive_token_information(struct dev_task *t);
/* [lba, lba + blocks) is about to be written: tokens that stand for any of it
 * are good no longer. */
void dev_tokens_touch(struct dev_lu *lu, unsigned worker, uint64_t lba,
		      uint64_t blocks);
bool dev_token_is_bad(const struct dev_token *k);
void dev_token_use_up(struct dev_token *k);
void dev_token_put(struct dev_token *k);
void dev_tokens_fini(struct dev_server *s);

#define COPY_MAX_TARGETS  16u
#define COPY_MAX_SEGMENTS 64u
#define COPY_TARGET_LEN	  32u
#define COPY_SEGMENT_LEN  28u
#define COPY_MAX_LIST \
 (COPY_MAX_TARGETS * COPY_TARGET_LEN + COPY_MAX_SEGMENTS * COPY_SEGMENT_LEN)
#define COPY_NO_ID UINT32_MAX /* where no list identifier is that long */
/* A slot for a new copy, as t->copy; false: the task was ended. */
bool dev_copy_begin(struct dev_task *t, enum dev_copy_kind kind,
		    uint32_t list_id, bool discard);
/* The nexus's record, or NULL. */
struct dev_copy *dev_copy_find(struct dev_nexus *n, enum dev_copy_kind kind,
			       uint32_t list_id);
void dev_copy_end(struct dev_copy *c, bool good);
void dev_copy_status(struct dev_task *t);
void dev_copy_parameters(struct dev_task *t);
size_t dev_copy_page(const struct dev_task *t, uint8_t *p); /* VPD 8Fh */

int dev_prepare_compare_and_write(struct dev_task *t, uint64_t *out_len);
void dev_compare_and_write(struct dev_task *t);
int dev_prepare_write_atomic(struct dev_task *t, uint64_t *out_len);
void dev_orwrite(struct dev_task *t);
/* The most blocks one WRITE ATOMIC may have (VPD B0h); 0: there is none. */
uint32_t dev_atomic_max(const struct dev_lu *lu);
bool dev_has_atomic(const struct dev_lu *lu);

void dev_read_defects_10(struct dev_task *t);
void dev_read_defects_12(struct dev_task *t);

/* ---- condition.c ---- */

enum dev_condition dev_condition(const struct dev_lu *lu);
/* From one condition to another; false: it was no longer the first. */
bool dev_condition_go(struct dev_lu *lu, enum dev_condition from,
		      enum dev_condition to);
bool dev_condition_judges(struct dev_lu *lu, const struct dev_command *row,
			  struct scsi_sense *s);
/* Does the unit's condition forbid the command? Fills *s then. */
static inline bool dev_condition_forbids(struct dev_lu *lu,
					 const struct dev_command *row,
					 struct scsi_sense *s)
{
	return (__atomic_load_n(&lu->condition, __ATOMIC_ACQUIRE) |
		__atomic_load_n(&lu->power, __ATOMIC_RELAXED)) &&
	       dev_condition_judges(lu, row, s);
}
/* What REQUEST SENSE tells of it; false: nothing. */
bool dev_condition_sense(const struct dev_lu *lu, struct scsi_sense *s);

/* ---- power.c ---- */

/* POWER CONDITION and its modifier as an index, or -1: there is none such. */
int dev_power_find(uint8_t condition, uint8_t modifier);
void dev_power_go(struct dev_lu *lu, int index);
bool dev_power_needs_flush(int index);
void dev_power_wake(struct dev_lu *lu);
/* What REQUEST SENSE tells of it; false: it is active. */
bool dev_power_sense(const struct dev_lu *lu, struct scsi_sense *s);
size_t dev_power_page(const struct dev_task *t, uint8_t *p); /* VPD 8Ah */

/* ---- removal.c ---- */

void dev_start_stop(struct dev_task *t);
void dev_prevent_allow(struct dev_task *t);
void dev_removal_reset(struct dev_lu *lu);
void dev_removal_nexus_gone(struct dev_nexus *n);

/* ---- erase.c, sanitize.c ---- */

struct dev_erase_spec {
	enum dev_condition during, failed;
	bool immediate, unrestricted;
	bool rekey;	 /* first; then zeros, where space is given back */
	unsigned passes; /* of the pattern; 0: zeros, space given back */
	bool invert;	 /* every other pass */
	const uint8_t *pattern;
	size_t pattern_len;
	/* then the unit is of protection type 0 to 3 */
	bool protect;
	uint8_t type;
};

/* Erases all of the unit in the background, and ends the task: at once, or
 * when that is over. */
void dev_erase(struct dev_task *t, const struct dev_erase_spec *spec);
/* Ends t once a SANITIZE that failed is forgotten. */
void dev_erase_forgive(struct dev_task *t);
int dev_prepare_overwrite(struct dev_task *t, uint64_t *out_len);
void dev_sanitize_overwrite(struct dev_task *t);
int dev_prepare_erase(struct dev_task *t, uint64_t *out_len);
void dev_sanitize_block_erase(struct dev_task *t);
bool dev_has_rekey(const struct dev_lu *lu);
void dev_sanitize_crypto_erase(struct dev_task *t);
void dev_sanitize_exit_failure(struct dev_task *t);
int dev_prepare_format(struct dev_task *t, uint64_t *out_len);
void dev_format_unit(struct dev_task *t);

/* ---- range.c ---- */

/* Behind every medium: what changes the unit itself has this one alone. */
#define DEV_STATE_LBA (UINT64_MAX - 1)

int dev_lanes_init(struct dev_lu *lu); /* 0, ERR_NOMEM */
void dev_lanes_fini(struct dev_lu *lu);
/*
 * dev_range_take: r->go is called, now or later, once [lba, lba + blocks) of
 * lu may be touched. Worker is the calling one. ERR_NOMEM (ALONE only): it
 * never will be.
 */
int dev_range_take(struct dev_range *r, struct dev_lu *lu, unsigned worker,
		   uint64_t lba, uint64_t blocks, enum dev_hold how,
		   void (*go)(struct dev_range *r));
/* dev_range_drop gives it back; harmless when nothing is held. */
void dev_range_drop(struct dev_range *r);
/* dev_range_give_up: a range that still waits for others to end is forgotten;
 * false: go is still to come, or was. */
bool dev_range_give_up(struct dev_range *r);

void dev_reserve(struct dev_task *t);
void dev_release(struct dev_task *t);
void dev_pr_in(struct dev_task *t);
int dev_prepare_pr_out(struct dev_task *t, uint64_t *out_len);
void dev_pr_out(struct dev_task *t);
/* reserve.c: of a new unit, of a new nexus, at the end of either */
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

/* ---- taskset.c ---- */

void dev_set_enter(struct dev_task *t);
void dev_set_leave(struct dev_task *t); /* harmless when it left before */
/* Whether it has to; then dev_task_enabled is called in its time. */
bool dev_set_waits(struct dev_task *t);
/* An ORDERED command among those of all nexuses. */
bool dev_set_is_barrier(const struct dev_task *t);
void dev_task_enabled(struct dev_task *t);  /* task.c */
void dev_task_finished(struct dev_task *t); /* task.c */
void dev_task_retry(struct dev_task *t);    /* task.c: its end, again */
/* An ACA keeps it from ending; dev_task_retry is called in its time. */
bool dev_set_holds(struct dev_task *t);
/* Nothing of the kind keeps the nexus's tasks back any more. */
void dev_set_wake(struct dev_nexus *n);
void dev_nexus_free(struct dev_nexus *n); /* reserve.c */

/* ---- priority.c ---- */

/* 1, the highest, to 15: of a task that waits. */
unsigned dev_priority(const struct dev_task *t);
void dev_report_priority(struct dev_task *t);
int dev_prepare_set_priority(struct dev_task *t, uint64_t *out_len);
void dev_set_priority(struct dev_task *t);
/* All are as they were at first: a reset, or the end. */
void dev_priorities_forget(struct dev_lu *lu, unsigned worker);
void dev_nexus_priorities_init(struct dev_nexus *n);

/* ---- aca.c ---- */

#define CONTROL_NACA 0x04

bool dev_task_naca(const struct dev_task *t);
/* Whether a command that comes is refused for its attribute, or for an ACA. */
bool dev_aca_refuses(struct dev_task *t);
/* Whether an ACA keeps a task of the task set from being enabled, or ending. */
bool dev_aca_blocks(const struct dev_task *t);
/* After CHECK CONDITION: true: dev_task_finished (or _retry) is called once
 * what NACA and QERR make of it is in force everywhere. */
bool dev_fault(struct dev_task *t);
void dev_nexus_aca_init(struct dev_nexus *n);

/* ---- alua.c ---- */

bool dev_has_groups(const struct dev_lu *lu);
void dev_nexus_access_init(struct dev_nexus *n);
uint16_t dev_nexus_group(const struct dev_nexus *n); /* 0: none */
/* The peripheral qualifier of INQUIRY data by way of the nexus's port. */
uint8_t dev_peripheral_qualifier(const struct dev_nexus *n);
/* Why the port's access state forbids the command (NOT READY), or 0. */
uint16_t dev_inaccessible(const struct dev_task *t);
void dev_report_groups(struct dev_task *t);
int dev_prepare_set_groups(struct dev_task *t, uint64_t *out_len);
void dev_set_groups(struct dev_task *t);
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

/* ---- attention.c ---- */

/*
 * dev_tell_all: tell is called for every nexus of lu's server, on its worker;
 * then goes on with t, if there is one, once all were told. False: no memory,
 * nobody is told.
 */
typedef void dev_tell(struct dev_nexus *n, const struct dev_lu *lu,
		      unsigned what, bool is_except);
bool dev_tell_all(struct dev_lu *lu, unsigned here,
		  const struct dev_nexus *except, dev_tell *tell, unsigned what,
		  struct dev_task *t, void (*then)(struct dev_task *t));

/* For every nexus of t's unit; soon. */
void dev_attention_all(struct dev_task *t, enum dev_ua ua);
/* For every nexus of t's unit but its own; then goes on with t, once all of
 * them have it: what they do next can't come before. */
void dev_attention_others(struct dev_task *t, enum dev_ua ua,
			  void (*then)(struct dev_task *t));
/* For every nexus of the unit but one. */
void dev_attention_unit(struct dev_lu *lu, unsigned worker,
			const struct dev_nexus *except, enum dev_ua ua);
void dev_attention_set(struct dev_nexus *n, uint16_t lun, enum dev_ua ua);
/* The first pending one, taken off: fills *s, returns 1 + which; 0: none. */
unsigned dev_attention_take(struct dev_nexus *n, uint16_t lun,
			    struct scsi_sense *s);
void dev_attention_put_back(struct dev_task *t);

#endif
