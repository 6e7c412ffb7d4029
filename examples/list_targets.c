/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * list_targets.c: prints the targets of a portal (iscsi://HOST) and their addresses.
 *   cc list_targets.c $(pkg-config --cflags --libs libiser)
 */
#include <iser/iser.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	struct iser_context *ctx = iser_context_new(NULL);
	struct iser_target *list;
	struct iser_url url;
	char why[256];

	if (argc != 2 || !ctx) {
		fprintf(stderr, "usage: %s iscsi://HOST\n", argv[0]);
		return 2;
	}
	if (iser_url_parse(&url, argv[1], true, why, sizeof(why))) {
		fprintf(stderr, "%s\n", why);
		return 2;
	}
	if (iser_discover(ctx, &url, &list)) {
		fprintf(stderr, "%s\n", iser_message(ctx));
		return 1;
	}
	for (struct iser_target *t = list; t; t = t->next) {
		/* the peer chose these texts: escape them before a terminal
		 * shows them */
		printf("%s\n", t->name);
		for (struct iser_portal *p = t->portals; p; p = p->next)
			printf("  %s\n", p->address);
	}
	iser_targets_free(list);
	iser_context_free(ctx);
	return 0;
}
