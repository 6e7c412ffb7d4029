/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * top.c: iserctl top: asks iserd for its numbers every few seconds and shows what
 * changed in between. On a terminal, one screen that keys control; else one
 * block of lines for each interval.
 */
#include "tools/top.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/opt.h"
#include "tools/ctl.h"
#include "tools/json_get.h"

/* The buckets of latencies, as iserctl(1) describes them. */
#define BUCKETS	     98
#define FIRST_OCTAVE 10

enum {
	COL_NAME,
	COL_OPS,
	COL_READ,
	COL_WRITTEN,
	COL_P50,
	COL_P99,
	COL_DEPTH,
	COL_ERRORS,
	COLUMNS
};

static const char *const columns[] = { "name",	  "ops",    "read",
				       "written", "p50",    "p99",
				       "depth",	  "errors", NULL };
static const char *const headings[COLUMNS] = { "NAME",	  "OPS/S", "READ/S",
					       "WRITE/S", "P50",   "P99",
					       "DEPTH",	  "ERRORS" };
static const char *const kinds[] = { "luns", "sessions", NULL };

struct top {
	const char *socket;
	unsigned timeout, interval, count;
	unsigned sort, kind; /* of columns, of kinds */
	struct rpc_link link;
	int code;	    /* the exit status after a failed request */
	json_t *now, *then; /* the last two answers */
	bool quit;
};

static const struct opt_row params_rows[] = {
	{ .name = "of",
	  .arg = "luns|sessions",
	  .initial = "luns",
	  OPT_WORD(struct top, kind, kinds) },
	{ .name = "sort",
	  .arg = "COLUMN",
	  .initial = "ops",
	  OPT_WORD(struct top, sort, columns) },
	{ .name = "interval",
	  .arg = "SECONDS",
	  .initial = "2",
	  OPT_NUMBER(struct top, interval, 1, 3600) },
	{ .name = "count",
	  .arg = "N",
	  .initial = "0",
	  OPT_NUMBER(struct top, count, 0, 1000000) },
};

/* ---- the terminal ---- */

static struct termios cooked; /* its state before */
static bool is_raw;
static volatile sig_atomic_t stopped;

/* Also from signal handlers. */
static void leave_screen(void)
{
	static const char end[] = "\033[?25h\033[?1049l";

	if (!is_raw)
		return;
	is_raw = false;
	(void)!write(STDOUT_FILENO, end, sizeof(end) - 1);
	tcsetattr(STDIN_FILENO, TCSANOW, &cooked);
}

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

/* Without a terminal at both ends, lines are printed. */
static void enter_screen(void)
{
	struct sigaction sa = { .sa_handler = stop };
	struct termios raw;

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	if (!isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &cooked))
		return;
	raw = cooked;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	if (tcsetattr(STDIN_FILENO, TCSANOW, &raw))
		return;
	is_raw = true;
	fputs("\033[?1049h\033[?25l", stdout);
}

static void screen_size(unsigned *lines, unsigned *width)
{
	struct winsize w = { .ws_row = 0 };

	*lines = 100000;
	*width = 1000;
	if (!is_raw || ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) || !w.ws_row)
		return;
	*lines = w.ws_row;
	*width = w.ws_col;
}

/* ---- rows ---- */

struct row {
	char name[256];
	double value[COLUMNS]; /* p50, p99: microseconds; below 0: none */
};

static double number(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

static double inner(const json_t *o, const char *outer, const char *key)
{
	return number(json_object_get(o, outer), key);
}

/* Adds the buckets of a LUN's reads or writes, `sign` times. */
static void add_buckets(double sums[BUCKETS], const json_t *lun, const char *op,
			int sign)
{
	const char *p = get_text(json_object_get(lun, op), "buckets");

	while (*p) {
		char *end;
		unsigned long b = strtoul(p, &end, 10);
		double n = *end == ':' ? strtod(end + 1, &end) : 0;

		if (end == p)
			return;
		if (b < BUCKETS)
			sums[b] += sign * n;
		p = end + strspn(end, " ");
	}
}

/* Returns the upper limit of the bucket with that share of the latencies, in
 * microseconds; below 0: there are none. */
static double percentile(const double sums[BUCKETS], double share)
{
	double all = 0, sum = 0;

	for (unsigned b = 0; b < BUCKETS; b++)
		all += sums[b];
	for (unsigned b = 0; b < BUCKETS && all > 0; b++) {
		sum += sums[b];
		if (sum >= all * share)
			return (double)((uint64_t)(4 + b % 4)
					<< (FIRST_OCTAVE - 2 + b / 4)) /
			       1000;
	}
	return -1;
}

static double error_count(const json_t *lun)
{
	json_t *errors = json_object_get(lun, "errors"), *n;
	const char *key;
	double sum = 0;

	json_object_foreach(errors, key, n) if (strcmp(key, "unit_attention") !=
						0) sum += json_number_value(n);
	return sum;
}

static void lun_row(struct row *r, const json_t *now, const json_t *then,
		    double seconds)
{
	static const char *const ops[] = { "read", "write", "other" };
	double sums[BUCKETS] = { 0 };

	snprintf(r->name, sizeof(r->name), "%s %s", get_text(now, "backstore"),
		 get_text(now, "store"));
	for (unsigned i = 0; i < 3; i++)
		r->value[COL_OPS] += (inner(now, ops[i], "commands") -
				      inner(then, ops[i], "commands")) /
				     seconds;
	for (unsigned i = 0; i < 2; i++) {
		r->value[COL_READ + i] = (inner(now, ops[i], "bytes") -
					  inner(then, ops[i], "bytes")) /
					 seconds;
		add_buckets(sums, now, ops[i], 1);
		add_buckets(sums, then, ops[i], -1);
	}
	r->value[COL_P50] = percentile(sums, 0.5);
	r->value[COL_P99] = percentile(sums, 0.99);
	r->value[COL_DEPTH] = number(now, "depth");
	r->value[COL_ERRORS] = error_count(now);
}

static void session_row(struct row *r, const json_t *now, const json_t *then,
			double seconds)
{
	snprintf(r->name, sizeof(r->name), "%s %s", get_text(now, "initiator"),
		 get_text(now, "peer"));
	r->value[COL_OPS] =
		(number(now, "commands") - number(then, "commands")) / seconds;
	r->value[COL_READ] =
		(number(now, "bytes_read") - number(then, "bytes_read")) /
		seconds;
	r->value[COL_WRITTEN] =
		(number(now, "bytes_written") - number(then, "bytes_written")) /
		seconds;
	r->value[COL_P50] = r->value[COL_P99] = -1;
	r->value[COL_DEPTH] = number(now, "in_flight");
	r->value[COL_ERRORS] = number(now, "errors");
}

/* Returns the same LUN or session in the answer before, or NULL. */
static const json_t *find_then(const struct top *t, const json_t *now,
			       size_t guess)
{
	static const char *const keys[] = { "backstore", "peer" };
	const json_t *all = json_object_get(t->then, kinds[t->kind]);
	const json_t *mine = json_object_get(now, keys[t->kind]);
	const json_t *o = json_array_get(all, guess);
	size_t i;

	if (json_equal(json_object_get(o, keys[t->kind]), mine))
		return o;
	json_array_foreach(all, i,
			   o) if (json_equal(json_object_get(o, keys[t->kind]),
					     mine)) return o;
	return NULL;
}

static unsigned sort_by; /* of compare_rows */

static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	double d = y->value[sort_by] - x->value[sort_by];

	if (sort_by != COL_NAME && d != 0)
		return d > 0 ? 1 : -1;
	return strverscmp(x->name, y->name);
}

/* Returns the rows, which the caller frees, and stores their number in *n. */
static struct row *make_rows(const struct top *t, size_t *n)
{
	const json_t *all = json_object_get(t->now, kinds[t->kind]), *o;
	double seconds = number(t->now, "time") - number(t->then, "time");
	struct row *rows = calloc(json_array_size(all) + 1, sizeof(*rows));
	size_t i;

	*n = 0;
	if (!rows || seconds <= 0)
		return rows;
	json_array_foreach(all, i, o)
	{
		const json_t *then = find_then(t, o, i);

		/* a new LUN or session has no rate yet */
		(t->kind ? session_row : lun_row)(&rows[(*n)++], o,
						  then ? then : o, seconds);
	}
	sort_by = t->sort;
	qsort(rows, *n, sizeof(*rows), compare_rows);
	return rows;
}

/* ---- output ---- */

static const char *short_number(char out[16], double v, double base,
				const char *const units[])
{
	unsigned i = 0;

	while (v >= base && units[i + 1]) {
		v /= base;
		i++;
	}
	snprintf(out, 16, i && v < 10 ? "%.1f%s" : "%.0f%s", v, units[i]);
	return out;
}

static const char *value_text(char out[16], unsigned column, double v)
{
	static const char *const bytes[] = { "", "K", "M", "G", "T", NULL };
	static const char *const counts[] = { "", "k", "M", "G", NULL };
	static const char *const times[] = { "us", "ms", "s", NULL };

	if (v < 0)
		return "-";
	if (column == COL_READ || column == COL_WRITTEN)
		return short_number(out, v, 1024, bytes);
	if (column == COL_P50 || column == COL_P99)
		return short_number(out, v, 1000, times);
	return short_number(out, v, 100000, counts);
}

static void print_line(const char *line, unsigned width)
{
	printf("%.*s%s\n", (int)width, line, is_raw ? "\033[K" : "");
}

/* The other columns have 63 characters. */
static unsigned name_width(unsigned width)
{
	return MIN(MAX(width, 84u) - 64u, 60u);
}

static void print_row(const struct row *r, unsigned width)
{
	unsigned name = name_width(width);
	char line[512], number[16];
	int n = snprintf(line, sizeof(line), "%-*.*s", (int)name, (int)name,
			 r->name);

	for (unsigned c = 1; c < COLUMNS; c++)
		n += snprintf(line + n, sizeof(line) - (size_t)n, " %8s",
			      value_text(number, c, r->value[c]));
	print_line(line, width);
}

static void print_head(const struct top *t, unsigned width)
{
	unsigned name = name_width(width);
	const json_t *p = json_object_get(t->now, "process");
	char line[512], memory[16];
	int n;

	snprintf(
		line, sizeof(line),
		"iserd %s: %d sessions, %d workers, memory %s, %d descriptors%s",
		get_text(t->now, "version"),
		(int)number(t->now, "sessions_total"),
		(int)number(t->now, "workers"),
		value_text(memory, COL_READ, number(p, "memory")),
		(int)number(p, "descriptors"),
		is_raw ? "   q quit, s sort, t LUNs or sessions" : "");
	print_line(line, width);
	n = snprintf(line, sizeof(line), "%-*s", (int)name,
		     t->kind ? "SESSION" : "LUN");
	for (unsigned c = 1; c < COLUMNS; c++)
		n += snprintf(line + n, sizeof(line) - (size_t)n, " %7s%c",
			      headings[c], c == t->sort ? '*' : ' ');
	print_line(line, width);
}

static void print_all(const struct top *t)
{
	unsigned lines, width;
	size_t n = 0;
	struct row *rows = make_rows(t, &n);

	screen_size(&lines, &width);
	if (is_raw)
		fputs("\033[H", stdout);
	print_head(t, width);
	for (size_t i = 0; i < n && i + 3 < lines; i++)
		print_row(&rows[i], width);
	fputs(is_raw ? "\033[J" : "\n", stdout);
	fflush(stdout);
	free(rows);
}

/* ---- the loop ---- */

/* Asks for the numbers. False after a message. */
static bool ask(struct top *t)
{
	json_t *params = json_object(), *answer = NULL;
	const struct ctl_call call = { .path = t->socket,
				       .method = "stats",
				       .params = params,
				       .seconds = t->timeout,
				       .failed = leave_screen };
	const char *why;

	t->code = ctl_call(&t->link, &call, &answer);
	json_decref(params);
	if (t->code != EXIT_OK)
		return false;
	ctl_make_plain(answer);
	json_decref(t->then);
	t->then = t->now;
	t->now = json_incref(json_object_get(answer, "result"));
	why = get_text(json_object_get(answer, "error"), "message");
	if (!t->now) {
		t->code = EXIT_REFUSED;
		leave_screen();
		fprintf(stderr, "iserctl: %s\n",
			*why ? why
			     : "the answer of iserd is not valid JSON-RPC "
			       "2.0");
	}
	json_decref(answer);
	return t->now != NULL;
}

static void take_key(struct top *t)
{
	char key = 0;

	if (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q')
		t->quit = true;
	else if (key == 's')
		t->sort = (t->sort + 1) % COLUMNS;
	else if (key == 't')
		t->kind = !t->kind;
	if (t->then)
		print_all(t);
}

static double seconds_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Waits for the next interval and handles keys. */
static void wait_interval(struct top *t)
{
	double end = seconds_now() + t->interval, left;

	while (!t->quit && !stopped && (left = end - seconds_now()) > 0) {
		struct pollfd p = { .fd = is_raw ? STDIN_FILENO : -1,
				    .events = POLLIN };

		if (poll(&p, 1, (int)(left * 1000) + 1) > 0)
			take_key(t);
	}
}

static int show(struct top *t)
{
	unsigned shown = 0;

	if (!ask(t))
		return t->code;
	enter_screen();
	while (!t->quit && !stopped && (!t->count || shown < t->count)) {
		wait_interval(t);
		if (t->quit || stopped)
			break;
		if (!ask(t))
			return t->code;
		print_all(t);
		shown++;
	}
	return EXIT_OK;
}

/* Reads the parameters. False after a message. */
static bool take_params(struct top *t, const json_t *params)
{
	const char *key;
	json_t *value;

	for (size_t i = 0; i < ARRAY_LEN(params_rows); i++) {
		char why[OPT_WHY];

		opt_set(&params_rows[i], t, params_rows[i].name,
			params_rows[i].initial, why);
	}
	json_object_foreach((json_t *)params, key, value)
	{
		const struct opt_row *row = NULL;
		char why[OPT_WHY];

		for (size_t i = 0; i < ARRAY_LEN(params_rows); i++)
			if (!strcmp(params_rows[i].name, key))
				row = &params_rows[i];
		if (row && opt_set(row, t, key, json_string_value(value),
				   why) == OPT_OK)
			continue;
		if (row)
			fprintf(stderr, "iserctl: top %s=%s\n", key,
				why + strlen(key) + 1);
		else
			fprintf(stderr,
				"iserctl: top: %s: unknown parameter; top takes "
				"of, sort, interval and count\n",
				key);
		return false;
	}
	return true;
}

int top_run(const char *socket, unsigned timeout, const json_t *params)
{
	struct top t = { .socket = socket, .timeout = timeout };
	int code = EXIT_USAGE;

	if (!take_params(&t, params))
		return code;
	t.link = RPC_LINK_NONE;
	code = ctl_open(&t.link, socket, timeout);
	if (code == EXIT_OK) {
		code = show(&t);
		leave_screen();
	}
	rpc_link_close(&t.link);
	json_decref(t.now);
	json_decref(t.then);
	return code;
}
