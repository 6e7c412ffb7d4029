/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * read_paths.c: reads the first block of a unit to which several URLs lead, and prints the state of
 * each path. One path that works is enough.
 *   cc read_paths.c $(pkg-config --cflags --libs libiser)
 */
#include <iser/unit.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	static const char *const states[] = { "down", "login", "check",
					      "ready" };
	struct iser_context *ctx = iser_context_new(NULL);
	struct iser_url urls[ISER_PATHS_MAX];
	struct iser_session *s;
	struct iser_unit *u;
	struct iser_path p;
	uint8_t block[512];
	char why[256];
	int err;

	if (argc < 2 || argc - 1 > ISER_PATHS_MAX || !ctx) {
		fprintf(stderr, "usage: %s URL...\n", argv[0]);
		return 2;
	}
	for (int i = 1; i < argc; i++) {
		if (iser_url_parse(&urls[i - 1], argv[i], false, why,
				   sizeof(why))) {
			fprintf(stderr, "%s\n", why);
			return 2;
		}
	}
	s = iser_connect_paths(ctx, urls, (unsigned)argc - 1, &err);
	u = s ? iser_unit_open(s, urls[0].lun, &err) : NULL;
	if (!u || iser_pread(u, block, sizeof(block), 0)) {
		fprintf(stderr, "%s\n", iser_message(ctx));
		return 1;
	}
	for (unsigned i = 0; !iser_get_path(s, i, &p); i++)
		printf("%s %s: %s%s\n", p.portal, p.target, states[p.state],
		       p.is_used ? ", used" : "");
	iser_unit_close(u);
	iser_disconnect(s);
	iser_context_free(ctx);
	return 0;
}
