/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * device.h: the SCSI device server (SPC-4, SBC-3): logical units over
 * backstores, their tasks, and what all units of a target share. The device
 * does not depend on iSCSI: the target passes CDBs to it and gets data, status
 * and sense data.
 *
 * Threads: a dev_task and its nexus belong to one worker. A logical unit is
 * shared by all workers, which send each other messages by dev_env.post.
 */
#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H

#include "backstore/request.h"
#include "base/bufv.h"
#include "base/err.h"
#include "base/list.h"
#include "base/xtime.h"
#include "device/identity.h"
#include "device/pass.h"
#include "device/share.h"

struct bs;
struct dev_server; /* the logical units of the process, and its target ports */
struct dev_lu;
struct dev_itl;
struct dev_map;
struct dev_nexus;
struct dev_task;

/* ---- the services of the process ---- */

struct dev_msg {
	void (*run)(struct dev_msg *m);
	struct dev_msg *next;
};

/* The records of a unit that survive a power loss; each is saved by itself. */
enum dev_kept {
	DEV_KEPT_RESERVATIONS, /* persistent reservations (SPC-4 §5.13.5) */
	/* saved mode pages, identifying information, SANITIZE or FORMAT UNIT in
	 * progress */
	DEV_KEPT_UNIT,
	DEV_KEPT_KINDS,
};

struct dev_save {
	struct list link; /* private to dev_env.save */
	struct dev_lu *lu;
	enum dev_kept kind;
	unsigned worker;
	const uint8_t *data; /* borrowed until `done` */
	size_t len;	     /* 0: delete the record */
	/* of a unit with .clustered: what the nexuses of other gateways have to learn
	 * (dev_adoption.events); borrowed until `done`; len 0: nothing */
	const uint8_t *event;
	size_t event_len;
	/* 0, or why nothing was saved. With .clustered also: ERR_AGAIN: another gateway
	 * has changed the state, and dev_lu_adopt was called with the new one; the
	 * change is decided again after it. ERR_TERMINATED: this gateway was fenced;
	 * the command is not answered. */
	int result;
	void (*done)(struct dev_save *s);
};

struct dev_refresh;
struct dev_regroup;

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

/* ---- units ---- */

/* The type of a unit, which decides on its commands, pages and data (table.c). */
enum dev_type {
	DEV_DISK, /* direct access block device, SBC-3 */
	DEV_CD,	  /* CD/DVD device, MMC-6: 2,048-byte blocks, read only */
	DEV_NTYPES,
};

/* How many commands that use blocks, and how many bytes of their data, a unit executes
 * in a second; 0: no limit. The bursts are what may come at once after a pause: the
 * amount of two milliseconds at least; 0: of a tenth of a second. */
struct dev_limits {
	uint64_t ops, ops_burst;
	uint64_t bytes, bytes_burst;
};

struct dev_lu_config {
	/* The number of the unit in the server, below 16,384; the LUN for a
	 * nexus without a map. */
	uint16_t lun;
	enum dev_type type;
	bool read_only;
	bool rotational; /* VPD B1h */
	bool removable;	 /* the medium can be ejected */
	/* follows the standard where most targets differ from it */
	bool strict;
	/* The most bytes per second that SANITIZE OVERWRITE writes; 0: no
	 * limit. */
	uint64_t erase_rate;
	/* WCE is 0 and cannot be changed: each write is durable at its end */
	bool write_through;
	struct dev_limits limits;
	/* the unit has records (dev_env.save), so APTPL and saved mode pages */
	bool keeps;
	/* several gateways share the unit (shared.h): it has records and target port
	 * groups of its own */
	bool clustered;
	/* INQUIRY data, padded with spaces; empty: the default */
	char vendor[9], product[17], revision[5];
	/* VPD 80h, 83h; empty: dev_names_make */
	char serial[DEV_SERIAL_SIZE];
	struct dev_id naa, eui;
	uint8_t uuid[16]; /* of the unit; all zero: the UUID of the backstore */
	char name[65]; /* as the administrator names the unit, for messages */
};

/* dev_server_new returns a device without units. env is copied, what its
 * pointers point to is borrowed. max_transfer: the most bytes one command
 * may transfer (VPD B0h). NULL: no memory, or too many workers. */
struct dev_server *dev_server_new(const struct dev_env *env,
				  uint32_t max_transfer);
/* dev_server_resume continues the erasures that an earlier process did not
 * complete, from the records of dev_lu_restore. After all units were added,
 * on worker 0. */
void dev_server_resume(struct dev_server *s);
/* dev_lu_resume does that for one unit, which was added and restored later. On worker
 * 0. */
void dev_lu_resume(struct dev_lu *lu);
/*
 * dev_server_stop ends background work (SANITIZE, FORMAT UNIT) soon;
 * dev_server_is_busy returns whether some is still in progress.
 */
void dev_server_stop(struct dev_server *s);
bool dev_server_is_busy(const struct dev_server *s);
/* dev_server_free frees s and its units, and closes the backstores. The
 * caller has ended all background work, nexuses and tasks. */
void dev_server_free(struct dev_server *s);

/* dev_lu_add adds a unit over the backstore b, which the device then owns; at any
 * time, on worker 0. While nexuses exist, those without a map get the unit soon, after
 * the calling turn, with REPORTED LUNS DATA HAS CHANGED at their other units. b
 * NULL: a DEV_CD without a medium. ERR_BUSY: the number is in use; ERR_RANGE:
 * the number is above 16,383 (flat addressing of SAM-5); ERR_UNSUPPORTED: .clustered
 * with another type than DEV_DISK or with protection information, or without the
 * functions of dev_env that it needs; ERR_NOMEM. After an error the caller still owns b. */
int dev_lu_add(struct dev_server *s, const struct dev_lu_config *cfg,
	       struct bs *b);
/* dev_lu_add_pass adds a passthrough unit, whose commands the real device p
 * executes; the device then owns p. Errors as of dev_lu_add. Uses lun, name,
 * read_only, keeps and limits of cfg. */
int dev_lu_add_pass(struct dev_server *s, const struct dev_lu_config *cfg,
		    struct pass *p);
/*
 * dev_lu_remove ends the unit: it has no number any more, its tasks are aborted, and its
 * erasure, tokens and copies end (an erasure with a record continues when the unit is
 * added again). No map in use has the unit. Nexuses without a map get REPORTED LUNS DATA
 * HAS CHANGED at their other units. Calls done on worker 0, never from within, after the
 * backstore was flushed (err: the result of that) and closed. On worker 0. ERR_BUSY: the
 * unit is being removed already; ERR_NOMEM.
 */
int dev_lu_remove(struct dev_lu *lu, void (*done)(void *arg, int err),
		  void *arg);
/*
 * dev_lu_configure changes read_only, rotational, write_through, limits, vendor, product,
 * revision, serial, naa and eui of the unit to those of cfg, whose other members are ignored. Every
 * nexus of the unit gets INQUIRY DATA HAS CHANGED, MODE PARAMETERS CHANGED or both.
 * Calls done, maybe from within, when they have. On worker 0. ERR_NOMEM: nothing was
 * done; ERR_BUSY: such a change is in progress, or the unit is being removed.
 */
int dev_lu_configure(struct dev_lu *lu, const struct dev_lu_config *cfg,
		     void (*done)(void *arg), void *arg);
/* dev_lu_get returns the unit with this number, or NULL. dev_lu_from returns the first
 * unit whose number is not below `lun`, or NULL. */
struct dev_lu *dev_lu_get(struct dev_server *s, uint16_t lun);
struct dev_lu *dev_lu_from(struct dev_server *s, unsigned lun);
/* dev_lu_lun returns the number of the unit. */
uint16_t dev_lu_lun(const struct dev_lu *lu);
/* dev_lu_name returns dev_lu_config.name, borrowed, for messages; on any worker. */
const char *dev_lu_name(const struct dev_lu *lu);
/* dev_lu_backstore returns the backstore, borrowed. The backstore of a
 * passthrough unit has a name and a UUID, but no blocks. The backstore of a
 * DEV_CD may be used on worker 0 only, and is NULL without a medium. */
struct bs *dev_lu_backstore(const struct dev_lu *lu);
/* dev_lu_write_cache returns WCE of the caching mode page: whether writes may be
 * volatile at their end. Any worker. */
bool dev_lu_write_cache(const struct dev_lu *lu);
/* dev_lu_store_name returns the name of the backstore, borrowed, for messages,
 * on any worker; NULL for a DEV_CD, where worker 0 may close the backstore at
 * any time. */
const char *dev_lu_store_name(const struct dev_lu *lu);
enum dev_type dev_lu_type(const struct dev_lu *lu); /* lu NULL: DEV_DISK */
/* dev_is_locked returns whether an initiator prevents the removal of the
 * medium (PREVENT ALLOW MEDIUM REMOVAL). */
bool dev_is_locked(const struct dev_lu *lu);

/*
 * dev_lu_change_medium makes b (read-only, with blocks of the same size) the
 * medium of a DEV_CD, which then owns b; NULL: the drive becomes empty. The
 * previous medium is closed. Calls done, maybe from within, after the change,
 * when every nexus has its unit attention: the unit may be leaving then, but is not
 * freed before done returns. On worker 0. ERR_UNSUPPORTED:
 * another type of unit; ERR_FORMAT: b is not such a medium; ERR_BUSY: an
 * initiator prevents removal and has got a request to permit it (force: the
 * medium is changed nevertheless); ERR_AGAIN: a medium change is already in
 * progress; ERR_NOMEM. After an error the caller still owns b.
 */
int dev_lu_change_medium(struct dev_lu *lu, struct bs *b, bool force,
			 void (*done)(void *arg, int err), void *arg);

/*
 * dev_lu_restore reads a record that dev_env.save saved; in the same turn as
 * dev_lu_add, before a map has the unit. ERR_DATA_DIGEST, ERR_TRUNCATED, ERR_FORMAT, ERR_LIMIT: the record is
 * damaged; ERR_NOT_FOUND: the record belongs to another backstore; ERR_NOMEM.
 */
int dev_lu_restore(struct dev_lu *lu, enum dev_kept kind, const uint8_t *data,
		   size_t len);

/*
 * dev_lu_hand_over encodes the persistent reservations of the unit, also those
 * without APTPL, for another process that goes on with the same backstore. *bytes
 * is the caller's, from malloc; NULL with *len 0: there are none. After the last
 * nexus, or on worker 0 while no change is in progress. ERR_NOMEM.
 * dev_lu_take_over puts them in force there; before the first nexus; errors as of
 * dev_lu_restore.
 */
int dev_lu_hand_over(const struct dev_lu *lu, uint8_t **bytes, size_t *len);
int dev_lu_take_over(struct dev_lu *lu, const uint8_t *bytes, size_t len);

/* dev_lu_lose_reservations: call it if the record of the reservations cannot
 * be read: the unit refuses most commands until REPLACE LOST RESERVATION
 * (SPC-4 §5.13.5.3). At the time of dev_lu_restore, on a unit with .keeps. */
void dev_lu_lose_reservations(struct dev_lu *lu);

/* The reservations of a unit, for the administrator. Names are borrowed for
 * the call. */
struct dev_registration {
	const char *initiator_port;
	uint16_t target_port;
	uint64_t key;
	bool holds;
};

struct dev_reservation {
	const char *type;     /* "Write Exclusive"; NULL: none */
	const char *reserved; /* initiator port of RESERVE(6/10), or NULL */
	uint32_t generation;
	bool aptpl;
	bool lost; /* dev_lu_lose_reservations */
};

/* dev_lu_reservation fills *r; dev_lu_registrations calls fn for each
 * registration. On worker 0. */
void dev_lu_reservation(const struct dev_lu *lu, struct dev_reservation *r);
void dev_lu_registrations(const struct dev_lu *lu,
			  void (*fn)(void *arg,
				     const struct dev_registration *r),
			  void *arg);

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

/* dev_port_remember reserves the identifier that a port had in an earlier process, since
 * persistent registrations name ports by their identifiers: dev_port_add gives it to the
 * port of this name only. Before the first dev_port_add. ERR_BUSY: the name has
 * another identifier, or the identifier another name; ERR_RANGE: identifier 0; ERR_TOO_LONG; ERR_NOMEM. dev_ports_each
 * calls fn for each port that was added or reserved, on worker 0. */
int dev_port_remember(struct dev_server *s, const char *name, uint16_t rtpi);
void dev_ports_each(const struct dev_server *s,
		    void (*fn)(void *arg, const char *name, uint16_t rtpi),
		    void *arg);

/* dev_server_first_port sets the smallest identifier of a new port (1); before the
 * first dev_port_add. */
void dev_server_first_port(struct dev_server *s, uint16_t rtpi);

/*
 * dev_lu_resize changes the size of a disk's backstore to size bytes; 0: adopts
 * the size that the backstore has now. If the capacity changes, every nexus gets
 * CAPACITY DATA HAS CHANGED. Calls done, maybe from within, after that; the unit is
 * not freed before done returns, though it may be leaving. On worker 0. ERR_UNSUPPORTED: the backstore has a fixed size; ERR_RANGE: not a whole number
 * of blocks; ERR_DENIED: smaller, and not forced; ERR_BUSY: the unit is not ready;
 * ERR_NOMEM.
 */
int dev_lu_resize(struct dev_lu *lu, uint64_t size, bool force,
		  void (*done)(void *arg, int err), void *arg);

/* dev_lu_flush_failed returns whether a flush of the unit's backstore
 * failed, and no flush has succeeded since blocks were written again.
 * dev_lu_flush_forget ends that state; a nexus whose writes may be lost
 * still gets its error. Any worker. */
bool dev_lu_flush_failed(const struct dev_lu *lu);
void dev_lu_flush_forget(struct dev_lu *lu);

/* ---- target port groups (ALUA, SPC-4 §5.11) ---- */

#define DEV_MAX_GROUPS	16
#define DEV_GROUP_PORTS 16
#define DEV_MAX_OFFLINE 16

enum dev_access { /* SPC-4 table 307 */
	DEV_ACCESS_OPTIMIZED,
	DEV_ACCESS_NON_OPTIMIZED,
	DEV_ACCESS_STANDBY,
	DEV_ACCESS_UNAVAILABLE,
	/* secondary state: of a port, not of a group */
	DEV_ACCESS_OFFLINE = 0xe,
	DEV_ACCESS_TRANSITIONING = 0xf,
};

struct dev_group {
	uint16_t id; /* not 0 */
	enum dev_access state;
	bool preferred;
	uint8_t status; /* 0: not changed yet; 1, 2: SPC-4 table 265 */
	unsigned nports;
	/* relative target ports of this and of other daemons with the same
	 * units */
	uint16_t ports[DEV_GROUP_PORTS];
};

struct dev_group_change {
	uint16_t id;
	enum dev_access state;
	bool set_preferred, preferred;
};

/* dev_group_add adds a target port group; with the first one the device has ALUA.
 * Before the first nexus. ERR_BUSY: the id or a port is taken; ERR_LIMIT; ERR_NOMEM. */
int dev_group_add(struct dev_server *s, const struct dev_group *g);
/* dev_groups copies the groups; returns their number. On worker 0. */
unsigned dev_groups(const struct dev_server *s,
		    struct dev_group out[DEV_MAX_GROUPS]);
/* dev_offline_ports copies the target ports that are offline; returns their
 * number. On worker 0. */
unsigned dev_offline_ports(const struct dev_server *s,
			   uint16_t out[DEV_MAX_OFFLINE]);
/*
 * dev_port_set sets whether a target port of another daemon on the same
 * backstore is offline (SPC-4 §5.16.2.4.6). done and errors as of
 * dev_group_set, and ERR_UNSUPPORTED: a port of this daemon; ERR_LIMIT.
 */
int dev_port_set(struct dev_server *s, uint16_t port, bool offline,
		 void (*done)(void *arg, int err), void *arg);
/* A group as the configuration has it. */
struct dev_group_wish {
	struct dev_group group;
	/* of a group that exists already: else it keeps its state and preference, which
	 * an initiator or dev_group_set may have changed */
	bool set_state, set_preferred;
};
/*
 * dev_groups_replace makes these n groups the only ones: others are removed, new ones are
 * added. done and errors as of dev_group_set; with the first group the device gets ALUA,
 * without any it has none. Ids and ports are different, n is at most DEV_MAX_GROUPS. The
 * array is copied.
 */
int dev_groups_replace(struct dev_server *s,
		       const struct dev_group_wish *wishes, unsigned n,
		       void (*done)(void *arg, int err), void *arg);
/* dev_groups_check returns ERR_BUSY if dev_groups_replace would fail now because of a
 * SANITIZE, ERR_NOMEM, or 0. On worker 0. */
int dev_groups_check(struct dev_server *s, const struct dev_group_wish *wishes,
		     unsigned n);
/*
 * dev_group_set changes a group's state. Calls done, maybe from within, when the
 * state is in force on every worker and every nexus has its unit attention. If the
 * change takes access away, done also waits until every command admitted before has
 * finished; until then the group is transitioning. On worker 0. ERR_NOT_FOUND,
 * returned or given to done: no such group; ERR_NOMEM: nothing has changed. ERR_BUSY:
 * SANITIZE, which cannot be stopped, is writing to a unit.
 */
int dev_group_set(struct dev_server *s, const struct dev_group_change *c,
		  void (*done)(void *arg, int err), void *arg);

/* ---- LUN maps: the units that a nexus can access ---- */

struct dev_map_entry {
	uint16_t lun; /* for the nexus */
	struct dev_lu *lu;
	bool read_only; /* for the nexus */
};

/* dev_map_new makes a map of n entries, which are copied. Maps are immutable and
 * counted: the caller releases *map by dev_map_put. The units must outlive the map.
 * ERR_BUSY: a LUN or a unit occurs twice; ERR_RANGE: a LUN above 16,383; ERR_NOMEM. */
int dev_map_new(struct dev_server *s, const struct dev_map_entry *e, unsigned n,
		struct dev_map **map);
/* dev_map_get counts one more user of m and returns m; dev_map_put releases one, and
 * frees m with the last. On any worker; NULL: no effect. */
struct dev_map *dev_map_get(struct dev_map *m);
void dev_map_put(struct dev_map *m);
/* dev_map_has returns whether a nexus with the map m (NULL: every unit) can access the
 * unit. dev_map_equal returns whether two maps, or NULL, give the same access. */
bool dev_map_has(const struct dev_map *m, const struct dev_lu *lu);
bool dev_map_equal(const struct dev_map *a, const struct dev_map *b);

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

/* Task attributes, as iSCSI numbers them (RFC 7143 §11.3.1). */
enum dev_attr {
	DEV_ATTR_UNTAGGED,
	DEV_ATTR_SIMPLE,
	DEV_ATTR_ORDERED,
	DEV_ATTR_HEAD_OF_QUEUE,
	DEV_ATTR_ACA, /* larger values are refused */
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
	/* private to the device */
	const struct dev_flow *flow; /* for ending.c: how the task goes on */
	enum dev_task_state state;
	struct dev_lu *lu;
	const struct dev_command *row;
	uint64_t lba, blocks; /* of the CDB; the handler may change both */
	bool alone;	      /* needs exclusive access to the unit */
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
	/* order/: the state of the task in the task set */
	struct {
		struct list in_set; /* dev_nexus.tasks, until the task ends */
		struct list paced;  /* dev_lane.pace.waiting; rate.c */
		bool past_aca;	    /* an ACA does not block the task */
		/* set by the caller: see dev_task_in_turn; dev_task_execute
		 * follows dev_task_begin, and nothing else between them */
		bool early, at_once;
	} order;
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
