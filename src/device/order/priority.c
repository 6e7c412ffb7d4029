/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * priority.c: command priorities (SAM-5 §8.7): REPORT PRIORITY, SET PRIORITY
 * (SPC-4 §§6.34, 6.44). A SIMPLE command has a priority of its own (RFC 7144
 * §5.1.1), or the priority of its nexus at the unit, or the initial priority of
 * the control extension mode page. The priority decides the order in which waiting
 * commands are enabled (taskset.c).
 *
 * A priority set by SET PRIORITY outlives the nexus. So each lane has a list of
 * priorities by the names of the ports, and a change visits every worker.
 */
#include <stdlib.h>
#include <string.h>

#include "device/order/taskset.h"
#include "device/unit/attention.h"
#include "scsi/transportid.h"

#define LIST_LEN    8u	 /* without the TransportID */
#define MOST	    64u	 /* priorities of one unit */
#define SHARE	    24u	 /* priorities that one initiator may set */
#define NOT_GIVEN   8u	 /* the default, between 1 (the highest) and 15 */
#define THIS_NEXUS  0x00 /* I_T_L NEXUS TO SET, PRIORITY REPORTED */
#define OTHER_NEXUS 0x40
#define EVERY_NEXUS 0x80
#define ALL_SET	    0x40

/* The priority of one nexus; each worker has a copy. */
struct assigned {
	struct list link; /* dev_lane.priorities */
	uint16_t port;
	uint8_t priority;
	char name[SCSI_PORT_NAME_MAX + 1];
	char by[SCSI_DEVICE_NAME_MAX + 1]; /* the initiator that set it */
};

unsigned dev_priority(const struct dev_task *t)
{
	unsigned p = t->priority;

	if (!p)
		p = t->own.begun.itl->priority;
	if (!p)
		p = DEV_CTL(t->lu, initial_priority);
	return p ? p : NOT_GIVEN;
}

/* ---- the priorities of one worker ---- */

static struct assigned *find(struct dev_lane *lane, const char *name,
			     uint16_t port)
{
	list_for_each(it, &lane->priorities) {
		struct assigned *a = list_entry(it, struct assigned, link);

		if (a->port == port && !strcmp(a->name, name))
			return a;
	}
	return NULL;
}

/* count returns the number of priorities that the initiator `by` set; NULL: all. */
static unsigned count(const struct dev_lane *lane, const char *by)
{
	unsigned n = 0;

	list_for_each(it, &lane->priorities)
		n += !by ||
		     !strcmp(list_entry(it, struct assigned, link)->by, by);
	return n;
}

void dev_priorities_forget(struct dev_lu *lu, unsigned worker)
{
	struct list *it;

	while ((it = list_pop_front(&lu->lanes[worker].priorities)))
		free(list_entry(it, struct assigned, link));
	list_for_each(jt, &lu->lanes[worker].itls)
		list_entry(jt, struct dev_itl, link)->priority = 0;
}

void dev_itl_priority_init(struct dev_itl *i)
{
	const struct dev_nexus_config *cfg = &i->nexus->cfg;
	const struct assigned *a =
		find(&i->lu->lanes[cfg->worker], cfg->initiator_port,
		     cfg->relative_target_port);

	if (a)
		i->priority = a->priority;
}

/* ---- REPORT PRIORITY ---- */

static size_t put_descriptor(uint8_t *p, uint8_t priority, uint16_t port,
			     const char *name)
{
	size_t id = scsi_transportid_put(name, p + 8);

	p[0] = priority;
	put_be16(p + 2, port);
	put_be16(p + 6, (uint16_t)id);
	return 8 + id;
}

void dev_report_priority(struct dev_task *t)
{
	const struct dev_nexus *n = t->nexus;
	struct dev_lane *lane = &t->lu->lanes[n->cfg.worker];
	size_t most = 4 + (MOST + 1) * (8 + SCSI_TRANSPORTID_MAX), at = 4;
	uint8_t *p;

	if (t->cdb[2] & 0x80) {
		dev_bad_field(t, 2, 7);
		return;
	}
	if (!dev_buf(t, most))
		return;
	p = t->own.mem.buf;
	memset(p, 0, most);
	if (t->cdb[2] == ALL_SET)
		list_for_each(it, &lane->priorities) {
			const struct assigned *a =
				list_entry(it, struct assigned, link);

			at += put_descriptor(p + at, a->priority, a->port,
					     a->name);
		}
	else
		at += put_descriptor(p + at, t->own.begun.itl->priority,
				     n->cfg.relative_target_port,
				     n->cfg.initiator_port);
	put_be32(p, (uint32_t)(at - 4));
	dev_return(t, at, get_be32(t->cdb + 6));
}

/* ---- SET PRIORITY ---- */

struct setting {
	struct dev_round round;
	struct dev_task *task;
	const struct dev_nexus *asker; /* compared only */
	uint8_t which, priority;
	bool refused; /* the first worker found that a limit is exceeded */
	uint16_t port;
	char name[SCSI_PORT_NAME_MAX + 1];
	char by[SCSI_DEVICE_NAME_MAX + 1];
	struct assigned *copies[]; /* one per worker; NULL: in its list */
};

static void setting_free(struct setting *s, unsigned nworkers)
{
	for (unsigned i = 0; i < nworkers; i++)
		free(s->copies[i]);
	free(s);
}

static void keep(struct setting *s, struct dev_lane *lane, unsigned worker)
{
	struct assigned *a = find(lane, s->name, s->port);

	if (a && !s->priority) {
		list_del(&a->link);
		free(a);
	} else if (a) {
		a->priority = s->priority;
	} else if (s->priority) {
		list_push_back(&lane->priorities, &s->copies[worker]->link);
		s->copies[worker] = NULL;
	}
}

/* The first worker decides, so that changes from several workers cannot exceed the
 * limits together. */
static bool is_one_too_many(const struct setting *s, struct dev_lane *lane)
{
	return s->which != EVERY_NEXUS && s->priority &&
	       (count(lane, NULL) >= MOST || count(lane, s->by) >= SHARE) &&
	       !find(lane, s->name, s->port);
}

static bool is_meant(const struct setting *s, const struct dev_nexus *n)
{
	return s->which == EVERY_NEXUS ||
	       (n->cfg.relative_target_port == s->port &&
		!strcmp(n->cfg.initiator_port, s->name));
}

static void visit(struct dev_round *r, unsigned worker)
{
	struct setting *s = container_of(r, struct setting, round);
	struct dev_lu *lu = s->task->lu;

	if (worker == 0)
		s->refused = is_one_too_many(s, &lu->lanes[worker]);
	if (s->refused) {
		dev_round_next(r);
		return;
	}
	if (s->which == EVERY_NEXUS)
		dev_priorities_forget(lu, worker);
	else
		keep(s, &lu->lanes[worker], worker);
	list_for_each(it, &lu->lanes[worker].itls) {
		struct dev_itl *i = list_entry(it, struct dev_itl, link);

		if (!is_meant(s, i->nexus))
			continue;
		i->priority = s->priority;
		if (i->nexus != s->asker)
			dev_attention_set(i, UA_PRIORITY_CHANGED);
	}
	dev_round_next(r);
}

static void visited(struct dev_round *r)
{
	struct setting *s = container_of(r, struct setting, round);
	struct dev_task *t = s->task;
	bool refused = s->refused;

	setting_free(s, r->server->env.nworkers);
	if (refused)
		dev_check(t, SENSE_ILLEGAL_REQUEST, ASC_INSUFFICIENT_RESOURCES);
	else
		dev_good(t);
}

static struct setting *setting_new(struct dev_task *t)
{
	unsigned n = t->lu->server->env.nworkers;
	struct setting *s = calloc(1, sizeof(*s) + n * sizeof(s->copies[0]));

	for (unsigned i = 0; s && i < n; i++) {
		s->copies[i] = calloc(1, sizeof(*s->copies[i]));
		if (!s->copies[i]) {
			setting_free(s, n);
			s = NULL;
		}
	}
	if (!s) {
		dev_no_resources(t);
		return NULL;
	}
	s->round = (struct dev_round){ .server = t->lu->server,
				       .visit = visit,
				       .done = visited };
	s->task = t;
	s->asker = t->nexus;
	s->which = t->cdb[2];
	return s;
}

/* take_nexus copies the nexus of the parameter list to s; false: take_nexus ended
 * t. */
static bool take_nexus(struct dev_task *t, struct setting *s)
{
	const struct dev_nexus *n = t->nexus;
	const uint8_t *p = t->own.mem.buf;
	size_t used;

	scsi_port_device(n->cfg.initiator_port, s->by);
	s->port = n->cfg.relative_target_port;
	memcpy(s->name, n->cfg.initiator_port,
	       strnlen(n->cfg.initiator_port, SCSI_PORT_NAME_MAX));
	if (s->which == EVERY_NEXUS)
		return true;
	s->priority = p[0] & 0x0f;
	if (s->which == THIS_NEXUS)
		return true;
	s->port = get_be16(p + 2);
	if (scsi_transportid_get(p + LIST_LEN, t->out_len - LIST_LEN, s->name,
				 &used)) {
		dev_bad_parameter(t, LIST_LEN);
		return false;
	}
	return true;
}

/* is_cut returns whether the list is shorter than the fields that I_T_L NEXUS TO
 * SET requires (table 325). */
static bool is_cut(const struct dev_task *t)
{
	const uint8_t *p = t->own.mem.buf;

	if (t->cdb[2] == EVERY_NEXUS)
		return false;
	if (t->cdb[2] == THIS_NEXUS)
		return t->out_len < 1;
	return t->out_len < LIST_LEN ||
	       t->out_len - LIST_LEN < get_be16(p + 6) ||
	       t->out_len == LIST_LEN;
}

static void copy_out(struct setting *s, unsigned nworkers)
{
	for (unsigned i = 0; i < nworkers; i++) {
		s->copies[i]->port = s->port;
		s->copies[i]->priority = s->priority;
		memcpy(s->copies[i]->name, s->name, sizeof(s->name));
		memcpy(s->copies[i]->by, s->by, sizeof(s->by));
	}
}

void dev_set_priority(struct dev_task *t)
{
	unsigned n = t->lu->server->env.nworkers;
	struct setting *s;

	if (is_cut(t)) {
		dev_bad_length(t);
		return;
	}
	s = setting_new(t);
	if (!s)
		return;
	if (!take_nexus(t, s)) {
		setting_free(s, n);
		return;
	}
	copy_out(s, n);
	dev_round_start(&s->round, t->nexus->cfg.worker);
}

int dev_prepare_set_priority(struct dev_task *t, uint64_t *out_len)
{
	uint32_t len = get_be32(t->cdb + 6);

	if (t->cdb[2] > EVERY_NEXUS) /* 11b */
		return dev_bad_field(t, 2, 7);
	if (len > LIST_LEN + SCSI_TRANSPORTID_MAX + 256)
		return dev_bad_length(t);
	if (len == 0 && t->cdb[2] != EVERY_NEXUS)
		return dev_bad_length(t);
	*out_len = len;
	return 0;
}
