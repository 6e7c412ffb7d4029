/* SPDX-License-Identifier: BSD-2-Clause */
/* follow.c: iserctl events: a line for each event, as soon as it arrives. */
#include "tools/follow.h"

#include <stdio.h>
#include <string.h>

#include "base/opt.h"
#include "tools/ctl.h"

struct follow {
	unsigned count;
};

static const struct opt_row count_row = {
	.name = "count",
	.arg = "N",
	.initial = "0",
	OPT_NUMBER(struct follow, count, 0, 1000000),
};

/* Reads the parameters. False after a message. */
static bool take_params(struct follow *x, json_t *params)
{
	char why[OPT_WHY];
	const char *key;
	json_t *v;

	json_object_foreach(params, key, v)
	{
		if (strcmp(key, "count") != 0) {
			fprintf(stderr,
				"iserctl: events: %s: unknown parameter; give "
				"count=N\n",
				key);
			return false;
		}
		if (opt_set(&count_row, x, "count", json_string_value(v),
			    why) != OPT_OK) {
			fprintf(stderr, "iserctl: events: %s\n", why);
			return false;
		}
	}
	return true;
}

static const char *text_of(const json_t *e, const char *key)
{
	const char *text = json_string_value(json_object_get(e, key));

	return text ? text : "-";
}

static void print_event(json_t *e, bool as_json)
{
	ctl_make_plain(e);
	if (as_json) {
		json_dumpf(e, stdout, JSON_COMPACT);
		putchar('\n');
	} else {
		printf("%s %s %s: %s\n", text_of(e, "time"),
		       text_of(e, "level"), text_of(e, "event"),
		       text_of(e, "text"));
	}
	fflush(stdout);
}

/* Returns whether iserd sends events. If not, after a message. */
static bool is_accepted(json_t *answer)
{
	bool good = json_is_true(json_object_get(answer, "result"));
	const char *why;

	ctl_make_plain(answer);
	why = json_string_value(
		json_object_get(json_object_get(answer, "error"), "message"));
	if (!good)
		fprintf(stderr, "iserctl: events: %s\n",
			why ? why : "iserd closed the connection");
	return good;
}

/* Returns the exit status. */
static int follow(struct rpc_link *l, unsigned count, bool as_json)
{
	for (unsigned n = 0; !count || n < count; n++) {
		json_t *event = NULL;

		if (rpc_link_read(l, 0, &event) || ferror(stdout)) {
			json_decref(event);
			fputs("iserctl: events: iserd closed the connection\n",
			      stderr);
			return EXIT_NO_DAEMON;
		}
		print_event(json_object_get(event, "params"), as_json);
		json_decref(event);
	}
	return EXIT_OK;
}

int follow_run(const char *socket, unsigned timeout, bool as_json,
	       json_t *params)
{
	struct ctl_call call = { .path = socket,
				 .method = "events",
				 .seconds = timeout };
	struct rpc_link l = RPC_LINK_NONE;
	struct follow x = { 0 };
	json_t *answer = NULL;
	int code;

	if (!take_params(&x, params))
		return EXIT_USAGE;
	call.params = json_object();
	code = ctl_open(&l, socket, timeout);
	if (code == EXIT_OK)
		code = ctl_call(&l, &call, &answer);
	if (code == EXIT_OK)
		code = is_accepted(answer) ? follow(&l, x.count, as_json)
					   : EXIT_REFUSED;
	json_decref(answer);
	json_decref(call.params);
	rpc_link_close(&l);
	return code;
}
