/* SPDX-License-Identifier: BSD-2-Clause */
/* progress.c: a bar on standard error, redrawn ten times a second. */
#include <string.h>
#include <unistd.h>

#include "tools/iser.h"

#define REDRAW_NS 100000000u
#define BAR	  30

void progress_start(struct progress *p, const char *what, uint64_t total)
{
	*p = (struct progress){ .what = what,
				.total = total,
				.started = now_ns(),
				.on = isatty(STDERR_FILENO) };
}

static void draw_bar(const struct progress *p)
{
	char bar[BAR + 1];
	unsigned full = (unsigned)((double)p->done / (double)p->total * BAR);

	memset(bar, ' ', BAR);
	memset(bar, '#', full > BAR ? BAR : full);
	bar[BAR] = '\0';
	fprintf(stderr, " [%s] %3.0f %%", bar,
		(double)p->done * 100 / (double)p->total);
}

static void draw(const struct progress *p, uint64_t now)
{
	double s = (double)(now - p->started) / 1e9;
	double rate = s > 0 ? (double)p->done / s : 0;
	char done[32], speed[32];

	fprintf(stderr, "\r%s", p->what);
	if (p->total)
		draw_bar(p);
	fprintf(stderr, " %s, %s/s", human(p->done, done),
		human((uint64_t)rate, speed));
	if (p->total && rate > 0)
		fprintf(stderr, ", %.0f s left",
			(double)(p->total - p->done) / rate);
	fputs("\033[K", stderr);
}

void progress_add(struct progress *p, uint64_t n)
{
	uint64_t now;

	p->done += n;
	if (!p->on)
		return;
	now = now_ns();
	if (now - p->last < REDRAW_NS)
		return;
	p->last = now;
	draw(p, now);
}

void progress_end(struct progress *p)
{
	if (!p->on)
		return;
	draw(p, now_ns());
	fputc('\n', stderr);
}
