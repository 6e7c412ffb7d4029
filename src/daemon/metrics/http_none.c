/* SPDX-License-Identifier: BSD-2-Clause */
/* http_none.c: http.h in a build without libmicrohttpd. */
#include "daemon/daemon.h"
#include "daemon/log/say.h"
#include "daemon/metrics/http.h"

int http_open(struct daemon *d)
{
	if (!d->options.numbers.metrics)
		return 0;
	say("--metrics %s: this iserd was built without libmicrohttpd",
	    d->options.numbers.metrics);
	return EXIT_USAGE;
}

void http_close(struct daemon *d)
{
	(void)d;
}
