/* SPDX-License-Identifier: BSD-2-Clause */
/* common.c: messages, exit codes, sizes. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "iser.h"

void say(const char *fmt, ...)
{
	va_list ap;

	fputs("iser: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

int exit_of(int err)
{
	switch ((enum iser_error)err) {
	case ISER_OK:
		return EXIT_OK;
	case ISER_E_NOMEM:
		return EXIT_NOMEM;
	case ISER_E_CONNECT:
	case ISER_E_CLOSED:
		return EXIT_TRANSPORT;
	case ISER_E_LOGIN:
		return EXIT_LOGIN;
	case ISER_E_AUTH:
		return EXIT_AUTH;
	case ISER_E_INVALID:
		return EXIT_INVALID;
	case ISER_E_TIMEOUT:
		return EXIT_TIMEOUT;
	case ISER_E_PROTOCOL:
		return EXIT_PROTOCOL;
	case ISER_E_NOT_FOUND:
		return EXIT_NO_OBJECTS;
	default:
		return EXIT_GENERIC;
	}
}

int failed(const struct iser_context *ctx, int err)
{
	const char *text = iser_message(ctx);

	say("%s", *text ? text : iser_strerror(err));
	return exit_of(err);
}

bool common_option(struct common *c, int o, const char *arg)
{
	if (o == 'j')
		c->json = true;
	else if (o == 'i')
		c->initiator = arg;
	else if (o == 'd')
		c->debug++;
	else
		return false;
	return true;
}

static void log_line(void *arg, int level, const char *text)
{
	(void)arg;
	(void)level;
	say("%s", text);
}

struct iser_context *open_context(const struct common *c)
{
	struct iser_context *ctx = iser_context_new(c->initiator);

	if (!ctx)
		say("out of memory or file descriptors");
	else if (c->debug)
		iser_set_log(ctx, c->debug > 1 ? 4 : 3, log_line, NULL);
	return ctx;
}

void tell_transport(const struct iser_session *s, const struct iser_url *url)
{
	struct iser_params p;

	if (strcmp(url->transport, "auto") != 0)
		return;
	iser_get_params(s, &p);
	say("%s:%u: transport=auto found %s", url->host, url->port, p.kind);
}

struct iser_session *open_url(struct iser_context *ctx, const char *text,
			      struct iser_url *url, int *code)
{
	struct iser_session *s;
	char why[256];
	int err;

	if (iser_url_parse(url, text, false, why, sizeof(why))) {
		say("%s", why);
		*code = EXIT_INVALID;
		return NULL;
	}
	s = iser_connect(ctx, url, &err);
	if (s)
		tell_transport(s, url);
	else
		*code = failed(ctx, err);
	return s;
}

#define TYPE_CD		  0x05
#define GET_CONFIGURATION 0x46
#define RANDOM_WRITABLE	  0x20
#define CURRENT		  0x01

/* MMC-6 §6.5: is the feature Random Writable (§5.3.7) current? */
bool is_read_only_cd(struct iser_session *s, int lun)
{
	uint8_t b[36] = { 0 };
	struct iovec iov = { b, sizeof(b) };
	struct iser_io io = { .lun = lun,
			      .cdb = { GET_CONFIGURATION, 2, 0, RANDOM_WRITABLE,
				       0, 0, 0, 0, sizeof(b) },
			      .cdb_len = 10,
			      .direction = ISER_READ,
			      .iov = &iov,
			      .niov = 1 };

	if (iser_inquiry(s, lun, -1, b, sizeof(b)) < 0 || b[0] != TYPE_CD)
		return false;
	memset(b, 0, sizeof(b));
	return iser_run(s, &io) || b[8] || b[9] != RANDOM_WRITABLE ||
	       !(b[10] & CURRENT);
}

void print_json(json_t *j)
{
	json_dumpf(j, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(j);
}

bool is_url(const char *text)
{
	return strstr(text, "://") != NULL;
}

bool parse_size(const char *text, uint64_t *size)
{
	static const char units[] = "kmgt";
	char *end;
	double v = strtod(text, &end);
	const char *unit;

	if (end == text || !(v >= 0))
		return false;
	if (*end) {
		char c = (char)(*end | 0x20);

		unit = strchr(units, c);
		if (!unit)
			return false;
		for (; unit >= units; unit--)
			v *= 1024;
		end++;
		if (*end == 'i')
			end++;
		if (*end == 'B' || *end == 'b')
			end++;
	}
	if (*end || v > 9.2e18)
		return false;
	*size = (uint64_t)v;
	return true;
}

const char *human(uint64_t bytes, char out[32])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double v = (double)bytes;
	unsigned u = 0;

	while (v >= 1024 && u < 4) {
		v /= 1024;
		u++;
	}
	snprintf(out, 32, u ? "%.1f %s" : "%.0f %s", v, units[u]);
	return out;
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
