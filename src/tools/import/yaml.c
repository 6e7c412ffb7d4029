/* SPDX-License-Identifier: BSD-2-Clause */
/* yaml.c: prints the configuration file of iserd, and the notes. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "tools/import/model.h"

/* Words that YAML 1.1 reads as something else than text. */
static bool is_special(const char *s)
{
	static const char *const words[] = { "y",   "n",    "yes",
					     "no",  "true", "on",
					     "off", "null", "false" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (!strcasecmp(words[i], s))
			return true;
	return false;
}

/* Prints a text, in quotes unless it is a plain word. The text has no control
 * characters: the readers refuse those. */
static void put_text(FILE *out, const char *s)
{
	bool plain = isalpha((unsigned char)*s) || *s == '/';

	for (const char *p = s; *p; p++)
		plain &= isalnum((unsigned char)*p) || strchr("._-/", *p);
	if (plain && !is_special(s)) {
		fputs(s, out);
		return;
	}
	putc('"', out);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			putc('\\', out);
		putc(*s, out);
	}
	putc('"', out);
}

static void put_list(FILE *out, const struct import_texts *list)
{
	putc('[', out);
	for (const struct import_text *t = list->first; t; t = t->next) {
		put_text(out, t->text);
		if (t->next)
			fputs(", ", out);
	}
	putc(']', out);
}

static void put_item(FILE *out, const char *key, const char *text)
{
	if (!text)
		return;
	fprintf(out, ", %s: ", key);
	put_text(out, text);
}

static void put_units(const struct import_model *m, FILE *out)
{
	fputs(m->units ? "backstores:\n" : "", out);
	for (const struct import_unit *u = m->units; u; u = u->next) {
		fputs("  ", out);
		put_text(out, u->name);
		fputs(": {store: ", out);
		put_text(out, u->store);
		if (u->read_only)
			fputs(", read-only: yes", out);
		if (u->removable)
			fputs(", removable: yes", out);
		if (u->block_size)
			fprintf(out, ", block-size: %u", u->block_size);
		put_item(out, "serial", u->serial);
		put_item(out, "naa", u->naa);
		put_item(out, "eui", u->eui);
		put_item(out, "vendor", u->vendor);
		put_item(out, "product", u->product);
		put_item(out, "revision", u->revision);
		if (u->rotational != BOOL_DEFAULT)
			fprintf(out, ", rotational: %s",
				u->rotational == BOOL_YES ? "yes" : "no");
		if (u->cache == CACHE_WRITE_THROUGH)
			fputs(", cache: write-through", out);
		fputs("}\n", out);
	}
}

static void put_account(FILE *out, const struct import_account *c)
{
	fputs("{user: ", out);
	put_text(out, c->user);
	fputs(", secret-file: ", out);
	put_text(out, c->file);
	if (c->initiators.n) {
		fputs(", initiators: ", out);
		put_list(out, &c->initiators);
	}
	putc('}', out);
}

static void put_auths(const struct import_model *m, FILE *out)
{
	fputs(m->auths ? "auth-groups:\n" : "", out);
	for (const struct import_auth *a = m->auths; a; a = a->next) {
		fputs("  ", out);
		put_text(out, a->name);
		fputs(":\n", out);
		fputs(a->accounts ? "    accounts:\n" : "", out);
		for (const struct import_account *c = a->accounts; c;
		     c = c->next) {
			fputs("      - ", out);
			put_account(out, c);
			putc('\n', out);
		}
		if (a->mutual) {
			fputs("    mutual: ", out);
			put_account(out, a->mutual);
			putc('\n', out);
		}
		if (a->initiators.n) {
			fputs("    initiators: ", out);
			put_list(out, &a->initiators);
			putc('\n', out);
		}
		if (a->addresses.n) {
			fputs("    addresses: ", out);
			put_list(out, &a->addresses);
			putc('\n', out);
		}
	}
}

static void put_portals(const struct import_model *m, FILE *out)
{
	fputs(m->portals ? "portal-groups:\n" : "", out);
	for (const struct import_portal *p = m->portals; p; p = p->next) {
		fputs("  ", out);
		put_text(out, p->name);
		fprintf(out, ":\n    tag: %u\n    listen: ", p->tag);
		put_list(out, &p->listen);
		putc('\n', out);
		if (p->transport)
			fprintf(out, "    transport: [%s]\n", p->transport);
		if (p->discovery)
			fprintf(out, "    discovery: %s\n", p->discovery);
		if (p->discovery_auth) {
			fputs("    discovery-auth: ", out);
			put_text(out, p->discovery_auth->name);
			putc('\n', out);
		}
	}
}

static void put_luns(FILE *out, const struct import_luns *luns)
{
	fputs("luns: {", out);
	for (const struct import_lun *l = luns->first; l; l = l->next) {
		fprintf(out, "%u: ", l->number);
		if (l->read_only) {
			fputs("{backstore: ", out);
			put_text(out, l->unit->name);
			fputs(", read-only: yes}", out);
		} else {
			put_text(out, l->unit->name);
		}
		fputs(l->next ? ", " : "", out);
	}
	putc('}', out);
}

static void put_target(FILE *out, const struct import_target *t)
{
	fputs("  ", out);
	put_text(out, t->name);
	fputs(":\n", out);
	if (t->alias) {
		fputs("    alias: ", out);
		put_text(out, t->alias);
		putc('\n', out);
	}
	fputs("    auth-group: ", out);
	put_text(out, t->auth->name);
	fputs("\n    portal-groups: ", out);
	put_list(out, &t->portals);
	fputs("\n    ", out);
	put_luns(out, &t->luns);
	putc('\n', out);
	fputs(t->maps ? "    maps:\n" : "", out);
	for (const struct import_map *map = t->maps; map; map = map->next) {
		fputs("      - {initiators: ", out);
		put_list(out, &map->initiators);
		if (map->account) {
			fputs(", account: ", out);
			put_text(out, map->account);
		}
		fputs(", ", out);
		put_luns(out, &map->luns);
		fputs("}\n", out);
	}
	if (t->redirects.n) {
		fputs("    redirects:\n      - {to: ", out);
		put_list(out, &t->redirects);
		fputs("}\n", out);
	}
	if (t->prefers_digests)
		fputs("    digests: prefer\n", out);
	if (t->max_connections > 1)
		fprintf(out, "    max-connections: %u\n", t->max_connections);
	if (t->number)
		fprintf(out, "    tgt-id: %lu\n", t->number);
}

void import_print_yaml(const struct import_model *m, FILE *out)
{
	fprintf(out,
		"# made by iserctl import from a file of the format %s\n"
		"version: 1\n",
		m->format);
	if (m->recovery_level)
		fprintf(out, "daemon: {error-recovery-level: %u}\n",
			m->recovery_level);
	put_units(m, out);
	put_auths(m, out);
	put_portals(m, out);
	fputs(m->targets ? "targets:\n" : "targets: {}\n", out);
	for (const struct import_target *t = m->targets; t; t = t->next)
		put_target(out, t);
}

void import_print_notes(const struct import_model *m, FILE *out)
{
	for (const struct import_note *n = m->notes; n; n = n->next)
		fprintf(out, "%s:%u: %s\n", n->file, n->line, n->text);
	if (m->nnotes > IMPORT_NOTES_MAX)
		fprintf(out, "%s:1: %u more notes are not printed\n",
			m->notes->file, m->nnotes - IMPORT_NOTES_MAX);
}
