/* SPDX-License-Identifier: BSD-2-Clause */
/* follow.c: iserctl events: a line for each event, as soon as it arrives. */
#include "tools/follow.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* Reads the answer to the request. Returns whether it is a result. */
static bool is_accepted(FILE *f)
{
	json_t *answer = ctl_read(f);
	bool good = json_is_true(json_object_get(answer, "result"));
	const char *why;

	alarm(0);
	ctl_make_plain(answer);
	why = json_string_value(
		json_object_get(json_object_get(answer, "error"), "message"));
	if (!good)
		fprintf(stderr, "iserctl: events: %s\n",
			why ? why : "iserd closed the connection");
	json_decref(answer);
	return good;
}

/* Returns the exit status. */
static int follow(FILE *f, unsigned count, bool as_json)
{
	for (unsigned n = 0; !count || n < count; n++) {
		json_t *event = ctl_read(f);

		if (!event || ferror(stdout)) {
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
	struct follow x = { 0 };
	json_t *none = json_object();
	int code = EXIT_USAGE, fd;
	char *text;
	FILE *f;

	if (!take_params(&x, params)) {
		json_decref(none);
		return code;
	}
	text = ctl_request("events", none);
	json_decref(none);
	ctl_limit_time(socket, timeout, NULL);
	fd = text ? ctl_connect(socket, &code) : -1;
	f = fd < 0 ? NULL : fdopen(fd, "r");
	if (f) {
		ctl_send(fd, text);
		code = is_accepted(f) ? follow(f, x.count, as_json)
				      : EXIT_REFUSED;
		fclose(f);
	} else if (fd >= 0) {
		close(fd);
	}
	free(text);
	return code;
}
