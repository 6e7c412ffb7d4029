/* SPDX-License-Identifier: BSD-2-Clause */
/* limits.c: the limits of a backstore, "RATE[:BURST]". */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config/model.h"
#include "daemon/config/nouns.h"
#include "daemon/config/setters.h"

#define IOPS_MAX      1000000000u
#define BANDWIDTH_MIN 1024u

/* For iserd.yaml(5): the members are not unsigned. */
const struct cfg_parts cfg_max_iops = {
	1, { { "N", 0, 1, IOPS_MAX }, { "BURST", 0, 1, IOPS_MAX } }
};

static bool read_count(const char *text, uint64_t *v)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	*v = strtoull(text, &end, 10);
	return !*end && *v && *v <= IOPS_MAX;
}

static bool read_size(const char *text, uint64_t *v)
{
	return opt_size(text, v) && *v >= BANDWIDTH_MIN;
}

/* Reads "RATE[:BURST]"; without a burst it is what the rate allows in a second. */
static bool read_rate(const char *text,
		      bool (*read)(const char *text, uint64_t *v),
		      uint64_t *rate, uint64_t *burst)
{
	const char *colon = strchr(text, ':');
	char first[32];
	size_t len = colon ? (size_t)(colon - text) : strlen(text);

	if (len >= sizeof(first))
		return false;
	memcpy(first, text, len);
	first[len] = '\0';
	if (!read(first, rate))
		return false;
	*burst = *rate;
	return !colon || read(colon + 1, burst);
}

enum opt_end cfg_set_max_iops(void *into, const char *arg, char why[OPT_WHY])
{
	struct dev_limits *l = &((struct cfg_backstore *)into)->limits;

	if (read_rate(arg, read_count, &l->ops, &l->ops_burst))
		return OPT_OK;
	return cfg_refuse(
		why,
		"must be N[:BURST], each from 1 to %u, for example 1000:2000; "
		"leave the field out for no limit",
		IOPS_MAX);
}

enum opt_end cfg_set_max_bandwidth(void *into, const char *arg,
				   char why[OPT_WHY])
{
	struct dev_limits *l = &((struct cfg_backstore *)into)->limits;

	if (read_rate(arg, read_size, &l->bytes, &l->bytes_burst))
		return OPT_OK;
	return cfg_refuse(why,
			  "must be SIZE[:BURST], each at least 1K, for example "
			  "100M:200M; leave the field out for no limit");
}

void cfg_get_max_iops(const void *from, char *out, size_t size)
{
	const struct dev_limits *l =
		&((const struct cfg_backstore *)from)->limits;
	unsigned long long rate = l->ops, burst = l->ops_burst;

	if (rate && burst == rate)
		snprintf(out, size, "%llu", rate);
	else if (rate)
		snprintf(out, size, "%llu:%llu", rate, burst);
}

void cfg_get_max_bandwidth(const void *from, char *out, size_t size)
{
	const struct dev_limits *l =
		&((const struct cfg_backstore *)from)->limits;
	char rate[32], burst[32];

	cfg_size_text(l->bytes, rate, sizeof(rate));
	cfg_size_text(l->bytes_burst, burst, sizeof(burst));
	if (l->bytes && l->bytes_burst == l->bytes)
		snprintf(out, size, "%s", rate);
	else if (l->bytes)
		snprintf(out, size, "%s:%s", rate, burst);
}
