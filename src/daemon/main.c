/* SPDX-License-Identifier: BSD-2-Clause */
/* main.c: iserd, the target daemon. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "daemon/daemon.h"
#include "daemon/rpc/schema.h"
#include "daemon/say.h"

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

int main(int argc, char **argv)
{
	struct options o;
	int code;

	daemon_block_signals();
	fill_descriptors();
	if (argc > 1 && !strcmp(argv[1], "schema"))
		return print_schema(argc);
	if (!options_parse(&o, argc, argv, &code))
		return code;
	return daemon_run(&o);
}
