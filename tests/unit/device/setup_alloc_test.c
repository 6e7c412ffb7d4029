/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * setup_alloc_test.c: the n-th allocation fails, for every n, while units,
 * ports, groups, maps and nexuses are set up and changed. Each function reports
 * that there is no memory, changes nothing, and succeeds later.
 */
#include "dev_case.h"
#include "device/cd/cd.h"
#include "device/pass.h"
#include "device/unit/condition.h"
#include "fail_alloc.h"

#define SIZE (1u << 20)

static struct dev_server *server;
static struct dev_nexus *nexus;
static struct dev_map *map;

/* ---- steps; each returns 0 or an error ---- */

static int new_server(void)
{
	static const struct dev_env env = { .nworkers = 2,
					    .post = fx_post,
					    .buf_get = fx_get,
					    .buf_put = fx_put,
					    .arg = R };

	server = dev_server_new(&env, FX_MAX);
	return server ? 0 : ERR_NOMEM;
}

static struct bs *disk;

static void complete(struct bs *b, struct bs_req *req)
{
	(void)b;
	bs_complete(req, 0);
}

static void make_disk(void)
{
	static struct bs_ops ops;

	disk = bs_null_new("null:1M", SIZE, 512);
	disk->caps |= BS_CAP_SIZE | BS_CAP_RESIZE;
	ops = *disk->ops;
	ops.submit = complete;
	disk->ops = &ops;
}

static int add_disk(void)
{
	static const struct dev_lu_config cfg = { .lun = 0, .keeps = true };

	return dev_lu_add(server, &cfg, disk);
}

static int add_drive(void)
{
	static const struct dev_lu_config cfg = { .lun = 1,
						  .type = DEV_CD,
						  .removable = true };

	return dev_lu_add(server, &cfg, NULL);
}

static unsigned closed;

static void pass_close(struct pass *p)
{
	(void)p;
	closed++;
}

static int add_pass(void)
{
	static const struct pass_ops ops = { .close = pass_close };
	static const struct dev_lu_config cfg = { .lun = 2 };
	static struct pass pass;

	pass = (struct pass){ .ops = &ops, .name = "a device" };
	return dev_lu_add_pass(server, &cfg, &pass);
}

static int remember_port(void)
{
	return dev_port_remember(server, "iqn.t,t,0x0009", 9);
}

static int add_port(void)
{
	uint16_t rtpi = 0;
	int err = dev_port_add(server, "iqn.t,t,0x0001", &rtpi);

	assert_true(err || rtpi == 10); /* after port 9 */
	return err;
}

static int add_group(void)
{
	static const struct dev_group g = { .id = 1,
					    .nports = 2,
					    .ports = { 10, 22 } };

	return dev_group_add(server, &g);
}

static int new_map(void)
{
	const struct dev_map_entry e[] = {
		{ .lun = 5, .lu = dev_lu_get(server, 0) },
		{ .lun = 300, .lu = dev_lu_get(server, 1) },
	};

	return dev_map_new(server, e, ARRAY_LEN(e), &map);
}

static int open_nexus(void)
{
	struct dev_nexus_config cfg = { .initiator_port = "iqn.i,i,0x1",
					.target_port = "iqn.t,t,0x0001",
					.target_name = "iqn.t",
					.relative_target_port = 10,
					.map = map };

	nexus = dev_nexus_open(server, &cfg);
	return nexus ? 0 : ERR_NOMEM;
}

/* The end of a change: a change that begins calls this function once. */
static unsigned calls;
static int end_err;

static void ended(void *arg, int err)
{
	(void)arg;
	calls++;
	end_err = err;
}

static int result(int err)
{
	assert_int_equal(calls, err ? 0 : 1);
	calls = 0;
	return err ? err : end_err;
}

static int reset_unit(void)
{
	return result(
		dev_lu_reset_state(dev_lu_get(server, 0), 0, ended, NULL));
}

static int resize(void)
{
	int err =
		dev_lu_resize(dev_lu_get(server, 0), SIZE, false, ended, NULL);

	assert_false(dev_server_is_busy(server));
	return result(err);
}

static struct bs *medium;

static int load_medium(void)
{
	struct dev_lu *lu = dev_lu_get(server, 1);
	int err = dev_lu_change_medium(lu, medium, false, ended, NULL);

	assert_false(dev_server_is_busy(server));
	err = result(err);
	assert_int_equal(dev_condition(lu), err ? LU_EMPTY : LU_READY);
	return err;
}

static int set_offline(void)
{
	return result(dev_port_set(server, 22, true, ended, NULL));
}

static int set_group(void)
{
	static const struct dev_group_change c = { .id = 1,
						   .state =
							   DEV_ACCESS_STANDBY };

	return result(dev_group_set(server, &c, ended, NULL));
}

/* ---- tests ---- */

/* Returns how many allocations the step makes. */
static unsigned long each_fails(int (*step)(void))
{
	for (unsigned long n = 1;; n++) {
		int err;

		failed = false;
		countdown = n;
		err = step();
		countdown = 0;
		if (!failed) {
			assert_int_equal(err, 0);
			return n - 1;
		}
		assert_int_equal(err, ERR_NOMEM);
	}
}

static void test_each_allocation_fails(void **state)
{
	static int (*const steps[])(void) = {
		new_server, add_disk,	 add_drive,   add_pass,	  remember_port,
		add_port,   add_group,	 new_map,     open_nexus, reset_unit,
		resize,	    load_medium, set_offline, set_group,
	};
	unsigned long n = 0;

	(void)state;
	make_disk();
	medium = bs_null_new("null:cd", 1u << 20, CD_BLOCK);
	medium->caps |= BS_CAP_READ_ONLY;
	for (size_t i = 0; i < ARRAY_LEN(steps); i++)
		n += each_fails(steps[i]);
	assert_true(n > 2 * ARRAY_LEN(steps));
	assert_int_equal(closed, 0);
	dev_nexus_close(nexus);
	dev_map_put(map);
	dev_server_free(server);
	assert_int_equal(closed, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_allocation_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
