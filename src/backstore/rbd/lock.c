/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lock.c: the exclusive lock of an image. A client that was killed has the lock
 * until its watch of the image expires, 30 s by default; librbd then breaks it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "backstore/rbd/internal.h"

#define OWNERS	   4
#define LOCK_TRIES 8

/* Writes the address of the client that has the lock, or "". */
static void find_owner(rbd_image_t image, char *text, size_t size)
{
	char tag[256], clients[1024], cookies[1024], addrs[1024];
	size_t ntag = sizeof(tag), nclients = sizeof(clients),
	       ncookies = sizeof(cookies), naddrs = sizeof(addrs);
	int exclusive;
	ssize_t n =
		rbd_list_lockers(image, &exclusive, tag, &ntag, clients,
				 &nclients, cookies, &ncookies, addrs, &naddrs);

	text[0] = '\0';
	if (n > 0 && strnlen(clients, sizeof(clients)) < sizeof(clients) &&
	    strnlen(addrs, sizeof(addrs)) < sizeof(addrs))
		snprintf(text, size, "%s at %s", clients, addrs);
}

/* is_owned returns whether a client has the lock. */
static bool is_owned(rbd_image_t image)
{
	char *owners[OWNERS];
	size_t n = OWNERS;
	rbd_lock_mode_t mode;
	int err = rbd_lock_get_owners(image, &mode, owners, &n);

	if (err)
		return err != -ENOENT;
	rbd_lock_get_owners_cleanup(owners, n);
	return n > 0;
}

static int refuse_lock(struct bsrbd_opening *o, int err)
{
	char owner[256];

	find_owner(o->r->image, owner, sizeof(owner));
	return bsrbd_refuse(o, -EBUSY,
			    "another client has the exclusive lock (%s): %s; "
			    "stop that client, or let both serve the image "
			    "read-only or shared",
			    *owner ? owner : "unknown", strerror(-err));
}

static void say_waiting(const struct bsrbd_opening *o)
{
	char owner[256], text[512];

	find_owner(o->r->image, owner, sizeof(owner));
	snprintf(text, sizeof(text),
		 "%s: waiting until %s releases the exclusive lock or, if that "
		 "client is gone, until its lock expires",
		 o->cfg->name, owner);
	o->cfg->say(text);
}

/* librbd waits itself for a client that is gone. An error means that a client
 * refuses to release the lock, perhaps because that client is about to end. */
int bsrbd_lock(struct bsrbd_opening *o)
{
	const struct timespec pause = { .tv_nsec = 250000000 };
	rbd_image_t image = o->r->image;
	int err = -EROFS;

	if (!(o->r->features & RBD_FEATURE_EXCLUSIVE_LOCK))
		return 0;
	if (is_owned(image)) {
		if (!o->cfg->may_wait)
			return refuse_lock(o, err);
		say_waiting(o);
	}
	for (unsigned i = 0; i < LOCK_TRIES; i++) {
		if (i)
			nanosleep(&pause, NULL);
		err = rbd_lock_acquire(image, RBD_LOCK_MODE_EXCLUSIVE);
		if (!err) {
			o->r->locked = true;
			return 0;
		}
	}
	return refuse_lock(o, err);
}
