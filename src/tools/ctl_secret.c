/* SPDX-License-Identifier: BSD-2-Clause */
/* ctl_secret.c: makes random CHAP secrets (RFC 7143 §9.2.1). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "tools/ctl.h"
#include "tools/ctl_secret.h"

#define BITS_OF_CHARACTER 6u
#define BITS_LEAST	  96u /* with less, §9.2.1 requires IPsec */
#define BITS_MOST	  512u
#define BITS_DEFAULT	  128u

/* characters for so many bits */
#define LENGTH(bits) (((bits) + BITS_OF_CHARACTER - 1) / BITS_OF_CHARACTER)

/* Returns 0 for an operand that is not allowed. */
static unsigned take_bits(int n, char **argv)
{
	char *end;
	unsigned long bits;

	if (n == 0)
		return BITS_DEFAULT;
	if (n > 1 || strncmp(argv[0], "bits=", 5) != 0 || !argv[0][5])
		return 0;
	bits = strtoul(argv[0] + 5, &end, 10);
	return *end || bits < BITS_LEAST || bits > BITS_MOST ? 0
							     : (unsigned)bits;
}

/* [RFC 7143: 9.2.1 #2] */
int ctl_secret(int n, char **argv)
{
	/* also in a URL or a shell without quotation marks */
	static const char characters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef"
					 "ghijklmnopqrstuvwxyz0123456789-_";
	uint8_t random[LENGTH(BITS_MOST)];
	unsigned bits = take_bits(n, argv), len;

	if (!bits) {
		fprintf(stderr,
			"iserctl: secret: give bits=%u to %u, or nothing for "
			"%u\n",
			BITS_LEAST, BITS_MOST, BITS_DEFAULT);
		return EXIT_USAGE;
	}
	len = LENGTH(bits);
	if (getrandom(random, len, 0) != (ssize_t)len) {
		fputs("iserctl: secret: cannot get random bytes\n", stderr);
		return EXIT_REFUSED;
	}
	for (unsigned i = 0; i < len; i++)
		putchar(characters[random[i] % 64]);
	putchar('\n');
	explicit_bzero(random, sizeof(random));
	return EXIT_OK;
}
