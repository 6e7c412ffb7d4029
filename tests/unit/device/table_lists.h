/* SPDX-License-Identifier: BSD-2-Clause */
/* table_lists.h: a valid CDB and a valid parameter list for each row of the
 * command table; table_test.c damages them. */
#ifndef TESTS_DEVICE_TABLE_LISTS_H
#define TESTS_DEVICE_TABLE_LISTS_H

#include "dev_case.h"
#include "device/copy/copy.h"
#include "device/unit/command.h"
#include "device/unit/names.h"
#include "scsi/transportid.h"

#define LIST_MAX 2048u
#define CDB_MAX	 32u

static uint8_t list[LIST_MAX];
static enum dev_type type; /* of the tested unit */

struct template
{
	uint8_t op, sa;
	uint8_t byte, value;	   /* of the CDB: not 0 */
	unsigned (*list)(void);	   /* fills `list`; returns its length */
	uint8_t len_at, len_bytes; /* the length field of the CDB */
	uint8_t least; /* the shortest valid list; 0: only the whole list */
	bool any;      /* every length is valid */
};

static inline unsigned unmap_list(void)
{
	put_be16(list, 22);
	put_be16(list + 2, 16);
	put_be64(list + 8, 3);
	put_be32(list + 16, 2);
	return 24;
}

static inline unsigned select_6(void)
{
	static const uint8_t page[] = { 0x0a, 10, 0x06, 0x10, 0, 0,
					0,    0,  0xff, 0xff, 0, 0 };

	memcpy(list + 4, page, sizeof(page));
	return 4 + sizeof(page);
}

static inline unsigned select_10(void)
{
	unsigned n = select_6();

	memmove(list + 8, list + 4, n - 4);
	memset(list + 4, 0, 4);
	return n + 4;
}

static inline unsigned register_list(void)
{
	put_be64(list + 8, 0xabc);
	return 24;
}

static inline unsigned register_others(void)
{
	static const char name[] = "iqn.k,i,0x3";

	put_be64(list + 8, 0xabc);
	list[20] = 0x08; /* SPEC_I_PT */
	put_be32(list + 24, (uint32_t)scsi_transportid_put(name, list + 28));
	return 28 + get_be32(list + 24);
}

static inline unsigned key_list(void)
{
	return 24;
}

static inline unsigned move_list(void)
{
	put_be64(list + 8, 0xabc);
	put_be16(list + 18, 1);
	put_be32(list + 20,
		 (uint32_t)scsi_transportid_put("iqn.k,i,0x3", list + 24));
	return 24 + get_be32(list + 20);
}

static inline unsigned copy_list(void)
{
	put_be16(list + 2, 32);
	put_be32(list + 8, 28);
	list[16] = 0xe4;
	dev_lu_put_name(dev_lu_get(R->server, 0), list + 16 + 4);
	list[48] = 0x02;
	put_be16(list + 50, 24);
	put_be16(list + 58, 4);
	put_be64(list + 68, 100);
	return 76;
}

/* A segment in bytes. */
static inline unsigned copy_bytes_list(void)
{
	copy_list();
	put_be32(list + 8, 32);
	list[48] = 0x0a;
	put_be16(list + 50, 28);
	put_be32(list + 56, 700);
	put_be16(list + 76, 3);
	put_be16(list + 78, 5);
	return 80;
}

static inline unsigned populate_list(void)
{
	put_be16(list, 30);
	put_be16(list + 14, 16);
	put_be32(list + 24, 8);
	return 32;
}

static inline unsigned token_list(void)
{
	put_be16(list, 550);
	put_be32(list + 16, ROD_ZEROS);
	put_be16(list + 22, TOKEN_LEN - 8);
	put_be16(list + 534, 16);
	put_be64(list + 536, 16);
	put_be32(list + 544, 8);
	return 552;
}

static inline unsigned groups_list(void)
{
	put_be16(list + 6, 1);
	return 8;
}

static inline unsigned timestamp_list(void)
{
	put_be32(list + 6, 99);
	return 12;
}

static inline unsigned name_list(void)
{
	memcpy(list, "disk of the till", 17);
	return 17;
}

static inline unsigned overwrite_list(void)
{
	list[0] = 1;
	put_be16(list + 2, 4);
	put_be32(list + 4, 0x61626364);
	return 8;
}

static inline unsigned format_list(void)
{
	return 4;
}

static inline unsigned echo_list(void)
{
	memset(list, 0xe0, 64);
	return 64;
}

static inline unsigned priority_list(void)
{
	size_t id = scsi_transportid_put("iqn.k,i,0x800000000003", list + 8);

	list[0] = 3;
	put_be16(list + 2, 1);
	put_be16(list + 6, (uint16_t)id);
	return 8 + (unsigned)id;
}

static const struct template templates[] = {
	{ SCSI_MODE_SENSE_6, 0, 2, 0x3f, NULL, 4, 1, 0, true },
	{ SCSI_MODE_SENSE_10, 0, 2, 0x3f, NULL, 7, 2, 0, true },
	{ SCSI_LOG_SENSE, 0, 2, 0x40, NULL, 7, 2, 0, true },
	{ SCSI_LOG_SELECT, 0, 2, 0x40, NULL, 0, 0, 0, true },
	{ SCSI_READ_BUFFER, 0, 1, 0x0b, NULL, 6, 3, 0, true },
	{ SCSI_INQUIRY, 0, 0, 0, NULL, 3, 2, 0, true },
	{ SCSI_REQUEST_SENSE, 0, 0, 0, NULL, 4, 1, 0, true },
	{ SCSI_READ_DEFECT_DATA_10, 0, 0, 0, NULL, 7, 2, 0, true },
	{ SCSI_SERVICE_ACTION_IN_16, 0xff, 0, 0, NULL, 10, 4, 0, true },
	{ SCSI_RECEIVE_COPY_RESULTS, 0xff, 0, 0, NULL, 10, 4, 0, true },
	{ SCSI_REPORT_LUNS, 0, 0, 0, NULL, 6, 4, 0, true },
	{ SCSI_MAINTENANCE_IN, 0xff, 0, 0, NULL, 6, 4, 0, true },
	{ SCSI_READ_DEFECT_DATA_12, 0, 0, 0, NULL, 6, 4, 0, true },
	{ SCSI_PERSISTENT_RESERVE_IN, 0xff, 0, 0, NULL, 7, 2, 0, true },
	{ SCSI_UNMAP, 0, 0, 0, unmap_list, 7, 2, 0, true },
	{ SCSI_MODE_SELECT_6, 0, 1, 0x10, select_6, 4, 1, 4, false },
	{ SCSI_MODE_SELECT_10, 0, 1, 0x10, select_10, 7, 2, 8, false },
	{ SCSI_PERSISTENT_RESERVE_OUT, SCSI_PROUT_REGISTER, 0, 0,
	  register_others, 5, 4, 0, false },
	{ SCSI_PERSISTENT_RESERVE_OUT, SCSI_PROUT_REGISTER, 0, 0, register_list,
	  5, 4, 0, false },
	{ SCSI_PERSISTENT_RESERVE_OUT, SCSI_PROUT_REGISTER_IGNORE, 0, 0,
	  register_list, 5, 4, 0, false },
	{ SCSI_PERSISTENT_RESERVE_OUT, SCSI_PROUT_REGISTER_AND_MOVE, 0, 0,
	  move_list, 5, 4, 0, false },
	{ SCSI_PERSISTENT_RESERVE_OUT, 0xff, 2, 0x01, key_list, 5, 4, 0,
	  false },
	{ SCSI_EXTENDED_COPY, SCSI_XC_LID1, 0, 0, copy_list, 10, 4, 0, false },
	{ SCSI_EXTENDED_COPY, SCSI_XC_LID1, 0, 0, copy_bytes_list, 10, 4, 0,
	  false },
	{ SCSI_EXTENDED_COPY, SCSI_XC_POPULATE_TOKEN, 0, 0, populate_list, 10,
	  4, 0, false },
	{ SCSI_EXTENDED_COPY, SCSI_XC_WRITE_USING_TOKEN, 0, 0, token_list, 10,
	  4, 0, false },
	{ SCSI_MAINTENANCE_OUT, SCSI_MO_SET_TARGET_PORT_GROUPS, 0, 0,
	  groups_list, 6, 4, 4, false },
	{ SCSI_MAINTENANCE_OUT, SCSI_MO_SET_PRIORITY, 2, 0x40, priority_list, 6,
	  4, 0, false },
	{ SCSI_MAINTENANCE_OUT, SCSI_MO_SET_TIMESTAMP, 0, 0, timestamp_list, 6,
	  4, 0, false },
	{ SCSI_MAINTENANCE_OUT, SCSI_MO_SET_IDENTIFYING, 10, 0x04, name_list, 6,
	  4, 0, false },
	{ SCSI_SANITIZE, SCSI_SANITIZE_OVERWRITE, 0, 0, overwrite_list, 7, 2, 0,
	  false },
	{ SCSI_FORMAT_UNIT, 0, 1, 0x10, format_list, 0, 0, 0, false },
	{ SCSI_WRITE_BUFFER, 0, 1, 0x0a, echo_list, 6, 3, 0, true },
};

static inline unsigned cd_select_10(void)
{
	static const uint8_t page[] = { 0x01, 10, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0 };

	memcpy(list + 8, page, sizeof(page));
	return 8 + sizeof(page);
}

static inline unsigned streaming_list(void)
{
	put_be32(list + 8, 255); /* from block 0 to this block */
	put_be32(list + 12, 1000);
	put_be32(list + 16, 1000);
	return 28;
}

static const struct template cd_templates[] = {
	{ SCSI_MODE_SENSE_6, 0, 2, 0x3f, NULL, 4, 1, 0, true },
	{ SCSI_MODE_SENSE_10, 0, 2, 0x3f, NULL, 7, 2, 0, true },
	{ SCSI_INQUIRY, 0, 0, 0, NULL, 3, 2, 0, true },
	{ SCSI_REQUEST_SENSE, 0, 0, 0, NULL, 4, 1, 0, true },
	{ SCSI_REPORT_LUNS, 0, 0, 0, NULL, 6, 4, 0, true },
	{ SCSI_MAINTENANCE_IN, 0xff, 0, 0, NULL, 6, 4, 0, true },
	{ SCSI_READ_SUBCHANNEL, 0, 3, 0x02, NULL, 7, 2, 0, true },
	{ SCSI_READ_TOC, 0, 0, 0, NULL, 7, 2, 0, true },
	{ SCSI_GET_CONFIGURATION, 0, 0, 0, NULL, 7, 2, 0, true },
	{ SCSI_GET_EVENT_STATUS, 0, 1, 0x01, NULL, 7, 2, 0, true },
	{ SCSI_READ_DISC_INFORMATION, 0, 0, 0, NULL, 7, 2, 0, true },
	{ SCSI_READ_TRACK_INFORMATION, 0, 5, 0x01, NULL, 7, 2, 0, true },
	{ SCSI_MODE_SELECT_10, 0, 1, 0x10, cd_select_10, 7, 2, 8, false },
	{ SCSI_MECHANISM_STATUS, 0, 0, 0, NULL, 8, 2, 0, true },
	{ SCSI_READ_DISC_STRUCTURE, 0, 7, 0xff, NULL, 8, 2, 0, true },
	{ SCSI_SET_STREAMING, 0, 0, 0, streaming_list, 9, 2, 0, false },
	{ SCSI_READ_CD, 0, 9, 0xf8, NULL, 0, 0, 0, true },
	{ SCSI_READ_CD_MSF, 0, 4, 0x02, NULL, 0, 0, 0, true },
};

static inline const struct template *templates_begin(void)
{
	return type == DEV_CD ? cd_templates : templates;
}

static inline const struct template *templates_end(void)
{
	return type == DEV_CD ? cd_templates + ARRAY_LEN(cd_templates)
			      : templates + ARRAY_LEN(templates);
}

#define for_templates(m) \
 for (const struct template *m = templates_begin(); m < templates_end(); m++)

static inline bool is_of(const struct template *m, const struct dev_command *c)
{
	return m->op == c->op &&
	       (!(c->flags & CMD_SA) || m->sa == c->sa || m->sa == 0xff);
}

static inline const struct template *template_of(const struct dev_command *c)
{
	for_templates(m) if (is_of(m, c)) return m;
	return NULL;
}

static inline void put_number(uint8_t *cdb, unsigned at, unsigned bytes,
			      uint64_t v)
{
	for (unsigned i = 0; i < bytes; i++)
		cdb[at + i] = (uint8_t)(v >> 8 * (bytes - 1 - i));
}

/* good builds a valid CDB without special effects; returns the length of its
 * list. */
static inline unsigned good(const struct dev_command *c,
			    const struct template *m, uint8_t cdb[CDB_MAX])
{
	unsigned n = 0;

	memset(cdb, 0, CDB_MAX);
	memset(list, 0, sizeof(list));
	cdb[0] = c->op;
	if (c->op == SCSI_VARIABLE_LENGTH) {
		cdb[7] = (uint8_t)(c->len - 8);
		put_be16(cdb + 8, c->sa);
	} else if (c->flags & CMD_SA) {
		cdb[1] = (uint8_t)c->sa;
	}
	if (!m)
		return 0;
	cdb[m->byte] |= m->value;
	if (m->byte == 0)
		cdb[0] = c->op;
	if (m->list)
		n = m->list();
	if (m->list && m->len_bytes)
		put_number(cdb, m->len_at, m->len_bytes, n);
	return n;
}

#endif
