/* SPDX-License-Identifier: BSD-2-Clause */
/* opt.c: command lines by rows: parsing, checking, and the text of --help. */
#include "base/opt.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/nearest.h"

#define WIDTH  80 /* of a line of --help */
#define INDENT 2  /* of a row in --help */

/* ---- values ---- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Reads the digits at *text and moves *text to their end; false: there are none,
 * or the number does not fit. */
static bool read_digits(const char **text, uint64_t *v)
{
	const char *p = *text;
	uint64_t n = 0;

	if (!is_digit(*p))
		return false;
	for (; is_digit(*p); p++)
		if (__builtin_mul_overflow(n, 10u, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*p - '0'), &n))
			return false;
	*text = p;
	*v = n;
	return true;
}

/* The power of two that a suffix stands for; -1: there is no such suffix. */
static int suffix_shift(const char *text)
{
	static const char suffixes[] = "kmgtp";
	const char *found;

	if (!*text)
		return 0;
	found = strchr(suffixes, *text | 0x20);
	if (!found || !*found)
		return -1;
	text++;
	if (*text == 'i') /* 64MiB */
		text++;
	if (*text == 'B') /* b would be bits */
		text++;
	return *text ? -1 : 10 * ((int)(found - suffixes) + 1);
}

/* The value of the digits between p and end, which follow a decimal point. */
static double fraction_of(const char *p, const char *end)
{
	double v = 0, digit = 0.1;

	for (; p < end; p++, digit /= 10)
		v += (*p - '0') * digit;
	return v;
}

/* skip_fraction skips a decimal point and its digits. */
static const char *skip_fraction(const char *p)
{
	if (*p == '.')
		for (p++; is_digit(*p); p++)
			;
	return p;
}

bool opt_size(const char *text, uint64_t *size)
{
	const char *point, *p = text;
	uint64_t n, fraction = 0;
	int shift;

	if (!read_digits(&p, &n))
		return false;
	point = p;
	p = skip_fraction(p);
	shift = suffix_shift(p);
	if (shift < 0 || (p > point && shift == 0))
		return false;
	if (p > point)
		fraction = (uint64_t)(fraction_of(point + 1, p) *
					      (double)(1ull << shift) +
				      0.5);
	if (__builtin_mul_overflow(n, 1ull << shift, &n) ||
	    __builtin_add_overflow(n, fraction, &n) || n > OPT_SIZE_MAX)
		return false;
	*size = n;
	return true;
}

/* "64M", "9000": the shortest form of a size without a fraction. */
static const char *size_text(uint64_t v, char out[32])
{
	static const char *const suffixes[] = { "", "k", "M", "G", "T", "P" };
	unsigned u = 0;

	for (; v && v % 1024 == 0 && u < ARRAY_LEN(suffixes) - 1; u++)
		v /= 1024;
	snprintf(out, 32, "%llu%s", (unsigned long long)v, suffixes[u]);
	return out;
}

static enum opt_end set_number(const struct opt_row *row, void *member,
			       const char *arg, char why[OPT_WHY])
{
	const char *end = arg;
	uint64_t v;

	if (!read_digits(&end, &v) || *end || v < row->min || v > row->max) {
		snprintf(why, OPT_WHY,
			 row->min == row->max
				 ? "must be %llu"
				 : "must be a number from %llu to %llu",
			 (unsigned long long)row->min,
			 (unsigned long long)row->max);
		return OPT_BAD;
	}
	if (row->kind == OPT_KIND_NUMBER)
		*(unsigned *)member = (unsigned)v;
	else
		*(uint64_t *)member = v;
	return OPT_OK;
}

static enum opt_end set_size(const struct opt_row *row, void *member,
			     const char *arg, char why[OPT_WHY])
{
	char lo[32], hi[32];
	uint64_t v;

	if (!opt_size(arg, &v)) {
		snprintf(why, OPT_WHY,
			 "not a size; give a number of bytes, or one with K, "
			 "M, G or T, for example 100M");
		return OPT_BAD;
	}
	if (v < row->min || v > row->max) {
		snprintf(why, OPT_WHY, "must be a size from %s to %s",
			 size_text(row->min, lo), size_text(row->max, hi));
		return OPT_BAD;
	}
	*(uint64_t *)member = v;
	return OPT_OK;
}

static enum opt_end set_seconds(const struct opt_row *row, void *member,
				const char *arg, char why[OPT_WHY])
{
	double lo = (double)row->min / 1e3, hi = (double)row->max / 1e3, v = -1;
	const char *point = arg, *end;
	uint64_t whole;

	if (read_digits(&point, &whole)) {
		end = skip_fraction(point);
		v = (double)whole;
		if (end > point)
			v += fraction_of(point + 1, end);
		if (*end)
			v = -1;
	}
	if (v < lo || v > hi) {
		snprintf(why, OPT_WHY, "must be seconds from %.10g to %.10g",
			 lo, hi);
		return OPT_BAD;
	}
	*(double *)member = v;
	return OPT_OK;
}

static enum opt_end set_word(const struct opt_row *row, void *member,
			     const char *arg, char why[OPT_WHY])
{
	size_t n = 0;

	for (unsigned i = 0; row->words[i]; i++)
		if (!strcmp(arg, row->words[i])) {
			*(unsigned *)member = i;
			return OPT_OK;
		}
	for (unsigned i = 0; row->words[i] && n < OPT_WHY; i++)
		n += (size_t)snprintf(why + n, OPT_WHY - n, "%s%s",
				      i ? ", " : "must be one of ",
				      row->words[i]);
	return OPT_BAD;
}

static enum opt_end store(const struct opt_row *row, void *into,
			  const char *arg, char why[OPT_WHY])
{
	void *member = (char *)into + row->at;

	switch (row->kind) {
	case OPT_KIND_FLAG:
		*(bool *)member = true;
		return OPT_OK;
	case OPT_KIND_COUNT:
		++*(unsigned *)member;
		return OPT_OK;
	case OPT_KIND_TEXT:
		*(const char **)member = arg;
		return OPT_OK;
	case OPT_KIND_NUMBER:
	case OPT_KIND_COUNTER:
		return set_number(row, member, arg, why);
	case OPT_KIND_SIZE:
		return set_size(row, member, arg, why);
	case OPT_KIND_SECONDS:
		return set_seconds(row, member, arg, why);
	case OPT_KIND_WORD:
		return set_word(row, member, arg, why);
	case OPT_KIND_CALL:
		return row->set(into, arg, why);
	default:
		return OPT_STOPPED;
	}
}

enum opt_end opt_set(const struct opt_row *row, void *into, const char *name,
		     const char *arg, char why[OPT_WHY])
{
	char reason[OPT_WHY] = "not allowed";
	enum opt_end end = store(row, into, arg, reason);

	if (end == OPT_BAD && arg)
		snprintf(why, OPT_WHY, "%s %.200s: %.250s", name, arg, reason);
	else if (end == OPT_BAD)
		snprintf(why, OPT_WHY, "%s: %.450s", name, reason);
	return end;
}

/* ---- the command line ---- */

/* A row as it was found, and where. */
struct found {
	const struct opt_row *row;
	void *into;
	unsigned index; /* in seen */
	char name[64];	/* "--name", as error texts call it */
};

static enum opt_end refuse_line(struct opt_parser *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static enum opt_end refuse_line(struct opt_parser *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->why, sizeof(p->why), fmt, ap);
	va_end(ap);
	return OPT_BAD;
}

static void fill_found(struct found *f, const struct opt_group *g, size_t i,
		       unsigned index)
{
	f->row = &g->rows[i];
	f->into = g->into;
	f->index = index;
	snprintf(f->name, sizeof(f->name), "--%s", f->row->name);
}

/* Returns what to do in place of an option that there is not, or NULL. */
static const char *hint_for(const struct opt_parser *p, const char *name)
{
	for (const struct opt_hint *h = p->hints; h && h->name; h++)
		if (!strcmp(h->name, name))
			return h->text;
	return NULL;
}

static enum opt_end refuse_name(struct opt_parser *p, const char *name,
				size_t len)
{
	const char *hint;
	struct nearest near;
	char copy[200];

	snprintf(copy, sizeof(copy), "%.*s", (int)MIN(len, 199u), name);
	hint = hint_for(p, copy);
	if (hint)
		return refuse_line(p, "--%s: no such option; %s", copy, hint);
	nearest_begin(&near, copy);
	for (size_t g = 0; g < OPT_GROUPS; g++)
		for (size_t i = 0; i < p->groups[g].nrows; i++)
			nearest_try(&near, p->groups[g].rows[i].name);
	if (near.best)
		return refuse_line(p,
				   "--%s: no such option; did you mean --%s? "
				   "%s --help lists the options",
				   copy, near.best, p->command);
	return refuse_line(p,
			   "--%s: no such option; %s --help lists the options",
			   copy, p->command);
}

/* find_name finds the row of a long name. A beginning of the name is refused: an option
 * that is added later may begin so, too, or be the one that was meant. */
static enum opt_end find_name(struct opt_parser *p, const char *name,
			      size_t len, struct found *f)
{
	unsigned index = 0;

	for (size_t g = 0; g < OPT_GROUPS; g++)
		for (size_t i = 0; i < p->groups[g].nrows; i++, index++) {
			const char *full = p->groups[g].rows[i].name;

			if (strncmp(full, name, len) != 0 || full[len])
				continue;
			fill_found(f, &p->groups[g], i, index);
			return OPT_OK;
		}
	return refuse_name(p, name, len);
}

static enum opt_end find_letter(struct opt_parser *p, char letter,
				struct found *f)
{
	unsigned index = 0;

	for (size_t g = 0; g < OPT_GROUPS; g++)
		for (size_t i = 0; i < p->groups[g].nrows; i++, index++)
			if (p->groups[g].rows[i].letter == letter) {
				fill_found(f, &p->groups[g], i, index);
				return OPT_OK;
			}
	return refuse_line(p,
			   "-%c: no such option; %s --help lists the options",
			   letter, p->command);
}

static enum opt_end take(struct opt_parser *p, const struct found *f,
			 const char *arg)
{
	bool repeats = f->row->repeats || f->row->kind == OPT_KIND_COUNT;
	enum opt_end end;

	if (p->seen[f->index] && !repeats)
		return refuse_line(p, "%s: given twice; give it once", f->name);
	p->seen[f->index] = true;
	end = opt_set(f->row, f->into, f->name, arg, p->why);
	if (end == OPT_STOPPED)
		p->stopped = f->row;
	return end;
}

/* The words of a command line, and the next of them. */
struct line {
	int argc, next;
	char **argv;
};

/* take_with_next takes f with the word that comes next, if f wants a value. */
static enum opt_end take_with_next(struct opt_parser *p, const struct found *f,
				   struct line *l)
{
	if (!f->row->arg)
		return take(p, f, NULL);
	if (l->next == l->argc)
		return refuse_line(p, "%s: no value; give %s %s", f->name,
				   f->name, f->row->arg);
	return take(p, f, l->argv[l->next++]);
}

/* "--name", "--name=value" */
static enum opt_end take_long(struct opt_parser *p, const char *word,
			      struct line *l)
{
	const char *eq = strchr(word, '=');
	struct found f;

	if (find_name(p, word, eq ? (size_t)(eq - word) : strlen(word), &f))
		return OPT_BAD;
	if (!eq)
		return take_with_next(p, &f, l);
	if (!f.row->arg)
		return refuse_line(p, "%s: takes no value; leave out %.200s",
				   f.name, eq);
	return take(p, &f, eq + 1);
}

/* "-ab", "-nvalue", "-n value" */
static enum opt_end take_letters(struct opt_parser *p, const char *letters,
				 struct line *l)
{
	enum opt_end end = OPT_OK;
	struct found f;

	for (; *letters && end == OPT_OK; letters++) {
		end = find_letter(p, *letters, &f);
		if (end)
			break;
		if (f.row->arg && letters[1])
			return take(p, &f, letters + 1);
		end = take_with_next(p, &f, l);
	}
	return end;
}

static enum opt_end set_defaults(struct opt_parser *p)
{
	enum opt_end end = OPT_OK;

	for (size_t g = 0; g < OPT_GROUPS; g++)
		for (size_t i = 0; i < p->groups[g].nrows; i++) {
			const struct opt_row *row = &p->groups[g].rows[i];

			if (row->initial)
				end = opt_set(row, p->groups[g].into, row->name,
					      row->initial, p->why);
			assert(end == OPT_OK); /* a row's default is allowed */
		}
	return end;
}

enum opt_end opt_parse(struct opt_parser *p, int argc, char **argv)
{
	struct line l = { .argc = argc, .argv = argv };
	enum opt_end end = set_defaults(p);
	bool only_operands = false;
	size_t nrows = 0;

	for (size_t g = 0; g < OPT_GROUPS; g++)
		nrows += p->groups[g].nrows;
	assert(nrows <= OPT_ROWS);
	memset(p->seen, 0, sizeof(p->seen));
	p->noperands = 0;
	p->stopped = NULL;
	while (l.next < argc && end == OPT_OK) {
		char *word = argv[l.next++];

		if (only_operands || word[0] != '-' || !word[1])
			argv[p->noperands++] = word;
		else if (!strcmp(word, "--"))
			only_operands = true;
		else if (word[1] == '-')
			end = take_long(p, word + 2, &l);
		else
			end = take_letters(p, word + 1, &l);
	}
	return end;
}

/* ---- --help ---- */

/* Text that grows; what does not fit is only counted. */
struct text {
	char *out;
	size_t size, len;
	unsigned column;
};

static void put_char(struct text *t, char c)
{
	if (t->len + 1 < t->size)
		t->out[t->len] = c;
	t->len++;
	t->column = c == '\n' ? 0 : t->column + 1;
}

static void put_word(struct text *t, const char *word, size_t len)
{
	while (len--)
		put_char(t, *word++);
}

static void pad_to(struct text *t, unsigned column)
{
	while (t->column < column)
		put_char(t, ' ');
}

/* put_wrapped puts the words of text from column on, on as many lines as they
 * take; what comes first goes behind what is on the line. */
static void put_wrapped(struct text *t, const char *text, unsigned column)
{
	while (*text) {
		size_t len = strcspn(text, " ");

		if (t->column > column && t->column + 1 + len > WIDTH)
			put_char(t, '\n');
		if (t->column > column)
			put_char(t, ' ');
		pad_to(t, column);
		put_word(t, text, len);
		text += len + (text[len] == ' ');
	}
}

static void put_row(struct text *t, const struct opt_row *row, unsigned column)
{
	char names[128];

	snprintf(names, sizeof(names), "%c%c%c --%s%s%s",
		 row->letter ? '-' : ' ', row->letter ? row->letter : ' ',
		 row->letter ? ',' : ' ', row->name, row->arg ? " " : "",
		 row->arg ? row->arg : "");
	pad_to(t, INDENT);
	put_word(t, names, strlen(names));
	if (t->column + 2 > column)
		put_char(t, '\n');
	put_wrapped(t, row->help, column);
	if (row->initial) {
		char initial[128];

		snprintf(initial, sizeof(initial), "(default: %s)",
			 row->initial);
		put_wrapped(t, initial, column);
	}
	put_char(t, '\n');
}

size_t opt_help(const struct opt_parser *p, unsigned column, char *out,
		size_t size)
{
	struct text t = { .out = out, .size = size };

	for (size_t g = 0; g < OPT_GROUPS; g++)
		for (size_t i = 0; i < p->groups[g].nrows; i++)
			put_row(&t, &p->groups[g].rows[i], column);
	if (size)
		out[MIN(t.len, size - 1)] = '\0';
	return t.len;
}
