/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * blob.h: the record as the stores keep it: a head of CLUSTER_BLOB_HEAD bytes, then
 * the record. The first CLUSTER_BLOB_SAME bytes of the head differ between two versions,
 * and are equal if the versions are.
 */
#ifndef CLUSTER_BLOB_H
#define CLUSTER_BLOB_H

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/err.h"
#include "cluster/store.h"

#define CLUSTER_BLOB_HEAD 24u
#define CLUSTER_BLOB_SAME 16u
#define CLUSTER_BLOB_MAX  (CLUSTER_BLOB_HEAD + CLUSTER_RECORD_MAX)

static inline uint32_t cluster_blob_sum(const uint8_t *blob, size_t len)
{
	uint32_t crc = crc32c_update(CRC32C_SEED, blob, 20);

	return crc32c_wire(crc32c_update(crc, blob + CLUSTER_BLOB_HEAD, len));
}

/* cluster_blob_begin writes the first CLUSTER_BLOB_SAME bytes. */
static inline void cluster_blob_begin(uint8_t *head, uint64_t version)
{
	memcpy(head, "OISRCLU1", 8);
	put_be64(head + 8, version);
}

/* cluster_blob_write writes the blob of a record of len bytes. */
static inline void cluster_blob_write(uint8_t *blob, uint64_t version,
				      const uint8_t *data, size_t len)
{
	cluster_blob_begin(blob, version);
	put_be32(blob + 16, (uint32_t)len);
	if (len)
		memcpy(blob + CLUSTER_BLOB_HEAD, data, len);
	put_be32(blob + 20, cluster_blob_sum(blob, len));
}

/* cluster_blob_check checks a blob of len bytes, and gives the version of the record,
 * which follows the head. 0, or ERR_FORMAT. */
static inline int cluster_blob_check(const uint8_t *blob, size_t len,
				     uint64_t *version)
{
	if (len < CLUSTER_BLOB_HEAD || len > CLUSTER_BLOB_MAX ||
	    memcmp(blob, "OISRCLU1", 8) ||
	    get_be32(blob + 16) != len - CLUSTER_BLOB_HEAD ||
	    get_be32(blob + 20) !=
		    cluster_blob_sum(blob, len - CLUSTER_BLOB_HEAD))
		return ERR_FORMAT;
	*version = get_be64(blob + 8);
	return *version && *version != UINT64_MAX ? 0 : ERR_FORMAT;
}

/* cluster_id_ok returns whether id is the name of a gateway: 1 to 63 letters, digits,
 * dots, hyphens and underscores, with a NUL in the first `size` bytes. */
static inline bool cluster_id_ok(const char *id, size_t size)
{
	size_t n = strnlen(id, MIN(size, (size_t)CLUSTER_ID_SIZE));

	if (n == 0 || n == MIN(size, (size_t)CLUSTER_ID_SIZE))
		return false;
	for (size_t i = 0; i < n; i++) {
		char c = id[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
		    !(c >= '0' && c <= '9') && c != '.' && c != '-' && c != '_')
			return false;
	}
	return true;
}

#endif
