/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * datamover.c: the functions through which a role calls a datamover. They
 * assert the connection's state and the arguments.
 */
#include "datamover/impl.h"

#include <assert.h>

#include "base/bytes.h"
#include "base/err.h"

void dm_conn_take_over(struct dm_conn *c, const struct dm_ops *ops, void *impl,
		       const char *transport)
{
	c->ops = ops;
	c->impl = impl;
	c->transport = transport;
	c->may_hold = c->retains = false;
}

/* [RFC 5047: 9 #1] */
void dm_attach(struct dm_conn *c, const struct dm_up_ops *up, void *user,
	       const struct iscsi_numbers *numbers)
{
	assert(!c->up && c->state == DM_LOGIN);
	c->up = up;
	c->user = user;
	c->numbers = numbers;
}

void dm_set_trace(struct dm_conn *c, struct trace *t, const char *peer)
{
	c->trace = t;
	c->peer = peer;
}

static const uint8_t may_go[] = {
	[DM_LOGIN] =
		BIT(DM_FULL_FEATURE) | BIT(DM_TERMINATING) | BIT(DM_TERMINATED),
	[DM_FULL_FEATURE] = BIT(DM_TERMINATING) | BIT(DM_TERMINATED),
	[DM_TERMINATING] = BIT(DM_TERMINATED),
	[DM_TERMINATED] = 0,
};

static const char *state_name(enum dm_state s)
{
	static const char *const names[] = { "login", "full feature",
					     "terminating", "terminated" };

	return names[s];
}

void dm_conn_go(struct dm_conn *c, enum dm_state next)
{
	assert(may_go[c->state] & BIT(next));
	if (c->trace)
		trace_emit(c->trace, TRACE_STATE, "%s datamover: %s -> %s",
			   c->peer, state_name(c->state), state_name(next));
	c->state = next;
}

/* [RFC 5047: 8.3 #1] */
int dm_get_data(struct dm_conn *c, struct dm_task *t, uint32_t offset,
		uint32_t len)
{
	assert(c->role == ISCSI_TARGET);
	assert(len > 0 && range_ok(offset, len, t->edtl));
	if (c->state >= DM_TERMINATING)
		return ERR_CLOSED;
	assert(c->state == DM_FULL_FEATURE);
	return c->ops->get_data(c, t, offset, len);
}

/* [RFC 5047: 8.4 #1] */
int dm_allocate_connection_resources(struct dm_conn *c,
				     const struct dm_resources *r)
{
	if (c->state >= DM_TERMINATING)
		return ERR_CLOSED;
	assert(c->state == DM_LOGIN);
	return c->ops->allocate_connection_resources(c, r);
}

void dm_deallocate_connection_resources(struct dm_conn *c)
{
	assert(c->state == DM_LOGIN || c->state == DM_TERMINATED);
	c->ops->deallocate_connection_resources(c);
}

int dm_enable_datamover(struct dm_conn *c, const struct dm_control *final_login)
{
	int err;

	if (c->state >= DM_TERMINATING)
		return ERR_CLOSED;
	assert(c->state == DM_LOGIN);
	assert((final_login != NULL) == (c->role == ISCSI_TARGET));
	err = c->ops->enable_datamover(c, final_login);
	if (!err)
		dm_conn_go(c, DM_FULL_FEATURE);
	return err;
}

void dm_connection_terminate(struct dm_conn *c, enum dm_terminate how, int err)
{
	if (c->state == DM_TERMINATED)
		return;
	c->ops->connection_terminate(c, how, err);
	if (c->state < DM_TERMINATING)
		dm_conn_go(c, DM_TERMINATING);
}

void dm_notice_key_values(struct dm_conn *c, const struct iscsi_params *p)
{
	if (c->state >= DM_TERMINATING)
		return;
	c->ops->notice_key_values(c, p);
}

int dm_deallocate_task_resources(struct dm_conn *c, struct dm_task *t)
{
	assert(c->state != DM_TERMINATED);
	return c->ops->deallocate_task_resources(c, t);
}

void dm_resume(struct dm_conn *c, struct dm_task *t)
{
	assert(t->held);
	t->held = false;
	if (c->state < DM_TERMINATING)
		c->ops->resume(c, t);
}

int dm_snack(struct dm_conn *c, const struct iscsi_pdu *snack, uint32_t *next)
{
	assert(c->role == ISCSI_TARGET && c->retains);
	*next = 0;
	if (c->state >= DM_TERMINATING)
		return 0; /* no answer reaches the initiator */
	return c->ops->snack(c, snack, next);
}

int dm_retry(struct dm_conn *c, struct dm_task *t)
{
	assert(c->role == ISCSI_INITIATOR);
	if (c->state >= DM_TERMINATING)
		return ERR_CLOSED;
	return c->ops->retry(c, t);
}

bool dm_is_sending(const struct dm_conn *c, struct dm_task *t)
{
	assert(c->role == ISCSI_INITIATOR);
	return c->state < DM_TERMINATING && c->ops->is_sending(c, t);
}

void dm_stop_data(struct dm_conn *c, struct dm_task *t, bool stop)
{
	assert(c->role == ISCSI_INITIATOR);
	if (c->state < DM_TERMINATING && c->ops->stop_data)
		c->ops->stop_data(c, t, stop);
}

void dm_adopt(struct dm_conn *c, struct dm_task *t, uint32_t exp_datasn,
	      const struct dm_remote *remote)
{
	assert(c->role == ISCSI_TARGET && c->retains &&
	       c->state < DM_TERMINATING);
	c->ops->adopt(c, t, exp_datasn, remote);
}

void dm_progress(const struct dm_conn *c, struct dm_progress *p)
{
	c->ops->progress(c, p);
}

void dm_rest(struct dm_conn *c)
{
	if (c->ops->rest && c->state == DM_FULL_FEATURE)
		c->ops->rest(c);
}

int dm_check_unsolicited(const struct iscsi_params *k,
			 const struct iscsi_pdu *p)
{
	if (p->dsl && !k->immediate_data)
		return ERR_PROTOCOL;
	if (!p->final && k->initial_r2t)
		return ERR_PROTOCOL;
	if (p->dsl > k->first_burst_length || p->dsl > p->cmd.edtl)
		return ERR_SEQUENCE;
	return 0;
}
