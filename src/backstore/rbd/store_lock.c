/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * store_lock.c: the exclusive lock of an image that gateways share, and the fence: the
 * cluster refuses all further requests of the connection that had the lock. On the
 * thread of the store.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/rbd/store.h"
#include "base/err.h"
#include "cluster/blob.h"

#define LOCK_NAME "rbd_lock" /* of librbd */

/* The client that has the lock. */
struct locker {
	char client[STORE_CLIENT], cookie[256], address[256];
};

__attribute__((format(printf, 2, 3))) static void
say_later(struct bsrbd_call *c, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	err_why(c->why, sizeof(c->why), c->s->image->bs.name, format, args);
	va_end(args);
}

/* Copies text, which ends within size bytes; else returns false. */
static bool take_text(char *to, size_t size, const char *text)
{
	size_t n = strnlen(text, size);

	if (n == size)
		return false;
	memcpy(to, text, n + 1);
	return true;
}

/* Returns 1 if a client has the lock, 0 if none has, or -Exxx. rbd_list_lockers may
 * give what librbd knew before, so this asks the cluster. */
static int find_locker(struct bsrbd_store *s, struct locker *l)
{
	char tag[256], clients[1024], cookies[1024], addrs[1024];
	size_t ntag = sizeof(tag), nclients = sizeof(clients),
	       ncookies = sizeof(cookies), naddrs = sizeof(addrs);
	int exclusive;
	ssize_t n =
		rados_list_lockers(s->image->pool, s->header, LOCK_NAME,
				   &exclusive, tag, &ntag, clients, &nclients,
				   cookies, &ncookies, addrs, &naddrs);

	if (n <= 0)
		return n == -ENOENT ? 0 : (int)n;
	return take_text(l->client, sizeof(l->client), clients) &&
			       take_text(l->cookie, sizeof(l->cookie),
					 cookies) &&
			       take_text(l->address, sizeof(l->address), addrs)
		       ? 1
		       : -ERANGE;
}

/* ---- the clients of the gateways ---- */

/* Finds the name of the gateway that the client belongs to. 0, or -Exxx; -ENOENT: the
 * client is not a gateway. */
static int find_gateway(struct bsrbd_store *s, const char *client,
			char id[CLUSTER_ID_SIZE])
{
	rados_read_op_t op = rados_create_read_op();
	const size_t len = strlen(client);
	size_t nkey, nvalue = 0;
	rados_omap_iter_t it;
	char *key = NULL, *value = NULL;
	int part = 0, err;

	if (!op)
		return -ENOMEM;
	rados_read_op_omap_get_vals_by_keys2(op, &client, 1, &len, &it, &part);
	err = rados_read_op_operate(op, s->image->pool, s->gateways, 0);
	rados_release_read_op(op);
	if (err)
		return err;
	if (!part)
		part = rados_omap_get_next2(it, &key, &value, &nkey, &nvalue);
	id[0] = '\0';
	if (!part && value && nvalue < CLUSTER_ID_SIZE) {
		memcpy(id, value, nvalue);
		id[nvalue] = '\0';
	}
	rados_omap_get_end(it);
	if (part)
		return part;
	return cluster_id_ok(id, CLUSTER_ID_SIZE) ? 0 : -ENOENT;
}

static void forget_clients(struct bsrbd_store *s, const char *const *clients,
			   size_t n)
{
	rados_write_op_t op = n ? rados_create_write_op() : NULL;
	size_t lens[STORE_CLIENTS];

	if (!op)
		return;
	for (size_t i = 0; i < n; i++)
		lens[i] = strlen(clients[i]);
	rados_write_op_omap_rm_keys2(op, (char const *const *)clients, lens, n);
	/* a client that stays is only clutter */
	rados_write_op_operate(op, s->image->pool, s->gateways, NULL,
			       STORE_WRITE);
	rados_release_write_op(op);
}

size_t bsrbd_store_earlier(struct bsrbd_store *s,
			   char names[STORE_CLIENTS][STORE_CLIENT])
{
	size_t n = 0, nkey, nvalue;
	rados_read_op_t op = rados_create_read_op();
	rados_omap_iter_t it;
	unsigned char more;
	char *key, *value;
	int part = 0;

	if (!op)
		return 0;
	rados_read_op_omap_get_vals2(op, "", "", STORE_CLIENTS, &it, &more,
				     &part);
	if (!rados_read_op_operate(op, s->image->pool, s->gateways, 0)) {
		while (!part &&
		       !rados_omap_get_next2(it, &key, &value, &nkey,
					     &nvalue) &&
		       key && n < STORE_CLIENTS) {
			if (strcmp(key, s->client) == 0 ||
			    nkey >= STORE_CLIENT ||
			    nvalue != strlen(s->store.id) ||
			    memcmp(value, s->store.id, nvalue) != 0)
				continue;
			snprintf(names[n++], STORE_CLIENT, "%s", key);
		}
		rados_omap_get_end(it);
	}
	rados_release_read_op(op);
	return n;
}

/* The lock is this client's, so no earlier client of the gateway has it. */
static void forget_earlier(struct bsrbd_store *s)
{
	char names[STORE_CLIENTS][STORE_CLIENT];
	const char *old[STORE_CLIENTS];
	size_t n = bsrbd_store_earlier(s, names);

	for (size_t i = 0; i < n; i++)
		old[i] = names[i];
	forget_clients(s, old, n);
}

/* ---- lock, unlock ---- */

int bsrbd_store_take(struct bsrbd_call *c)
{
	struct bsrbd_store *s = c->s;
	struct locker l;
	int err;

	if (s->image->locked)
		return 0;
	/* librbd would ask the owner for the lock, and wait for its answer */
	err = find_locker(s, &l);
	if (err == 1)
		err = strcmp(l.client, s->client) == 0 ? 0 : -EAGAIN;
	if (!err)
		err = rbd_lock_acquire(s->image->image,
				       RBD_LOCK_MODE_EXCLUSIVE);
	if (err == -EROFS || err == -EBUSY || err == -EAGAIN)
		return ERR_AGAIN;
	if (err)
		return bsrbd_store_err(err);
	__atomic_store_n(&s->image->locked, true, __ATOMIC_RELEASE);
	forget_earlier(s);
	return 0;
}

/* librbd's error does not say whether the client was fenced: the cluster does. */
int bsrbd_store_give(struct bsrbd_call *c)
{
	struct bsrbd *image = c->s->image;
	struct locker l;
	int err;

	if (!image->locked)
		return 0;
	__atomic_store_n(&image->locked, false, __ATOMIC_RELEASE);
	if (!rbd_lock_release(image->image))
		return 0;
	err = find_locker(c->s, &l);
	if (err < 0)
		return bsrbd_store_err(err);
	return err == 1 && strcmp(l.client, c->s->client) == 0 ? ERR_RESET : 0;
}

/* ---- fence ---- */

/* Refuses to fence the client unless it is the gateway that is meant. */
static int check_gateway(struct bsrbd_call *c, const struct locker *l,
			 char id[CLUSTER_ID_SIZE])
{
	int err = find_gateway(c->s, l->client, id);

	if (err == -ENOENT) {
		say_later(
			c,
			"%s at %s has the exclusive lock, and is not a gateway "
			"of the image; end that client",
			l->client, l->address);
		return ERR_DENIED;
	}
	if (err)
		return bsrbd_store_err(err);
	return c->whom[0] && strcmp(c->whom, id) ? ERR_AGAIN : 0;
}

/* The blocklist knows addresses without their kind. */
static const char *plain_address(const char *address)
{
	static const char *const kinds[] = { "v1:", "v2:", "any:" };

	for (unsigned i = 0; i < ARRAY_LEN(kinds); i++)
		if (strncmp(address, kinds[i], strlen(kinds[i])) == 0)
			return address + strlen(kinds[i]);
	return address;
}

/*
 * librbd's own break blocklists for an hour, and the monitors of Ceph 16 refuse its
 * setting for another time: a client that is stopped for longer would send its old
 * requests when it goes on.
 */
static int break_lock(struct bsrbd_call *c, const struct locker *l)
{
	struct bsrbd_store *s = c->s;
	int err = bsrbd_cluster_fence(s->image->cluster,
				      plain_address(l->address));

	if (err)
		return err;
	err = rados_break_lock(s->image->pool, s->header, LOCK_NAME, l->client,
			       l->cookie);
	return err == -ENOENT ? 0 : err; /* the client has given it back */
}

int bsrbd_store_fence(struct bsrbd_call *c)
{
	struct bsrbd_store *s = c->s;
	char id[CLUSTER_ID_SIZE];
	const char *client;
	struct locker l;
	int err = find_locker(s, &l);

	if (err < 0)
		return bsrbd_store_err(err);
	if (err == 0)
		return ERR_NOT_FOUND;
	/* perhaps by another image of this connection that is about to close */
	if (strcmp(l.client, s->client) == 0)
		return bsrbd_store_take(c);
	err = check_gateway(c, &l, id);
	if (err)
		return err;
	err = break_lock(c, &l);
	if (err == -EPERM || err == -EACCES)
		say_later(c,
			  "gateway %s cannot be fenced: %s; give the client "
			  "the profile rbd for the monitors",
			  id, strerror(-err));
	if (err)
		return bsrbd_store_err(err);
	say_later(c, "fenced gateway %s (%s at %s)", id, l.client, l.address);
	client = l.client;
	forget_clients(s, &client, 1);
	return bsrbd_store_take(c);
}
