/* SPDX-License-Identifier: BSD-2-Clause */
/* log.c: trace events and messages as lines on standard error. */
#include "daemon/log/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/escape.h"
#include "daemon/log/say.h"
#include "io/io.h"

#define TAP_LEVEL TRACE_LEVEL_NOTICE /* of log_set_tap */

/* ---- lines ---- */

/* One write for each line, so that lines of several threads or processes do not
 * mix in a pipe. A line is lost if standard error takes no more. */
static void write_record(const struct log *l, struct log_record *r)
{
	char line[LOG_LINE_MAX];
	size_t len, at = 0;

	clock_gettime(CLOCK_REALTIME, &r->when);
	len = log_line_write(line, l->format, r);
	while (at < len) {
		ssize_t n = write(STDERR_FILENO, line + at, len - at);

		if (n < 0 && errno != EINTR)
			return;
		at += n > 0 ? (size_t)n : 0;
	}
}

/* Fills *r; peer is memory for a name in it. */
static void make_record(struct log_record *r, enum trace_event e,
			const struct trace_about *about, const char *text,
			char peer[64])
{
	int len = (int)strcspn(text, " ");
	char host[LOGLIMIT_NAME];

	*r = (struct log_record){
		.level = trace_event_level(e),
		.event = trace_event_name(e),
		.about = *about,
		.text = text,
	};
	/* many texts begin with the peer */
	if (!about->peer && len < 64 && loglimit_host(text, host)) {
		snprintf(peer, 64, "%.*s", len, text);
		r->about.peer = peer;
	}
}

static void write_event(const struct log *l, enum trace_event e,
			const struct trace_about *about, const char *text,
			unsigned dropped)
{
	struct log_record r;
	char peer[64];

	make_record(&r, e, about, text, peer);
	r.dropped = dropped;
	write_record(l, &r);
}

/* Passes a record on as a line of JSON. */
static void tap_record(const struct log *l, struct log_record *r)
{
	char line[LOG_LINE_MAX];

	clock_gettime(CLOCK_REALTIME, &r->when);
	l->tap.take(l->tap.arg, line, log_line_write(line, LOG_JSON, r));
}

static void tap_event(const struct log *l, enum trace_event e,
		      const struct trace_about *about, const char *text)
{
	char peer[64];
	struct log_record r;

	make_record(&r, e, about, text, peer);
	tap_record(l, &r);
}

static void write_summary(const struct log *l, const struct loglimit_summary *s)
{
	const struct trace_about about = { .peer = s->name };
	char text[128];

	if (!s->n)
		return;
	snprintf(text, sizeof(text), "%u more lines suppressed from %s", s->n,
		 s->name);
	write_event(l, s->event, &about, text, 0);
}

static void write_due(struct log *l, xtime now)
{
	struct loglimit_summary s;

	while (loglimit_due(&l->limit, now, &s))
		write_summary(l, &s);
}

/* ---- peers with a level of their own ---- */

/* Reads "10.0.0.9", "2001:db8::9" or "[2001:db8::9]" of len bytes; a zone
 * ("%eth0") is ignored. *bits: the length of the address. */
static bool parse_address(const char *text, size_t len, uint8_t a[16],
			  unsigned *bits)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	char plain[INET6_ADDRSTRLEN];

	if (len > 2 && text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	}
	if (memchr(text, '%', len))
		len = (size_t)((const char *)memchr(text, '%', len) - text);
	if (len >= sizeof(plain))
		return false;
	memcpy(plain, text, len);
	plain[len] = '\0';
	*bits = 128;
	if (inet_pton(AF_INET6, plain, a) == 1)
		return true;
	memcpy(a, mapped, sizeof(mapped));
	*bits = 32;
	return inet_pton(AF_INET, plain, a + 12) == 1;
}

static bool parse_peer(struct log_peer *p, const char *text)
{
	size_t len = strcspn(text, "/");
	unsigned most;
	char *end;

	if (strlen(text) >= sizeof(p->name) ||
	    !parse_address(text, len, p->address, &most))
		return false;
	strcpy(p->name, text);
	p->bits = 128;
	if (!text[len])
		return true;
	p->bits = (unsigned)strtoul(text + len + 1, &end, 10);
	if (text[len + 1] < '0' || text[len + 1] > '9' || *end ||
	    p->bits > most)
		return false;
	p->bits += 128 - most;
	return true;
}

static bool is_in_prefix(const struct log_peer *p, const uint8_t a[16])
{
	unsigned whole = p->bits / 8, rest = p->bits % 8;

	return !memcmp(a, p->address, whole) &&
	       (!rest || !((a[whole] ^ p->address[whole]) >> (8 - rest)));
}

/* Returns the level of lines about the peer that about or text names. */
static enum trace_level
level_of(const struct log *l, const struct trace_about *about, const char *text)
{
	enum trace_level level = l->level;
	char host[LOGLIMIT_NAME];
	uint8_t a[16];
	unsigned bits;

	if (!l->npeers ||
	    !loglimit_host(about->peer ? about->peer : text, host) ||
	    !parse_address(host, strlen(host), a, &bits))
		return level;
	for (unsigned i = 0; i < l->npeers; i++)
		if (is_in_prefix(&l->peers[i], a))
			level = MAX(level, l->peers[i].level);
	return level;
}

/* Rooms make no text of events above trace.level. */
static void set_trace_level(struct log *l)
{
	enum trace_level most = l->level;

	for (unsigned i = 0; i < l->npeers; i++)
		most = MAX(most, l->peers[i].level);
	if (l->tap.take)
		most = MAX(most, TAP_LEVEL);
	l->trace.level = most;
}

void log_set_tap(struct log *l,
		 void (*take)(void *arg, const char *line, size_t len),
		 void *arg)
{
	pthread_mutex_lock(&l->lock);
	l->tap.take = take;
	l->tap.arg = arg;
	set_trace_level(l);
	pthread_mutex_unlock(&l->lock);
}

void log_set_level(struct log *l, enum trace_level level)
{
	pthread_mutex_lock(&l->lock);
	l->level = level;
	l->npeers = 0;
	set_trace_level(l);
	pthread_mutex_unlock(&l->lock);
}

static void forget_peer(struct log *l, const struct log_peer *p)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < l->npeers; i++)
		if (memcmp(l->peers[i].address, p->address, 16) != 0 ||
		    l->peers[i].bits != p->bits)
			l->peers[kept++] = l->peers[i];
	l->npeers = kept;
}

int log_set_peer(struct log *l, const char *peer, enum trace_level level)
{
	struct log_peer p = { .level = level };
	int err = 0;

	if (!parse_peer(&p, peer))
		return -EINVAL;
	pthread_mutex_lock(&l->lock);
	forget_peer(l, &p);
	if (level > l->level && l->npeers == LOG_PEERS)
		err = -ENOSPC;
	else if (level > l->level)
		l->peers[l->npeers++] = p;
	set_trace_level(l);
	pthread_mutex_unlock(&l->lock);
	return err;
}

/* ---- events and messages ---- */

/* At level debug no line is suppressed. */
static void emit_line(struct trace *t, enum trace_event e,
		      const struct trace_about *about, const char *text)
{
	struct log *l = container_of(t, struct log, trace);
	xtime now = io_now_exact();
	struct loglimit_summary s = { .n = 0 };
	enum trace_level level;
	unsigned dropped = 0;

	pthread_mutex_lock(&l->lock);
	if (l->tap.take && trace_event_level(e) <= TAP_LEVEL)
		tap_event(l, e, about, text);
	level = level_of(l, about, text);
	if (trace_event_level(e) <= level &&
	    (level == TRACE_LEVEL_DEBUG ||
	     loglimit_admit(&l->limit, e, text, now, &dropped, &s))) {
		write_summary(l, &s);
		write_due(l, now);
		write_event(l, e, about, text, dropped);
	} else {
		write_summary(l, &s);
		write_due(l, now);
	}
	pthread_mutex_unlock(&l->lock);
}

void log_flush(struct log *l)
{
	pthread_mutex_lock(&l->lock);
	write_due(l, io_now_exact());
	pthread_mutex_unlock(&l->lock);
}

/* Writes a message of say, whatever the level is. */
static void write_said(void *arg, const char *text)
{
	static const char warning[] = "warning: ";
	struct log *l = arg;
	char plain[1024];
	struct log_record r = {
		.level = strncmp(text, warning, sizeof(warning) - 1) != 0
				 ? TRACE_LEVEL_ERROR
				 : TRACE_LEVEL_WARN,
		.event = LOG_PROCESS,
		.text = text_escape_str(plain, sizeof(plain), text),
	};

	pthread_mutex_lock(&l->lock);
	if (l->tap.take)
		tap_record(l, &r);
	write_record(l, &r);
	pthread_mutex_unlock(&l->lock);
}

/* systemd.exec(5): JOURNAL_STREAM is the device and inode of the journal's
 * socket, which stderr may have been redirected away from. */
static bool is_journal(int fd)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &dev, &ino) == 2 &&
	       !fstat(fd, &st) && st.st_dev == dev && st.st_ino == ino;
}

static enum log_format format_of(enum log_format format)
{
	return format != LOG_AUTO	   ? format
	       : is_journal(STDERR_FILENO) ? LOG_JOURNALD
					   : LOG_TEXT;
}

void log_set_format(struct log *l, enum log_format format)
{
	pthread_mutex_lock(&l->lock);
	l->format = format_of(format);
	pthread_mutex_unlock(&l->lock);
}

void log_init(struct log *l, enum trace_level level, enum log_format format)
{
	memset(l, 0, sizeof(*l));
	pthread_mutex_init(&l->lock, NULL);
	l->level = level;
	l->trace.level = level;
	l->trace.emit = emit_line;
	l->format = format_of(format);
	say_through(write_said, l);
}

void log_fini(struct log *l)
{
	say_through(NULL, NULL);
	pthread_mutex_destroy(&l->lock);
}
