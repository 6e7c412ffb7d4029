/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cluster.c: connections to clusters. A connection has some twenty threads, so
 * images of one cluster and one client share it. Images that gateways share have
 * connections apart: a gateway that fails is fenced once, with all its images.
 */
#include <errno.h>
#ifdef __GLIBC__
# include <malloc.h>
#endif
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/rbd/internal.h"

/* Seconds until rados_connect gives up, unless the file of the configuration has
 * another value than the default of Ceph, which is 300. */
#define MOUNT_DEFAULT "300"
#define MOUNT_TIMEOUT "10"

#define FENCES	       16u
#define FENCE_KNOWN    (60 * XTIME_S)
#define BLOCKLIST_TIME 2592000u /* 30 days, in seconds */
#define ADDRESS_SIZE   256u
#define GONE	       64u
#define GONE_SIZE      40u
#define HEAP_BLOCK_MAX (32 << 20) /* the most that glibc allows */

/* A client that this connection has put on the blocklist. */
struct fenced {
	char address[ADDRESS_SIZE]; /* "": none */
	xtime at;
};

struct bsrbd_cluster {
	struct list link; /* clusters */
	unsigned refs;
	bool clustered;		   /* for images that gateways share */
	char *conf, *id, *keyring; /* as in the spec; NULL: not given */
	rados_t rados;
	char fsid[37];
	pthread_mutex_t mutex; /* guards the members below; held briefly */
	bool is_fenced;	       /* the cluster refuses all requests */
	char gone[GONE][GONE_SIZE];
	unsigned next_gone;
	/* guards the members below; held during a fence, so that the fences of other
	 * images wait for it, and find what it did */
	pthread_mutex_t fencing;
	struct fenced fenced[FENCES];
	unsigned next_fenced;
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
	if (c->rados)
		rados_shutdown(c->rados);
	pthread_mutex_destroy(&c->fencing);
	pthread_mutex_destroy(&c->mutex);
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
	pthread_mutex_init(&c->mutex, NULL);
	pthread_mutex_init(&c->fencing, NULL);
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

/* librados makes a buffer for the data of each large request. iserd maps blocks of 64 KiB
 * and more (workers_open), so each page of them would be a page fault: half the CPU
 * time of a request of 1 MiB. */
static void keep_large_blocks(void)
{
#ifdef __GLIBC__
	mallopt(M_MMAP_THRESHOLD, HEAP_BLOCK_MAX);
#endif
}

static int connect_cluster(struct bsrbd_opening *o, struct bsrbd_cluster *c)
{
	char name[256];
	int err;

	keep_large_blocks();
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

static bool is_fenced(struct bsrbd_cluster *c)
{
	bool fenced;

	pthread_mutex_lock(&c->mutex);
	fenced = c->is_fenced;
	pthread_mutex_unlock(&c->mutex);
	return fenced;
}

static bool serves(struct bsrbd_cluster *c, const struct bsrbd_opening *o)
{
	const struct bsrbd_spec *s = &o->spec;

	return c->clustered == o->cfg->clustered && !is_fenced(c) &&
	       is_equal(c->conf, s->conf) && is_equal(c->id, s->id) &&
	       is_equal(c->keyring, s->keyring);
}

int bsrbd_cluster_get(struct bsrbd_opening *o)
{
	struct bsrbd_cluster *c;
	struct list *at;
	int err = 0;

	pthread_mutex_lock(&lock);
	for (at = clusters.next; at != &clusters; at = at->next) {
		c = list_entry(at, struct bsrbd_cluster, link);
		if (serves(c, o)) {
			c->refs++;
			goto out_found;
		}
	}
	c = new_cluster(&o->spec);
	err = c ? connect_cluster(o, c)
		: bsrbd_refuse(o, -ENOMEM, "out of memory");
	if (err) {
		if (c)
			free_cluster(c);
		c = NULL;
	} else {
		c->clustered = o->cfg->clustered;
		list_push_back(&clusters, &c->link);
	}
out_found:
	o->r->cluster = c;
	pthread_mutex_unlock(&lock);
	return err;
}

/* The end of a connection may take long, so others do not wait for it. */
void bsrbd_cluster_put(struct bsrbd_cluster *c)
{
	bool last;

	pthread_mutex_lock(&lock);
	last = --c->refs == 0;
	if (last)
		list_del(&c->link);
	pthread_mutex_unlock(&lock);
	if (last)
		free_cluster(c);
}

void bsrbd_cluster_fenced(struct bsrbd_cluster *c)
{
	pthread_mutex_lock(&c->mutex);
	c->is_fenced = true;
	pthread_mutex_unlock(&c->mutex);
}

bool bsrbd_cluster_gone(struct bsrbd_cluster *c, const char *client, bool note)
{
	bool gone = false;

	pthread_mutex_lock(&c->mutex);
	for (unsigned i = 0; i < GONE; i++)
		gone |= strcmp(c->gone[i], client) == 0;
	if (note && !gone)
		snprintf(c->gone[c->next_gone++ % GONE], GONE_SIZE, "%s",
			 client);
	pthread_mutex_unlock(&c->mutex);
	return gone;
}

/* ---- the fence of another client ---- */

/* The name of the command, which older versions of Ceph call "blacklist". */
static int add_to_blocklist(rados_t rados, const char *word,
			    const char *address)
{
	char command[512], *out = NULL, *status = NULL;
	const char *lines[] = { command };
	size_t nout = 0, nstatus = 0;
	int err;

	snprintf(command, sizeof(command),
		 "{\"prefix\": \"osd %s\", \"%sop\": \"add\", \"addr\": "
		 "\"%s\", \"expire\": %u.0}",
		 word, word, address, BLOCKLIST_TIME);
	err = rados_mon_command(rados, lines, 1, "", 0, &out, &nout, &status,
				&nstatus);
	rados_buffer_free(out);
	rados_buffer_free(status);
	return err;
}

/* Only for a time, since an administrator can take a client off the blocklist. */
static bool was_fenced(const struct bsrbd_cluster *c, const char *address)
{
	for (unsigned i = 0; i < FENCES; i++) {
		const struct fenced *f = &c->fenced[i];

		if (f->address[0] && strcmp(f->address, address) == 0 &&
		    io_now_exact() - f->at < FENCE_KNOWN)
			return true;
	}
	return false;
}

/*
 * From the new map on, all requests of this connection carry the map's number: a server
 * of objects that has not seen the map gets it before it executes them, and refuses the
 * old owner from then on.
 */
static int fence(struct bsrbd_cluster *c, const char *address)
{
	struct fenced *f = &c->fenced[c->next_fenced];
	int err = add_to_blocklist(c->rados, "blocklist", address);

	if (err == -EINVAL)
		err = add_to_blocklist(c->rados, "blacklist", address);
	if (!err)
		err = rados_wait_for_latest_osdmap(c->rados);
	if (err)
		return err;
	snprintf(f->address, sizeof(f->address), "%s", address);
	f->at = io_now_exact();
	c->next_fenced = (c->next_fenced + 1) % FENCES;
	return 0;
}

int bsrbd_cluster_fence(struct bsrbd_cluster *c, const char *address)
{
	int err = 0;

	pthread_mutex_lock(&c->fencing);
	if (!was_fenced(c, address))
		err = fence(c, address);
	pthread_mutex_unlock(&c->fencing);
	return err;
}

rados_t bsrbd_cluster_rados(const struct bsrbd_cluster *c)
{
	return c->rados;
}

const char *bsrbd_cluster_fsid(const struct bsrbd_cluster *c)
{
	return c->fsid;
}
