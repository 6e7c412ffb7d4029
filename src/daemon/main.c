/* SPDX-License-Identifier: BSD-2-Clause */
/* main.c: iserd, the target daemon. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/apply/check.h"
#include "daemon/config/model.h"
#include "daemon/daemon.h"
#include "daemon/log/say.h"
#include "daemon/rpc/schema.h"

/* Opens descriptors 0, 1 and 2 where the caller closed them: a store that is
 * opened later would get such a number, and the log would be written to it. */
static void fill_descriptors(void)
{
	int fd = -1;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

static int print_schema(int argc)
{
	if (argc > 2) {
		say("schema: takes no arguments; leave them out");
		return EXIT_USAGE;
	}
	return schema_print() ? EXIT_OK : EXIT_ERROR;
}

/* Reads the configuration of the command line, or of the file that it names.
 * NULL after a message. */
static struct cfg_model *read_model(const struct options *o)
{
	struct cfg_errors *e = calloc(1, sizeof(*e));
	struct cfg_model *m = NULL;

	if (!e)
		say("out of memory");
	else if (o->start.config)
		m = cfg_model_load(o->start.config, e);
	else
		m = cfg_model_of_options(o, e);
	if (e && o->start.config)
		cfg_errors_print(e, o->start.config, "");
	for (unsigned i = 0; e && !o->start.config && i < cfg_errors_kept(e);
	     i++)
		say("%s", e->all[i].text);
	free(e);
	if (m && o->start.config) {
		m->options.start.config = o->start.config;
		m->options.start.takeover = o->start.takeover;
	}
	return m;
}

int main(int argc, char **argv)
{
	struct cfg_model *m;
	struct options o;
	int code;

	daemon_block_signals();
	fill_descriptors();
	if (argc > 1 && !strcmp(argv[1], "schema"))
		return print_schema(argc);
	if (!options_parse(&o, argc, argv, &code))
		return code;
	if (o.start.check)
		return cfg_file_check(o.start.config) ? EXIT_OK : EXIT_USAGE;
	m = read_model(&o);
	if (!m)
		return o.start.config ? EXIT_USAGE : EXIT_STORE;
	if (m->options.start.takeover && !m->options.control) {
		say("--takeover: the configuration has no control socket; give "
		    "daemon: {control: PATH}");
		cfg_model_free(m);
		return EXIT_USAGE;
	}
	return daemon_run(m);
}
