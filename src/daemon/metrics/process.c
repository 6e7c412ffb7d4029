/* SPDX-License-Identifier: BSD-2-Clause */
/* process.c: reads /proc/self. */
#include "daemon/metrics/process.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "io/io.h"

/* proc(5): field 22 of /proc/self/stat is the start in clock ticks after the
 * boot. The name in field 2 may have spaces; it ends with the last ')'. */
static double start_time(void)
{
	char text[1024];
	size_t len = io_read_text("/proc/self/stat", text, sizeof(text) - 1);
	unsigned long long ticks = 0;
	struct timespec wall, boot;
	const char *p;

	text[len] = '\0';
	p = strrchr(text, ')');
	for (unsigned field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	if (!p || sscanf(p, "%llu", &ticks) != 1)
		return 0;
	clock_gettime(CLOCK_REALTIME, &wall);
	clock_gettime(CLOCK_BOOTTIME, &boot);
	return (double)(wall.tv_sec - boot.tv_sec) +
	       (double)(wall.tv_nsec - boot.tv_nsec) / 1e9 +
	       (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

static unsigned count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	if (!d)
		return 0;
	while (readdir(d))
		n++;
	closedir(d);
	return n > 3 ? n - 3 : 0; /* ".", ".." and this one */
}

static void read_memory(struct process *p)
{
	char text[128];
	size_t len = io_read_text("/proc/self/statm", text, sizeof(text) - 1);
	unsigned long long size = 0, resident = 0, page;

	text[len] = '\0';
	if (sscanf(text, "%llu %llu", &size, &resident) != 2)
		return;
	page = (unsigned long long)sysconf(_SC_PAGESIZE);
	p->size = size * page;
	p->resident = resident * page;
}

void process_read(struct process *p)
{
	struct rusage u;
	struct rlimit files;

	*p = (struct process){ .fds = count_fds(), .start = start_time() };
	read_memory(p);
	if (!getrusage(RUSAGE_SELF, &u))
		p->cpu =
			(double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
			(double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
	if (!getrlimit(RLIMIT_NOFILE, &files))
		p->max_fds = (unsigned)MIN(files.rlim_cur, 1u << 30);
}
