/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unit_fuzz.c: any contents of the state file of a unit (keep_save.c) with a
 * correct checksum: the file is refused, or its values are the same after they
 * are written and read again.
 */
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "device/keep/keep.h"
#include "device/primary/mode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void post(void *arg, unsigned worker, struct dev_msg *m)
{
	(void)arg;
	(void)worker;
	m->run(m);
}

static void save(void *arg, struct dev_save *s)
{
	(void)arg;
	s->result = 0;
	s->done(s);
}

static struct dev_server *server(void)
{
	static const struct dev_lu_config lu = { .keeps = true };
	const struct dev_env env = {
		.nworkers = 1, .post = post, .give_way = post, .save = save
	};
	void *memory = calloc(8, 512);
	struct dev_server *s = dev_server_new(&env, 4096);

	if (!memory || !s ||
	    dev_lu_add(s, &lu,
		       bs_ram_new("ram", memory, 8 * 512, 512, free, memory)))
		abort();
	return s;
}

/* Compares single fields, because the struct has padding. */
static bool same(const struct dev_record *a, const struct dev_record *b)
{
	for (unsigned i = 0; i < KEEP_INFOS; i++)
		if (a->info[i].len != b->info[i].len ||
		    memcmp(a->info[i].bytes, b->info[i].bytes,
			   a->info[i].len) != 0)
			return false;
	return a->modes_len == b->modes_len &&
	       memcmp(a->modes, b->modes, a->modes_len) == 0 &&
	       a->erase.state == b->erase.state &&
	       a->erase.formats == b->erase.formats &&
	       a->erase.passes == b->erase.passes &&
	       a->erase.pass == b->erase.pass && a->erase.at == b->erase.at &&
	       a->erase.pattern_len == b->erase.pattern_len &&
	       memcmp(a->erase.pattern, b->erase.pattern,
		      a->erase.pattern_len) == 0;
}

/* Mode values that were read are the same when they are written and read again. */
static bool modes_stay(const struct dev_lu *lu, const struct dev_control *c)
{
	static struct dev_record r;
	struct dev_control again;

	dev_mode_to_record(lu, c, &r);
	return !dev_mode_from_record(lu, &r, &again) &&
	       dev_mode_same(lu, c, &again);
}

static void check(const struct dev_lu *lu, const uint8_t *p, size_t len)
{
	static struct dev_record one, two;
	static uint8_t again[KEEP_ENCODED_MAX];
	struct dev_control modes;
	size_t n;

	if (keep_decode(lu, p, len, &one))
		return;
	if (!dev_mode_from_record(lu, &one, &modes) && !modes_stay(lu, &modes))
		abort();
	n = keep_encode(lu, &one, again);
	if (n > sizeof(again))
		abort();
	if (n && (keep_decode(lu, again, n, &two) || !same(&one, &two)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dev_server *s = server();
	struct dev_lu *lu = dev_lu_get(s, 0);
	uint8_t *p = malloc(size + 1);

	if (p && size) {
		memcpy(p, data, size);
		if (size >= 28) {
			memcpy(p, "ISERUNT1", 8);
			memcpy(p + 12, dev_lu_backstore(lu)->uuid, 16);
			put_be32(p + 8,
				 crc32c_wire(crc32c_update(CRC32C_SEED, p + 12,
							   size - 12)));
		}
		check(lu, p, size);
	}
	free(p);
	dev_server_free(s);
	return 0;
}
