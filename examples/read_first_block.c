/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * read_first_block.c: logs in to the unit of a URL and prints its size and
 * first 16 bytes. Compile this program with the installed library:
 *   cc read_first_block.c $(pkg-config --cflags --libs libiser)
 */
#include <iser/unit.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	struct iser_context *ctx = iser_context_new(NULL);
	struct iser_session *s;
	struct iser_unit_info info;
	struct iser_unit *u;
	struct iser_url url;
	uint8_t first[16];
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
	u = s ? iser_unit_open(s, url.lun, &err) : NULL;
	if (!u || iser_pread(u, first, sizeof(first), 0)) {
		fprintf(stderr, "%s\n", iser_message(ctx));
		return 1;
	}
	iser_unit_get_info(u, &info);
	printf("%llu blocks of %u bytes\n",
	       (unsigned long long)(info.bytes / info.block_size),
	       info.block_size);
	for (int i = 0; i < 16; i++)
		printf("%02x%c", first[i], i == 15 ? '\n' : ' ');
	iser_unit_close(u);
	iser_disconnect(s);
	iser_context_free(ctx);
	return 0;
}
