/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stat.c: what tgtadm --op stat prints, in the same columns. iserd counts by unit and
 * by session, not by session and unit: the line of a unit is that of session 0 and has
 * the commands of all sessions; "-" stands for what iserd does not count.
 */
#include <string.h>
#include <strings.h>

#include "tools/tgtadm/tgtadm.h"

static const char unit_head[] =
	"tgt lun sid rd_subm(bytes,cmds) rd_done(bytes,cmds) "
	"wr_subm(bytes,cmds) wr_done(bytes,cmds) errs";
static const char conn_head[] =
	"sid cid rxdata_octets txdata_octets dataout_pdus datain_pdus "
	"cmd_pdus rsp_pdus";

/* Returns the counters of the unit of a backstore, or NULL. */
static const json_t *unit_of(const json_t *stats, const char *backstore)
{
	json_t *u;
	size_t i;

	json_array_foreach(json_object_get(stats, "luns"), i, u)
	{
		if (!strcmp(get_text(u, "backstore"), backstore))
			return u;
	}
	return NULL;
}

static void print_unit(const json_t *stats, int tid, const char *lun,
		       const char *backstore)
{
	const json_t *u = unit_of(stats, backstore);
	const json_t *rd = json_object_get(u, "read");
	const json_t *wr = json_object_get(u, "write"), *v;
	json_t *errors = json_object_get(u, "errors");
	long long errs = 0;
	const char *key;

	json_object_foreach(errors, key, v)
	{
		errs += json_integer_value(v);
	}
	printf("%3d %3s %3d", tid, lun, 0);
	for (int i = 0; i < 2; i++)
		printf(" %12lld %6lld", get_number(rd, "bytes"),
		       get_number(rd, "commands"));
	for (int i = 0; i < 2; i++)
		printf(" %12lld %6lld", get_number(wr, "bytes"),
		       get_number(wr, "commands"));
	printf(" %4lld\n", errs);
}

/* Prints the units of a target; lun: this one, or all if NULL. */
static void print_units(const json_t *stats, const json_t *target,
			const char *lun)
{
	const char *key;
	json_t *v;

	json_object_foreach(json_object_get(target, "luns"), key, v)
	{
		if (!lun || !strcmp(lun, key))
			print_unit(stats, tgtadm_tid_of(target), key,
				   tgtadm_backstore_of(v));
	}
}

/* Prints the connections of a session of the target. False: there is none. */
static bool print_conns(const json_t *stats, const char *target, uint64_t sid)
{
	const json_t *traffic;
	bool found = false;
	json_t *s;
	size_t i;

	json_array_foreach(json_object_get(stats, "sessions"), i, s)
	{
		if (strcasecmp(get_text(s, "target"), target) != 0 ||
		    (uint64_t)get_number(s, "tsih") != sid)
			continue;
		if (!found)
			puts(conn_head);
		found = true;
		traffic = json_object_get(s, "traffic");
		printf("%3lld %3lld %13lld %13lld %12s %11s %8lld %8lld\n",
		       get_number(s, "tsih"), get_number(s, "cid"),
		       get_number(traffic, "bytes_in"),
		       get_number(traffic, "bytes_out"), "-", "-",
		       get_number(s, "commands"), get_number(s, "commands"));
	}
	return found;
}

static int stat_target(struct tgtadm *t, const json_t *stats)
{
	const struct tgtadm_request *r = t->r;
	const char *name = NULL;
	json_t *target = tgtadm_target(t->config, r->tid, &name), *luns;
	char lun[24];

	if (!target)
		return tgtadm_refuse("%s", tgtadm_no_target);
	if (r->mode == TGTADM_SESSION || r->mode == TGTADM_CONN)
		return print_conns(stats, name, r->sid)
			       ? 0
			       : tgtadm_refuse("%s", tgtadm_no_session);
	luns = json_object_get(target, "luns");
	snprintf(lun, sizeof(lun), "%llu", (unsigned long long)r->lun);
	if (r->mode == TGTADM_LUN && r->lun && !json_object_get(luns, lun))
		return tgtadm_refuse("%s", tgtadm_no_lun);
	puts(unit_head);
	print_units(stats, target, r->mode == TGTADM_LUN ? lun : NULL);
	return 0;
}

static int stat_all(struct tgtadm *t, const json_t *stats)
{
	const char *name;
	json_t *target;

	puts(unit_head);
	json_object_foreach(json_object_get(t->config, "targets"), name, target)
	{
		print_units(stats, target, NULL);
	}
	return 0;
}

static int print_stats(struct tgtadm *t)
{
	json_t *stats = tgtadm_call(t, "stats", NULL);
	int code;

	if (!stats)
		return tgtadm_failed(t);
	code = t->r->mode == TGTADM_SYS ? stat_all(t, stats)
					: stat_target(t, stats);
	json_decref(stats);
	return code;
}

int tgtadm_stat(struct tgtadm *t)
{
	return tgtadm_change(t, print_stats);
}
