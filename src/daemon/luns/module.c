/* SPDX-License-Identifier: BSD-2-Clause */
/* module.c: loads the module of a store. A module stays loaded until the process
 * ends, since its libraries have threads. */
#include "daemon/luns/module.h"

#include <errno.h>
#include <stdio.h>

#include "backstore/module.h"
#include "base/bytes.h"
#include "daemon/log/say.h"
#include "io/module.h"

struct kind {
	const char *file;
	const char *package; /* the Debian package that has the file */
};

static const struct kind kinds[LUN_KINDS] = {
	[LUN_NBD] = { "backstore-nbd.so", "openiser-nbd" },
	[LUN_RBD] = { "backstore-rbd.so", "openiser-rbd" },
};

bool lun_is_module(enum lun_kind kind)
{
	return kinds[kind].file;
}

static void say_sentence(const char *sentence)
{
	say_note("%s", sentence);
}

/* NULL after a message. */
static const struct bs_module *load(const struct lun_spec *s)
{
	const struct kind *k = &kinds[s->kind];
	const struct bs_module *m;
	char why[512];
	void *handle;
	int err;

	m = io_module_load(k->file, BS_MODULE_SYMBOL, &handle, &err, why,
			   sizeof(why));
	if (!m && err == -ENOENT)
		say("%s: the module %s is not installed; install the package "
		    "%s",
		    s->store, k->file, k->package);
	else if (!m)
		say("%s: %s; install the package %s of this version", s->store,
		    why, k->package);
	else if (m->abi != BS_MODULE_ABI)
		say("%s: %s is of another version; install the package %s of "
		    "this version",
		    s->store, k->file, k->package);
	return m && m->abi == BS_MODULE_ABI ? m : NULL;
}

struct bs *lun_open_module(const struct options *o, const struct lun_spec *s,
			   bool may_wait, struct io_loop *const *loops)
{
	const struct bs_module_config cfg = {
		.name = s->store,
		.operand = s->operand,
		.read_only = o->lun.read_only,
		.shared = o->lun.shared,
		.clustered = o->lun.cluster,
		.may_wait = may_wait,
		.block_size = o->lun.block_size ? o->lun.block_size : 512,
		.say = say_sentence,
		.loops = loops,
		.nloops = o->workers,
	};
	const struct bs_module *m;
	char why[512];
	struct bs *b;
	int err;

	if (o->lun.protection) {
		say("%s: protection information is for files, block devices "
		    "and ram: LUNs; leave out --protection",
		    s->store);
		return NULL;
	}
	m = load(s);
	b = m ? m->open(&cfg, &err, why, sizeof(why)) : NULL;
	if (m && !b)
		say("%s", why);
	return b;
}

struct cluster_store *lun_module_cluster(const struct lun_spec *s, struct bs *b,
					 const char *gateway,
					 const struct cluster_store_events *ev,
					 char *why, size_t size)
{
	const struct bs_module *m = load(s);
	int err;

	if (m && m->cluster)
		/* cppcheck-suppress returnDanglingLifetime */
		return m->cluster(b, gateway, ev, &err, why, size);
	snprintf(why, size, "%s: keeps no record that gateways share",
		 s->store);
	return NULL;
}
