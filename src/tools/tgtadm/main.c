/* SPDX-License-Identifier: BSD-2-Clause */
/* main.c: iser-tgtadm, which controls iserd by the command line of tgtadm(8). */
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "tools/standard.h"
#include "tools/tgtadm/tgtadm.h"

#define DEFAULT_SOCKET "/run/iserd/control"

/* Writes the path of the control socket to out. */
static void socket_path(const struct tgtadm_request *r, char out[256])
{
	const char *path = getenv("ISER_TGTADM_SOCKET");

	path = path && *path ? path : DEFAULT_SOCKET;
	if (r->control_port)
		snprintf(out, 256, "%s.%u", path, r->control_port);
	else
		snprintf(out, 256, "%s", path);
}

int main(int argc, char **argv)
{
	struct tgtadm_request r;
	struct tgtadm t = { .r = &r, .link = RPC_LINK_NONE };
	char path[256];
	int code;

	standard_open();
	(void)prctl(PR_SET_DUMPABLE, 0); /* there may be a secret in memory */
	tgtadm_program(argv[0]);
	if (tgtadm_options(&r, argc, argv, &code)) {
		socket_path(&r, path);
		t.socket = path;
		code = tgtadm_run(&t);
	}
	rpc_link_close(&t.link);
	json_decref(t.before);
	json_decref(t.config);
	json_decref(t.notes);
	if (r.password)
		explicit_bzero(r.password, strlen(r.password));
	free(r.password);
	return standard_end(tgtadm_name_of_program(), code, TGTADM_REFUSED);
}
