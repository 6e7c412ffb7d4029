/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * http.h: the HTTP endpoint of --metrics: /metrics, /healthz, /readyz,
 * /status.json and a web page at /. It only reads; it has no method that changes
 * anything.
 */
#ifndef DAEMON_METRICS_HTTP_H
#define DAEMON_METRICS_HTTP_H

struct daemon;

/* http_open listens at the address or path of --metrics and serves in the loop
 * of worker 0, as d->http. Returns 0, or an exit code after a message. */
int http_open(struct daemon *d);
/* http_close drops all connections; after workers_stop and snapshot_abandon.
 * Without http_open it does nothing. */
void http_close(struct daemon *d);

#endif
