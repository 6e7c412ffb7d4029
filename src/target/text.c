/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text.c: Text Requests in full feature phase (RFC 7143 §11.10, §11.11) and
 * SendTargets (Appendix C). One exchange at a time; both directions may take
 * several PDUs.
 */
#include "iscsi/text.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "iscsi/keys.h"
#include "iscsi/names.h"
#include "target/internal.h"

#define TEXT_IN_MAX  8192u
#define TEXT_OUT_MAX (4u << 20)

void tgt_text_reset(struct tgt_conn *c)
{
	free(c->text.in);
	free(c->text.out);
	c->text = (struct tgt_text){ .ttt = ISCSI_RESERVED_TAG };
}

/* ---- SendTargets (Appendix C) ---- */

/* The zone of a link-local address ("%eth0") is of this machine only, and stays here
 * (RFC 4007 §11.2). [RFC 7143: 13.8 #2] */
static void put_address(struct iscsi_text_out *out, const char *address,
			unsigned tpgt)
{
	int n = (int)strcspn(address, "%");

	iscsi_text_putf(out, "TargetAddress", "%.*s%s,%u", n, address,
			address + n + strcspn(address + n, "]"), tpgt);
}

/* From where initiators can reach an address. */
enum reach {
	REACH_ALL,
	REACH_LINK, /* of the same link */
	REACH_HERE, /* of this machine */
};

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* address: as net_addr_str writes it. Loopback: RFC 1122 §3.2.1.3, RFC 4291 §2.5.3;
 * link-local, fe80::/10: RFC 3927 §2.1, RFC 4291 §2.5.6. */
static enum reach address_reach(const char *address)
{
	if (begins(address, "127.") || begins(address, "[::1]:") ||
	    begins(address, "[::ffff:127.") || begins(address, "local"))
		return REACH_HERE;
	if (begins(address, "169.254.") ||
	    (begins(address, "[fe") && address[3] &&
	     strchr("89ab", address[3])))
		return REACH_LINK;
	return REACH_ALL;
}

/* Returns whether two link-local addresses have the same zone: "%eth0" (RFC 4007
 * §11), or none. */
static bool same_zone(const char *a, const char *b)
{
	size_t in_a = strcspn(a, "%"), in_b = strcspn(b, "%");
	size_t n = strcspn(a + in_a, "]"), m = strcspn(b + in_b, "]");

	return n == m && strncmp(a + in_a, b + in_b, n) == 0;
}

/* Returns whether an initiator that has connected to own may reach address. An
 * initiator on this machine may reach all addresses that need no zone. */
static bool may_reach(const char *own, const char *address)
{
	enum reach from = address_reach(own), to = address_reach(address);

	if (from == REACH_HERE)
		return !strchr(address, '%');
	if (to == REACH_ALL)
		return true;
	return from == REACH_LINK && to == REACH_LINK &&
	       same_zone(own, address);
}

/* An answer, as the portals of other gateways are added to it. */
struct remote {
	struct iscsi_text_out *out;
	const char *own; /* address of the connection */
};

static void put_remote(void *to, const char *address, unsigned tag)
{
	const struct remote *r = to;

	if (may_reach(r->own, address))
		put_address(r->out, address, tag);
}

/* Other gateways are listed as far as the initiator has access to units that they
 * serve, too. */
static void put_remotes(struct iscsi_text_out *out, const struct tgt_conn *c,
			const struct tgt_target *t)
{
	const struct tgt_config *cfg = &c->worker->tgt->cfg;
	struct remote r = { .out = out, .own = c->info.local };
	const struct tgt_visitor v = tgt_conn_visitor(c, &c->session->id);
	struct tgt_ruling ruling;

	if (!cfg->portals)
		return;
	ruling = tgt_access_ask(c->worker->directory, &v, t->cfg.name);
	if (!ruling.status && !ruling.redirect)
		cfg->portals(cfg->arg, t->cfg.name, ruling.map, put_remote, &r);
}

/* Lists the addresses of a portal group, except that of the connection. */
static void put_group(struct iscsi_text_out *out, const struct tgt_conn *c,
		      const struct tgt_portal_group *g, const char *except)
{
	for (unsigned k = 0; k < g->naddresses; k++)
		if (strcmp(g->addresses[k], except) != 0 &&
		    may_reach(c->info.local, g->addresses[k]))
			put_address(out, g->addresses[k], g->cfg.tag);
}

/* The address of the connection itself comes first: a portal group that listens
 * at all addresses has no list of them. */
static void put_record(struct iscsi_text_out *out, const struct tgt_conn *c,
		       const struct tgt_target *t)
{
	const struct tgt_directory *d = c->worker->directory;
	const struct tgt_port *port =
		tgt_target_port(d, t, c->info.portal_group);
	const struct tgt_portal_group *own =
		port ? d->portal_groups[port->portal_group] : NULL;

	iscsi_text_put(out, "TargetName", t->cfg.name);
	if (own && own->cfg.announces)
		own = NULL;
	if (own)
		put_address(out, c->info.local, own->cfg.tag);
	for (unsigned i = 0; i < t->nports; i++) {
		const struct tgt_portal_group *g =
			d->portal_groups[t->ports[i].portal_group];

		put_group(out, c, g, g == own ? c->info.local : "");
	}
	put_remotes(out, c, t);
}

static void put_all(struct iscsi_text_out *out, const struct tgt_conn *c,
		    const struct tgt_visitor *v)
{
	const struct tgt_directory *d = c->worker->directory;

	for (unsigned i = 0; i < d->ntargets && !out->overflow; i++)
		if (tgt_access_shows(d, v, d->targets[i]))
			put_record(out, c, d->targets[i]);
}

static void send_targets(struct iscsi_text_out *out, const struct tgt_conn *c,
			 const char *value)
{
	const struct tgt_visitor v = tgt_conn_visitor(c, &c->session->id);
	const struct tgt_directory *d = c->worker->directory;
	const struct tgt_node *own = c->session->node;
	char name[ISCSI_NAME_MAX + 1], why[ISCSI_NAME_WHY];
	const struct tgt_target *t;

	if (strcmp(value, "All") == 0) {
		/* "MUST NOT be supported on an operational session" */
		if (own)
			iscsi_text_put(out, "SendTargets", "Reject");
		else
			put_all(out, c, &v);
		return;
	}
	if (own && !value[0])
		value = own->name;
	if (iscsi_name_prepare(name, value, false, why))
		return; /* no target has an invalid name */
	t = tgt_directory_target(d, name);
	if (t && (own ? t->node == own : tgt_access_shows(d, &v, t)))
		put_record(out, c, t);
}

/* ---- keys ---- */

/* Passed through the negotiation to text_key. */
struct text_answer {
	struct tgt_conn *conn;
	struct iscsi_text_out *out;
};

/* [RFC 7143: 4.3 #1, 13.22 #2] */
static int text_key(void *arg, enum iscsi_key_id id, const char *value)
{
	const struct text_answer *a = arg;

	if (id == ISCSI_K_SEND_TARGETS)
		send_targets(a->out, a->conn, value);
	return 0; /* InitiatorAlias has no answer */
}

static int answer_key(struct iscsi_negotiation *n, const struct text_answer *a,
		      const char *key, const char *value)
{
	/* §13.21: a discovery session permits no other key */
	if (!a->conn->session->node && strcmp(key, "SendTargets") != 0)
		return ERR_PROTOCOL;
	return iscsi_negotiation_key(n, ISCSI_KEY_FFP, key, value, a->out);
}

static int answer_keys(struct iscsi_text_out *out, struct tgt_conn *c,
		       struct iscsi_params *params)
{
	struct iscsi_text_iter it = iscsi_text_iter(c->text.in, c->text.in_len);
	struct text_answer a = { .conn = c, .out = out };
	char key[ISCSI_KEY_NAME_MAX + 1];
	struct iscsi_negotiation n;
	const char *value;
	int r = 0, err;

	iscsi_negotiation_init(&n, ISCSI_TARGET, params);
	n.result = *params;
	n.text = text_key;
	n.arg = &a;
	while (!out->overflow && (r = iscsi_text_next(&it, key, &value)) > 0) {
		err = answer_key(&n, &a, key, value);
		if (err)
			return err;
	}
	if (!r)
		*params = n.result;
	return MIN(r, 0);
}

/* The initiator may declare another MaxRecvDataSegmentLength (§13.12). */
static void apply_params(struct tgt_conn *c, const struct iscsi_params *params)
{
	struct iscsi_params *own = &c->params;

	if (params->max_send_dsl == own->max_send_dsl)
		return;
	own->max_send_dsl = params->max_send_dsl;
	dm_notice_key_values(c->dm, own);
}

/* The whole answer, in a buffer that grows until it fits. */
/* [RFC 7143: 6.2 #15, 7.12 #3-5] */
static int make_answer(struct tgt_conn *c)
{
	struct tgt_text *x = &c->text;

	for (size_t max = 4096; max <= TEXT_OUT_MAX; max *= 4) {
		struct iscsi_params params = c->params;
		struct iscsi_text_out out = { .max = max };
		int err;

		out.buf = malloc(max);
		if (!out.buf)
			return ERR_NOMEM;
		err = answer_keys(&out, c, &params);
		if (!err && !out.overflow) {
			apply_params(c, &params);
			x->out = out.buf;
			x->out_len = out.len;
			x->out_sent = 0;
			return 0;
		}
		free(out.buf);
		if (err)
			return err;
	}
	return ERR_LIMIT;
}

/* ---- PDUs ---- */

/* Sends the next piece of the answer. */
/* [RFC 7143: 6.2 #1, 6.4 #2-3, 11.10.4 #1 #3, 11.11.1 #1-3, 11.11.2 #1,
 * 11.11.4 #1-2, 11.11.6 #1] */
static int send_piece(struct tgt_conn *c, bool request_final)
{
	struct tgt_text *x = &c->text;
	size_t left = x->out_len - x->out_sent;
	size_t n = MIN(left, (size_t)tgt_conn_data_max(c));
	struct dm_control ctl = {
		.pdu = {
			.op = ISCSI_TEXT_RESPONSE,
			.final = request_final && n == left,
			.cont = n < left,
			.itt = x->itt,
			.dsl = (uint32_t)n,
		},
		.data = n ? (const uint8_t *)x->out + x->out_sent : NULL,
	};
	int err;

	if (++c->next_ttt == ISCSI_RESERVED_TAG)
		c->next_ttt = 1;
	x->ttt = ctl.pdu.final ? ISCSI_RESERVED_TAG : c->next_ttt;
	ctl.pdu.ttt = x->ttt;
	x->out_sent += n;
	err = tgt_conn_send(c, &ctl);
	if (ctl.pdu.final)
		tgt_text_reset(c);
	return err;
}

/* [RFC 7143: 6.1 #4] */
static int add_input(struct tgt_text *x, const struct dm_control *ctl)
{
	size_t n = ctl->pdu.dsl;
	uint8_t *in;

	if (n > TEXT_IN_MAX - x->in_len)
		return ERR_TOO_LONG;
	if (n == 0)
		return 0;
	in = realloc(x->in, x->in_len + n);
	if (!in)
		return ERR_NOMEM;
	memcpy(in + x->in_len, ctl->data, n);
	x->in = in;
	x->in_len += n;
	return 0;
}

static int reject_text(struct tgt_conn *c, const struct dm_control *ctl,
		       enum iscsi_reject_reason reason, const char *why)
{
	tgt_text_reset(c);
	return tgt_reject(c, reason, ctl->bhs, why);
}

/* The text of the request is complete. */
/* [RFC 7143: 6.4 #4] */
static int answer_text(struct tgt_conn *c, const struct dm_control *ctl)
{
	struct tgt_text *x = &c->text;
	int err = make_answer(c);

	if (err == ERR_NOMEM || err == ERR_LIMIT)
		return reject_text(c, ctl, ISCSI_REJECT_LONG_OP, err_str(err));
	if (err)
		return reject_text(
			c, ctl, ISCSI_REJECT_PROTOCOL,
			"bad or forbidden text keys (RFC 7143 §6.1)");
	free(x->in);
	x->in = NULL;
	x->in_len = 0;
	return send_piece(c, ctl->pdu.final);
}

/* [RFC 7143: 6.2 #2, 11.10.2 #1] */
int tgt_text(struct tgt_conn *c, const struct dm_control *ctl)
{
	const struct iscsi_pdu *pdu = &ctl->pdu;
	struct tgt_text *x = &c->text;

	if (pdu->ttt == ISCSI_RESERVED_TAG) { /* §11.10.4: a new request */
		tgt_text_reset(c);
		x->busy = true;
		x->itt = pdu->itt;
	} else if (!x->busy || pdu->ttt != x->ttt || pdu->itt != x->itt) {
		return reject_text(c, ctl, ISCSI_REJECT_INVALID_PDU_FIELD,
				   "Text Request with a stale tag (§11.10.4)");
	}
	if (pdu->final && pdu->cont)
		return reject_text(
			c, ctl, ISCSI_REJECT_PROTOCOL,
			"Text Request with F and C (RFC 7143 §11.10.2)");
	if (x->out && x->out_sent < x->out_len)
		return send_piece(c, pdu->final);
	if (add_input(x, ctl))
		return reject_text(c, ctl, ISCSI_REJECT_PROTOCOL,
				   "Text Request too long");
	if (!pdu->cont) {
		free(x->out);
		x->out = NULL;
		return answer_text(c, ctl);
	}
	free(x->out);
	x->out = NULL;
	x->out_len = x->out_sent = 0;
	return send_piece(c, false); /* empty: asks for more */
}
