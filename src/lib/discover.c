/* SPDX-License-Identifier: BSD-2-Clause */
/* discover.c: SendTargets (RFC 7143 appendix C), NOP-Out, task management:
 * what is no SCSI command. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "iscsi/text.h"
#include "lib/internal.h"

#define REQUEST_TIME (15 * XTIME_S)
#define TEXT_MAX     (1u << 20) /* of a whole SendTargets answer */

/* ---- one request, waited for ---- */

struct waiting {
	struct ini_request r;
	bool over;
	int err;
	uint8_t response; /* of task management */
	/* text so far */
	char *text;
	size_t len;
	uint32_t ttt;
	bool final;
};

static int keep_text(struct waiting *w, const struct dm_control *rsp)
{
	size_t dsl = rsp->pdu.dsl;
	char *more;

	w->ttt = rsp->pdu.ttt;
	w->final = rsp->pdu.final;
	if (dsl > TEXT_MAX - w->len)
		return ERR_LIMIT;
	if (dsl == 0)
		return 0;
	more = realloc(w->text, w->len + dsl);
	if (!more)
		return ERR_NOMEM;
	memcpy(more + w->len, rsp->data, dsl);
	w->text = more;
	w->len += dsl;
	return 0;
}

static void answered(struct ini_request *r, int err,
		     const struct dm_control *rsp)
{
	struct waiting *w = container_of(r, struct waiting, r);

	w->over = true;
	w->err = err;
	if (err)
		return;
	if (rsp->pdu.op == ISCSI_TMF_RESPONSE)
		w->response = rsp->pdu.tmf_response;
	else if (rsp->pdu.op == ISCSI_TEXT_RESPONSE)
		w->err = keep_text(w, rsp);
}

static xtime request_deadline(const struct iser_session *s)
{
	return io_now(s->ctx->loop) + REQUEST_TIME;
}

/* started: what the call that sent the request returned. */
static int wait_for(struct iser_session *s, struct waiting *w, int started,
		    const char *what)
{
	int err = started;

	if (!err) {
		int e = lib_wait(s->ctx, &w->over);

		if (e)
			return e;
		err = w->err;
	}
	if (err)
		return lib_fail(s->ctx, lib_error(err), "%s at %s:%u: %s", what,
				s->url.host, s->url.port, err_str(err));
	return 0;
}

static int not_up(struct iser_session *s)
{
	if (s->ini)
		return 0;
	return lib_fail(s->ctx, s->err ? s->err : ISER_E_CLOSED,
			"the session with %s:%u is closed", s->url.host,
			s->url.port);
}

/* ---- SendTargets ---- */

static struct iser_target *add(struct iser_target ***tail, const char *name)
{
	struct iser_target *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	snprintf(t->name, sizeof(t->name), "%s", name);
	**tail = t;
	*tail = &t->next;
	return t;
}

static int parse_targets(const struct waiting *w, struct iser_target **list)
{
	struct iscsi_text_iter it = iscsi_text_iter(w->text, w->len);
	struct iser_target **tail = list, *last = NULL;
	char key[ISCSI_KEY_NAME_MAX + 1];
	const char *value;
	int r;

	while ((r = iscsi_text_next(&it, key, &value)) > 0) {
		if (!strcmp(key, "TargetName")) {
			last = add(&tail, value);
			if (!last)
				return ERR_NOMEM;
		} else if (!strcmp(key, "TargetAddress") && last &&
			   !last->address[0]) {
			snprintf(last->address, sizeof(last->address), "%s",
				 value);
		}
	}
	return r;
}

/* §11.10: F=0 means that more is to be asked for, with the tag given. */
static int send_targets(struct iser_session *s, struct waiting *w)
{
	static const char ask[] = "SendTargets=All";
	size_t len = sizeof(ask);
	int err;

	w->ttt = ISCSI_RESERVED_TAG;
	do {
		w->over = false;
		w->r.done = answered;
		err = wait_for(s, w,
			       ini_text(s->ini, &w->r, ask, len, w->ttt,
					request_deadline(s)),
			       "SendTargets");
		len = 0;
		if (!err)
			err = not_up(s);
	} while (!err && !w->final && w->ttt != ISCSI_RESERVED_TAG);
	return err;
}

int iser_discover(struct iser_context *ctx, const struct iser_url *url,
		  struct iser_target **list)
{
	struct iser_url u = *url;
	struct waiting w = { 0 };
	struct iser_session *s;
	int err;

	*list = NULL;
	u.target[0] = '\0';
	u.reconnect = 0; /* asking anew is the caller's */
	s = iser_connect(ctx, &u, &err);
	if (!s)
		return err;
	err = send_targets(s, &w);
	if (!err && parse_targets(&w, list))
		err = lib_fail(ctx, ISER_E_PROTOCOL,
			       "%s:%u answers SendTargets with what is no "
			       "list of targets",
			       u.host, u.port);
	free(w.text);
	iser_disconnect(s);
	if (err) {
		iser_targets_free(*list);
		*list = NULL;
	}
	return err;
}

void iser_targets_free(struct iser_target *list)
{
	while (list) {
		struct iser_target *next = list->next;

		free(list);
		list = next;
	}
}

/* ---- NOP-Out ---- */

int iser_ping(struct iser_session *s, size_t len, uint64_t *ns)
{
	static const uint8_t zeros[8192];
	struct waiting w = { .r = { .done = answered } };
	xtime start = io_now_exact();
	int err = not_up(s);

	if (err)
		return err;
	err = wait_for(s, &w,
		       ini_ping(s->ini, &w.r, zeros, MIN(len, sizeof(zeros)),
				request_deadline(s)),
		       "NOP-Out");
	*ns = (uint64_t)(io_now_exact() - start);
	return err;
}

/* ---- task management ---- */

static int manage(struct iser_session *s, enum iscsi_tmf function, int lun,
		  const char *what)
{
	struct waiting w = { .r = { .done = answered } };
	int err = not_up(s);

	if (err)
		return err;
	err = wait_for(s, &w,
		       ini_task_management(s->ini, &w.r, function,
					   (uint64_t)(unsigned)lun << 48, NULL,
					   request_deadline(s)),
		       what);
	if (err || w.response == ISCSI_TMF_COMPLETE)
		return err;
	return lib_fail(s->ctx, ISER_E_SCSI, "%s: response %u", what,
			w.response);
}

int iser_lun_reset(struct iser_session *s, int lun)
{
	return manage(s, ISCSI_TMF_LU_RESET, lun, "LOGICAL UNIT RESET");
}

int iser_target_reset(struct iser_session *s)
{
	return manage(s, ISCSI_TMF_TARGET_WARM_RESET, 0, "TARGET WARM RESET");
}
