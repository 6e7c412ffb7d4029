/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reserve.c: how a change of a unit's reservations is decided and comes into
 * force on every worker (see reserve.h), and RESERVE and RELEASE of SPC-2.
 */
#include <stdlib.h>

#include "device/attention.h"
#include "device/condition.h"
#include "device/copy.h"
#include "device/handlers.h"
#include "device/keep.h"
#include "device/mode.h"
#include "device/reserve.h"
#include "device/table.h"
#include "device/taskset.h"

static void pump(struct dev_server *s);

static struct rsv_op *op_of(struct dev_msg *m)
{
	return container_of(container_of(m, struct dev_round, msg),
			    struct rsv_op, round);
}

/* ---- the end ---- */

static void came_back(struct dev_msg *m)
{
	struct rsv_op *op = op_of(m);

	op->done(op);
}

static void reply(struct rsv_op *op)
{
	dev_round_go(&op->round, RSV_HOME, op->from, came_back);
}

void rsv_op_free(struct rsv_op *op)
{
	free(op->out.names);
	free(op);
}

/* ---- in force: on each worker ---- */

bool rsv_is_due(const struct rsv_op *op, const struct dev_nexus *n)
{
	int i;

	if (op->sweep)
		return op->sweep == SWEEP_ALL || n == op->nexus;
	i = rsv_find_nexus(op->old, n);
	return i >= 0 && op->abort[i];
}

static void tell(const struct rsv_op *op, struct dev_nexus *n)
{
	uint16_t lun = op->lu->cfg.lun;
	int i = rsv_find_nexus(op->old, n);

	/* of a reset who asked for it hears, too (SAM-5 §6.3.3) */
	if (op->reset)
		dev_attention_set(n, lun, UA_BUS_DEVICE_RESET);
	if (n == op->nexus)
		return;
	if (i >= 0 && op->told[i])
		dev_attention_set(n, lun, (enum dev_ua)(op->told[i] - 1));
}

static void released_one(struct rsv_op *op)
{
	if (--op->pending == 0)
		dev_round_next(&op->round);
}

void dev_nexus_tasks_gone(struct dev_nexus *n)
{
	struct rsv_op *op = n->aborting;

	n->aborting = NULL;
	if (op)
		released_one(op);
}

/* A nexus of this worker whose tasks are still to be aborted. */
static struct dev_nexus *next_due(struct dev_server *s, unsigned worker)
{
	list_for_each(it, &s->nexuses[worker]) {
		struct dev_nexus *n = list_entry(it, struct dev_nexus, link);

		if (n->abort_due)
			return n;
	}
	return NULL;
}

/* To abort tasks may end a nexus: nothing is remembered meanwhile. */
static void abort_tasks(struct rsv_op *op, unsigned worker)
{
	struct dev_server *s = op->lu->server;
	struct dev_nexus *n;

	op->pending = 1;
	while ((n = next_due(s, worker))) {
		n->abort_due = false;
		if (!n->cfg.abort_tasks)
			continue;
		n->aborting = op;
		op->pending++;
		n->cfg.abort_tasks(n->cfg.arg, dev_lun_encode(op->lu->cfg.lun),
				   n == op->nexus ? op->task : NULL);
	}
	released_one(op);
}

static void visit(struct dev_round *r, unsigned worker)
{
	struct rsv_op *op = container_of(r, struct rsv_op, round);
	struct dev_lu *lu = op->lu;

	if (op->next)
		lu->rsv[worker] = op->next;
	if (op->reset && worker == RSV_HOME) {
		dev_mode_reset(lu);
		dev_removal_reset(lu);
		dev_power_wake(lu);
	}
	dev_aca_set_lane(op, worker);
	if (op->reset)
		dev_priorities_forget(lu, worker);
	list_for_each(it, &lu->server->nexuses[worker]) {
		struct dev_nexus *n = list_entry(it, struct dev_nexus, link);

		tell(op, n);
		if (op->reset)
			dev_copies_forget(n, lu);
		dev_aca_set(op, n);
		n->denied[lu->cfg.lun] = rsv_denied(lu->rsv[worker], n);
		n->abort_due = op->aborts && rsv_is_due(op, n);
	}
	abort_tasks(op, worker);
}

/* ---- decisions: on the home worker ---- */

static void op_finish(struct rsv_op *op)
{
	struct dev_server *s = op->lu->server;

	s->rsv_current = NULL;
	reply(op);
	pump(s);
}

static void visited_all(struct dev_round *r)
{
	struct rsv_op *op = container_of(r, struct rsv_op, round);

	if (op->next)
		rsv_free(op->old);
	op_finish(op);
}

/*
 * A command of a nexus whose tasks are being aborted can't wait for the end
 * of that abort, which waits for it: it ends BUSY, most often unheard.
 */
static bool must_not_wait(const struct rsv_op *current, const struct rsv_op *op)
{
	return current && current->aborts && op->task &&
	       op->lu == current->lu && rsv_is_due(current, op->nexus);
}

static void bounce(struct rsv_op *op)
{
	op->status = SCSI_BUSY;
	reply(op);
}

static void bounce_waiting(struct dev_server *s)
{
	list_for_each_safe(it, &s->rsv_waiting) {
		struct rsv_op *op = list_entry(it, struct rsv_op, link);

		if (!must_not_wait(s->rsv_current, op))
			continue;
		list_del(&op->link);
		bounce(op);
	}
}

static void publish(struct rsv_op *op)
{
	if (op->aborts)
		bounce_waiting(op->lu->server);
	op->round.visit = visit;
	op->round.done = visited_all;
	dev_round_start(&op->round, RSV_HOME);
}

/* ---- APTPL (SPC-4 §5.13.5): on the medium before it is in force ---- */

static bool is_kept(const struct rsv_state *s)
{
	return s->aptpl && s->n;
}

/* What can't be read stays on the medium as long as it is not made up for. */
static bool is_to_be_saved(const struct rsv_op *op)
{
	if (op->next->lost)
		return false;
	return is_kept(op->old) || op->old->lost || is_kept(op->next);
}

bool rsv_keeps(const struct dev_lu *lu)
{
	return dev_keeps(lu);
}

static void give_up(struct rsv_op *op, uint8_t key, uint16_t asc)
{
	rsv_check(op, key, asc);
	rsv_free(op->next);
	op->next = NULL;
	op_finish(op);
}

static void saved(struct dev_save *s)
{
	struct rsv_op *op = container_of(s, struct rsv_op, save);

	free(op->saved);
	op->saved = NULL;
	if (s->result)
		give_up(op, SENSE_HARDWARE_ERROR, ASC_INTERNAL_TARGET_FAILURE);
	else
		publish(op);
}

static void save(struct rsv_op *op)
{
	const struct dev_env *env = &op->lu->server->env;

	op->save = (struct dev_save){ .lu = op->lu,
				      .kind = DEV_KEPT_RESERVATIONS,
				      .worker = RSV_HOME,
				      .done = saved };
	if (is_kept(op->next)) {
		op->saved = malloc(rsv_encoded_max(op->next));
		if (!op->saved) {
			give_up(op, SENSE_ABORTED_COMMAND,
				ASC_INSUFFICIENT_RESOURCES);
			return;
		}
		op->save.data = op->saved;
		op->save.len =
			rsv_encode(op->next, op->lu->bs->uuid, op->saved);
	}
	env->save(env->arg, &op->save);
}

static void start(struct rsv_op *op)
{
	op->lu->server->rsv_current = op;
	op->old = op->lu->rsv[RSV_HOME];
	op->status = SCSI_GOOD;
	op->decide(op);
	if (op->status == SCSI_GOOD && op->aborts && !op->sweep)
		dev_aca_preempt(op);
	if (!op->next && !op->sweep && !op->aca)
		op_finish(op);
	else if (!op->next)
		publish(op);
	else if (is_to_be_saved(op))
		save(op);
	else
		publish(op);
}

static void pump(struct dev_server *s)
{
	struct list *n;

	if (s->rsv_pumping)
		return;
	s->rsv_pumping = true;
	while (!s->rsv_current && (n = list_pop_front(&s->rsv_waiting)))
		start(list_entry(n, struct rsv_op, link));
	s->rsv_pumping = false;
}

static void arrive(struct dev_msg *m)
{
	struct rsv_op *op = op_of(m);
	struct dev_server *s = op->lu->server;

	if (must_not_wait(s->rsv_current, op)) {
		bounce(op);
		return;
	}
	list_push_back(&s->rsv_waiting, &op->link);
	pump(s);
}

void rsv_op_start(struct rsv_op *op)
{
	list_init(&op->link);
	op->round.server = op->lu->server;
	dev_round_go(&op->round, op->from, RSV_HOME, arrive);
}

void rsv_conflict(struct rsv_op *op)
{
	op->status = SCSI_RESERVATION_CONFLICT;
}

void rsv_check(struct rsv_op *op, uint8_t key, uint16_t asc)
{
	op->status = SCSI_CHECK_CONDITION;
	op->sense = (struct scsi_sense){ .key = key, .asc = asc };
}

/* The next state, with room for more; NULL: the operation has failed. */
static struct rsv_state *change(struct rsv_op *op)
{
	op->next = rsv_copy(op->old, 0);
	if (!op->next)
		rsv_check(op, SENSE_ABORTED_COMMAND,
			  ASC_INSUFFICIENT_RESOURCES);
	return op->next;
}

/* ---- of commands ---- */

static void task_done(struct rsv_op *op)
{
	struct dev_task *t = op->task;
	struct scsi_sense sense = op->sense;
	uint8_t status = op->status;

	rsv_op_free(op);
	if (status == SCSI_CHECK_CONDITION)
		dev_sense(t, &sense);
	else
		dev_end(t, status);
}

struct rsv_op *rsv_op_new(struct dev_task *t, void (*decide)(struct rsv_op *))
{
	struct rsv_op *op = calloc(1, sizeof(*op));

	if (!op) {
		dev_no_resources(t);
		return NULL;
	}
	op->lu = t->lu;
	op->nexus = t->nexus;
	op->task = t;
	op->naca = dev_task_naca(t);
	op->from = t->nexus->cfg.worker;
	op->decide = decide;
	op->done = task_done;
	return op;
}

const struct rsv_state *rsv_now(const struct dev_task *t)
{
	return t->lu->rsv[t->nexus->cfg.worker];
}

/* ---- RESERVE, RELEASE (SPC-2 §5.5.1) ---- */

/*
 * With registrations there are no reservations of the old kind (SPC-4
 * §5.13.3, CRH = 1): who has a part in the persistent reservation is told
 * GOOD and nothing happens, everybody else gets a conflict.
 */
static bool old_kind(struct rsv_op *op)
{
	const struct rsv_state *s = op->old;
	int me = rsv_find_nexus(s, op->nexus);

	if (s->n == 0)
		return true;
	if (me < 0 || !s->type ||
	    (rsv_denied(s, op->nexus) & (RSV_WE | RSV_EA)))
		rsv_conflict(op);
	return false;
}

static void decide_reserve(struct rsv_op *op)
{
	if (!old_kind(op))
		return;
	if (op->old->spc2 && op->old->spc2 != op->nexus)
		rsv_conflict(op);
	else if (!op->old->spc2 && change(op))
		op->next->spc2 = op->nexus;
}

/* Whose it isn't gets GOOD, too: nothing is released. */
static void decide_release(struct rsv_op *op)
{
	if (!old_kind(op))
		return;
	if (op->old->spc2 == op->nexus && change(op))
		op->next->spc2 = NULL;
}

static void start_for(struct dev_task *t, void (*decide)(struct rsv_op *op))
{
	struct rsv_op *op = rsv_op_new(t, decide);

	if (op)
		rsv_op_start(op);
}

/* What a nexus gets this way it has to give back when it ends, memory or not:
 * the operation for that is made before. */
bool rsv_will_part(struct dev_nexus *n)
{
	if (!n->parting)
		n->parting = calloc(1, sizeof(*n->parting));
	return n->parting != NULL;
}

void dev_reserve(struct dev_task *t)
{
	struct dev_nexus *n = t->nexus;

	if (rsv_will_part(n))
		start_for(t, decide_reserve);
	else
		dev_no_resources(t);
}

void dev_release(struct dev_task *t)
{
	start_for(t, decide_release);
}

/* ---- LOGICAL UNIT RESET, I_T nexus loss ---- */

static void told_then(struct rsv_op *op)
{
	void (*then)(void *arg, int err) = op->then;
	int err = op->status == SCSI_GOOD ? 0 : ERR_NOMEM;
	void *arg = op->arg;

	rsv_op_free(op);
	then(arg, err);
}

/* SPC-4 §5.13.5: persistent reservations stay. Everybody is told. */
static void decide_reset(struct rsv_op *op)
{
	op->reset = true;
	op->aca = RSV_ACA_CLEAR;
	if (change(op))
		op->next->spc2 = NULL;
}

int dev_lu_reset_state(struct dev_lu *lu, unsigned worker,
		       void (*done)(void *arg, int err), void *arg)
{
	struct rsv_op *op = calloc(1, sizeof(*op));

	if (!op)
		return ERR_NOMEM;
	op->lu = lu;
	op->from = worker;
	op->decide = decide_reset;
	op->done = told_then;
	op->then = done;
	op->arg = arg;
	rsv_op_start(op);
	return 0;
}

static void part_next(struct dev_nexus *n);

static void decide_part(struct rsv_op *op)
{
	bool faulted = op->lu->lanes[RSV_HOME].faulted == op->nexus;

	op->aca = faulted ? RSV_ACA_CLEAR : RSV_ACA_KEEP;
	if (op->old->spc2 == op->nexus && change(op))
		op->next->spc2 = NULL;
}

static void try_again(struct dev_msg *m)
{
	rsv_op_start(op_of(m));
}

/* Nobody could ever release it but for a reset: without memory, again. */
static void parted_one(struct rsv_op *op)
{
	const struct dev_env *env = &op->lu->server->env;

	op->next = NULL;
	if (op->status == SCSI_GOOD) {
		part_next(op->nexus);
		return;
	}
	op->round.msg.run = try_again;
	env->post(env->arg, op->from, &op->round.msg);
}

/* One that it has reserved, or where its ACA hinders others. */
static struct dev_lu *reserved_unit(const struct dev_nexus *n)
{
	for (uint16_t lun = 0; lun < DEV_MAX_LUNS; lun++) {
		struct dev_lu *lu = dev_lu_get(n->server, lun);

		if (lu && (lu->rsv[n->cfg.worker]->spc2 == n ||
			   lu->lanes[n->cfg.worker].faulted == n))
			return lu;
	}
	return NULL;
}

static void part_next(struct dev_nexus *n)
{
	struct rsv_op *op = n->parting;
	struct dev_lu *lu = op ? reserved_unit(n) : NULL;

	n->is_parting = lu != NULL;
	if (!lu) {
		n->parted(n->parted_arg);
		return;
	}
	op->lu = lu;
	op->nexus = n;
	op->from = n->cfg.worker;
	op->decide = decide_part;
	op->done = parted_one;
	rsv_op_start(op);
}

void dev_nexus_part(struct dev_nexus *n, void (*done)(void *arg), void *arg)
{
	n->parted = done;
	n->parted_arg = arg;
	if (!n->is_parting) /* else it is under way, for somebody who went */
		part_next(n);
}

void dev_nexus_free(struct dev_nexus *n)
{
	list_del(&n->link);
	free(n->parting);
	free(n);
}

static void closed(void *arg)
{
	struct dev_nexus *n = arg;

	n->is_closed = true;
	if (!n->is_waking && !n->nclearing)
		dev_nexus_free(n);
}

void dev_nexus_close(struct dev_nexus *n)
{
	list_del(&n->link);
	dev_removal_nexus_gone(n);
	for (unsigned i = 0; i < DEV_COPIES; i++) {
		dev_token_put(n->copies[i].token);
		n->copies[i].token = NULL;
	}
	free(n->echo);
	n->echo = NULL;
	list_push_back(&n->server->closing[n->cfg.worker], &n->link);
	dev_nexus_tasks_gone(n);
	dev_nexus_part(n, closed, n);
}

/* ---- what is denied ---- */

/* Rows of SBC-3 table 13 that a CDB's field divides. */
static bool is_exempt(const uint8_t *cdb)
{
	if (cdb[0] == SCSI_START_STOP_UNIT) /* START, no POWER CONDITION */
		return (cdb[4] & 0xf1) == 0x01;
	return cdb[0] == SCSI_PREVENT_ALLOW && !(cdb[4] & 0x03);
}

bool dev_denied_at(const struct dev_nexus *n, const struct dev_lu *lu,
		   unsigned columns)
{
	return (n->denied[lu->cfg.lun] & columns & RSV_ALL) != 0;
}

/* SPC-4 §5.13.5.3.2, and the list of §5.13.5.2; INQUIRY and the like do not
 * come this far. */
bool dev_denied_by_loss(const struct dev_task *t)
{
	if (!(t->nexus->denied[t->lu->cfg.lun] & RSV_LOST))
		return false;
	if (t->row->op == SCSI_START_STOP_UNIT)
		return (t->cdb[4] & 0xf1) != 0x01;
	return !(t->row->flags & (RSV_LOST_TOO | CMD_ANY_LUN));
}

bool dev_denied(const struct dev_task *t)
{
	unsigned columns = t->row->flags & RSV_ALL;

	return columns && dev_denied_at(t->nexus, t->lu, columns) &&
	       !(t->nexus->denied[t->lu->cfg.lun] & RSV_LOST) &&
	       !is_exempt(t->cdb);
}

/* ---- units, nexuses, the end ---- */

void dev_lu_reservations_init(struct dev_lu *lu)
{
	for (unsigned w = 0; w < DEV_MAX_WORKERS; w++)
		lu->rsv[w] = &rsv_none;
}

int dev_lu_restore(struct dev_lu *lu, enum dev_kept kind, const uint8_t *data,
		   size_t len)
{
	struct rsv_state *s;
	int err;

	if (kind == DEV_KEPT_UNIT)
		return dev_keep_restore(lu, data, len);
	err = rsv_decode(data, len, lu->bs->uuid, &s);

	if (err)
		return err;
	rsv_free(lu->rsv[RSV_HOME]);
	for (unsigned w = 0; w < DEV_MAX_WORKERS; w++)
		lu->rsv[w] = s;
	return 0;
}

void dev_lu_lose_reservations(struct dev_lu *lu)
{
	for (unsigned w = 0; w < DEV_MAX_WORKERS; w++)
		lu->rsv[w] = &rsv_lost;
}

void dev_nexus_reservations_init(struct dev_nexus *n)
{
	for (uint16_t lun = 0; lun < DEV_MAX_LUNS; lun++) {
		const struct dev_lu *lu = dev_lu_get(n->server, lun);

		if (lu)
			n->denied[lun] = rsv_denied(lu->rsv[n->cfg.worker], n);
	}
}

/* All threads have ended: what was still on its way won't arrive. */
static void forget(struct rsv_op *op)
{
	free(op->saved);
	if (op->next && op->next != op->lu->rsv[RSV_HOME])
		rsv_free(op->next);
	else if (op->next)
		rsv_free(op->old);
	if (op->then)
		rsv_op_free(op);
}

void dev_server_reservations_fini(struct dev_server *s)
{
	struct list *it;

	if (s->rsv_current)
		forget(s->rsv_current);
	while ((it = list_pop_front(&s->rsv_waiting)))
		forget(list_entry(it, struct rsv_op, link));
	for (unsigned w = 0; w < s->env.nworkers; w++)
		while ((it = s->closing[w].next) != &s->closing[w])
			dev_nexus_free(list_entry(it, struct dev_nexus, link));
	for (unsigned i = 0; i < DEV_MAX_LUNS; i++)
		if (s->lus[i])
			rsv_free(s->lus[i]->rsv[RSV_HOME]);
}
