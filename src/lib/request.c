/* SPDX-License-Identifier: BSD-2-Clause */
/* request.c: requests with one response other than SCSI commands: NOP-Out and task
 * management. */
#include <stdlib.h>
#include <string.h>

#include "lib/internal.h"

#define REQUEST_TIME (15 * XTIME_S)

/* ---- for all requests ---- */

xtime lib_request_deadline(const struct iser_session *s)
{
	return io_now(s->ctx->loop) + REQUEST_TIME;
}

int lib_request_ready(struct iser_session *s)
{
	if (s->ini)
		return 0;
	return lib_fail(s->ctx, s->err ? s->err : ISER_E_CLOSED,
			"%s at %s:%u: the session is closed",
			s->url.target[0] ? s->url.target : "discovery",
			s->url.host, s->url.port);
}

int lib_request_failed(struct iser_session *s, int err, const char *what)
{
	if (!err)
		return 0;
	return lib_fail(s->ctx, lib_error(err), "%s at %s:%u: %s", what,
			s->url.host, s->url.port, err_str(err));
}

/* ---- NOP-Out ---- */

static const uint8_t zeros[8192];

struct ping {
	struct ini_request r;
	struct iser_session *s;
	uint32_t len;
	xtime start;
	void (*done)(void *arg, int err, uint64_t ns);
	void *arg;
};

/* §11.19: the ping data come back, as far as they fit in a PDU to the initiator;
 * all that iser_ping sends does. */
static int check_ping_data(const struct ping *p, const struct dm_control *rsp)
{
	uint32_t n = rsp->pdu.dsl;

	return n == p->len && (!n || !memcmp(rsp->data, zeros, n)) ? 0
								   : ERR_FORMAT;
}

static void ping_answered(struct ini_request *r, int err,
			  const struct dm_control *rsp)
{
	struct ping *p = container_of(r, struct ping, r);
	struct ping copy = *p;

	free(p);
	if (!err)
		err = check_ping_data(&copy, rsp);
	err = lib_request_failed(copy.s, err, "NOP-Out");
	copy.done(copy.arg, err, (uint64_t)(io_now_exact() - copy.start));
}

int iser_ping_start(struct iser_session *s, size_t len,
		    void (*done)(void *arg, int err, uint64_t ns), void *arg)
{
	struct ping *p;
	int err;

	if (s->set && s->set->ops->current(s))
		s = s->set->ops->current(s);
	err = lib_request_ready(s);
	if (err)
		return err;
	p = malloc(sizeof(*p));
	if (!p)
		return lib_fail(s->ctx, ISER_E_NOMEM, "out of memory");
	*p = (struct ping){ .r = { .done = ping_answered },
			    .s = s,
			    .len = (uint32_t)MIN(len, sizeof(zeros)),
			    .start = io_now_exact(),
			    .done = done,
			    .arg = arg };
	err = ini_ping(s->ini, &p->r, zeros, p->len, lib_request_deadline(s));
	if (err)
		free(p);
	return lib_request_failed(s, err, "NOP-Out");
}

struct ping_wait {
	bool over;
	int err;
	uint64_t ns;
};

static void on_pong(void *arg, int err, uint64_t ns)
{
	*(struct ping_wait *)arg =
		(struct ping_wait){ .over = true, .err = err, .ns = ns };
}

int iser_ping(struct iser_session *s, size_t len, uint64_t *ns)
{
	struct ping_wait w = { 0 };
	int err = iser_ping_start(s, len, on_pong, &w);

	if (!err)
		err = lib_wait(s->ctx, &w.over);
	*ns = w.ns;
	return err ? err : w.err;
}

/* ---- task management ---- */

struct management {
	struct ini_request r;
	struct iser_session *s;
	const char *what;
	void (*done)(void *arg, int err);
	void *arg;
};

/* Returns NULL for a function that this library does not offer. */
static const char *function_name(enum iser_function f)
{
	switch (f) {
	case ISER_ABORT_TASK_SET:
		return "ABORT TASK SET";
	case ISER_CLEAR_TASK_SET:
		return "CLEAR TASK SET";
	case ISER_LUN_RESET:
		return "LOGICAL UNIT RESET";
	case ISER_TARGET_WARM_RESET:
		return "TARGET WARM RESET";
	case ISER_TARGET_COLD_RESET:
		return "TARGET COLD RESET";
	case ISER_QUERY_TASK_SET:
		return "QUERY TASK SET";
	case ISER_I_T_NEXUS_RESET:
		return "I_T NEXUS RESET";
	}
	return NULL;
}

static void management_answered(struct ini_request *r, int err,
				const struct dm_control *rsp)
{
	struct management *m = container_of(r, struct management, r);
	struct management copy = *m;

	free(m);
	err = lib_request_failed(copy.s, err, copy.what);
	if (!err && rsp->pdu.tmf_response != ISCSI_TMF_COMPLETE &&
	    rsp->pdu.tmf_response != ISCSI_TMF_SUCCEEDED)
		err = lib_fail(copy.s->ctx, ISER_E_SCSI, "%s: %s (response %u)",
			       copy.what, iscsi_tmf_text(rsp->pdu.tmf_response),
			       rsp->pdu.tmf_response);
	copy.done(copy.arg, err);
}

int iser_manage_tasks_start(struct iser_session *s, enum iser_function function,
			    int lun, void (*done)(void *arg, int err),
			    void *arg)
{
	const char *what = function_name(function);
	struct management *m;
	int err;

	if (s->set)
		return s->set->ops->manage(s, function, lun, done, arg);
	err = lib_request_ready(s);
	if (err)
		return err;
	if (!what || lun < 0 || lun > 16383)
		return lib_fail(s->ctx, ISER_E_INVALID,
				"task management: not a function: %d, LUN %d",
				(int)function, lun);
	m = malloc(sizeof(*m));
	if (!m)
		return lib_fail(s->ctx, ISER_E_NOMEM, "out of memory");
	*m = (struct management){ .r = { .done = management_answered },
				  .s = s,
				  .what = what,
				  .done = done,
				  .arg = arg };
	err = ini_task_management(s->ini, &m->r, (enum iscsi_tmf)function,
				  lib_wire_lun(s, lun), NULL,
				  lib_request_deadline(s));
	if (err)
		free(m);
	return lib_request_failed(s, err, what);
}

struct management_wait {
	bool over;
	int err;
};

static void on_managed(void *arg, int err)
{
	*(struct management_wait *)arg =
		(struct management_wait){ .over = true, .err = err };
}

int iser_manage_tasks(struct iser_session *s, enum iser_function function,
		      int lun)
{
	struct management_wait w = { 0 };
	int err = iser_manage_tasks_start(s, function, lun, on_managed, &w);

	if (!err)
		err = lib_wait(s->ctx, &w.over);
	return err ? err : w.err;
}

int iser_lun_reset(struct iser_session *s, int lun)
{
	return iser_manage_tasks(s, ISER_LUN_RESET, lun);
}

int iser_target_reset(struct iser_session *s)
{
	return iser_manage_tasks(s, ISER_TARGET_WARM_RESET, 0);
}
