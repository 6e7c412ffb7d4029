/* SPDX-License-Identifier: BSD-2-Clause */
/* answer.c: the paths of the HTTP endpoint. */
#include "daemon/metrics/answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "daemon/metrics/numbers.h"
#include "daemon/metrics/page.h"
#include "daemon/metrics/prometheus.h"

static const char text_plain[] = "text/plain; charset=utf-8";

static void set_header(struct answer *a, const char *name, const char *value)
{
	for (unsigned i = 0; i < ANSWER_HEADERS; i++) {
		if (a->headers[i].name)
			continue;
		a->headers[i].name = name;
		a->headers[i].value = value;
		return;
	}
}

static void begin(struct answer *a, unsigned status, const char *type)
{
	*a = (struct answer){ .status = status };
	set_header(a, "Content-Type", type);
	set_header(a, "Cache-Control", "no-store");
	set_header(a, "X-Content-Type-Options", "nosniff");
	set_header(a, "Cross-Origin-Resource-Policy", "same-origin");
}

static void set_static(struct answer *a, const char *text)
{
	a->body = (void *)(uintptr_t)text; /* only read */
	a->len = strlen(text);
	a->is_static = true;
}

void answer_refusal(struct answer *a, unsigned status)
{
	begin(a, status, text_plain);
	switch (status) {
	case 400:
		set_static(a, "more than one Host header; send one\n");
		break;
	case 403:
		set_static(a, "this Host is not an address of this machine; "
			      "use its address or localhost\n");
		break;
	case 404:
		set_static(a, "not found; there are /, /metrics, /status.json, "
			      "/healthz and /readyz\n");
		break;
	case 405:
		set_header(a, "Allow", "GET, HEAD");
		set_static(a, "only GET and HEAD: this is read only\n");
		break;
	case 413:
		set_static(a, "a request has no body here\n");
		break;
	case 503:
		set_static(a, "no numbers now: iserd ends, or has no memory\n");
		break;
	default:
		set_static(a, "refused\n");
		break;
	}
}

static void make_page(struct answer *a)
{
	begin(a, 200, "text/html; charset=utf-8");
	set_header(a, "Content-Security-Policy", page_policy);
	set_header(a, "Referrer-Policy", "no-referrer");
	a->body = (void *)(uintptr_t)page_text;
	a->len = page_len;
	a->is_static = true;
}

bool answer_static(struct answer *a, enum answer_kind kind, bool ready)
{
	if (kind == ANSWER_PAGE) {
		make_page(a);
		return true;
	}
	if (kind != ANSWER_READY)
		return false;
	begin(a, ready ? 200 : 503, text_plain);
	set_static(a, ready ? "ready\n" : "not ready\n");
	return true;
}

static bool write_metrics(struct answer *a, bool open, const struct snapshot *s)
{
	struct expo t = { .open = open };

	begin(a, 200,
	      open ? "application/openmetrics-text; version=1.0.0; "
		     "charset=utf-8"
		   : "text/plain; version=0.0.4; charset=utf-8");
	prometheus_write(&t, s);
	if (!expo_end(&t)) {
		free(t.out);
		return false;
	}
	a->body = t.out;
	a->len = t.len;
	return true;
}

static bool write_status(struct answer *a, const struct snapshot *s)
{
	json_t *j = numbers_json(s);

	begin(a, 200, "application/json");
	a->body = j ? json_dumps(j, JSON_COMPACT) : NULL;
	a->len = a->body ? strlen(a->body) : 0;
	json_decref(j);
	return a->body != NULL;
}

/* All workers have answered, or there would be no snapshot. */
static bool write_health(struct answer *a)
{
	begin(a, 200, text_plain);
	set_static(a, "ok\n");
	return true;
}

void answer_numbers(struct answer *a, enum answer_kind kind, bool open,
		    const struct snapshot *s)
{
	bool good = false;

	if (s && kind == ANSWER_METRICS)
		good = write_metrics(a, open, s);
	else if (s && kind == ANSWER_STATUS)
		good = write_status(a, s);
	else if (s)
		good = write_health(a);
	if (!good)
		answer_refusal(a, 503);
}

void answer_free(struct answer *a)
{
	if (!a->is_static)
		free(a->body);
	a->body = NULL;
}
