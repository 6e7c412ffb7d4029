/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * read_first_block.c: logs in to the unit of a URL and prints its size and
 * first 16 bytes. Compile this program with the installed library:
 *   cc read_first_block.c $(pkg-config --cflags --libs libiser)
 */
#include <iser/iser.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	struct iser_context *ctx = iser_context_new(NULL);
	struct iser_session *s;
	struct iser_capacity cap;
	struct iser_url url;
	uint8_t *block;
	char why[256];
	int err;

	if (argc != 2 || !ctx) {
		fprintf(stderr, "usage: %s URL\n", argv[0]);
		return 2;
	}
	if (iser_url_parse(&url, argv[1], false, why, sizeof(why))) {
		fprintf(stderr, "%s\n", why);
		return 2;
	}
	s = iser_connect(ctx, &url, &err);
	if (!s || iser_read_capacity(s, url.lun, &cap)) {
		fprintf(stderr, "%s\n", iser_message(ctx));
		return 1;
	}
	printf("%llu blocks of %u bytes\n", (unsigned long long)cap.blocks,
	       cap.block_size);
	block = malloc(cap.block_size);
	if (!block ||
	    iser_read(s, url.lun, cap.block_size, 0, block, cap.block_size)) {
		fprintf(stderr, "%s\n", iser_message(ctx));
		return 1;
	}
	for (int i = 0; i < 16; i++)
		printf("%02x%c", block[i], i == 15 ? '\n' : ' ');
	free(block);
	iser_disconnect(s);
	iser_context_free(ctx);
	return 0;
}
