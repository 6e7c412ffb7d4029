/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * service.h: iserd as a service: the state for systemd (sd_notify(3)), its
 * watchdog (sd_watchdog_enabled(3)) and the sockets that it passes
 * (sd_listen_fds(3)). Without a service manager each function does nothing.
 * Worker 0.
 */
#ifndef DAEMON_UPGRADE_SERVICE_H
#define DAEMON_UPGRADE_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

struct daemon;
struct net_addr;
struct service;

/* service_open reads and clears the variables of the service manager, and checks the sockets that
 * it passes; count_sessions is for the status. Returns 0, or an exit code after a message;
 * d->service is to be closed in both cases. Before another thread starts. */
int service_open(struct daemon *d,
		 unsigned (*count_sessions)(struct daemon *d));
/* service_stop ends the watchdog and the updates; after workers_stop. */
void service_stop(struct daemon *d);
/* service_close closes the sockets that were not taken, and frees d->service;
 * after service_stop. */
void service_close(struct daemon *d);

/* service_has_sockets returns whether there are sockets to take. */
bool service_has_sockets(const struct service *s);
/* service_take_socket returns the passed socket that listens at a, for the
 * caller to own; a NULL: any. -1: there is none. */
int service_take_socket(struct service *s, const struct net_addr *a);

/* service_ready reports that iserd serves, and starts the watchdog and the updates
 * of the status. */
void service_ready(struct daemon *d);
/* service_reloading reports the begin of a reload (RELOADING=1 with
 * MONOTONIC_USEC, as Type=notify-reload needs it); service_reloaded its end, by
 * READY=1 once all reloads have ended. */
void service_reloading(struct daemon *d);
void service_reloaded(struct daemon *d);
/* service_watchdog returns the period of the watchdog in microseconds, or 0, for
 * the next iserd. service_hand_over names the process at the other end of the
 * control connection sock as the main process of the service (MAINPID=), before
 * this one ends. service_take_over uses what d->inherited has of the service;
 * service_ready then names this process. */
int64_t service_watchdog(const struct daemon *d);
void service_hand_over(const struct daemon *d, int sock);
void service_take_over(struct daemon *d);
/* service_alive is a sign of life of a process whose loops do not run, while the next
 * iserd opens what was handed over. */
void service_alive(const struct daemon *d);
/* service_resume makes s the service of d, which starts with the sockets that
 * d->inherited has of it. */
void service_resume(struct service *s, struct daemon *d);

/* service_variable returns the variable of the service manager for a process that this
 * one starts, as NAME=VALUE from malloc; NULL: there is no service manager. */
char *service_variable(const struct service *s);

/* service_stopping reports that iserd is ending, and why. */
void service_stopping(struct daemon *d, const char *why);

#endif
