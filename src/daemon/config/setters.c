/* SPDX-License-Identifier: BSD-2-Clause */
/* setters.c: fields that are more than one number, word or text. */
#include "daemon/config/setters.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "daemon/config/errors.h"
#include "daemon/config/groups.h"
#include "daemon/config/options.h"
#include "iscsi/names.h"
#include "net/conn.h"
#include "net/net.h"

void cfg_size_text(uint64_t v, char *out, size_t size)
{
	static const char suffixes[] = "\0KMGTP";
	unsigned u = 0;

	for (; v && v % 1024 == 0 && u < 5; u++)
		v /= 1024;
	snprintf(out, size, "%llu%.1s", (unsigned long long)v, &suffixes[u]);
}

/* ---- fields that are repeated ---- */

static enum opt_end add_to_list(const char **list, unsigned *n, unsigned max,
				const char *arg, char why[OPT_WHY])
{
	if (*n == max)
		return cfg_refuse(why, "given more than %u times", max);
	list[(*n)++] = arg;
	return OPT_OK;
}

/* Reads an address to listen at. OPT_BAD: why has the reason, by which `forms` says
 * what to give. */
static enum opt_end read_address(struct net_addr *a, const char *arg,
				 uint16_t port, const char *forms,
				 char why[OPT_WHY])
{
	int err = net_addr_parse_listen(a, arg, port);

	if (err == -EDOM)
		return cfg_refuse(why, "an IPv6 address, or one with a port; "
				       "give [V6]:PORT, or [V6] alone");
	if (err == -ERANGE)
		return cfg_refuse(why, "its port is above 65535%s", forms);
	return err ? cfg_refuse(why,
				"not a numeric address%s (names of "
				"hosts and interfaces are not looked up)",
				forms)
		   : OPT_OK;
}

static enum opt_end add_address(const char **list, unsigned *n, const char *arg,
				char why[OPT_WHY])
{
	struct net_addr a;

	if (read_address(&a, arg, 0,
			 "; give ADDR, ADDR:PORT, [V6]:PORT or PORT", why))
		return OPT_BAD;
	return add_to_list(list, n, LISTEN_MAX, arg, why);
}

enum opt_end cfg_set_listen(void *into, const char *arg, char why[OPT_WHY])
{
	struct options *o = into;

	return add_address(o->listen, &o->nlisten, arg, why);
}

enum opt_end cfg_set_verbs_listen(void *into, const char *arg,
				  char why[OPT_WHY])
{
	struct options *o = into;

	return add_address(o->verbs_listen.v, &o->verbs_listen.n, arg, why);
}

/* An address of use to other machines: numeric, and not that of all. */
enum opt_end cfg_set_announce(void *into, const char *arg, char why[OPT_WHY])
{
	struct options *o = into;
	char name[NET_ADDR_STR];
	struct net_addr a;

	if (read_address(&a, arg, 3260, "; give ADDR, ADDR:PORT or [V6]:PORT",
			 why))
		return OPT_BAD;
	if (!net_addr_port(&a) ||
	    !arg[strspn(arg, ":0123456789")]) /* a port alone */
		return cfg_refuse(why, "not a numeric address; give ADDR, "
				       "ADDR:PORT or [V6]:PORT");
	net_addr_str(&a, name);
	if (!strncmp(name, "0.0.0.0:", 8) || !strncmp(name, "[::]:", 5))
		return cfg_refuse(why, "stands for all addresses; give those "
				       "at which initiators reach iserd");
	if (strchr(name, '%'))
		return cfg_refuse(why, "has a zone, which is of this machine "
				       "only; give an address that is not "
				       "link-local");
	return add_to_list(o->announce.v, &o->announce.n, ANNOUNCE_MAX, arg,
			   why);
}

enum opt_end cfg_set_metrics(void *into, const char *arg, char why[OPT_WHY])
{
	struct options *o = into;
	struct net_addr a;

	if (arg[0] != '/' &&
	    read_address(&a, arg, METRICS_PORT,
			 " or an absolute path; give one like 127.0.0.1:9860 "
			 "or /run/iserd.metrics",
			 why))
		return OPT_BAD;
	o->numbers.metrics = arg;
	return OPT_OK;
}

enum opt_end cfg_set_alua(void *into, const char *arg, char why[OPT_WHY])
{
	struct options *o = into;
	struct dev_group g, other;

	if (!group_parse(&g, arg))
		return cfg_refuse(why, "not a target port group; give "
				       "ID:STATE:PORT[,PORT...][:preferred], "
				       "for example 1:optimized:1");
	for (unsigned i = 0; i < o->ngroups; i++)
		if (group_parse(&other, o->groups[i]) && other.id == g.id)
			return cfg_refuse(why,
					  "group %u is given twice; give "
					  "each once",
					  g.id);
	return add_to_list(o->groups, &o->ngroups, GROUPS_MAX, arg, why);
}

/* ---- names and words ---- */

enum opt_end cfg_set_name(void *into, const char *arg, char why[OPT_WHY])
{
	struct options *o = into;
	char reason[ISCSI_NAME_WHY];

	if (iscsi_name_prepare(o->name, arg, false, reason) == 0)
		return OPT_OK;
	o->name[0] = '\0';
	return cfg_refuse(why,
			  "%s; give a name like iqn.2026-01.com.example:disk",
			  reason);
}

/* The name goes into the records of units, where 63 bytes are kept for it. */
enum opt_end cfg_set_gateway(void *into, const char *arg, char why[OPT_WHY])
{
	struct options *o = into;

	if (cfg_check_name(NULL, arg, why))
		return OPT_BAD;
	if (strlen(arg) >= GATEWAY_SIZE)
		return cfg_refuse(why,
				  "longer than %u bytes; give a shorter "
				  "name",
				  GATEWAY_SIZE - 1);
	o->cluster.gateway = arg;
	return OPT_OK;
}

enum opt_end cfg_set_block_size(void *into, const char *arg, char why[OPT_WHY])
{
	struct options *o = into;

	if (!strcmp(arg, "512"))
		o->lun.block_size = 512;
	else if (!strcmp(arg, "4096"))
		o->lun.block_size = 4096;
	else
		return cfg_refuse(why, "must be 512 or 4096");
	return OPT_OK;
}

enum opt_end cfg_set_compat(void *into, const char *arg, char why[OPT_WHY])
{
	struct options *o = into;

	o->strict = !strcmp(arg, "strict");
	if (o->strict || !strcmp(arg, "linux"))
		return OPT_OK;
	if (!strcmp(arg, "help"))
		return OPT_STOPPED;
	return cfg_refuse(why, "must be one of linux, strict, help");
}

void cfg_get_compat(const void *from, char *out, size_t size)
{
	const struct options *o = from;

	snprintf(out, size, "%s", o->strict ? "strict" : "linux");
}

const char *const cfg_transports[] = { "tcp", "iser", "switch", NULL };

/* By the index in cfg_transports. */
static const unsigned transport_bits[] = { NET_ALLOW_TCP, NET_ALLOW_RDMA,
					   NET_ALLOW_SWITCH };

void cfg_get_transport(const void *from, char *out, size_t size)
{
	const struct options *o = from;
	size_t len = 0;

	for (unsigned i = 0; cfg_transports[i] && len < size; i++)
		if (o->transports & transport_bits[i])
			len += (size_t)snprintf(out + len, size - len, "%s%s",
						len ? "," : "",
						cfg_transports[i]);
}

enum opt_end cfg_set_transport(void *into, const char *arg, char why[OPT_WHY])
{
	struct options *o = into;
	unsigned allowed = 0;

	for (const char *p = arg, *end; *p; p = *end ? end + 1 : end) {
		size_t len, i = 0;

		end = strchrnul(p, ',');
		len = (size_t)(end - p);
		while (cfg_transports[i] &&
		       (strlen(cfg_transports[i]) != len ||
			memcmp(cfg_transports[i], p, len) != 0))
			i++;
		if (!cfg_transports[i])
			return cfg_refuse(why, "must be one or more of tcp, "
					       "iser, switch, with commas "
					       "between them");
		allowed |= transport_bits[i];
	}
	if (!allowed)
		return cfg_refuse(
			why, "names no transport; give tcp, iser or switch");
	o->transports = allowed;
	return OPT_OK;
}

/* ---- numbers with colons between them ---- */

#define PART(name, member, lo, hi)                              \
 {                                                              \
  name, OPT_AT(struct options, limits.member, unsigned), lo, hi \
 }

/* clang-format off */
const struct cfg_parts cfg_max_sessions = { 1, {
	PART("N", sessions, 1, 65000),
	PART("M", source_sessions, 1, 65000),
} };

const struct cfg_parts cfg_max_startups = { 3, {
	PART("START", start, 1, 65000),
	PART("RATE", rate, 1, 100),
	PART("FULL", full, 1, 65000),
	PART("M", source_startups, 1, 65000),
} };

const struct cfg_parts cfg_max_discovery = { 1, {
	PART("N", discovery, 1, 65000),
	PART("M", source_discovery, 1, 65000),
} };

const struct cfg_parts cfg_penalty = { 2, {
	PART("FIRST", penalty_first, 0, 86400),
	PART("MAX", penalty_max, 0, 86400),
} };

const struct cfg_parts cfg_address_block = { 2, {
	PART("V4", v4_bits, 0, 32),
	PART("V6", v6_bits, 0, 128),
} };
/* clang-format on */

static unsigned count_parts(const struct cfg_parts *parts)
{
	unsigned n = 0;

	while (n < CFG_PARTS && parts->part[n].name)
		n++;
	return n;
}

/* Writes the form of the value, such as "START:RATE:FULL[:M]". */
static void write_form(const struct cfg_parts *parts, char *out, size_t size)
{
	unsigned n = count_parts(parts);
	size_t len = 0;

	for (unsigned i = 0; i < n && len < size; i++)
		len += (size_t)snprintf(out + len, size - len, "%s%s%s%s",
					i >= parts->need ? "[" : "",
					i ? ":" : "", parts->part[i].name,
					i >= parts->need ? "]" : "");
}

static enum opt_end set_parts(struct options *o, const char *arg,
			      const struct cfg_parts *parts, char why[OPT_WHY])
{
	unsigned n = count_parts(parts), i;
	const char *p = arg;
	char form[128];

	for (i = 0; i < n; i++) {
		const struct cfg_part *part = &parts->part[i];
		char *end;
		unsigned long v = strtoul(p, &end, 10);

		if (!isdigit((unsigned char)*p) || v < part->min ||
		    v > part->max || (*end && *end != ':'))
			break;
		*(unsigned *)((char *)o + part->at) = (unsigned)v;
		if (!*end && i + 1 >= parts->need)
			return OPT_OK;
		if (!*end) { /* the next part is missing */
			i++;
			break;
		}
		p = end + 1;
	}
	write_form(parts, form, sizeof(form));
	if (i == n)
		return cfg_refuse(why, "must be %s", form);
	return cfg_refuse(why, "must be %s; %s is a number from %u to %u", form,
			  parts->part[i].name, parts->part[i].min,
			  parts->part[i].max);
}

/* The limit of one address keeps its default if it is left out: a lower limit
 * of all addresses lowers it, too. */

enum opt_end cfg_set_max_sessions(void *into, const char *arg,
				  char why[OPT_WHY])
{
	struct options *o = into;
	struct admission_limits *l = &o->limits;
	enum opt_end end = set_parts(o, arg, &cfg_max_sessions, why);

	l->source_sessions = MIN(l->source_sessions, l->sessions);
	return end;
}

enum opt_end cfg_set_max_discovery(void *into, const char *arg,
				   char why[OPT_WHY])
{
	struct options *o = into;
	struct admission_limits *l = &o->limits;
	enum opt_end end = set_parts(o, arg, &cfg_max_discovery, why);

	l->source_discovery = MIN(l->source_discovery, l->discovery);
	return end;
}

enum opt_end cfg_set_max_startups(void *into, const char *arg,
				  char why[OPT_WHY])
{
	struct options *o = into;
	struct admission_limits *l = &o->limits;

	if (set_parts(o, arg, &cfg_max_startups, why))
		return OPT_BAD;
	if (l->start > l->full)
		return cfg_refuse(why, "START must not be above FULL");
	l->source_startups = MIN(l->source_startups, l->full);
	return OPT_OK;
}

enum opt_end cfg_set_penalty(void *into, const char *arg, char why[OPT_WHY])
{
	struct options *o = into;

	if (set_parts(o, arg, &cfg_penalty, why))
		return OPT_BAD;
	if (o->limits.penalty_first > o->limits.penalty_max)
		return cfg_refuse(why, "FIRST must not be above MAX");
	return OPT_OK;
}

enum opt_end cfg_set_address_block(void *into, const char *arg,
				   char why[OPT_WHY])
{
	return set_parts(into, arg, &cfg_address_block, why);
}
