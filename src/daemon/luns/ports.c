/* SPDX-License-Identifier: BSD-2-Clause */
/* ports.c: the record of port identifiers: a line "IDENTIFIER NAME" for each port, then
 * "end". */
#include "daemon/luns/ports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "daemon/log/say.h"

#define END "end\n"

static const struct state_record record = {
	.name = "ports",
	.type = "ISERPRT1",
	.older = "iserd ports 1\n",
	.max = 20u << 20, /* 65,535 ports with long names */
	.without = "then target ports may get other identifiers, and saved "
		   "reservations may belong to other ports",
};

/* ---- load ---- */

/* Takes one line, which ends with a newline. Returns the next one; NULL: the line
 * is not valid. */
static char *take_line(char *line, struct dev_server *server)
{
	char *end = strchr(line, '\n'), *name;
	unsigned long id = strtoul(line, &name, 10);

	if (!end || name == line || *name != ' ' || !id || id > UINT16_MAX)
		return NULL;
	*end = '\0';
	return dev_port_remember(server, name + 1, (uint16_t)id) ? NULL
								 : end + 1;
}

bool ports_load(const struct state *s, struct dev_server *server)
{
	char *text, *line;
	bool good;

	if (!state_record_read(s, &record, &text))
		return false;
	for (line = text; line && strcmp(line, END) != 0;)
		line = take_line(line, server);
	good = !text || line;
	if (!good)
		state_record_damaged(s, &record);
	free(text);
	return good;
}

/* ---- save ---- */

struct list_of_ports {
	char *text;
	size_t len, room;
	bool failed;
};

static void add_text(struct list_of_ports *l, const char *text)
{
	size_t len = strlen(text);

	if (l->room - l->len <= len) {
		size_t room = 2 * (l->room + len + 1);
		char *more = realloc(l->text, room);

		if (!more) {
			l->failed = true;
			return;
		}
		l->text = more;
		l->room = room;
	}
	memcpy(l->text + l->len, text, len + 1);
	l->len += len;
}

static void add_port(void *arg, const char *name, uint16_t id)
{
	struct list_of_ports *l = arg;
	char line[300];

	snprintf(line, sizeof(line), "%u %s\n", id, name);
	if (!l->failed)
		add_text(l, line);
}

void ports_save(const struct state *s, const struct dev_server *server)
{
	struct list_of_ports l = { 0 };

	dev_ports_each(server, add_port, &l);
	add_text(&l, END);
	if (l.failed)
		say("out of memory: %s/ports was not written", state_path(s));
	else
		(void)state_record_save(s, &record, l.text);
	free(l.text);
}
