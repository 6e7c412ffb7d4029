/* SPDX-License-Identifier: BSD-2-Clause */
/* text_test.c: small files, as Linux has them in /sys. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "io/io.h"

static char path[] = "/tmp/openiser-text-XXXXXX";

static void write_file(const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void test_read_number(void **state)
{
	unsigned long n = 7;

	(void)state;
	write_file("4096\n");
	assert_true(io_read_number(path, &n));
	assert_int_equal(n, 4096);
	write_file("none\n");
	assert_false(io_read_number(path, &n));
	write_file("");
	assert_false(io_read_number(path, &n));
	assert_false(io_read_number("/no/such/file", &n));
}

static void test_read_text(void **state)
{
	char text[8];

	(void)state;
	write_file("0123456789");
	assert_int_equal(io_read_text(path, text, sizeof(text)), 8);
	assert_memory_equal(text, "01234567", 8);
	write_file("abc");
	assert_int_equal(io_read_text(path, text, sizeof(text)), 3);
	assert_memory_equal(text, "abc34567", 8); /* no NUL is added */
	assert_int_equal(io_read_text("/no/such/file", text, 8), 0);
	assert_int_equal(io_read_text("/", text, 8), 0); /* a folder */
}

static int make_file(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_number),
		cmocka_unit_test(test_read_text),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
