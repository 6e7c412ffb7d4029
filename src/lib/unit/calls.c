/* SPDX-License-Identifier: BSD-2-Clause */
/* calls.c: the blocking requests of a unit; the result of a request as text
 * and as errno. */
#include <errno.h>
#include <stdio.h>

#include "lib/unit/jobs.h"

#define STATUS_RESERVATION_CONFLICT 0x18

/* ---- results ---- */

static const char *op_name(enum iser_op op)
{
	switch (op) {
	case ISER_OP_READ:
		return "READ";
	case ISER_OP_WRITE:
		return "WRITE";
	case ISER_OP_FLUSH:
		return "FLUSH";
	case ISER_OP_TRIM:
		return "TRIM";
	case ISER_OP_ZERO:
		return "ZERO";
	case ISER_OP_EXTENTS:
		return "EXTENTS";
	case ISER_OP_COMPARE_AND_WRITE:
		return "COMPARE AND WRITE";
	}
	return "request";
}

static void describe_command(const struct iser_request *r, char *out,
			     size_t size)
{
	const char *asc = scsi_asc_str(r->asc);
	int cause = (int)r->library[LIB_REQUEST_CAUSE];

	if (r->err == ISER_E_SHORT)
		snprintf(out, size,
			 ": the target reported success for %llu of %llu bytes",
			 (unsigned long long)r->library[LIB_REQUEST_CAME],
			 (unsigned long long)r->library[LIB_REQUEST_WANTED]);
	else if (r->err == ISER_E_PROTOCOL && cause)
		snprintf(out, size, ": %s", err_str(cause));
	else if (!r->status)
		out[0] = '\0';
	else if (!r->sense_key)
		snprintf(out, size, ": command %02xh ended with %s", r->opcode,
			 scsi_status_str(r->status));
	else
		snprintf(out, size,
			 ": command %02xh ended with %s: %s, %s (%02xh/%02xh)",
			 r->opcode, scsi_status_str(r->status),
			 scsi_sense_key_str(r->sense_key),
			 asc ? asc : "no text", r->asc >> 8, r->asc & 0xff);
}

void iser_request_describe(const struct iser_request *r, char *out, size_t size)
{
	int n = snprintf(out, size, "%s of %llu bytes at %llu: %s",
			 op_name(r->op), (unsigned long long)r->length,
			 (unsigned long long)r->offset, iser_strerror(r->err));

	if (n >= 0 && (size_t)n < size)
		describe_command(r, out + n, size - (size_t)n);
}

static int errno_of_sense(const struct iser_request *r)
{
	if (r->status == STATUS_RESERVATION_CONFLICT)
		return EBUSY;
	if (r->asc == ASC_SPACE_ALLOCATION_FAILED)
		return ENOSPC;
	switch ((enum scsi_sense_key)r->sense_key) {
	case SENSE_DATA_PROTECT:
		return EROFS;
	case SENSE_ILLEGAL_REQUEST:
		return r->asc == ASC_INVALID_OPCODE ? EOPNOTSUPP : EINVAL;
	case SENSE_NOT_READY:
		return r->asc >> 8 == ASC_MEDIUM_NOT_PRESENT >> 8 ? ENOMEDIUM
								  : EIO;
	default:
		return EIO;
	}
}

int iser_request_errno(const struct iser_request *r)
{
	switch ((enum iser_error)r->err) {
	case ISER_OK:
		return 0;
	case ISER_E_NOMEM:
		return ENOMEM;
	case ISER_E_INVALID:
		return EINVAL;
	case ISER_E_TIMEOUT:
		return ETIMEDOUT;
	case ISER_E_CLOSED:
	case ISER_E_NO_PATH:
		return ESHUTDOWN;
	case ISER_E_UNSUPPORTED:
		return EOPNOTSUPP;
	case ISER_E_MISCOMPARE:
		return EILSEQ;
	case ISER_E_CHANGED:
		return ESTALE;
	case ISER_E_SCSI:
		return errno_of_sense(r);
	default:
		return EIO;
	}
}

/* ---- blocking requests ---- */

static void request_completed(struct iser_request *r)
{
	*(bool *)r->arg = true;
}

int iser_unit_run(struct iser_unit *u, struct iser_request *r)
{
	bool over = false;
	char text[240];
	int err;

	r->done = request_completed;
	r->arg = &over;
	iser_unit_submit(u, r);
	err = lib_wait(u->ctx, &over);
	if (!err)
		err = r->err;
	if (!err || lib_has_reason(err))
		return err;
	iser_request_describe(r, text, sizeof(text));
	return lib_fail(u->ctx, err, "LUN %d of %s: %s", u->lun,
			u->session->url.target, text);
}

int iser_pread(struct iser_unit *u, void *buf, size_t len, uint64_t offset)
{
	struct iovec iov = { buf, len };
	struct iser_request r = { .op = ISER_OP_READ,
				  .offset = offset,
				  .length = len,
				  .iov = &iov,
				  .niov = 1 };

	return iser_unit_run(u, &r);
}

int iser_pwrite(struct iser_unit *u, const void *buf, size_t len,
		uint64_t offset, unsigned flags)
{
	struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct iser_request r = { .op = ISER_OP_WRITE,
				  .flags = flags,
				  .offset = offset,
				  .length = len,
				  .iov = &iov,
				  .niov = 1 };

	return iser_unit_run(u, &r);
}

int iser_pflush(struct iser_unit *u)
{
	struct iser_request r = { .op = ISER_OP_FLUSH };

	return iser_unit_run(u, &r);
}

int iser_ptrim(struct iser_unit *u, uint64_t offset, uint64_t len,
	       unsigned flags)
{
	struct iser_request r = { .op = ISER_OP_TRIM,
				  .flags = flags,
				  .offset = offset,
				  .length = len };

	return iser_unit_run(u, &r);
}

int iser_pzero(struct iser_unit *u, uint64_t offset, uint64_t len,
	       unsigned flags)
{
	struct iser_request r = { .op = ISER_OP_ZERO,
				  .flags = flags,
				  .offset = offset,
				  .length = len };

	return iser_unit_run(u, &r);
}

int iser_pextents(struct iser_unit *u, uint64_t offset, uint64_t len,
		  struct iser_range *ranges, unsigned max)
{
	struct iser_request r = { .op = ISER_OP_EXTENTS,
				  .offset = offset,
				  .length = len,
				  .ranges = ranges,
				  .max_ranges = max };
	int err = iser_unit_run(u, &r);

	return err ? err : (int)r.nranges;
}

int iser_pcompare_and_write(struct iser_unit *u, const void *expected,
			    const void *buf, size_t len, uint64_t offset,
			    unsigned flags)
{
	struct iovec iov[2] = { { (void *)(uintptr_t)expected, len },
				{ (void *)(uintptr_t)buf, len } };
	struct iser_request r = { .op = ISER_OP_COMPARE_AND_WRITE,
				  .flags = flags,
				  .offset = offset,
				  .length = len,
				  .iov = iov,
				  .niov = 2 };

	return iser_unit_run(u, &r);
}
