/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cluster.c: connections to clusters. A connection has some twenty threads, so
 * images of one cluster and one client share it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/rbd/internal.h"

/* Seconds until rados_connect gives up, unless the file of the configuration has
 * another value than the default of Ceph, which is 300. */
#define MOUNT_DEFAULT "300"
#define MOUNT_TIMEOUT "10"

struct bsrbd_cluster {
	struct list link; /* clusters */
	unsigned refs;
	char *conf, *id, *keyring; /* as in the spec; NULL: not given */
	rados_t rados;
	char fsid[37];
};

/* Guards clusters and the references of its members. Held while a connection
 * is made, so that a second image waits for the connection of the first. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list clusters = { &clusters, &clusters };

static bool is_equal(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static char *copy_text(const char *text, bool *ok)
{
	char *copy = text ? strdup(text) : NULL;

	*ok &= copy || !text;
	return copy;
}

static void free_cluster(struct bsrbd_cluster *c)
{
	list_del(&c->link);
	if (c->rados)
		rados_shutdown(c->rados);
	free(c->conf);
	free(c->id);
	free(c->keyring);
	free(c);
}

static struct bsrbd_cluster *new_cluster(const struct bsrbd_spec *s)
{
	struct bsrbd_cluster *c = calloc(1, sizeof(*c));
	bool ok = true;

	if (!c)
		return NULL;
	list_init(&c->link);
	c->refs = 1;
	c->conf = copy_text(s->conf, &ok);
	c->id = copy_text(s->id, &ok);
	c->keyring = copy_text(s->keyring, &ok);
	if (ok)
		return c;
	free_cluster(c);
	return NULL;
}

/* A fence must blocklist. Pings each second let a watch of a few seconds live. */
static int configure_fence(struct bsrbd_opening *o, rados_t rados)
{
	static const struct {
		const char *name, *older, *value;
	} settings[] = {
		{ "rbd_blocklist_on_break_lock", "rbd_blacklist_on_break_lock",
		  "true" },
		{ "objecter_tick_interval", NULL, "1" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(settings); i++) {
		int err = rados_conf_set(rados, settings[i].name,
					 settings[i].value);

		if (err && settings[i].older)
			err = rados_conf_set(rados, settings[i].older,
					     settings[i].value);
		if (err)
			return bsrbd_refuse(o, err,
					    "librados has no %s: %s; install "
					    "another version of librados",
					    settings[i].name, strerror(-err));
	}
	return 0;
}

static int configure(struct bsrbd_opening *o, struct bsrbd_cluster *c)
{
	char text[32];
	int err = rados_conf_read_file(c->rados, c->conf);

	if (err)
		return bsrbd_refuse(
			o, err,
			"cannot read the configuration of Ceph (%s): %s; name "
			"the file with ,conf=FILE",
			c->conf ? c->conf : "/etc/ceph/ceph.conf",
			strerror(-err));
	if (c->keyring)
		err = rados_conf_set(c->rados, "keyring", c->keyring);
	/* without a cache, what librbd acknowledges is durable */
	if (!err)
		err = rados_conf_set(c->rados, "rbd_cache", "false");
	if (!err &&
	    !rados_conf_get(c->rados, "client_mount_timeout", text,
			    sizeof(text)) &&
	    strcmp(text, MOUNT_DEFAULT) == 0)
		err = rados_conf_set(c->rados, "client_mount_timeout",
				     MOUNT_TIMEOUT);
	if (err)
		return bsrbd_refuse(o, err, "cannot configure librados: %s",
				    strerror(-err));
	return o->cfg->clustered ? configure_fence(o, c->rados) : 0;
}

static int refuse_connect(struct bsrbd_opening *o,
			  const struct bsrbd_cluster *c, int err)
{
	const char *id = c->id ? c->id : "admin";

	switch (err) {
	case -ETIMEDOUT:
		return bsrbd_refuse(o, err,
				    "no monitor of the cluster answers; check "
				    "\"mon host\" in the configuration of Ceph "
				    "and the network");
	case -EACCES:
	case -EPERM:
	case -ENOENT:
		return bsrbd_refuse(o, err,
				    "the cluster does not admit client.%s: %s; "
				    "give the client with ,id=NAME and its key "
				    "with ,keyring=FILE",
				    id, strerror(-err));
	default:
		return bsrbd_refuse(o, err,
				    "cannot connect to the cluster: %s; check "
				    "the configuration of Ceph",
				    strerror(-err));
	}
}

static int connect_cluster(struct bsrbd_opening *o, struct bsrbd_cluster *c)
{
	char name[256];
	int err;

	snprintf(name, sizeof(name), "client.%s", c->id ? c->id : "admin");
	err = rados_create2(&c->rados, "ceph", name, 0);
	if (err) {
		c->rados = NULL;
		return bsrbd_refuse(o, err, "%s is not a client of Ceph: %s",
				    name, strerror(-err));
	}
	err = configure(o, c);
	if (err)
		return err;
	err = rados_connect(c->rados);
	if (err)
		return refuse_connect(o, c, err);
	err = rados_cluster_fsid(c->rados, c->fsid, sizeof(c->fsid));
	return err < 0 ? refuse_connect(o, c, err) : 0;
}

int bsrbd_cluster_get(struct bsrbd_opening *o)
{
	const struct bsrbd_spec *s = &o->spec;
	struct bsrbd_cluster *c;
	struct list *at;
	int err = 0;

	pthread_mutex_lock(&lock);
	for (at = clusters.next; at != &clusters && !o->cfg->clustered;
	     at = at->next) {
		c = list_entry(at, struct bsrbd_cluster, link);
		if (is_equal(c->conf, s->conf) && is_equal(c->id, s->id) &&
		    is_equal(c->keyring, s->keyring)) {
			c->refs++;
			goto out_found;
		}
	}
	c = new_cluster(s);
	err = c ? connect_cluster(o, c)
		: bsrbd_refuse(o, -ENOMEM, "out of memory");
	if (err) {
		if (c)
			free_cluster(c);
		c = NULL;
	} else if (!o->cfg->clustered) {
		list_push_back(&clusters, &c->link);
	}
out_found:
	o->r->cluster = c;
	pthread_mutex_unlock(&lock);
	return err;
}

void bsrbd_cluster_put(struct bsrbd_cluster *c)
{
	pthread_mutex_lock(&lock);
	if (--c->refs == 0)
		free_cluster(c);
	pthread_mutex_unlock(&lock);
}

rados_t bsrbd_cluster_rados(const struct bsrbd_cluster *c)
{
	return c->rados;
}

const char *bsrbd_cluster_fsid(const struct bsrbd_cluster *c)
{
	return c->fsid;
}
