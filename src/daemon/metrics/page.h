/* SPDX-License-Identifier: BSD-2-Clause */
/* page.h: the web page, which embed.py makes of page.html. */
#ifndef DAEMON_METRICS_PAGE_H
#define DAEMON_METRICS_PAGE_H

#include <stddef.h>

extern const char page_text[];
extern const size_t page_len;
extern const char page_policy[]; /* Content-Security-Policy */

#endif
