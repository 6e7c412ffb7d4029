/* SPDX-License-Identifier: BSD-2-Clause */
/* unit.c: NBD requests as SCSI commands (SPC-4, SBC-3). */
#include "tools/nbd/unit.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define ZEROS	      (1u << 20)
#define MAX_STEP      (1u << 22)   /* blocks to zero or unmap per command */
#define KEEP	      (128u << 20) /* bytes that jobs keep for reuse */
#define EXTENTS	      128
#define STATUS_HEADER 8 /* GET LBA STATUS: header and descriptors */
#define STATUS_SIZE   16

enum opcode {
	MODE_SENSE_6 = 0x1a,
	READ_CAPACITY_10 = 0x25,
	SYNCHRONIZE_CACHE_10 = 0x35,
	UNMAP = 0x42,
	WRITE_SAME_16 = 0x93,
	SERVICE_ACTION_IN_16 = 0x9e,
};
#define SA_READ_CAPACITY_16 0x10
#define SA_GET_LBA_STATUS   0x12
#define CAPACITY_16_LEN	    32
#define CDB_FUA		    0x08
#define TYPE_CD		    0x05

enum sense_key {
	KEY_ILLEGAL_REQUEST = 0x5,
	KEY_DATA_PROTECT = 0x7,
};
#define ASC_WRITE_PROTECTED  0x2700
#define ASC_SPACE_ALLOCATION 0x2707

/* ---- errors ---- */

struct sense {
	uint8_t key;
	uint16_t asc; /* with its qualifier */
};

/* Fixed (70h, 71h) and descriptor format (72h, 73h), SPC-4 §4.5. */
static struct sense sense_of(const struct iser_io *io)
{
	const uint8_t *b = io->sense;
	struct sense s = { 0 };

	if (io->sense_len >= 14 && (b[0] & 0x7e) == 0x70)
		s = (struct sense){ b[2] & 0x0f, nbd_get16(b + 12) };
	else if (io->sense_len >= 4 && (b[0] & 0x7e) == 0x72)
		s = (struct sense){ b[1] & 0x0f, nbd_get16(b + 2) };
	return s;
}

/* Returns the NBD error for the result of a command. */
static enum nbd_error error_of(const struct iser_io *io)
{
	struct sense s = sense_of(io);

	switch ((enum iser_error)io->err) {
	case ISER_E_NOMEM:
		return NBD_ENOMEM;
	case ISER_E_CLOSED:
		return NBD_ESHUTDOWN;
	case ISER_E_SCSI:
		break;
	default:
		return NBD_EIO;
	}
	if (s.asc == ASC_SPACE_ALLOCATION)
		return NBD_ENOSPC;
	if (s.key == KEY_DATA_PROTECT || s.asc == ASC_WRITE_PROTECTED)
		return NBD_EPERM;
	return s.key == KEY_ILLEGAL_REQUEST ? NBD_EINVAL : NBD_EIO;
}

static void finish_job(struct nbd_job *j, enum nbd_error err)
{
	if (err && j->io.err)
		say_command(&j->io, "NBD request for %u bytes at %llu",
			    j->req.length, (unsigned long long)j->req.offset);
	j->err = err;
	if (err)
		j->data_len = 0;
	j->done(j);
}

/* ---- commands ---- */

static void submit_io(struct nbd_job *j, enum iser_direction direction,
		      void *data, size_t len)
{
	j->iov = (struct iovec){ data, len };
	j->io.lun = j->unit->url.lun;
	j->io.direction = direction;
	j->io.iov = &j->iov;
	j->io.niov = direction == ISER_NO_DATA ? 0 : 1;
	j->io.short_ok = j->req.command == NBD_BLOCK_STATUS;
	iser_submit(j->unit->session, &j->io);
}

static void set_cdb(struct nbd_job *j, enum opcode op, uint8_t len)
{
	memset(j->io.cdb, 0, sizeof(j->io.cdb));
	j->io.cdb[0] = (uint8_t)op;
	j->io.cdb_len = len;
}

/* Sets the number of blocks of the next command. */
static uint32_t next_step(struct nbd_job *j, uint64_t most)
{
	j->step = (uint32_t)(j->left < most ? j->left : most);
	return j->step;
}

static void submit_rw(struct nbd_job *j, bool write, uint8_t *data)
{
	struct nbd_unit *u = j->unit;

	iser_prep_rw(&j->io, u->url.lun, write, j->lba, j->step);
	/* READ and WRITE (10), (12) and (16) have FUA in the same bit */
	if ((j->req.flags & NBD_FUA) && u->has_fua && j->io.cdb_len > 6)
		j->io.cdb[1] |= CDB_FUA;
	submit_io(j, write ? ISER_WRITE : ISER_READ, data,
		  (size_t)j->step * u->block);
}

static void submit_flush(struct nbd_job *j)
{
	j->flushing = true;
	set_cdb(j, SYNCHRONIZE_CACHE_10, 10);
	submit_io(j, ISER_NO_DATA, NULL, 0);
}

static void submit_unmap(struct nbd_job *j)
{
	uint8_t *list = j->buf;

	next_step(j, j->unit->max_unmap);
	memset(list, 0, 24);
	nbd_put16(list, 22);
	nbd_put16(list + 2, 16);
	nbd_put64(list + 8, j->lba);
	nbd_put32(list + 16, j->step);
	set_cdb(j, UNMAP, 10);
	nbd_put16(j->io.cdb + 7, 24);
	submit_io(j, ISER_WRITE, list, 24);
}

static void submit_zeroes(struct nbd_job *j)
{
	struct nbd_unit *u = j->unit;

	if (u->no_same) {
		next_step(j, ZEROS / u->block < u->max_transfer
				     ? ZEROS / u->block
				     : u->max_transfer);
		submit_rw(j, true, u->zeros);
		return;
	}
	next_step(j, u->max_same);
	set_cdb(j, WRITE_SAME_16, 16);
	if (u->can_unmap_same && u->reads_zeros &&
	    !(j->req.flags & NBD_NO_HOLE))
		j->io.cdb[1] = 0x08; /* UNMAP */
	nbd_put64(j->io.cdb + 2, j->lba);
	nbd_put32(j->io.cdb + 10, j->step);
	submit_io(j, ISER_WRITE, u->zeros, u->block);
}

static void submit_status(struct nbd_job *j)
{
	uint32_t len = STATUS_HEADER + STATUS_SIZE * EXTENTS;

	j->step = (uint32_t)j->left;
	set_cdb(j, SERVICE_ACTION_IN_16, 16);
	j->io.cdb[1] = SA_GET_LBA_STATUS;
	nbd_put64(j->io.cdb + 2, j->lba);
	nbd_put32(j->io.cdb + 10, len);
	memset(j->buf, 0, len);
	submit_io(j, ISER_READ, j->buf, len);
}

/* Returns whether FUA needs a SYNCHRONIZE CACHE, because the CDB has no FUA
 * bit. */
static bool needs_flush(const struct nbd_job *j)
{
	bool by_cdb = j->req.command == NBD_READ ||
		      (j->req.command == NBD_WRITE && j->unit->has_fua);

	return (j->req.flags & NBD_FUA) && !by_cdb && !j->flushing;
}

/* Submits the next command of a request, or ends it. */
static void advance_job(struct nbd_job *j)
{
	if (j->left == 0) {
		if (needs_flush(j))
			submit_flush(j);
		else
			finish_job(j, NBD_OK);
		return;
	}
	switch ((enum nbd_command)j->req.command) {
	case NBD_READ:
	case NBD_WRITE:
		next_step(j, j->unit->max_transfer);
		submit_rw(j, j->req.command == NBD_WRITE, j->at);
		break;
	case NBD_TRIM:
		submit_unmap(j);
		break;
	case NBD_WRITE_ZEROES:
		submit_zeroes(j);
		break;
	case NBD_BLOCK_STATUS:
		submit_status(j);
		break;
	default:
		finish_job(j, NBD_EINVAL);
	}
}

/* ---- extents ---- */

static void put_extent(struct nbd_job *j, uint64_t len, uint32_t flags)
{
	nbd_extent_put(j->data + j->data_len, (uint32_t)len, flags);
	j->data_len += NBD_EXTENT_SIZE;
	j->extents++;
}

/* Turns the answer to GET LBA STATUS (SBC-3 §5.4) into extents, from the block
 * of the offset on. The reply ends where the descriptors leave a gap; the
 * client asks for the rest. */
static void put_extents(struct nbd_job *j, size_t came)
{
	const struct nbd_unit *u = j->unit;
	uint32_t hole = NBD_HOLE | (u->reads_zeros ? NBD_ZERO : 0);
	uint32_t max = j->req.flags & NBD_REQ_ONE ? 1 : EXTENTS;
	uint64_t at = j->req.offset, stop = at + j->req.length, lba = j->lba;

	for (size_t i = STATUS_HEADER; i + STATUS_SIZE <= came;
	     i += STATUS_SIZE) {
		const uint8_t *d = j->buf + i;
		uint64_t blocks = nbd_get32(d + 8), end;

		if (nbd_get64(d) != lba || blocks == 0 ||
		    blocks > u->blocks - lba || at == stop || j->extents == max)
			break;
		lba += blocks;
		end = lba * u->block;
		if (end > stop)
			end = stop;
		put_extent(j, end - at, d[12] & 0x0f ? hole : 0);
		at = end;
	}
}

static void take_status(struct nbd_job *j)
{
	size_t came = j->io.transferred, reported = 0;

	if (came >= STATUS_HEADER)
		reported = (size_t)nbd_get32(j->buf) + 4;
	put_extents(j, reported < came ? reported : came);
	if (j->extents == 0)
		put_extent(j, j->req.length, 0);
	finish_job(j, NBD_OK);
}

/* ---- completions ---- */

/* Does without a command that the unit does not support: WRITE in place of WRITE
 * SAME, "all allocated" in place of GET LBA STATUS. */
static bool use_fallback(struct nbd_job *j)
{
	if (j->io.err != ISER_E_SCSI ||
	    sense_of(&j->io).key != KEY_ILLEGAL_REQUEST)
		return false;
	if (j->io.cdb[0] == WRITE_SAME_16) {
		j->unit->no_same = true;
		advance_job(j);
		return true;
	}
	if (j->req.command == NBD_BLOCK_STATUS) {
		put_extent(j, j->req.length, 0);
		j->io.err = 0;
		finish_job(j, NBD_OK);
		return true;
	}
	return false;
}

static void io_completed(struct iser_io *io)
{
	struct nbd_job *j = io->arg;

	if (io->err) {
		if (!use_fallback(j))
			finish_job(j, error_of(io));
		return;
	}
	if (j->req.command == NBD_BLOCK_STATUS) {
		take_status(j);
		return;
	}
	if (!j->flushing) {
		j->lba += j->step;
		j->left -= j->step;
		j->at += (size_t)j->step * j->unit->block;
	}
	advance_job(j);
}

/* ---- jobs ---- */

static size_t room_for(const struct nbd_job *j)
{
	switch ((enum nbd_command)j->req.command) {
	case NBD_READ:
	case NBD_WRITE: /* a READ may begin and end within a block */
		return j->req.length + 2u * (size_t)j->unit->block;
	case NBD_BLOCK_STATUS:
		return STATUS_HEADER +
		       (STATUS_SIZE + NBD_EXTENT_SIZE) * EXTENTS;
	default:
		return 64;
	}
}

void nbd_job_release(struct nbd_job *j, bool keep)
{
	if (keep && j->unit->buffers <= KEEP)
		return;
	free(j->buf);
	j->unit->buffers -= j->buf_size;
	j->buf = NULL;
	j->buf_size = 0;
}

bool nbd_job_room(struct nbd_job *j)
{
	size_t need = (room_for(j) + 4095) & ~(size_t)4095;

	if (need <= j->buf_size)
		return true;
	nbd_job_release(j, false);
	j->buf = alloc_pages(need);
	j->buf_size = j->buf ? need : 0;
	j->unit->buffers += j->buf_size;
	return j->buf != NULL;
}

void nbd_job_start(struct nbd_job *j)
{
	const struct nbd_unit *u = j->unit;
	uint32_t block = u->block;
	uint64_t end = j->req.offset + j->req.length;

	j->io.done = io_completed;
	j->io.arg = j;
	j->io.err = 0;
	j->extents = 0;
	j->flushing = false;
	j->data = j->buf;
	j->data_len = 0;
	j->at = j->buf;
	j->lba = j->req.offset / block;
	j->left = (end + block - 1) / block - j->lba;
	if (j->req.length == 0)
		j->left = 0;
	if (j->req.command == NBD_READ) {
		j->data = j->buf + j->req.offset % block;
		j->data_len = j->req.length;
	} else if (j->req.command == NBD_BLOCK_STATUS) {
		j->data = j->buf + STATUS_HEADER + STATUS_SIZE * EXTENTS;
	} else if (j->req.command == NBD_FLUSH && u->read_only) {
		/* read-only drives do not support SYNCHRONIZE CACHE */
		finish_job(j, NBD_OK);
		return;
	} else if (j->req.command == NBD_FLUSH) {
		submit_flush(j);
		j->left = 0;
		return;
	}
	advance_job(j);
}

/* ---- the unit ---- */

/* Copies an INQUIRY string without padding; other bytes than visible ASCII
 * characters become spaces. */
static void put_padded(char *out, const uint8_t *p, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		out[i] = isgraph(p[i]) ? (char)p[i] : ' ';
	for (size_t i = 0; i < len; i++)
		if (out[i] != ' ')
			n = i + 1;
	out[n] = '\0';
}

static void set_description(struct nbd_unit *u, const uint8_t *inq)
{
	char vendor[9], product[17];

	put_padded(vendor, inq + 8, 8);
	put_padded(product, inq + 16, 16);
	snprintf(u->description, sizeof(u->description), "%s %s, LUN %d",
		 vendor, product, u->url.lun);
}

/* Returns the smaller one of a limit that the unit reports (0: none) and the
 * limit of this program. */
static uint64_t limit_of(uint64_t reported, uint64_t most)
{
	return reported && reported < most ? reported : most;
}

/* Reads VPD pages B0h and B2h (SBC-3 §6.6): limits, and how to unmap. */
static void read_limits(struct nbd_unit *u)
{
	int lun = u->url.lun, n;
	uint8_t b[64];
	bool unmap_limit;

	n = iser_inquiry(u->session, lun, 0xb0, b, sizeof(b));
	if (n < 64)
		memset(b + (n < 0 ? 0 : n), 0, sizeof(b) - (n < 0 ? 0 : n));
	u->max_transfer =
		limit_of(nbd_get32(b + 8), NBD_PAYLOAD_MAX / u->block + 2);
	u->max_unmap = limit_of(nbd_get32(b + 20), MAX_STEP);
	u->max_same = limit_of(nbd_get64(b + 36), MAX_STEP);
	/* zero in both fields: UNMAP is not supported (SBC-3 table 170) */
	unmap_limit = n < 28 || (nbd_get32(b + 20) && nbd_get32(b + 24));
	n = iser_inquiry(u->session, lun, 0xb2, b, sizeof(b));
	u->can_unmap = n >= 6 && (b[5] & 0x80) && unmap_limit;
	u->can_unmap_same = n >= 6 && (b[5] & 0x40);
}

/* Reads WP and DPOFUA in the header of MODE SENSE (SBC-3 §6.4.1). */
static void read_modes(struct nbd_unit *u)
{
	uint8_t b[192] = { 0 };
	struct iovec iov = { b, sizeof(b) };
	struct iser_io io = { .lun = u->url.lun,
			      .cdb = { MODE_SENSE_6, 0x08, 0x3f, 0, 192 },
			      .cdb_len = 6,
			      .direction = ISER_READ,
			      .iov = &iov,
			      .niov = 1,
			      .short_ok = true };

	if (iser_run(u->session, &io) || io.transferred < 4)
		return; /* not reported: FUA by SYNCHRONIZE CACHE */
	u->read_only = b[2] & 0x80;
	u->has_fua = b[2] & 0x10;
}

static int read_properties(struct nbd_unit *u)
{
	struct iser_capacity c;
	uint8_t inq[96] = { 0 };
	int n = iser_inquiry(u->session, u->url.lun, -1, inq, sizeof(inq));
	int err = n < 0 ? n : iser_read_capacity(u->session, u->url.lun, &c);

	if (!err && n < 32)
		err = ISER_E_PROTOCOL;
	if (err)
		return say_failed(iser_session_context(u->session), err);
	u->block = c.block_size;
	u->blocks = c.blocks;
	u->thin = c.thin;
	u->reads_zeros = c.reads_zeros;
	u->has_capacity_10 = (inq[0] & 0x1f) == TYPE_CD; /* MMC-6 §6.24 */
	set_description(u, inq);
	read_limits(u);
	read_modes(u);
	/* the mode parameter header of a drive has no WP (MMC-6 §7.2) */
	u->read_only |= is_read_only_cd(u->session, u->url.lun);
	return 0;
}

/* ---- the capacity ---- */

static void submit_capacity(struct nbd_unit *u, bool is_10);

static void capacity_read(struct iser_io *io)
{
	struct nbd_unit *u = io->arg;
	const uint8_t *b = u->capacity.data;
	bool is_10 = io->cdb[0] == READ_CAPACITY_10;
	size_t block_at = is_10 ? 4 : 8;
	uint64_t blocks;

	if (!is_10 && sense_of(io).key == KEY_ILLEGAL_REQUEST) {
		submit_capacity(u, true);
		return;
	}
	u->capacity.in_progress = false;
	if (io->err || io->transferred < block_at + 4 ||
	    nbd_get32(b + block_at) != u->block)
		return; /* the unit is away, or another one */
	blocks = is_10 ? nbd_get32(b) + UINT64_C(1) : nbd_get64(b) + 1;
	if (blocks && (!is_10 || blocks <= UINT32_MAX))
		u->blocks = blocks;
}

static void submit_capacity(struct nbd_unit *u, bool is_10)
{
	memset(u->capacity.data, 0, sizeof(u->capacity.data));
	u->capacity.iov =
		(struct iovec){ u->capacity.data, is_10 ? 8 : CAPACITY_16_LEN };
	u->capacity.io = (struct iser_io){
		.lun = u->url.lun,
		.cdb = { READ_CAPACITY_10 },
		.cdb_len = 10,
		.direction = ISER_READ,
		.iov = &u->capacity.iov,
		.niov = 1,
		.short_ok = true,
		.done = capacity_read,
		.arg = u,
	};
	if (!is_10) {
		u->capacity.io.cdb[0] = SERVICE_ACTION_IN_16;
		u->capacity.io.cdb[1] = SA_READ_CAPACITY_16;
		u->capacity.io.cdb[13] = CAPACITY_16_LEN;
		u->capacity.io.cdb_len = 16;
	}
	iser_submit(u->session, &u->capacity.io);
}

void nbd_unit_read_capacity(struct nbd_unit *u)
{
	if (u->capacity.in_progress)
		return;
	u->capacity.in_progress = true;
	submit_capacity(u, u->has_capacity_10);
}

/* ---- life ---- */

int nbd_unit_open(struct nbd_unit *u, struct iser_context *ctx, const char *url,
		  unsigned reconnect)
{
	int code = EXIT_NOMEM;

	memset(u, 0, sizeof(*u));
	u->zeros = aligned_alloc(4096, ZEROS);
	if (!u->zeros)
		return say_no_memory();
	memset(u->zeros, 0, ZEROS);
	u->session = open_url_lasting(ctx, url, reconnect, &u->url, &code);
	if (!u->session)
		return code;
	code = check_unit_exists(u->session, &u->url);
	return code ? code : read_properties(u);
}

void nbd_unit_close(struct nbd_unit *u)
{
	iser_disconnect(u->session);
	u->session = NULL;
	free(u->zeros);
	u->zeros = NULL;
}
