/* SPDX-License-Identifier: BSD-2-Clause */
/* link.c: requests to the control socket of iserd. */
#include <stdlib.h>
#include <string.h>

#include "tools/tgtadm/tgtadm.h"

#define ANSWER_TIME 60 /* seconds */

/* Notes why there is no answer. */
static void fail(struct tgtadm *t, const char *what, const char *why)
{
	t->code = 0;
	snprintf(t->why, sizeof(t->why), "%.120s: %s%s%.200s", t->socket, what,
		 why ? ": " : "", why ? why : "");
}

static bool connect_socket(struct tgtadm *t)
{
	int err = t->link.fd >= 0
			  ? 0
			  : rpc_link_open(&t->link, t->socket, ANSWER_TIME);

	if (err == -ENAMETOOLONG)
		fail(t, "the path is too long for a socket", NULL);
	else if (err)
		fail(t,
		     "no iserd there; start iserd with --control and this "
		     "path, or set ISER_TGTADM_SOCKET",
		     strerror(-err));
	return !err;
}

static const char *failure_of(int err)
{
	switch (err) {
	case -EILSEQ:
		return "the request is not UTF-8";
	case -ETIMEDOUT:
		return "no answer from iserd; the request may still be "
		       "carried out";
	case -EMSGSIZE:
		return "the answer of iserd is too long";
	case -EPROTO:
		return "the answer is not one of iserd";
	default:
		return "iserd closed the connection";
	}
}

/* Returns the result of an answer, or NULL with the error in t. */
static json_t *result_of(struct tgtadm *t, const json_t *answer)
{
	const json_t *error = json_object_get(answer, "error");
	const char *text = json_string_value(json_object_get(error, "message"));
	json_t *result = json_object_get(answer, "result");

	if (result)
		return json_incref(result);
	if (!text) {
		fail(t, "the answer is not one of iserd", NULL);
		return NULL;
	}
	t->code = (int)get_number(error, "code");
	t->code = t->code ? t->code : -1;
	if (!strncmp(text, "patch: ", 7)) /* not a word of this program */
		text += 7;
	snprintf(t->why, sizeof(t->why), "%.500s", text);
	return NULL;
}

json_t *tgtadm_call(struct tgtadm *t, const char *method, json_t *params)
{
	json_t *answer = NULL, *result = NULL;
	int err;

	if (!connect_socket(t)) {
		json_decref(params);
		return NULL;
	}
	err = rpc_link_call(&t->link, method, params, ANSWER_TIME, &answer);
	if (err)
		fail(t, failure_of(err), NULL);
	else
		result = result_of(t, answer);
	json_decref(answer);
	return result;
}

int tgtadm_failed(const struct tgtadm *t)
{
	if (t->code)
		return tgtadm_refuse("%s: %s", tgtadm_invalid, t->why);
	tgtadm_say("%s", t->why);
	return TGTADM_NO_DAEMON;
}
