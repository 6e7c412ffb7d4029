/* SPDX-License-Identifier: BSD-2-Clause */
/* prep.c: CDBs and parameter lists of the commands of a block device, and the
 * parsers of their answers (SPC-4, SBC-3). Nothing here sends a command. */
#include <string.h>

#include "lib/internal.h"
#include "scsi/cdb.h"

#define CDB_FUA	  0x08 /* byte 1 of READ, WRITE, COMPARE AND WRITE */
#define CDB_UNMAP 0x08 /* byte 1 of WRITE SAME */

#define UNMAP_MAX 128 /* descriptors of one UNMAP */

static void set_command(struct iser_io *io, int lun, enum scsi_opcode op,
			enum iser_direction direction)
{
	memset(io->cdb, 0, sizeof(io->cdb));
	io->lun = lun;
	io->cdb[0] = (uint8_t)op;
	io->cdb_len = (uint8_t)scsi_cdb_len((uint8_t)op);
	io->direction = direction;
}

/* Makes io transfer the first len bytes of p->data. */
static void set_parameters(struct iser_io *io, struct iser_parameters *p,
			   size_t len)
{
	p->iov = (struct iovec){ p->data, len };
	io->iov = &p->iov;
	io->niov = 1;
	io->short_ok = io->direction == ISER_READ;
}

/* ---- blocks ---- */

void iser_prep_rw(struct iser_io *io, int lun, bool write, uint64_t lba,
		  uint32_t blocks)
{
	io->lun = lun;
	io->direction = write ? ISER_WRITE : ISER_READ;
	io->cdb_len = (uint8_t)scsi_cdb_rw(io->cdb, write, lba, blocks, 0);
}

void iser_prep_compare_and_write(struct iser_io *io, int lun, uint64_t lba,
				 uint8_t blocks)
{
	set_command(io, lun, SCSI_COMPARE_AND_WRITE, ISER_WRITE);
	put_be64(io->cdb + 2, lba);
	io->cdb[13] = blocks;
}

void iser_prep_write_same(struct iser_io *io, int lun, uint64_t lba,
			  uint32_t blocks, bool unmap)
{
	set_command(io, lun, SCSI_WRITE_SAME_16, ISER_WRITE);
	io->cdb[1] = unmap ? CDB_UNMAP : 0;
	put_be64(io->cdb + 2, lba);
	put_be32(io->cdb + 10, blocks);
}

void iser_set_fua(struct iser_io *io)
{
	if (io->cdb_len >= 10)
		io->cdb[1] |= CDB_FUA;
}

void iser_prep_flush(struct iser_io *io, int lun, uint64_t lba, uint32_t blocks)
{
	bool small = lba <= UINT32_MAX && blocks <= UINT16_MAX;

	set_command(io, lun,
		    small ? SCSI_SYNCHRONIZE_CACHE_10
			  : SCSI_SYNCHRONIZE_CACHE_16,
		    ISER_NO_DATA);
	io->iov = NULL;
	io->niov = 0;
	if (small) {
		put_be32(io->cdb + 2, (uint32_t)lba);
		put_be16(io->cdb + 7, (uint16_t)blocks);
	} else {
		put_be64(io->cdb + 2, lba);
		put_be32(io->cdb + 10, blocks);
	}
}

int iser_prep_unmap(struct iser_io *io, int lun, struct iser_parameters *p,
		    const struct iser_unmap_range *ranges, unsigned n)
{
	size_t len = 8 + 16 * (size_t)n;

	if (n == 0 || n > UNMAP_MAX)
		return ISER_E_INVALID;
	for (unsigned i = 0; i < n; i++)
		if (ranges[i].reserved)
			return ISER_E_INVALID;
	set_command(io, lun, SCSI_UNMAP, ISER_WRITE);
	put_be16(io->cdb + 7, (uint16_t)len);
	memset(p->data, 0, len);
	put_be16(p->data, (uint16_t)(len - 2));
	put_be16(p->data + 2, (uint16_t)(len - 8));
	for (unsigned i = 0; i < n; i++) {
		put_be64(p->data + 8 + 16 * i, ranges[i].lba);
		put_be32(p->data + 16 + 16 * i, ranges[i].blocks);
	}
	set_parameters(io, p, len);
	return 0;
}

/* ---- queries ---- */

int lib_sense_key(const struct iser_io *io)
{
	struct scsi_sense s;

	if (io->err != ISER_E_SCSI ||
	    scsi_sense_parse(&s, io->sense, io->sense_len))
		return -1;
	return s.key;
}

void iser_prep_test_unit_ready(struct iser_io *io, int lun)
{
	set_command(io, lun, SCSI_TEST_UNIT_READY, ISER_NO_DATA);
	io->iov = NULL;
	io->niov = 0;
}

void iser_prep_inquiry(struct iser_io *io, int lun, int page,
		       struct iser_parameters *p)
{
	set_command(io, lun, SCSI_INQUIRY, ISER_READ);
	if (page >= 0) {
		io->cdb[1] = 1; /* EVPD */
		io->cdb[2] = (uint8_t)page;
	}
	put_be16(io->cdb + 3, 255);
	set_parameters(io, p, 255);
}

void iser_prep_read_capacity(struct iser_io *io, int lun,
			     struct iser_parameters *p)
{
	set_command(io, lun, SCSI_SERVICE_ACTION_IN_16, ISER_READ);
	io->cdb[1] = SCSI_SAI_READ_CAPACITY_16;
	put_be32(io->cdb + 10, 32);
	set_parameters(io, p, 32);
}

/* The bytes of the answer that came. */
static size_t answer_len(const struct iser_io *io)
{
	return MIN((size_t)io->transferred, io->iov->iov_len);
}

int lib_set_capacity(uint64_t last, uint32_t block_size,
		     struct iser_capacity *c)
{
	if (block_size < 512 || block_size > 65536 ||
	    (block_size & (block_size - 1)) || last >= INT64_MAX / block_size)
		return ISER_E_PROTOCOL;
	c->blocks = last + 1;
	c->block_size = c->physical_block_size = block_size;
	c->bytes = c->blocks * block_size;
	return 0;
}

int iser_parse_capacity(const struct iser_io *io, struct iser_capacity *c)
{
	const uint8_t *b = io->iov->iov_base;
	size_t came = answer_len(io);
	int err;

	memset(c, 0, sizeof(*c));
	if (came < 12)
		return ISER_E_SHORT;
	err = lib_set_capacity(get_be64(b), get_be32(b + 8), c);
	if (err)
		return err;
	if (came > 13)
		c->physical_block_size = c->block_size << (b[13] & 0x0f);
	c->thin = came > 14 && (b[14] & 0x80);
	c->reads_zeros = came > 14 && (b[14] & 0x40);
	return 0;
}

void iser_prep_report_luns(struct iser_io *io, struct iser_parameters *p)
{
	set_command(io, 0, SCSI_REPORT_LUNS, ISER_READ);
	put_be32(io->cdb + 6, sizeof(p->data));
	set_parameters(io, p, sizeof(p->data));
}

int iser_parse_luns(const struct iser_io *io, int *luns, int max)
{
	const uint8_t *b = io->iov->iov_base;
	size_t came = answer_len(io);
	int found = 0, other = 0;
	uint32_t n;

	if (came < 8)
		return ISER_E_SHORT;
	n = MIN(get_be32(b) / 8, (uint32_t)(came - 8) / 8);
	for (uint32_t i = 0; i < n; i++) {
		int lun = lib_lun_of(get_be64(b + 8 + 8 * i));

		if (lun < 0)
			other++; /* no command could be sent to it */
		else if (found < max)
			luns[found++] = lun;
	}
	if (found < max)
		return found;
	/* the buffer is full: the target has more units */
	return (int)(came == io->iov->iov_len ? get_be32(b) / 8 : n) - other;
}

void iser_prep_lba_status(struct iser_io *io, int lun, uint64_t lba, int max,
			  struct iser_parameters *p)
{
	uint32_t alloc = 8 + (uint32_t)MIN(MAX(max, 0), 64) * 16;

	set_command(io, lun, SCSI_SERVICE_ACTION_IN_16, ISER_READ);
	io->cdb[1] = SCSI_SAI_GET_LBA_STATUS;
	put_be64(io->cdb + 2, lba);
	put_be32(io->cdb + 10, alloc);
	set_parameters(io, p, alloc);
}

int iser_parse_lba_status(const struct iser_io *io, struct iser_extent *extents,
			  int max)
{
	const uint8_t *b = io->iov->iov_base;
	uint64_t came = answer_len(io), lba = get_be64(io->cdb + 2), len;
	int n = 0;

	if (came < 8)
		return ISER_E_SHORT;
	/* PARAMETER DATA LENGTH counts from its own end (SBC-3 §5.4.2) */
	len = MIN((uint64_t)get_be32(b) + 4, came);
	for (uint64_t at = 8; at + 16 <= len && n < max; at += 16) {
		const uint8_t *d = b + at;
		uint32_t blocks = get_be32(d + 8);

		/* descriptors are contiguous from lba on: ignore the rest of
		 * an answer that is not */
		if (get_be64(d) != lba || !blocks || lba + blocks < lba)
			break;
		extents[n++] = (struct iser_extent){
			.lba = lba,
			.blocks = blocks,
			.mapped = (d[12] & 0x0f) == 0,
		};
		lba += blocks;
	}
	return n;
}
