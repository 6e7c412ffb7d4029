/* SPDX-License-Identifier: BSD-2-Clause */
/* verbs.c: loads and calls the module for RDMA devices. */
#include "net/verbs.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datamover/iser/dmiser.h"
#include "io/module.h"

#define LISTENERS_MAX 64

struct net_verbs {
	void *handle;
	const struct verbs_module *m;
	struct verbs *v;
	struct verbs_listener *listeners[LISTENERS_MAX];
	unsigned nlisteners;
};

struct net_verbs *net_verbs_open(struct io_loop *l,
				 const struct verbs_host *host, int *err,
				 char *why, size_t size)
{
	struct net_verbs *v = calloc(1, sizeof(*v));

	*err = -ENOMEM;
	snprintf(why, size, "out of memory");
	if (!v)
		return NULL;
	v->m = io_module_load(VERBS_FILE, VERBS_SYMBOL, &v->handle, err, why,
			      size);
	if (v->m && v->m->abi != VERBS_ABI) {
		*err = -ELIBBAD;
		snprintf(why, size, "%s is of another version", VERBS_FILE);
	} else if (v->m) {
		v->v = v->m->open(l, host, err);
		if (!v->v)
			snprintf(why, size, "%s",
				 *err == -ENODEV ? "no RDMA device here"
						 : strerror(-*err));
	}
	if (v->v)
		return v;
	if (v->handle)
		dlclose(v->handle);
	free(v);
	return NULL;
}

void net_verbs_unlisten(struct net_verbs *v)
{
	while (v && v->nlisteners)
		v->m->unlisten(v->listeners[--v->nlisteners]);
}

void net_verbs_close(struct net_verbs *v)
{
	if (!v)
		return;
	net_verbs_unlisten(v);
	v->m->close(v->v);
	dlclose(v->handle);
	free(v);
}

const struct verbs_module *net_verbs_module(const struct net_verbs *v)
{
	return v->m;
}

struct verbs *net_verbs_handle(const struct net_verbs *v)
{
	return v->v;
}

/* Queues as deep as the command window, with room for unexpected PDUs. */
static struct verbs_config config_of(enum iscsi_role role)
{
	struct verbs_config cfg = { .sends = 384,
				    .recvs = 1200,
				    .connect_time = 10 * XTIME_S };
	struct dmiser_config d;

	dmiser_config_default(&d, role);
	cfg.ird = d.ird;
	cfg.ord = d.ord;
	return cfg;
}

int net_verbs_listen(struct net_verbs *v, const struct net_addr *a,
		     void (*asked)(void *arg, struct verbs_request *r),
		     void *arg)
{
	const struct verbs_config cfg = config_of(ISCSI_TARGET);
	struct verbs_listener *l;
	int err;

	if (v->nlisteners == LISTENERS_MAX)
		return -ENOBUFS;
	l = v->m->listen(v->v, (const struct sockaddr *)&a->sa, &cfg, asked,
			 arg, &err);
	if (l)
		v->listeners[v->nlisteners++] = l;
	return err;
}

int net_verbs_hand(struct net_verbs *from, struct verbs_request *r,
		   struct net_verbs *to)
{
	return from->m->hand(r, to->v);
}

struct verbs_conn *net_verbs_connect(struct net_verbs *v,
				     const struct net_addr *a, int *err)
{
	struct verbs_config cfg = config_of(ISCSI_INITIATOR);
	uint8_t cm[DMISER_CM_LEN];

	/* siw and rxe end a connection at the remote invalidation of an
	 * ordinary memory region */
	dmiser_cm_request(false, cm);
	cfg.private_data = cm;
	cfg.private_len = sizeof(cm);
	/* cfg and what it points to are copied */
	/* cppcheck-suppress returnDanglingLifetime */
	return v->m->connect(v->v, (const struct sockaddr *)&a->sa, &cfg, err);
}
