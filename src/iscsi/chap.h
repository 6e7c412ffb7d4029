/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chap.h: the arithmetic of CHAP (RFC 1994) as iSCSI uses it (RFC 7143
 * §12.1.3): algorithms, responses, and binary values as text.
 */
#ifndef ISCSI_CHAP_H
#define ISCSI_CHAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "iscsi/login.h"

#define CHAP_DIGEST_MAX	   32
#define CHAP_CHALLENGE_MAX 1024 /* §12.1.3 */
#define CHAP_CHALLENGE_LEN 32	/* of ours */

/* Algorithm numbers of the IANA PPP registry. */
enum chap_algorithm {
	CHAP_NONE = 0,
	CHAP_MD5 = 5,
	CHAP_SHA1 = 6,
	CHAP_SHA256 = 7,
	CHAP_SHA3_256 = 8,
};

/* What is offered, best first; MD5 must be among it (§12.1.3). */
#define CHAP_OFFER "7,8,6,5"

/* chap_pick: the first algorithm of the comma-separated list that is ours. */
enum chap_algorithm chap_pick(const char *list);

/*
 * chap_response computes the response to (id, challenge) with the secret.
 * Returns its length or 0 when the algorithm is not ours.
 */
size_t chap_response(enum chap_algorithm a, uint8_t id,
		     const struct iscsi_chap_secret *s,
		     const uint8_t *challenge, size_t len,
		     uint8_t out[CHAP_DIGEST_MAX]);

/*
 * chap_binary_parse reads a binary-value, 0x.. or 0b.. (§6.1). Returns its
 * length, or ERR_FORMAT, or ERR_TOO_LONG beyond max.
 */
int chap_binary_parse(const char *text, uint8_t *out, size_t max);
/* chap_binary_print writes 0x.. ; out has room for 2 * len + 3. */
void chap_binary_print(const uint8_t *p, size_t len, char *out);

/* chap_equal compares in constant time. */
bool chap_equal(const uint8_t *a, const uint8_t *b, size_t len);

#endif
