/* SPDX-License-Identifier: BSD-2-Clause */
/* report.c: what the suite prints: a line for each case, the counts, JSON and
 * JUnit. Text of a peer is escaped. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/escape.h"
#include "tools/check/check.h"

#define DIGITS "0123456789abcdef"

const char *const verdict_names[VERDICTS] = { "PASS",	 "FAIL",
					      "WARN",	 "NOT SUPPORTED",
					      "SKIPPED", "BROKEN" };
static const char *const colors[VERDICTS] = { "\033[32m", "\033[1;31m",
					      "\033[33m", "\033[36m",
					      "\033[36m", "\033[1;35m" };

/* Prints text with each line indented, escaped. */
static void print_lines(const char *text, const char *indent)
{
	while (*text) {
		size_t n = strcspn(text, "\n");
		char *line = malloc(TEXT_ESCAPED_SIZE(n));

		if (line) {
			text_escape(line, TEXT_ESCAPED_SIZE(n), text, n);
			for (char *p = line; (p = strstr(p, "\\x09"));)
				memmove(p, p + 3, strlen(p + 3) + 1),
					*p++ = '\t';
			printf("%s%s\n", indent, line);
		}
		free(line);
		text += n + (text[n] == '\n');
	}
}

void report_case(const struct suite *s, const struct check_case *c)
{
	bool color = s->live_color;

	printf("%s%-13s%s %s  %.1f s%s\n", color ? colors[c->verdict] : "",
	       verdict_names[c->verdict], color ? "\033[0m" : "", c->id,
	       (double)c->took / (double)XTIME_S, c->known ? "  (known)" : "");
	if (c->verdict != VERDICT_PASS && c->reason)
		print_lines(c->reason, "    ");
	if (c->conversation && (s->o.verbose || c->verdict == VERDICT_FAIL ||
				c->verdict == VERDICT_WARN))
		print_lines(c->conversation, "      | ");
	fflush(stdout);
}

/* Writes text as a JSON string: the bytes of a peer that are not UTF-8 as \u00NN. */
static void json_string(FILE *f, const char *text)
{
	size_t left = strlen(text), n;
	uint32_t c;

	fputc('"', f);
	for (; left; text += n, left -= n) {
		n = text_utf8_next((const uint8_t *)text, left, &c);
		if (!n || c < 0x20 || c == 0x7f) {
			fprintf(f, "\\u00%c%c", DIGITS[(uint8_t)*text >> 4],
				DIGITS[*text & 15]);
			n = 1;
			continue;
		}
		if (c == '"' || c == '\\')
			fputc('\\', f);
		fwrite(text, 1, n, f);
	}
	fputc('"', f);
}

static void json_member(FILE *f, const char *name, const char *value)
{
	fprintf(f, ", \"%s\": ", name);
	json_string(f, value ? value : "");
}

static void write_json(FILE *f, const struct suite *s)
{
	const char *comma = "";

	fprintf(f, "{\"seed\": %u, \"cases\": [", s->o.seed);
	for (size_t i = 0; i < s->ncases; i++) {
		const struct check_case *c = &s->cases[i];

		if (!c->selected)
			continue;
		fprintf(f, "%s\n{\"id\": ", comma);
		json_string(f, c->id);
		json_member(f, "clause", c->clause);
		json_member(f, "level", c->level);
		json_member(f, "what", c->what);
		if (c->done) {
			json_member(f, "verdict", verdict_names[c->verdict]);
			json_member(f, "reason", c->reason);
			json_member(f, "conversation", c->conversation);
			fprintf(f, ", \"known\": %s, \"seconds\": %.3f",
				c->known ? "true" : "false",
				(double)c->took / (double)XTIME_S);
		}
		fputc('}', f);
		comma = ",";
	}
	fputs("\n]}\n", f);
}

static void xml_text(FILE *f, const char *text)
{
	size_t n = strlen(text);
	char *plain = malloc(TEXT_ESCAPED_SIZE(n));

	for (size_t at = 0; plain && at <= n;) {
		size_t len = strcspn(text + at, "\n");

		text_escape(plain, TEXT_ESCAPED_SIZE(n), text + at, len);
		for (const char *p = plain; *p; p++)
			if (strchr("<>&\"'", *p))
				fprintf(f, "&#%d;", *p);
			else
				fputc(*p, f);
		at += len + 1;
		if (at <= n)
			fputc('\n', f);
	}
	free(plain);
}

static void xml_result(FILE *f, const char *element, const struct check_case *c)
{
	fprintf(f, "<%s message=\"", element);
	xml_text(f, c->reason ? c->reason : "");
	fputs("\">", f);
	xml_text(f, c->conversation ? c->conversation : "");
	fprintf(f, "</%s>", element);
}

static void write_junit(FILE *f, const struct suite *s)
{
	static const char *const elements[VERDICTS] = { NULL,	   "failure",
							NULL,	   "skipped",
							"skipped", "error" };

	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	      "<testsuite name=\"iser-check\">\n",
	      f);
	for (size_t i = 0; i < s->ncases; i++) {
		const struct check_case *c = &s->cases[i];

		if (!c->done)
			continue;
		fputs("<testcase classname=\"", f);
		xml_text(f, c->clause);
		fputs("\" name=\"", f);
		xml_text(f, c->id);
		fprintf(f, "\" time=\"%.3f\">",
			(double)c->took / (double)XTIME_S);
		if (c->known && c->verdict == VERDICT_FAIL)
			xml_result(f, "skipped", c);
		else if (elements[c->verdict])
			xml_result(f, elements[c->verdict], c);
		fputs("</testcase>\n", f);
	}
	fputs("</testsuite>\n", f);
}

/* Writes one of the two files; "-" is standard output. */
static int write_report(const struct suite *s, const char *path,
			void (*writer)(FILE *, const struct suite *))
{
	FILE *f;
	bool failed;

	if (!path)
		return EXIT_OK;
	f = strcmp(path, "-") ? fopen(path, "we") : stdout;
	if (!f) {
		check_say("%s: cannot write the report: %s", path,
			  strerror(errno));
		return EXIT_FAILED;
	}
	writer(f, s);
	failed = fflush(f) || ferror(f);
	if (f != stdout && fclose(f))
		failed = true;
	if (failed)
		check_say("%s: cannot write the report: the file is not "
			  "complete",
			  path);
	return failed ? EXIT_FAILED : EXIT_OK;
}

int report_end(const struct suite *s)
{
	unsigned n[VERDICTS] = { 0 }, bad = 0, known = 0, all = 0;
	int files = write_report(s, s->o.json, write_json);

	if (write_report(s, s->o.junit, write_junit))
		files = EXIT_FAILED;
	for (size_t i = 0; i < s->ncases; i++) {
		const struct check_case *c = &s->cases[i];
		bool failed = c->verdict == VERDICT_FAIL;

		if (!c->done)
			continue;
		all++;
		n[c->verdict]++;
		bad += (failed && !c->known) || c->verdict == VERDICT_BROKEN;
		known += failed && c->known;
		if (c->known && c->verdict == VERDICT_PASS)
			check_say("%s: passes, but stands in %s; remove the "
				  "line",
				  c->id, s->o.known);
	}
	printf("%u cases: %u passed, %u failed (%u of them known), %u "
	       "warnings, %u not supported, %u skipped, %u broken; seed %u\n",
	       all, n[VERDICT_PASS], n[VERDICT_FAIL], known, n[VERDICT_WARN],
	       n[VERDICT_UNSUPPORTED], n[VERDICT_SKIPPED], n[VERDICT_BROKEN],
	       s->o.seed);
	if (s->interrupted)
		return EXIT_INTERRUPTED;
	if (bad)
		return EXIT_FAILED;
	if (all && n[VERDICT_UNSUPPORTED] == all)
		return EXIT_UNSUPPORTED;
	return files;
}

void report_list(const struct suite *s)
{
	if (s->o.json) {
		write_report(s, s->o.json, write_json);
		return;
	}
	for (size_t i = 0; i < s->ncases; i++)
		if (s->cases[i].selected)
			printf("%-6s  %s%s\n        %s\n", s->cases[i].level,
			       s->cases[i].id,
			       s->cases[i].destructive ? "  (destructive)" : "",
			       s->cases[i].what);
}

void report_explain(const struct check_case *c)
{
	printf("%s\n  clause: %s\n  level:  %s\n  rule:   %s\n", c->id,
	       c->clause, c->level, c->what);
	if (*c->why)
		printf("  why:    %s\n", c->why);
	printf("\nThe conversation, as the case has it:\n\n");
	print_lines(c->source, "    ");
	printf("\n");
}
