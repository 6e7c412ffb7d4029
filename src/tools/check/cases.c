/* SPDX-License-Identifier: BSD-2-Clause */
/* cases.c: loads the library in Lua and the cases, and selects those to run. */
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <lauxlib.h>
#include <lualib.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tools/check/check.h"

#define LIBRARY "lib/" /* files that --cases does not replace */

static bool run_chunk(lua_State *l, int loaded)
{
	if (!loaded && !lua_pcall(l, 0, 0, 0))
		return true;
	check_say("%s", lua_tostring(l, -1));
	lua_pop(l, 1);
	return false;
}

static bool load_embedded(lua_State *l, bool library)
{
	for (const struct embedded *e = embedded_cases; e->name; e++) {
		char name[256];

		if (library == (strncmp(e->name, LIBRARY, 4) != 0))
			continue;
		snprintf(name, sizeof(name), "=%s", e->name);
		lua_pushlstring(l, e->text, e->len);
		lua_setglobal(l, "case_file");
		if (!run_chunk(l,
			       luaL_loadbufferx(l, e->text, e->len, name, "t")))
			return false;
	}
	return true;
}

static int is_script(const struct dirent *d)
{
	size_t n = strlen(d->d_name);

	return n > 4 && !strcmp(d->d_name + n - 4, ".lua");
}

/* Reads a file of at most a MiB into the global case_file. */
static bool read_script(lua_State *l, const char *path)
{
	static char text[1 << 20];
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(text, 1, sizeof(text), f) : 0;
	bool ok = f && !ferror(f) && n < sizeof(text);

	if (!ok)
		check_say("%s: cannot read the cases: %s", path,
			  f && n == sizeof(text) ? "more than 1 MiB"
						 : strerror(errno));
	if (f)
		fclose(f);
	lua_pushlstring(l, text, ok ? n : 0);
	lua_setglobal(l, "case_file");
	return ok && run_chunk(l, luaL_loadbufferx(l, text, n, path, "t"));
}

static bool load_folder(lua_State *l, const char *folder)
{
	struct dirent **entries;
	int n = scandir(folder, &entries, is_script, alphasort);
	bool ok = n > 0;

	if (n <= 0)
		check_say("--cases %s: %s", folder,
			  n ? strerror(errno) : "no file is called *.lua");
	for (int i = 0; i < n; i++) {
		char path[4096];

		snprintf(path, sizeof(path), "%s/%s", folder,
			 entries[i]->d_name);
		ok = ok && read_script(l, path);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	return ok;
}

/* Returns a member of the table at the top of the stack; the table keeps the string. */
static const char *member(lua_State *l, const char *name)
{
	const char *text;

	lua_getfield(l, -1, name);
	text = lua_tostring(l, -1);
	lua_pop(l, 1);
	return text ? text : "";
}

static bool flag(lua_State *l, const char *name)
{
	bool set;

	lua_getfield(l, -1, name);
	set = lua_toboolean(l, -1);
	lua_pop(l, 1);
	return set;
}

static int take_cases(struct suite *s)
{
	lua_State *l = s->l;

	lua_getglobal(l, "all_cases");
	s->ncases = lua_rawlen(l, -1);
	s->cases = calloc(s->ncases + 1, sizeof(*s->cases));
	if (!s->cases)
		return EXIT_NOMEM;
	for (size_t i = 0; i < s->ncases; i++) {
		struct check_case *c = &s->cases[i];

		lua_rawgeti(l, -1, (lua_Integer)i + 1);
		c->id = member(l, "id");
		c->clause = member(l, "clause");
		c->level = member(l, "level");
		c->what = member(l, "what");
		c->why = member(l, "why");
		c->source = member(l, "source");
		c->destructive = flag(l, "destructive");
		c->alone = flag(l, "alone");
		c->ref = luaL_ref(l, LUA_REGISTRYINDEX);
	}
	lua_pop(l, 1);
	return EXIT_OK;
}

static void open_libraries(lua_State *l)
{
	static const luaL_Reg libraries[] = {
		{ "_G", luaopen_base },
		{ LUA_TABLIBNAME, luaopen_table },
		{ LUA_STRLIBNAME, luaopen_string },
		{ LUA_MATHLIBNAME, luaopen_math },
		{ LUA_UTF8LIBNAME, luaopen_utf8 },
	};
	static const char *const removed[] = { "dofile", "loadfile", "load",
					       "print" };

	for (size_t i = 0; i < ARRAY_LEN(libraries); i++) {
		luaL_requiref(l, libraries[i].name, libraries[i].func, 1);
		lua_pop(l, 1);
	}
	for (size_t i = 0; i < ARRAY_LEN(removed); i++) {
		lua_pushnil(l);
		lua_setglobal(l, removed[i]);
	}
}

int cases_load(struct suite *s)
{
	lua_State *l = s->l = luaL_newstate();

	if (!l)
		return EXIT_NOMEM;
	*(struct job **)lua_getextraspace(l) = NULL;
	open_libraries(l);
	lua_newtable(l);
	fields_open(l);
	sock_open(l);
	crypt_open(l);
	run_open(l);
	lua_setglobal(l, "engine");
	if (!load_embedded(l, true))
		return EXIT_FAILED;
	if (s->o.cases ? !load_folder(l, s->o.cases) : !load_embedded(l, false))
		return EXIT_INVALID;
	return take_cases(s);
}

/* Whether an id begins with, or matches, one of the patterns of a list with commas. */
static bool matches(const char *list, const char *id)
{
	char pattern[256];

	for (size_t n; *list; list += n + (list[n] == ',')) {
		n = strcspn(list, ",");
		if (!n || n >= sizeof(pattern))
			continue;
		memcpy(pattern, list, n);
		pattern[n] = '\0';
		if (!strncmp(id, pattern, n) || !fnmatch(pattern, id, 0))
			return true;
	}
	return false;
}

/* Reads the ids of --known, one a line; a '#' begins a comment. */
static int read_known(struct suite *s)
{
	char line[512];
	FILE *f;

	if (!s->o.known)
		return EXIT_OK;
	f = fopen(s->o.known, "re");
	if (!f) {
		check_say("--known %s: %s", s->o.known, strerror(errno));
		return EXIT_INVALID;
	}
	while (fgets(line, sizeof(line), f)) {
		bool found = false;

		line[strcspn(line, "# \t\r\n")] = '\0';
		for (size_t i = 0; *line && i < s->ncases; i++)
			if (!strcmp(line, s->cases[i].id))
				found = s->cases[i].known = true;
		if (*line && !found)
			check_say("--known %s: no case is called %s; see "
				  "--list",
				  s->o.known, line);
	}
	fclose(f);
	return EXIT_OK;
}

int cases_select(struct suite *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->ncases; i++) {
		struct check_case *c = &s->cases[i];

		c->selected = s->o.explain
				      ? !strcmp(c->id, s->o.explain)
				      : !s->o.only || matches(s->o.only, c->id);
		if (s->o.skip && matches(s->o.skip, c->id))
			c->selected = false;
		n += c->selected;
	}
	if (!n) {
		check_say("no case is selected; iser-check --list prints the "
			  "names");
		return EXIT_INVALID;
	}
	return read_known(s);
}

void cases_free(struct suite *s)
{
	for (size_t i = 0; i < s->ncases; i++) {
		free(s->cases[i].reason);
		free(s->cases[i].conversation);
	}
	free(s->cases);
	if (s->l)
		lua_close(s->l);
}
