/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * login_auth.c: the security stage (RFC 7143 §12.1): AuthMethod None and
 * CHAP, one way and mutual, both roles.
 */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "iscsi/login_engine.h"

static int auth_fail(struct iscsi_login_engine *e, const char *what)
{
	e->failure.chap = e->auth.challenged;
	return login_fail(e, ERR_AUTH, ISCSI_LOGIN_AUTH_FAILURE, "%s", what);
}

/* A key or value that does not belong to this step. §9.2: its status is not that of
 * a wrong secret. */
/* [RFC 7143: 9.2 #3] */
static int step_fail(struct iscsi_login_engine *e, uint16_t status,
		     const char *what)
{
	e->failure.chap = e->auth.challenged;
	return login_fail(e, ERR_AUTH, status, "%s", what);
}

/* ---- received keys ---- */

static int take_text(struct iscsi_login_engine *e, char *to, size_t size,
		     const char *value)
{
	if (strlen(value) >= size)
		return step_fail(e, ISCSI_LOGIN_INITIATOR_ERROR,
				 "a security key's value is too long");
	strcpy(to, value);
	return 0;
}

static int take_binary(struct iscsi_login_engine *e, uint8_t *to, size_t size,
		       const char *value, int *len)
{
	*len = chap_binary_parse(value, to, size);
	if (*len < 0)
		return step_fail(e, ISCSI_LOGIN_INITIATOR_ERROR,
				 "a CHAP binary-value is malformed or too "
				 "long (RFC 7143 §12.1.3)");
	return 0;
}

int login_auth_key(struct iscsi_login_engine *e, enum iscsi_key_id id,
		   const char *value)
{
	struct login_auth *a = &e->auth;

	switch (id) {
	case ISCSI_K_AUTH_METHOD:
		a->got |= GOT_AUTH_METHOD;
		return take_text(e, a->method, sizeof(a->method), value);
	case ISCSI_K_CHAP_A:
		a->got |= GOT_CHAP_A;
		return take_text(e, a->algorithms, sizeof(a->algorithms),
				 value);
	case ISCSI_K_CHAP_N:
		a->got |= GOT_CHAP_N;
		return take_text(e, a->name, sizeof(a->name), value);
	case ISCSI_K_CHAP_I:
		a->got |= GOT_CHAP_I;
		if (iscsi_number_parse(value, &a->id) || a->id > 255)
			return step_fail(e, ISCSI_LOGIN_INITIATOR_ERROR,
					 "CHAP_I is not a number from 0 to "
					 "255 (RFC 7143 §12.1.3)");
		return 0;
	case ISCSI_K_CHAP_C:
		a->got |= GOT_CHAP_C;
		return take_binary(e, a->challenge, sizeof(a->challenge), value,
				   &a->challenge_len);
	case ISCSI_K_CHAP_R:
		a->got |= GOT_CHAP_R;
		return take_binary(e, a->response, sizeof(a->response), value,
				   &a->response_len);
	default:
		return 0;
	}
}

/* Whether all these keys were received in this exchange. */
static bool has_keys(const struct iscsi_login_engine *e, unsigned keys)
{
	return (e->auth.got & keys) == keys;
}

/* ---- both roles ---- */

/* [RFC 7143: 9.2.1 #10] */
static void put_challenge(struct iscsi_login_engine *e)
{
	struct login_auth *a = &e->auth;
	char text[2 * CHAP_CHALLENGE_LEN + 3];

	e->cfg->random(e->cfg->arg, &a->my_id, 1);
	e->cfg->random(e->cfg->arg, a->my_challenge, sizeof(a->my_challenge));
	iscsi_text_putf(&e->out, "CHAP_I", "%u", a->my_id);
	chap_binary_print(a->my_challenge, sizeof(a->my_challenge), text);
	iscsi_text_put(&e->out, "CHAP_C", text);
	a->challenged = true;
}

/* Answers the received challenge with our secret. */
/* [RFC 7143: 9.2.1 #11, 12.1.3 #3] */
static int put_response(struct iscsi_login_engine *e,
			const struct iscsi_chap_secret *s)
{
	struct login_auth *a = &e->auth;
	uint8_t r[CHAP_DIGEST_MAX];
	char text[2 * CHAP_DIGEST_MAX + 3];
	size_t n;

	/* RFC 7143 §9.2.1: a peer that sends our own challenge back wants us to
	 * compute its response (reflection attack) */
	if (a->challenged && a->challenge_len == (int)sizeof(a->my_challenge) &&
	    chap_equal(a->challenge, a->my_challenge, sizeof(a->my_challenge)))
		return auth_fail(e, "the peer sent our own CHAP challenge back "
				    "(RFC 7143 §9.2.1)");
	n = chap_response(a->algorithm, (uint8_t)a->id, s, a->challenge,
			  (size_t)a->challenge_len, r);
	if (n == 0)
		return auth_fail(e,
				 "libcrypto cannot compute the CHAP algorithm");
	chap_binary_print(r, n, text);
	iscsi_text_put(&e->out, "CHAP_N", s->name);
	iscsi_text_put(&e->out, "CHAP_R", text);
	return 0;
}

/* Whether the received response was computed with this secret. */
static bool is_response_of(const struct iscsi_login_engine *e,
			   const struct iscsi_chap_secret *s)
{
	const struct login_auth *a = &e->auth;
	uint8_t right[CHAP_DIGEST_MAX];
	size_t n = chap_response(a->algorithm, a->my_id, s, a->my_challenge,
				 sizeof(a->my_challenge), right);

	return n && a->response_len == (int)n &&
	       chap_equal(right, a->response, n);
}

/* The secret that stands for the one of an unknown name. */
static const struct iscsi_chap_secret no_secret = { .secret_len = 16 };

/* theirs: the secret that the peer has to prove, or NULL: its name is unknown;
 * own: the secret that we prove, or NULL. For an unknown name a response is
 * computed as well: the text and the time of the answer must not show the peer
 * which names exist. */
/* [RFC 7143: 9.2 #4, 9.2.1 #8, 12.1.3 #4 #6] */
static int check_response(struct iscsi_login_engine *e,
			  const struct iscsi_chap_secret *theirs,
			  const struct iscsi_chap_secret *own)
{
	bool right;

	if (own && is_response_of(e, own))
		return auth_fail(e, "both directions of CHAP have the same "
				    "secret; the secrets must differ "
				    "(RFC 7143 §9.2.1)");
	right = is_response_of(e, theirs ? theirs : &no_secret);
	if (!right || !theirs || strcmp(e->auth.name, theirs->name) != 0)
		return auth_fail(e, "CHAP name or secret is wrong");
	return 0;
}

/* ---- target ---- */

/* [RFC 7143: 6.3.2 #1, 9.2 #1] */
static int choose_method(struct iscsi_login_engine *e)
{
	struct login_auth *a = &e->auth;

	if (e->verdict.chap && iscsi_list_has(a->method, "CHAP")) {
		a->chap = true;
		iscsi_text_put(&e->out, "AuthMethod", "CHAP");
		return 0;
	}
	if (!e->verdict.chap && iscsi_list_has(a->method, "None")) {
		iscsi_text_put(&e->out, "AuthMethod", "None");
		return 0;
	}
	a->rejected = "AuthMethod";
	return auth_fail(e, e->verdict.chap
				    ? "the target requires CHAP, which the "
				      "initiator did not offer"
				    : "the initiator requires authentication, "
				      "for which the target has no secret");
}

static const char *offer_or_all(const char *algorithms)
{
	return algorithms ? algorithms : CHAP_OFFER;
}

/* [RFC 7143: 12.1.3 #2] */
static int choose_algorithm(struct iscsi_login_engine *e)
{
	struct login_auth *a = &e->auth;

	if (!a->chap || a->challenged)
		return step_fail(e, ISCSI_LOGIN_INITIATOR_ERROR,
				 "CHAP_A in a step that does not have it "
				 "(RFC 7143 §12.1.3)");
	a->algorithm = chap_pick(a->algorithms,
				 offer_or_all(e->verdict.chap_algorithms));
	if (a->algorithm == CHAP_NONE) {
		a->rejected = "CHAP_A";
		return auth_fail(e, "no CHAP algorithm in common");
	}
	iscsi_text_putf(&e->out, "CHAP_A", "%d", a->algorithm);
	put_challenge(e);
	return 0;
}

/* The response of the initiator was right: the address must not be refused for
 * it. */
/* [RFC 7143: 12.1.3 #5] */
static int refuse_mutual(struct iscsi_login_engine *e)
{
	int err = auth_fail(e, "the initiator requires mutual CHAP, for which "
			       "the target has no secret");

	e->failure.chap = false;
	return err;
}

/* [RFC 7143: 12.1.3 #5] */
static int take_response(struct iscsi_login_engine *e)
{
	struct login_auth *a = &e->auth;
	const struct iscsi_chap_secret *theirs = NULL;
	uint16_t status;
	int err;

	if (!a->challenged)
		return step_fail(e, ISCSI_LOGIN_INITIATOR_ERROR,
				 "CHAP_R without a challenge (RFC 7143 "
				 "§12.1.3)");
	if (!has_keys(e, GOT_CHAP_N))
		return step_fail(e, ISCSI_LOGIN_MISSING_PARAMETER,
				 "CHAP_R without CHAP_N (RFC 7143 §12.1.3)");
	if (has_keys(e, GOT_CHAP_I) != has_keys(e, GOT_CHAP_C))
		return step_fail(e, ISCSI_LOGIN_MISSING_PARAMETER,
				 "CHAP_I or CHAP_C without the other one (RFC "
				 "7143 §12.1.3)");
	status = e->cfg->find_secret(e->cfg->arg, a->name, &theirs);
	if (status)
		return login_fail(e, ERR_DENIED, status,
				  "CHAP failed too often; the answer was not "
				  "checked");
	err = check_response(e, theirs, e->verdict.chap_out);
	if (err)
		return err;
	if (has_keys(e, GOT_CHAP_I | GOT_CHAP_C)) {
		if (!e->verdict.chap_out)
			return refuse_mutual(e);
		err = put_response(e, e->verdict.chap_out);
	}
	a->done = err == 0;
	return err;
}

/* §9.2: each step of CHAP has its keys. An initiator that could leave out CHAP_R
 * would learn the target's response to a challenge that it chose. */
/* [RFC 7143: 9.2 #2] */
static bool lacks_keys(const struct iscsi_login_engine *e, unsigned keys)
{
	return e->auth.chap && !e->auth.done && !(e->auth.got & keys);
}

/* [RFC 7143: 9.1 #1, 9.2.1 #1, 12.1 #2-3] */
int login_auth_target(struct iscsi_login_engine *e)
{
	int err = 0;

	if (lacks_keys(e, GOT_AUTH_METHOD | GOT_CHAP_A | GOT_CHAP_R))
		return step_fail(e, ISCSI_LOGIN_MISSING_PARAMETER,
				 e->auth.challenged
					 ? "no CHAP_R in the answer to the "
					   "challenge (RFC 7143 §9.2)"
					 : "no CHAP_A after AuthMethod=CHAP "
					   "(RFC 7143 §9.2)");

	if (has_keys(e, GOT_AUTH_METHOD))
		err = choose_method(e);
	if (!err && has_keys(e, GOT_CHAP_A))
		err = choose_algorithm(e);
	if (!err && has_keys(e, GOT_CHAP_R))
		err = take_response(e);
	return err;
}

/* ---- initiator ---- */

void login_auth_offer(struct iscsi_login_engine *e)
{
	/* an initiator that authenticates the target does not offer None */
	const char *methods = "CHAP,None";

	if (e->cfg->chap_in)
		methods = "CHAP";
	else if (!e->cfg->chap_out)
		methods = "None";
	iscsi_text_put(&e->out, "AuthMethod", methods);
}

/* [RFC 7143: 12.1 #1, 12.1.3 #1] */
static int take_method(struct iscsi_login_engine *e)
{
	struct login_auth *a = &e->auth;

	if (strcmp(a->method, "CHAP") == 0) {
		a->chap = true;
		iscsi_text_put(&e->out, "CHAP_A",
			       offer_or_all(e->cfg->chap_algorithms));
		e->transit = false; /* the challenge follows */
		return 0;
	}
	if (strcmp(a->method, "None") == 0 && !e->cfg->chap_in) {
		a->done = true;
		return 0;
	}
	return auth_fail(e, "the target accepts none of the offered "
			    "authentication methods");
}

/* [RFC 7143: 9.2 #2] */
static int take_challenge(struct iscsi_login_engine *e)
{
	struct login_auth *a = &e->auth;
	int err;

	a->algorithm =
		chap_pick(a->algorithms, offer_or_all(e->cfg->chap_algorithms));
	if (!has_keys(e, GOT_CHAP_A | GOT_CHAP_I) || !a->chap ||
	    a->algorithm == CHAP_NONE || a->challenged || a->done)
		return auth_fail(e, "incomplete or unexpected CHAP challenge");
	if (!e->cfg->chap_out)
		return auth_fail(e, "the target requires CHAP; give a name and "
				    "a secret");
	err = put_response(e, e->cfg->chap_out);
	if (err)
		return err;
	if (e->cfg->chap_in)
		put_challenge(e);
	a->done = !e->cfg->chap_in;
	return 0;
}

/* [RFC 7143: 9.2.1 #1, 12.1 #2-3] */
int login_auth_initiator(struct iscsi_login_engine *e)
{
	int err = 0;

	if (lacks_keys(e, GOT_AUTH_METHOD | GOT_CHAP_C | GOT_CHAP_R))
		return auth_fail(e, "the target's answer lacks the keys of its "
				    "step of CHAP (RFC 7143 §9.2)");
	if (has_keys(e, GOT_AUTH_METHOD))
		err = take_method(e);
	if (!err && has_keys(e, GOT_CHAP_C))
		err = take_challenge(e);
	if (!err && has_keys(e, GOT_CHAP_R)) {
		if (!e->auth.challenged || !has_keys(e, GOT_CHAP_N))
			return auth_fail(e, "unexpected CHAP response");
		err = check_response(e, e->cfg->chap_in, e->cfg->chap_out);
		e->auth.done = err == 0;
	}
	return err;
}
