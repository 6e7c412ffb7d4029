/* SPDX-License-Identifier: BSD-2-Clause */
/* discover.c: requests other than SCSI commands: SendTargets (RFC 7143 appendix
 * C), NOP-Out, task management. */
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "iscsi/text.h"
#include "lib/internal.h"

#define REQUEST_TIME (15 * XTIME_S)
#define TEXT_MAX     (1u << 20) /* of a whole SendTargets answer */

/* ---- one request and its response ---- */

struct waiting {
	struct ini_request r;
	bool over;
	int err;
	uint8_t response; /* of task management */
	uint32_t sent;	  /* bytes of ping data */
	/* the text response so far */
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
	/* §11.11.1 to §11.11.3: a response that is not final has a tag, and one
	 * that continues in the next PDU is not final */
	if (w->final ? rsp->pdu.cont : w->ttt == ISCSI_RESERVED_TAG)
		return ERR_FORMAT;
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

static const uint8_t zeros[8192]; /* of pings */

/* §11.19: the ping data come back, as far as they fit in a PDU to the initiator;
 * all that iser_ping sends does. */
static int check_ping_data(const struct waiting *w,
			   const struct dm_control *rsp)
{
	uint32_t n = rsp->pdu.dsl;

	return n == w->sent && (!n || !memcmp(rsp->data, zeros, n))
		       ? 0
		       : ERR_FORMAT;
}

static void on_response(struct ini_request *r, int err,
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
	else if (rsp->pdu.op == ISCSI_NOP_IN)
		w->err = check_ping_data(w, rsp);
}

static xtime request_deadline(const struct iser_session *s)
{
	return io_now(s->ctx->loop) + REQUEST_TIME;
}

/* Waits for a response; started is the result of the call that sent the request. */
static int wait_response(struct iser_session *s, struct waiting *w, int started,
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

static int check_connected(struct iser_session *s)
{
	if (s->ini)
		return 0;
	return lib_fail(s->ctx, s->err ? s->err : ISER_E_CLOSED,
			"%s at %s:%u: the session is closed",
			s->url.target[0] ? s->url.target : "discovery",
			s->url.host, s->url.port);
}

/* ---- SendTargets ---- */

/* The list of targets, and a tree of them by name. */
struct listing {
	struct iser_target **tail;
	void *by_name; /* of tsearch */
};

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct iser_target *)a)->name,
		      ((const struct iser_target *)b)->name);
}

static void keep_target(void *target)
{
	(void)target; /* the list has it */
}

/* Returns the target of that name, which it appends if there is none. */
static struct iser_target *add_target(struct listing *l, const char *name)
{
	struct iser_target *t = calloc(1, sizeof(*t)), **known;

	if (!t)
		return NULL;
	snprintf(t->name, sizeof(t->name), "%s", name);
	known = tsearch(t, &l->by_name, compare_names);
	if (!known || *known != t) {
		free(t);
		return known ? *known : NULL;
	}
	*l->tail = t;
	l->tail = &t->next;
	return t;
}

/* Portals of one target; further ones are ignored. */
#define PORTALS_MAX 256

static int add_portal(struct iser_target *t, const char *address)
{
	struct iser_portal **p = &t->portals;
	unsigned n = 0;

	if (strlen(address) >= sizeof(t->address))
		return ERR_FORMAT;
	for (; *p; p = &(*p)->next)
		if (!strcmp((*p)->address, address) || ++n == PORTALS_MAX)
			return 0;
	*p = calloc(1, sizeof(**p));
	if (!*p)
		return ERR_NOMEM;
	strcpy((*p)->address, address);
	if (!t->address[0])
		strcpy(t->address, address);
	return 0;
}

/* Appendix C: TargetName begins a target's part, its addresses follow. */
static int parse_targets(const struct waiting *w, struct iser_target **list)
{
	struct iscsi_text_iter it = iscsi_text_iter(w->text, w->len);
	struct listing l = { .tail = list };
	struct iser_target *last = NULL;
	char key[ISCSI_KEY_NAME_MAX + 1];
	const char *value;
	int r, err = 0;

	while (!err && (r = iscsi_text_next(&it, key, &value)) > 0) {
		if (!strcmp(key, "TargetName")) {
			/* §4.2.7.2: 223 bytes at most */
			if (!*value || strlen(value) >= sizeof(last->name))
				err = ERR_FORMAT;
			else if (!(last = add_target(&l, value)))
				err = ERR_NOMEM;
		} else if (!strcmp(key, "TargetAddress") && last) {
			err = add_portal(last, value);
		}
	}
	tdestroy(l.by_name, keep_target);
	return err ? err : r;
}

/* Limits of one discovery. A long list comes in parts of at most
 * MaxRecvDataSegmentLength bytes. */
#define DISCOVERY_TIME	  (60 * XTIME_S)
#define DISCOVERY_ROUNDS  4096
#define DISCOVERY_EMPTIES 16

/* §11.10: after a response with F=0 the initiator asks for the rest with its
 * tag. */
static int send_targets(struct iser_session *s, struct waiting *w)
{
	static const char ask[] = "SendTargets=All";
	xtime until = io_now_exact() + DISCOVERY_TIME;
	unsigned rounds = 0, empties = 0;
	size_t len = sizeof(ask), before;
	int err;

	w->ttt = ISCSI_RESERVED_TAG;
	do {
		xtime deadline = MIN(request_deadline(s), until);

		before = w->len;
		w->over = false;
		w->r.done = on_response;
		err = wait_response(s, w,
				    ini_text(s->ini, &w->r, ask, len, w->ttt,
					     deadline),
				    "SendTargets");
		len = 0;
		empties += w->len == before;
		if (!err)
			err = check_connected(s);
		if (!err && (++rounds > DISCOVERY_ROUNDS ||
			     empties > DISCOVERY_EMPTIES))
			return lib_fail(s->ctx, ISER_E_PROTOCOL,
					"SendTargets at %s:%u: no end after "
					"%u responses, %u of them empty",
					s->url.host, s->url.port, rounds,
					empties);
	} while (!err && !w->final);
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
	u.reconnect = 0; /* the caller may discover again */
	s = iser_connect(ctx, &u, &err);
	if (!s)
		return err;
	err = send_targets(s, &w);
	if (!err) {
		err = parse_targets(&w, list);
		if (err == ERR_NOMEM)
			err = lib_fail(ctx, ISER_E_NOMEM, "out of memory");
		else if (err)
			err = lib_fail(ctx, ISER_E_PROTOCOL,
				       "SendTargets at %s:%u: the answer is "
				       "not a list of targets",
				       u.host, u.port);
	}
	free(w.text);
	iser_disconnect(s);
	if (err) {
		iser_targets_free(*list);
		*list = NULL;
	}
	return err;
}

static void free_portals(struct iser_portal *list)
{
	while (list) {
		struct iser_portal *next = list->next;

		free(list);
		list = next;
	}
}

void iser_targets_free(struct iser_target *list)
{
	while (list) {
		struct iser_target *next = list->next;

		free_portals(list->portals);
		free(list);
		list = next;
	}
}

/* ---- NOP-Out ---- */

int iser_ping(struct iser_session *s, size_t len, uint64_t *ns)
{
	struct waiting w = { .r = { .done = on_response },
			     .sent = (uint32_t)MIN(len, sizeof(zeros)) };
	xtime start = io_now_exact();
	int err = check_connected(s);

	if (err)
		return err;
	err = wait_response(s, &w,
			    ini_ping(s->ini, &w.r, zeros, w.sent,
				     request_deadline(s)),
			    "NOP-Out");
	*ns = (uint64_t)(io_now_exact() - start);
	return err;
}

/* ---- task management ---- */

static int manage_tasks(struct iser_session *s, enum iscsi_tmf function,
			int lun, const char *what)
{
	struct waiting w = { .r = { .done = on_response } };
	int err = check_connected(s);

	if (err)
		return err;
	err = wait_response(s, &w,
			    ini_task_management(s->ini, &w.r, function,
						(uint64_t)(unsigned)lun << 48,
						NULL, request_deadline(s)),
			    what);
	if (err || w.response == ISCSI_TMF_COMPLETE)
		return err;
	return lib_fail(s->ctx, ISER_E_SCSI, "%s: response %u", what,
			w.response);
}

int iser_lun_reset(struct iser_session *s, int lun)
{
	return manage_tasks(s, ISCSI_TMF_LU_RESET, lun, "LOGICAL UNIT RESET");
}

int iser_target_reset(struct iser_session *s)
{
	return manage_tasks(s, ISCSI_TMF_TARGET_WARM_RESET, 0,
			    "TARGET WARM RESET");
}
