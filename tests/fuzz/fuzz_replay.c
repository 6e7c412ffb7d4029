/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_replay.c: runs a fuzz target with every file of a corpus directory, and
 * with each file truncated at every length up to 512 bytes, so that builds
 * without libFuzzer test the decoders with the corpus.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_FILE (1u << 20)

/* Runs with a copy of exactly len bytes, so that a sanitizer sees overreads. */
static void run_copy(const uint8_t *data, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);

	if (!copy)
		abort();
	memcpy(copy, data, len);
	LLVMFuzzerTestOneInput(copy, len);
	free(copy);
}

static int replay(const char *path, uint8_t *buf)
{
	FILE *f = fopen(path, "rb");
	size_t n;

	if (!f) {
		perror(path);
		return -1;
	}
	n = fread(buf, 1, MAX_FILE, f);
	fclose(f);
	for (size_t cut = 0; cut < n && cut < 512; cut++)
		run_copy(buf, cut);
	run_copy(buf, n);
	return 0;
}

int main(int argc, char **argv)
{
	DIR *d = argc == 2 ? opendir(argv[1]) : NULL;
	uint8_t *buf = malloc(MAX_FILE);
	unsigned files = 0;
	struct dirent *e;

	if (!d || !buf) {
		fprintf(stderr, "usage: %s CORPUS_DIR (%s)\n", argv[0],
			argc == 2 ? argv[1] : "missing");
		return 2;
	}
	run_copy(buf, 0);
	while ((e = readdir(d))) {
		char path[4096];

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", argv[1], e->d_name);
		if (replay(path, buf))
			return 1;
		files++;
	}
	closedir(d);
	free(buf);
	printf("%u corpus files\n", files);
	return files ? 0 : 1;
}
