/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * device.h: the SCSI device server (SPC-4, SBC-3): logical units over
 * backstores, and what all units of a target share, for the daemon that adds and
 * changes them. The device does not depend on iSCSI: the target passes CDBs to it
 * and gets data, status and sense data (task.h).
 *
 * Threads: a logical unit is shared by all workers, which send each other messages
 * by dev_env.post.
 */
#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H

#include "base/err.h"
#include "base/list.h"
#include "device/env.h"
#include "device/identity.h"

struct bs;
struct pass;

/* ---- the records of units ---- */

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
/* dev_lu_get returns the unit with this number, or NULL. */
struct dev_lu *dev_lu_get(struct dev_server *s, uint16_t lun);
/* dev_lu_backstore returns the backstore, borrowed. The backstore of a
 * passthrough unit has a name and a UUID, but no blocks. The backstore of a
 * DEV_CD may be used on worker 0 only, and is NULL without a medium. */
struct bs *dev_lu_backstore(const struct dev_lu *lu);
/* dev_lu_write_cache returns WCE of the caching mode page: whether writes may be
 * volatile at their end. Any worker. */
bool dev_lu_write_cache(const struct dev_lu *lu);
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

#endif
