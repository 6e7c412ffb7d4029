/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chap.h: CHAP (RFC 1994) as iSCSI uses it (RFC 7143 §12.1.3): algorithms,
 * responses, and binary values as text.
 */
#ifndef ISCSI_CHAP_H
#define ISCSI_CHAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "iscsi/login.h"

#define CHAP_DIGEST_MAX	   32
#define CHAP_CHALLENGE_MAX 1024 /* §12.1.3 */
#define CHAP_CHALLENGE_LEN 32	/* that we send */

/* Algorithm numbers of the IANA PPP registry. */
enum chap_algorithm {
	CHAP_NONE = 0,
	CHAP_MD5 = 5,
	CHAP_SHA1 = 6,
	CHAP_SHA256 = 7,
	CHAP_SHA3_256 = 8,
};

/* The value of CHAP_A that we offer, the best algorithm first. §12.1.3 requires
 * MD5. */
#define CHAP_OFFER	     "7,8,6,5"
#define CHAP_OFFER_NO_SHA256 "8,6,5"

/* chap_pick returns the first algorithm of the comma-separated list that is
 * supported and is in allowed, such a list too, or CHAP_NONE. */
enum chap_algorithm chap_pick(const char *list, const char *allowed);
/* chap_algorithm returns the algorithm with this name ("md5", "sha1", "sha256",
 * "sha3-256"), or CHAP_NONE. */
enum chap_algorithm chap_algorithm(const char *name);
/* chap_algorithm_name returns that name; "" for CHAP_NONE. */
const char *chap_algorithm_name(enum chap_algorithm a);

#define CHAP_LIST_MAX 16 /* bytes of a value of CHAP_A, with its NUL */

/* chap_list writes the value of CHAP_A for algorithms by name, "sha256,md5", each
 * at most once, to out. False: it is not such a list; out is "" then. */
bool chap_list(const char *names, char out[CHAP_LIST_MAX]);

/*
 * chap_response computes the response to id and challenge (len bytes) with the
 * secret s. Returns its length, or 0 if libcrypto cannot compute it.
 */
size_t chap_response(enum chap_algorithm a, uint8_t id,
		     const struct iscsi_chap_secret *s,
		     const uint8_t *challenge, size_t len,
		     uint8_t out[CHAP_DIGEST_MAX]);

/*
 * chap_binary_parse decodes a binary-value, 0x.. or 0b.. (§6.1), to out. Returns
 * its length, ERR_FORMAT, or ERR_TOO_LONG if it is longer than max.
 */
int chap_binary_parse(const char *text, uint8_t *out, size_t max);
/* chap_binary_print writes p as 0x.. to out, which has 2 * len + 3 bytes. */
void chap_binary_print(const uint8_t *p, size_t len, char *out);

/* chap_equal compares len bytes in constant time. */
bool chap_equal(const uint8_t *a, const uint8_t *b, size_t len);

/* chap_secret_complaint returns why the n bytes, without the end of the line, are not the
 * text of a secret, and what to do; or NULL. The other end has the bytes that its own
 * tools make of the text. */
const char *chap_secret_complaint(const char *p, size_t n);

#endif
