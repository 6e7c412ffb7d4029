/* SPDX-License-Identifier: BSD-2-Clause */
/* cmocka_all.h: cmocka with the headers it needs before it, and a comparison of memory
 * that looks for the octets that differ only where some do: the simulations compare media.
 * Nothing equals nothing, also at a null pointer, which memcmp may not be given. */
#ifndef TESTS_CMOCKA_ALL_H
#define TESTS_CMOCKA_ALL_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
/* clang-format on */

static inline void memory_equal(const void *a, const void *b, size_t n,
				const char *file, int line)
{
	if (n != 0 && memcmp(a, b, n) != 0)
		_assert_memory_equal(a, b, n, file, line);
}

#undef assert_memory_equal
#define assert_memory_equal(a, b, n) memory_equal(a, b, n, __FILE__, __LINE__)

#endif
