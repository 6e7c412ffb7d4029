/* SPDX-License-Identifier: BSD-2-Clause */
/* main.c: iserd, the target daemon. */
#include "daemon/daemon.h"

int main(int argc, char **argv)
{
	struct options o;
	int code;

	if (!options_parse(&o, argc, argv, &code))
		return code;
	return daemon_run(&o);
}
