/* SPDX-License-Identifier: BSD-2-Clause */
/* unknown.c: what to do instead of a method that iserd does not have. */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/nearest.h"
#include "daemon/rpc/api.h"

/* Returns what to do instead of a word that administrators know from other programs. */
static const char *advice_for(const char *word)
{
	static const char *const words[][2] = {
		{ "list", "did you mean tree?" },
		{ "ls", "did you mean tree?" },
		{ "show", "did you mean tree?" },
		{ "info", "did you mean status?" },
		{ "help", "did you mean methods?" },
		{ "reload", "did you mean apply?" },
		{ "update", "did you mean apply?" },
		{ "stop", "did you mean shutdown?" },
		{ "disks", "did you mean luns?" },
		{ "units", "did you mean luns?" },
		{ "metrics", "did you mean stats?" },
		{ "users", "did you mean auth list?" },
		{ "restart", "restart the service, or replace this iserd by "
			     "iserd --takeover" },
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (!strcmp(words[i][0], word))
			return words[i][1];
	return NULL;
}

static void unknown_method(const char *name, char out[RPC_UNKNOWN])
{
	const char *advice = advice_for(name);
	const struct rpc_method *m;
	const struct rpc_noun *nouns;
	struct nearest near;
	char meant[64];
	size_t n;

	nearest_begin(&near, name);
	m = rpc_methods(&n);
	for (size_t i = 0; i < n; i++)
		nearest_try(&near, m[i].name);
	nouns = rpc_nouns(&n);
	for (size_t i = 0; i < n; i++)
		nearest_try(&near, nouns[i].name);
	if (!advice && near.best) {
		/* a noun needs a verb */
		snprintf(meant, sizeof(meant), "did you mean %.32s%s?",
			 near.best, rpc_method_of(near.best) ? "" : " list");
		advice = meant;
	}
	snprintf(out, RPC_UNKNOWN, "%.100s: unknown method; %s", name,
		 advice ? advice : "\"methods\" lists them");
}

static void unknown_noun(const char *noun, char out[RPC_UNKNOWN])
{
	struct nearest near;
	const struct rpc_noun *all;
	char words[200] = "";
	size_t n;

	all = rpc_nouns(&n);
	nearest_begin(&near, noun);
	for (size_t i = 0; i < n; i++) {
		nearest_try(&near, all[i].name);
		nearest_list(words, sizeof(words), all[i].name);
	}
	if (near.best)
		snprintf(out, RPC_UNKNOWN,
			 "%.64s: no such noun; did you mean %s?", noun,
			 near.best);
	else
		snprintf(out, RPC_UNKNOWN,
			 "%.64s: no such noun; give one of %s", noun, words);
}

static void unknown_verb(const struct rpc_noun *noun, const char *verb,
			 char out[RPC_UNKNOWN])
{
	struct nearest near;
	char words[200] = "";

	nearest_begin(&near, verb);
	for (unsigned i = 0; i < RPC_VERBS && noun->verbs[i]; i++) {
		nearest_try(&near, noun->verbs[i]);
		nearest_list(words, sizeof(words), noun->verbs[i]);
	}
	if (near.best)
		snprintf(out, RPC_UNKNOWN,
			 "%s %.64s: no such verb; did you mean %s %s?",
			 noun->name, verb, noun->name, near.best);
	else
		snprintf(out, RPC_UNKNOWN,
			 "%s %.64s: no such verb; give one of %s", noun->name,
			 verb, words);
}

bool rpc_unknown(const char *method, char out[RPC_UNKNOWN])
{
	const char *dot = strchr(method, '.');
	const struct rpc_noun *n;
	char noun[32];

	if (!dot) {
		if (rpc_method_of(method))
			return false;
		unknown_method(method, out);
		return true;
	}
	snprintf(noun, sizeof(noun), "%.*s", (int)(dot - method), method);
	n = (size_t)(dot - method) < sizeof(noun) ? rpc_noun_of(noun) : NULL;
	if (n && rpc_verb_of(dot + 1) && rpc_noun_has(n, dot + 1))
		return false;
	if (n)
		unknown_verb(n, dot + 1, out);
	else
		unknown_noun(noun, out);
	return true;
}
