/* SPDX-License-Identifier: BSD-2-Clause */
/* common.c: messages, exit codes, contexts and sessions. */
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/escape.h"
#include "tools/iser.h"

void say(const char *fmt, ...)
{
	char text[2048], plain[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "iser: %s\n",
		text_escape_str(plain, sizeof(plain), text));
}

void *alloc_pages(size_t n)
{
	void *p = aligned_alloc(4096, n);

	return p ? memset(p, 0, n) : NULL;
}

void print_text(const char *text, size_t len)
{
	size_t size = TEXT_ESCAPED_SIZE(len);
	char *plain = malloc(size);

	if (plain)
		fwrite(plain, 1, text_escape(plain, size, text, len), stdout);
	free(plain);
}

json_t *json_text(const char *text)
{
	size_t len = strlen(text), size = TEXT_ESCAPED_SIZE(len);
	char *plain = malloc(size);
	json_t *j =
		plain ? json_string(text_escape_str(plain, size, text)) : NULL;

	free(plain);
	return j;
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
	case ISER_E_NO_PATH:
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

int say_no_memory(void)
{
	say("out of memory");
	return EXIT_NOMEM;
}

int say_failed(const struct iser_context *ctx, int err)
{
	const char *text = iser_message(ctx);

	say("%s", *text ? text : iser_strerror(err));
	return exit_of(err);
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
		say("cannot make an event loop: out of memory or file "
		    "descriptors");
	else if (c->debug)
		iser_set_log(ctx, c->debug > 1 ? 4 : 3, log_line, NULL);
	return ctx;
}

void say_transport(const struct iser_session *s, const struct iser_url *url)
{
	struct iser_params p;

	if (strcmp(url->transport, "auto") != 0)
		return;
	iser_get_params(s, &p);
	say("%s:%u: transport=auto found %s", url->host, url->port, p.kind);
}

#define QUALIFIER_NONE 0x60 /* 011b: no device server has this LUN (SPC-4) */

static bool has_unit(struct iser_session *s, int lun)
{
	uint8_t b[36];

	return iser_inquiry(s, lun, -1, b, sizeof(b)) < 1 ||
	       (b[0] & 0xe0) != QUALIFIER_NONE;
}

static int say_no_unit(const struct iser_url *url)
{
	say("%s at %s:%u: no LUN %d; iser ls lists the units of a target",
	    url->target, url->host, url->port, url->lun);
	return EXIT_NO_OBJECTS;
}

int check_unit_exists(struct iser_session *s, const struct iser_url *url)
{
	int other;

	if (has_unit(s, url->lun))
		return 0;
	/* the target may have it in another form, which REPORT LUNS shows to the library */
	iser_report_luns(s, &other, 1);
	if (has_unit(s, url->lun))
		return 0;
	return say_no_unit(url);
}

static struct iser_session *open_url_lasting(struct iser_context *ctx,
					     const char *text,
					     unsigned reconnect,
					     struct iser_url *url, int *code)
{
	struct iser_url *urls = calloc(ISER_PATHS_MAX, sizeof(*urls));
	struct iser_session *s = NULL;
	char why[256];
	int err, n;

	if (!urls) {
		*code = say_no_memory();
		return NULL;
	}
	n = iser_paths_parse(urls, ISER_PATHS_MAX, text, why, sizeof(why));
	if (n < 0) {
		say("%s", why);
		*code = EXIT_INVALID;
	} else {
		if (!urls[0].reconnect)
			urls[0].reconnect = reconnect;
		*url = urls[0];
		s = iser_connect_paths(ctx, urls, (unsigned)n, &err);
		if (s)
			say_transport(s, url);
		else
			*code = say_failed(ctx, err);
	}
	explicit_bzero(urls, ISER_PATHS_MAX * sizeof(*urls));
	free(urls);
	return s;
}

struct iser_session *open_url(struct iser_context *ctx, const char *text,
			      struct iser_url *url, int *code)
{
	return open_url_lasting(ctx, text, 0, url, code);
}

int open_unit(struct iser_context *ctx, const char *text, unsigned reconnect,
	      struct iser_url *url, struct iser_session **s,
	      struct iser_unit **u)
{
	int code = EXIT_NOMEM, err;

	*u = NULL;
	*s = open_url_lasting(ctx, text, reconnect, url, &code);
	if (!*s)
		return code;
	*u = iser_unit_open(*s, url->lun, &err);
	if (*u)
		return 0;
	return err == ISER_E_NOT_FOUND ? say_no_unit(url)
				       : say_failed(ctx, err);
}

/* Errors of a session: iser_message has the reason. */
static bool has_reason(int err)
{
	return err == ISER_E_NO_PATH || err == ISER_E_CHANGED ||
	       err == ISER_E_CONNECT || err == ISER_E_LOGIN ||
	       err == ISER_E_AUTH;
}

static int say_result(const struct iser_session *s, int err, const char *what,
		      const char *text)
{
	say("%s: %s", what, text);
	if (has_reason(err))
		say_failed(iser_session_context(s), err);
	return exit_of(err);
}

int say_command(const struct iser_io *io, const char *fmt, ...)
{
	char what[400], text[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	iser_io_describe(io, text, sizeof(text));
	return say_result(io->session, io->err, what, text);
}

int say_request(const struct iser_unit *u, const struct iser_request *r,
		const char *fmt, ...)
{
	char what[400], text[240];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	iser_request_describe(r, text, sizeof(text));
	return say_result(iser_unit_session(u), r->err, what, text);
}

#define TYPE_CD 0x05 /* SPC-4 table 144 */

const char *read_only_reason(const struct iser_unit *u)
{
	struct iser_unit_info i;

	iser_unit_get_info(u, &i);
	if (!i.read_only)
		return NULL;
	return i.type == TYPE_CD ? "is a CD/DVD drive with a medium that "
				   "cannot be written"
				 : "is write-protected";
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

/* ---- signals ---- */

static volatile sig_atomic_t signals;

static void on_signal(int number)
{
	(void)number;
	signals++;
}

void catch_signals(void)
{
	struct sigaction a = { .sa_handler = on_signal };

	sigaction(SIGINT, &a, NULL);
	sigaction(SIGTERM, &a, NULL);
}

int caught_signals(void)
{
	return signals;
}
