/* SPDX-License-Identifier: BSD-2-Clause */
/* checks.c: the entries of lists in a configuration file. */
#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "daemon/config/model.h"
#include "daemon/config/setters.h"
#include "iscsi/chap.h"
#include "iscsi/names.h"

/* ---- iSCSI names ---- */

static const char *const name_types[] = { "iqn.", "eui.", "naa." };

bool cfg_is_initiator_name(const char *text)
{
	for (unsigned i = 0; i < ARRAY_LEN(name_types); i++)
		if (!strncasecmp(text, name_types[i], 4))
			return true;
	return strpbrk(text, "*?") != NULL;
}

enum opt_end cfg_check_initiator(void *into, const char *arg, char why[OPT_WHY])
{
	char name[ISCSI_NAME_MAX + 1], reason[ISCSI_NAME_WHY];

	(void)into;
	if (iscsi_pattern_prepare(name, arg, reason) == 0)
		return OPT_OK;
	return cfg_refuse(why,
			  "%s; give a name like iqn.2026-01.com.example:node1",
			  reason);
}

enum opt_end cfg_check_initiator_or_group(void *into, const char *arg,
					  char why[OPT_WHY])
{
	return cfg_is_initiator_name(arg) ? cfg_check_initiator(into, arg, why)
					  : cfg_check_name(into, arg, why);
}

void cfg_prepare_initiator(char out[224], const char *text)
{
	char why[ISCSI_NAME_WHY];

	/* not valid: there is an error already, cfg_check_initiator's */
	if (iscsi_pattern_prepare(out, text, why))
		*out = '\0';
}

/* ---- names of backstores and groups ---- */

enum opt_end cfg_check_name(void *into, const char *arg, char why[OPT_WHY])
{
	size_t len = strlen(arg);

	(void)into;
	if (len == 0 || len > CFG_NAME_MAX)
		return cfg_refuse(why, "not a name of 1 to 64 characters");
	if (!isalnum((unsigned char)*arg))
		return cfg_refuse(why, "does not begin with a letter or digit");
	for (; *arg; arg++)
		if (!isalnum((unsigned char)*arg) && !strchr("-_.", *arg))
			return cfg_refuse(why,
					  "not a name; use letters, digits, "
					  "-, _ and .");
	return OPT_OK;
}

/* ---- addresses and ports ---- */

/* Reads the decimal number at text. False: there is none, or more than max. */
static bool read_number(const char *text, unsigned max, unsigned *v)
{
	unsigned long n;
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	n = strtoul(text, &end, 10);
	*v = (unsigned)n;
	return !*end && n <= max;
}

bool cfg_parse_prefix(const char *text, uint8_t address[16], unsigned *bits)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };
	const char *slash = strchrnul(text, '/');
	char host[64];
	bool is_v4;

	if ((size_t)(slash - text) >= sizeof(host))
		return false;
	memcpy(host, text, (size_t)(slash - text));
	host[slash - text] = '\0';
	is_v4 = inet_pton(AF_INET, host, address + 12) == 1;
	if (is_v4)
		memcpy(address, mapped, sizeof(mapped));
	else if (inet_pton(AF_INET6, host, address) != 1)
		return false;
	*bits = is_v4 ? 32 : 128;
	if (*slash && !read_number(slash + 1, *bits, bits))
		return false;
	*bits += is_v4 ? 96 : 0;
	return true;
}

/* Returns whether the address has a bit after the first `bits`. */
static bool has_more_bits(const uint8_t address[16], unsigned bits)
{
	for (unsigned i = bits; i < 128; i++)
		if (address[i / 8] & 0x80 >> i % 8)
			return true;
	return false;
}

enum opt_end cfg_check_prefix(void *into, const char *arg, char why[OPT_WHY])
{
	uint8_t address[16];
	unsigned bits;

	(void)into;
	if (!cfg_parse_prefix(arg, address, &bits))
		return cfg_refuse(why,
				  "not an address; give one like 10.0.0.1, "
				  "10.0.0.0/8 or fd00::/8");
	if (has_more_bits(address, bits))
		return cfg_refuse(why,
				  "an address and the length of a network; "
				  "give the address alone, or that of the "
				  "network, such as 10.0.0.0/8");
	return OPT_OK;
}

enum opt_end cfg_check_port(void *into, const char *arg, char why[OPT_WHY])
{
	unsigned port;

	(void)into;
	if (read_number(arg, 65535, &port) && port)
		return OPT_OK;
	return cfg_refuse(why, "must be a number from 1 to 65535");
}

/* ---- addresses of other machines ---- */

/* Returns the length of a domain name, an IPv4 address or an IPv6 address in
 * brackets; 0: it is none. */
static size_t host_len(const char *text)
{
	static const char digits[] = "0123456789abcdefABCDEF:.";
	static const char letters[] = "0123456789-.abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t n;

	if (text[0] != '[')
		return strspn(text, letters);
	n = strspn(text + 1, digits);
	return n > 1 && text[1 + n] == ']' ? n + 2 : 0;
}

enum opt_end cfg_check_address(void *into, const char *arg, char why[OPT_WHY])
{
	size_t n = host_len(arg);
	unsigned long port = 3260;
	char *end = NULL;

	(void)into;
	if (n && n < 256 && arg[n] == ':' && isdigit((uint8_t)arg[n + 1]) &&
	    strlen(&arg[n + 1]) <= 5)
		port = strtoul(&arg[n + 1], &end, 10);
	else if (n && n < 256 && !arg[n])
		return OPT_OK;
	if (end && !*end && port > 0 && port < 65536)
		return OPT_OK;
	return cfg_refuse(
		why,
		"not an address; give HOST or HOST:PORT, an IPv6 address in "
		"brackets");
}

enum opt_end cfg_check_algorithm(void *into, const char *arg, char why[OPT_WHY])
{
	(void)into;
	if (chap_algorithm(arg) != CHAP_NONE)
		return OPT_OK;
	return cfg_refuse(
		why,
		"not an algorithm of CHAP; give md5, sha1, sha256 or sha3-256");
}
