/* SPDX-License-Identifier: BSD-2-Clause */
/* url.c: iscsi://[USER[%PASSWORD]@]HOST[:PORT]/IQN/LUN[?KEY=VALUE...] */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/internal.h"

/* A URL that is being read, and the place for the reason of a failure. */
struct parse {
	struct iser_url *url;
	char *why;
	size_t size;
};

/* Shows no password, which may be anything before the last "@" of the text. */
static void say_parse(const struct parse *p, const char *what, const char *text)
{
	const char *at = strrchr(text, '@');
	const char *hide = at ? memchr(text, '%', (size_t)(at - text)) : NULL;

	if (at)
		snprintf(p->why, p->size, "%s: '%.*s***%.100s'", what,
			 hide ? (int)MIN(hide + 1 - text, 100) : 0, text, at);
	else
		snprintf(p->why, p->size, "%s: '%.100s'", what, text);
}

static int fail_parse(const struct parse *p, const char *what, const char *text)
{
	say_parse(p, what, text);
	return ISER_E_INVALID;
}

/* Copies [from, to), which must fit and not be empty; what: for the reason. */
static int take_text(const struct parse *p, char *out, size_t size,
		     const char *from, const char *to, const char *what)
{
	size_t n = (size_t)(to - from);

	if (n == 0)
		return fail_parse(p, what, "(empty)");
	if (n >= size)
		return fail_parse(p, what, "(too long)");
	memcpy(out, from, n);
	out[n] = '\0';
	return 0;
}

static int take_number(const struct parse *p, const char *text, unsigned max,
		       unsigned *out, const char *what)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || v > max)
		return fail_parse(p, what, text);
	*out = (unsigned)v;
	return 0;
}

/* ---- USER[%PASSWORD]@ ---- */

/* libiscsi also permits USER:PASSWORD. The colon of an iSCSI name is a part of the
 * user name. */
static const char *find_separator(const char *from, const char *at)
{
	const char *percent = memchr(from, '%', (size_t)(at - from));

	if (percent || !strncmp(from, "iqn.", 4) || !strncmp(from, "eui.", 4) ||
	    !strncmp(from, "naa.", 4))
		return percent;
	return memchr(from, ':', (size_t)(at - from));
}

static int take_user(const struct parse *p, const char *from, const char *at)
{
	const char *percent = find_separator(from, at);
	struct iser_url *u = p->url;
	int err = take_text(p, u->user, sizeof(u->user), from,
			    percent ? percent : at, "user name in the URL");

	if (err || !percent)
		return err;
	return take_text(p, u->password, sizeof(u->password), percent + 1, at,
			 "password in the URL");
}

/* ---- HOST[:PORT], [V6][:PORT] ---- */

static int take_host(const struct parse *p, const char *from, const char *to)
{
	struct iser_url *u = p->url;
	const char *end = to, *colon = NULL;
	char port[8];
	unsigned n;
	int err;

	if (*from == '[') {
		end = memchr(from, ']', (size_t)(to - from));
		if (!end)
			return fail_parse(p, "no ']' after the address", from);
		from++;
		if (end + 1 < to)
			colon = end + 1;
		if (colon && *colon != ':')
			return fail_parse(p, "host", from);
	} else {
		colon = memchr(from, ':', (size_t)(to - from));
		if (colon)
			end = colon;
	}
	err = take_text(p, u->host, sizeof(u->host), from, end, "host");
	if (err || !colon)
		return err;
	err = take_text(p, port, sizeof(port), colon + 1, to, "port");
	if (!err)
		err = take_number(p, port, 65535, &n,
				  "the port must be a number up to 65535");
	if (!err)
		u->port = (uint16_t)n;
	return err;
}

/* Returns the end of HOST:PORT in [from, to): a portal of SendTargets also has the tag of
 * its portal group, ",TPGT" (RFC 7143 §13.8). */
static const char *before_tag(const char *from, const char *to)
{
	const char *comma = memrchr(from, ',', (size_t)(to - from));

	return comma && comma + 1 < to &&
			       strspn(comma + 1, "0123456789") ==
				       (size_t)(to - comma - 1)
		       ? comma
		       : to;
}

int lib_parse_address(const char *text, char host[256], uint16_t *port)
{
	struct iser_url url = { .port = DEFAULT_PORT };
	char why[256];
	const struct parse p = { .url = &url, .why = why, .size = sizeof(why) };
	/* the portal group tag follows the comma */
	const char *end = strchrnul(text, ',');

	/* the characters of names and addresses; %: before the zone of a
	 * link-local address */
	if (strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz"
			 "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_.:[]%") <
		    (size_t)(end - text) ||
	    take_host(&p, text, end))
		return ISER_E_INVALID;
	strcpy(host, url.host);
	*port = url.port ? url.port : DEFAULT_PORT;
	return 0;
}

/* Link-local, fe80::/10: RFC 4291 §2.5.6. */
static bool is_link_local(const char *address)
{
	return !strncasecmp(address, "[fe", 3) && address[3] &&
	       strchr("89abAB", address[3]);
}

bool lib_put_zone(char *out, size_t size, const char *address, const char *host)
{
	const char *zone = strchr(host, '%');
	size_t n = strcspn(address, "%]");
	bool must = zone && address[n] == ']' && is_link_local(address);

	return snprintf(out, size, "%.*s%s%s", (int)n, address,
			must ? zone : "", address + n) < (int)size;
}

/* ---- ?KEY=VALUE&... ---- */

/* Copies v, which must be one of the words in list ("a|b|c"). */
static int take_word(const struct parse *p, char *out, size_t size,
		     const char *v, const char *list, const char *what)
{
	size_t n = strlen(v);

	for (const char *w = list; w; w = strchr(w, '|')) {
		w += *w == '|';
		if (n && !strncmp(w, v, n) && (w[n] == '|' || !w[n])) {
			snprintf(out, size, "%s", v);
			return 0;
		}
	}
	return fail_parse(p, what, v);
}

static int take_digest(const struct parse *p, char *out, size_t size,
		       const char *v)
{
	return take_word(p, out, size, v, "none|crc32c|none,crc32c|crc32c,none",
			 "a digest is none, crc32c, none,crc32c or "
			 "crc32c,none");
}

static int take_value(const struct parse *p, char *out, size_t size,
		      const char *v)
{
	return take_text(p, out, size, v, v + strlen(v), "value in the URL");
}

static int take_reporting(const struct parse *p, const char *v)
{
	static const char *const words[] = {
		[ISER_REPORTING_RFC3720] = "rfc3720",
		[ISER_REPORTING_FENCE] = "response-fence",
		[ISER_REPORTING_FAST_ABORT] = "fast-abort",
	};

	for (uint8_t i = 1; i < ARRAY_LEN(words); i++) {
		if (strcmp(v, words[i]) != 0)
			continue;
		p->url->task_reporting = i;
		return 0;
	}
	return fail_parse(p,
			  "task_reporting is rfc3720, response-fence or "
			  "fast-abort",
			  v);
}

/* Keys with the names of RFC 7143 §13.17 to §13.19. */
static int take_order_key(const struct parse *p, const char *key, const char *v,
			  bool *taken)
{
	struct iser_url *u = p->url;
	bool *any_order = !strcmp(key, "data_pdu_in_order")
				  ? &u->data_pdu_in_any_order
			  : !strcmp(key, "data_sequence_in_order")
				  ? &u->data_sequence_in_any_order
				  : NULL;
	int err;

	*taken = true;
	if (any_order) {
		*any_order = !strcmp(v, "no");
		return *any_order || !strcmp(v, "yes")
			       ? 0
			       : fail_parse(p, "not yes or no", v);
	}
	*taken = !strcmp(key, "max_outstanding_r2t");
	if (!*taken)
		return 0;
	err = take_number(p, v, 65535, &u->max_outstanding_r2t,
			  "max_outstanding_r2t, 1 to 65535");
	if (!err && !u->max_outstanding_r2t)
		err = fail_parse(p, "max_outstanding_r2t, 1 to 65535", v);
	return err;
}

static int take_wish(const struct parse *p, const char *v, uint8_t *wish)
{
	*wish = !strcmp(v, "yes")  ? ISER_YES
		: !strcmp(v, "no") ? ISER_NO
				   : ISER_DEFAULT;
	return *wish ? 0 : fail_parse(p, "not yes or no", v);
}

/* §13.12 to §13.14 have the range. */
static int take_length(const struct parse *p, const char *v, uint32_t *length)
{
	unsigned n = 0;
	int err = take_number(p, v, 16777215, &n, "a length, 512 to 16777215");

	if (!err && n < 512)
		err = fail_parse(p, "a length, 512 to 16777215", v);
	if (!err)
		*length = n;
	return err;
}

/* Keys of the login about data, with the names of RFC 7143 §13.10 to §13.14. */
static int take_data_key(const struct parse *p, const char *key, const char *v,
			 bool *taken)
{
	struct iser_url *u = p->url;
	const struct {
		const char *key;
		uint8_t *to;
	} wishes[] = {
		{ "initial_r2t", &u->initial_r2t },
		{ "immediate_data", &u->immediate_data },
	};
	const struct {
		const char *key;
		uint32_t *to;
	} lengths[] = {
		{ "first_burst_length", &u->first_burst_length },
		{ "max_burst_length", &u->max_burst_length },
		{ "max_recv_data_segment_length",
		  &u->max_recv_data_segment_length },
	};
	uint8_t wish = ISER_DEFAULT;
	int err;

	*taken = true;
	for (size_t i = 0; i < ARRAY_LEN(wishes); i++)
		if (!strcmp(key, wishes[i].key))
			return take_wish(p, v, wishes[i].to);
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
		if (!strcmp(key, lengths[i].key))
			return take_length(p, v, lengths[i].to);
	if (!strcmp(key, "mpa_crc")) {
		err = take_wish(p, v, &wish);
		u->no_mpa_crc = wish == ISER_NO;
		return err;
	}
	*taken = !strcmp(key, "iser_hello");
	if (!*taken)
		return 0;
	err = take_wish(p, v, &wish);
	u->iser_hello = wish == ISER_YES;
	return err;
}

/* The members that hold seconds, where 0 means the default; the key's 0 becomes
 * ISER_NO_TIME, if the key permits that. */
static int take_seconds(const struct parse *p, const char *key, const char *v,
			bool *taken)
{
	struct iser_url *u = p->url;
	const struct {
		const char *key;
		unsigned *to;
		bool may_be_none;
	} rows[] = {
		{ "login_timeout", &u->login_timeout, false },
		{ "logout_timeout", &u->logout_timeout, false },
		{ "noop_out_interval", &u->noop_out_interval, true },
		{ "noop_out_timeout", &u->noop_out_timeout, false },
		{ "replacement_timeout", &u->replacement_timeout, true },
		{ "polling_interval", &u->polling_interval, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		unsigned n = 0;
		int err;

		if (strcmp(key, rows[i].key) != 0)
			continue;
		*taken = true;
		err = take_number(p, v, 86400, &n, key);
		if (!err && !n && !rows[i].may_be_none)
			err = fail_parse(p, key, "must be 1 to 86400 seconds");
		if (!err)
			*rows[i].to = n ? n : ISER_NO_TIME;
		return err;
	}
	*taken = false;
	return 0;
}

static int take_path_key(const struct parse *p, const char *key, const char *v,
			 bool *taken)
{
	struct iser_url *u = p->url;
	int err;

	*taken = true;
	if (!strcmp(key, "paths"))
		return take_word(p, u->paths, sizeof(u->paths), v, "all",
				 "paths is all");
	if (!strcmp(key, "policy"))
		return take_word(p, u->policy, sizeof(u->policy), v,
				 "round-robin|queue-length|failover",
				 "policy is round-robin, queue-length or "
				 "failover");
	if (!strcmp(key, "failback"))
		return take_word(p, u->failback, sizeof(u->failback), v,
				 "immediate|manual",
				 "failback is immediate or manual");
	if (!strcmp(key, "alua"))
		return take_word(p, u->alua, sizeof(u->alua), v,
				 "implicit|explicit|none",
				 "alua is implicit, explicit or none");
	err = take_order_key(p, key, v, taken);
	return *taken ? err : take_seconds(p, key, v, taken);
}

static int take_rdma_key(const struct parse *p, const char *key, const char *v)
{
	struct iser_url *u = p->url;

	if (!strcmp(key, "start"))
		return take_word(p, u->start, sizeof(u->start), v,
				 "rdma|stream", "start is rdma or stream");
	if (!strcmp(key, "compat"))
		return take_word(p, u->compat, sizeof(u->compat), v,
				 "linux|strict", "compat is linux or strict");
	if (!strcmp(key, "rcap"))
		return take_word(p, u->rcap, sizeof(u->rcap), v, "iwarp|verbs",
				 "rcap is iwarp or verbs");
	if (strcmp(key, "transport") != 0)
		return fail_parse(p, "unknown key in the URL", key);
	if (!strcmp(v, "iscsi"))
		v = "tcp";
	return take_word(p, u->transport, sizeof(u->transport), v,
			 "tcp|iser|auto", "transport is tcp, iser or auto");
}

static int take_connections(const struct parse *p, const char *v)
{
	int err = take_number(p, v, LIB_CONNECTIONS_MAX, &p->url->connections,
			      "connections, 1 to 16");

	if (!err && !p->url->connections)
		err = fail_parse(p, "connections, 1 to 16", v);
	return err;
}

static int take_level(const struct parse *p, const char *v)
{
	return take_number(p, v, 2, &p->url->error_recovery_level,
			   "error_recovery_level, 0 to 2");
}

static int take_auth(const struct parse *p, const char *v)
{
	char list[CHAP_LIST_MAX];

	if (!chap_list(v, list))
		return fail_parse(p,
				  "auth is a list of md5, sha1, sha256 and "
				  "sha3-256, the best one first",
				  v);
	return take_value(p, p->url->auth, sizeof(p->url->auth), v);
}

static int take_secret_file(const struct parse *p, char *out, size_t size,
			    const char *path)
{
	const char *why;

	if (*out)
		return fail_parse(p,
				  "the URL has a password, too; remove the "
				  "password or the file",
				  path);
	why = lib_secret_read(out, size, path);
	if (!why)
		return 0;
	snprintf(p->why, p->size, "password file %.100s: %s", path, why);
	return ISER_E_INVALID;
}

static int take_key(const struct parse *p, const char *key, const char *v)
{
	struct iser_url *u = p->url;

	if (!strcmp(key, "header_digest"))
		return take_digest(p, u->header_digest,
				   sizeof(u->header_digest), v);
	if (!strcmp(key, "data_digest"))
		return take_digest(p, u->data_digest, sizeof(u->data_digest),
				   v);
	if (!strcmp(key, "initiator"))
		return take_value(p, u->initiator, sizeof(u->initiator), v);
	if (!strcmp(key, "timeout"))
		return take_number(p, v, 86400, &u->timeout,
				   "timeout, 0 to 86400");
	if (!strcmp(key, "depth"))
		return take_number(p, v, 4096, &u->depth, "depth, 0 to 4096");
	if (!strcmp(key, "reconnect"))
		return take_number(p, v, 1000, &u->reconnect,
				   "reconnect, 0 to 1000");
	if (!strcmp(key, "retry"))
		return take_number(p, v, 86400, &u->retry, "retry, 0 to 86400");
	if (!strcmp(key, "priority"))
		return take_number(p, v, 15, &u->priority, "priority, 0 to 15");
	if (!strcmp(key, "connections"))
		return take_connections(p, v);
	if (!strcmp(key, "error_recovery_level"))
		return take_level(p, v);
	if (!strcmp(key, "task_reporting"))
		return take_reporting(p, v);
	if (!strcmp(key, "target_user"))
		return take_value(p, u->target_user, sizeof(u->target_user), v);
	if (!strcmp(key, "target_password"))
		return take_value(p, u->target_password,
				  sizeof(u->target_password), v);
	if (!strcmp(key, "password_file"))
		return take_secret_file(p, u->password, sizeof(u->password), v);
	if (!strcmp(key, "target_password_file"))
		return take_secret_file(p, u->target_password,
					sizeof(u->target_password), v);
	if (!strcmp(key, "auth"))
		return take_auth(p, v);
	return take_rdma_key(p, key, v);
}

/* Keys that only libiscsi has. What this library cannot do is an error: to ignore
 * the key would be a surprise. */
static int take_libiscsi_key(const struct parse *p, const char *key,
			     bool *taken)
{
	static const char *const refused[] = { "force_usn",
					       "LIBISCSI_RDMA_ACK_TIMEOUT" };

	*taken = true;
	if (!strcmp("iser", key)) {
		strcpy(p->url->transport, "iser");
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(refused); i++)
		if (!strcmp(refused[i], key))
			return fail_parse(p,
					  "this key of libiscsi is not "
					  "supported; remove the key",
					  key);
	*taken = false;
	return 0;
}

static int take_query(const struct parse *p, const char *q)
{
	bool taken;
	char pair[512];

	while (*q) {
		const char *end = strchrnul(q, '&');
		char *eq;
		int err = take_text(p, pair, sizeof(pair), q, end,
				    "key in the URL");

		if (err)
			return err;
		eq = strchr(pair, '=');
		if (eq)
			*eq = '\0';
		err = take_libiscsi_key(p, pair, &taken);
		if (!taken && !eq)
			return fail_parse(p, "no '=' in the URL's key", pair);
		if (!taken)
			err = take_path_key(p, pair, eq + 1, &taken);
		if (!taken)
			err = take_data_key(p, pair, eq + 1, &taken);
		if (!taken)
			err = take_key(p, pair, eq + 1);
		if (err)
			return err;
		q = *end ? end + 1 : end;
	}
	return 0;
}

/* ---- the URL ---- */

static int from_environment(const struct parse *p, char *out, size_t size,
			    const char *name)
{
	const char *v = getenv(name);

	return *out || !v || !*v
		       ? 0
		       : take_text(p, out, size, v, v + strlen(v), name);
}

static int secret_from_environment(const struct parse *p, char *out,
				   size_t size, const char *name)
{
	const char *v = getenv(name), *why;

	if (*out || !v || !*v)
		return 0;
	why = lib_secret_take(out, size, v, strlen(v));
	if (!why)
		return 0;
	snprintf(p->why, p->size, "%s: %s", name, why);
	return ISER_E_INVALID;
}

static int fill_from_environment(const struct parse *p)
{
	struct iser_url *u = p->url;
	int err = from_environment(p, u->user, sizeof(u->user),
				   "LIBISCSI_CHAP_USERNAME");

	if (!err)
		err = secret_from_environment(p, u->password,
					      sizeof(u->password),
					      "LIBISCSI_CHAP_PASSWORD");
	if (!err)
		err = from_environment(p, u->target_user,
				       sizeof(u->target_user),
				       "LIBISCSI_CHAP_TARGET_USERNAME");
	if (!err)
		err = secret_from_environment(p, u->target_password,
					      sizeof(u->target_password),
					      "LIBISCSI_CHAP_TARGET_PASSWORD");
	return err;
}

/* RFC 7143 §9.2.1: a target authenticates only to an initiator that does, and with
 * another secret. */
static int check_chap(const struct parse *p)
{
	const struct iser_url *u = p->url;

	if (u->target_user[0] && !u->user[0])
		return fail_parse(
			p,
			"target_user needs the user and password of the "
			"initiator, too",
			u->target_user);
	if (u->target_user[0] && !strcmp(u->password, u->target_password))
		return fail_parse(p,
				  "password and target_password must differ "
				  "(RFC 7143 §9.2.1)",
				  u->target_user);
	return 0;
}

/* Decodes %XX in place, as libiscsi does; iSCSI names have no %. Returns false if
 * two hexadecimal digits do not follow. */
static bool decode_percent(char *text)
{
	char *out = text, *end, hex[3] = { 0 };
	long v;

	for (; *text; text++) {
		if (*text != '%') {
			*out++ = *text;
			continue;
		}
		if (!isxdigit((unsigned char)text[1]) ||
		    !isxdigit((unsigned char)text[2]))
			return false;
		memcpy(hex, text + 1, 2);
		v = strtol(hex, &end, 16);
		if (v == 0)
			return false;
		*out++ = (char)v;
		text += 2;
	}
	*out = '\0';
	return true;
}

/* /IQN/LUN after the host; a discovery URL may leave out either. */
static int take_path(const struct parse *p, const char *path, const char *end,
		     bool discovery)
{
	struct iser_url *u = p->url;
	const char *slash;
	char lun[8];
	unsigned n;
	int err;

	if (path == end || path + 1 == end)
		return discovery
			       ? 0
			       : fail_parse(
					 p,
					 "the URL names no target; a URL has the form",
					 "iscsi://HOST[:PORT]/IQN/LUN");
	path++;
	slash = memchr(path, '/', (size_t)(end - path));
	err = take_text(p, u->target, sizeof(u->target), path,
			slash ? slash : end, "target name");
	if (!err && !decode_percent(u->target))
		err = fail_parse(p,
				 "target name: % is not followed by two "
				 "hexadecimal digits",
				 u->target);
	if (err)
		return err;
	if (!slash)
		return discovery
			       ? 0
			       : fail_parse(
					 p,
					 "the URL names no LUN; a URL has the form",
					 "iscsi://HOST[:PORT]/IQN/LUN");
	err = take_text(p, lun, sizeof(lun), slash + 1, end, "LUN");
	if (!err)
		err = take_number(p, lun, 16383, &n,
				  "the LUN must be a number up to 16383");
	if (!err)
		u->lun = (int)n;
	return err;
}

void lib_default_url(struct iser_url *url)
{
	memset(url, 0, sizeof(*url));
	strcpy(url->transport, "tcp");
	strcpy(url->start, "rdma");
	strcpy(url->rcap, "iwarp");
	strcpy(url->header_digest, "none,crc32c");
	strcpy(url->data_digest, "none,crc32c");
	url->port = DEFAULT_PORT;
	url->lun = -1;
	url->depth = DEFAULT_DEPTH;
	url->timeout = DEFAULT_TIMEOUT;
	url->retry = DEFAULT_RETRY;
	url->connections = 1;
}

int iser_url_parse(struct iser_url *url, const char *text, bool discovery,
		   char *why, size_t size)
{
	struct parse p = { .url = url, .why = why, .size = size };
	const char *s = text, *end, *slash, *at;
	int err = 0;

	lib_default_url(url);
	if (size)
		why[0] = '\0';
	if (!strncmp(s, "iscsi://", 8)) {
		s += 8;
	} else if (!strncmp(s, "iser://", 7)) {
		s += 7;
		strcpy(url->transport, "iser");
	} else if (!discovery || strstr(s, "://")) {
		return fail_parse(
			&p,
			"not an iscsi:// or iser:// URL; give iscsi://HOST[:PORT]/IQN/LUN, as iser ls HOST[:PORT] prints it",
			text);
	}
	end = strchrnul(s, '?');
	slash = memchr(s, '/', (size_t)(end - s));
	if (!slash)
		slash = end;
	at = memrchr(s, '@', (size_t)(slash - s));
	if (at) {
		err = take_user(&p, s, at);
		s = at + 1;
	}
	if (!err)
		err = take_host(&p, s,
				discovery ? before_tag(s, slash) : slash);
	if (!err)
		err = take_path(&p, slash, end, discovery);
	if (!err && *end)
		err = take_query(&p, end + 1);
	if (!err)
		err = fill_from_environment(&p);
	return err ? err : check_chap(&p);
}
