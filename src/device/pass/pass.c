/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pass.c: a unit whose commands a SCSI device of this machine executes (pass.h).
 *
 * PASS_SERVER: this device server executes REPORT LUNS, task management,
 * reservations and target port groups, and holds the unit attentions and the ACA
 * of each nexus. The SCSI device sees all initiators as one nexus, this host: a
 * reservation in the device would admit all of them. So this server checks
 * reservations itself, with the conflict columns of the known rows; a command
 * without a row counts as a write.
 *
 * PASS_REFUSES: commands that name other units or ports as the SCSI device
 * addresses them (EXTENDED COPY, aliases, access controls). With such a command
 * an initiator could use units that the administrator did not give to it.
 *
 * PASS_DEVICE: the SCSI device gets all other commands unchanged.
 */
#include <string.h>

#include "device/pass/pass_unit.h"
#include "device/unit/attention.h"
#include "device/unit/command.h"
#include "device/unit/range.h"

/* The service action counts for MAINTENANCE IN and OUT only. */
enum pass_owner pass_owner(const struct pass *p, uint8_t op, unsigned sa)
{
	switch (op) {
	case SCSI_REPORT_LUNS:
	case SCSI_RESERVE_6:
	case SCSI_RELEASE_6:
	case SCSI_RESERVE_10:
	case SCSI_RELEASE_10:
	case SCSI_PERSISTENT_RESERVE_IN:
	case SCSI_PERSISTENT_RESERVE_OUT:
		return PASS_SERVER;
	case SCSI_EXTENDED_COPY:
	case SCSI_RECEIVE_COPY_RESULTS:
	case 0x86: /* ACCESS CONTROL IN */
	case 0x87: /* ACCESS CONTROL OUT */
		return PASS_REFUSES;
	case SCSI_MAINTENANCE_IN: /* MMC-6: SEND KEY */
	case SCSI_MAINTENANCE_OUT:
		break;
	default:
		return PASS_DEVICE;
	}
	if (p->type == TYPE_MMC)
		return PASS_DEVICE;
	if (sa == SCSI_MI_REPORT_TARGET_PORT_GROUPS ||
	    (op == SCSI_MAINTENANCE_IN && sa == SCSI_MI_REPORT_SUPPORTED_TMFS))
		return PASS_SERVER;
	return sa == 0x0b ? PASS_REFUSES : PASS_DEVICE; /* aliases */
}

bool dev_pass_owns(const struct dev_lu *lu, const struct dev_command *c)
{
	return pass_owner(lu->pass.device, c->op, c->sa) == PASS_SERVER;
}

/* ---- check and preparation ---- */

/* A command without a row may write. */
static const struct dev_command unknown = {
	.name = "an unknown command",
	.flags = CMD_WRITES | RSV_WRITE,
};

/* The table has rows for disks and CDs; other types use the rows of commands that
 * every type has. The row of WRITE BUFFER does not fit, because this command may
 * replace the firmware of a SCSI device. */
static const struct dev_command *row_of(const struct dev_task *t)
{
	uint8_t type = t->lu->pass.device->type;
	const struct dev_command *c;
	bool known;

	c = dev_command_find(t->nexus->server,
			     type == TYPE_MMC ? DEV_CD : DEV_DISK, t->cdb,
			     &known);
	if (!c || c->op == SCSI_WRITE_BUFFER ||
	    (type != TYPE_MMC && !pass_has_blocks(type) &&
	     (c->flags & FOR_ANY_TYPE) != FOR_ANY_TYPE))
		return &unknown;
	return c;
}

int dev_pass_find_row(struct dev_task *t)
{
	t->own.row = row_of(t);
	t->own.passing.used = true;
	if (pass_owner(t->lu->pass.device, t->cdb[0], t->cdb[1] & 0x1f) ==
	    PASS_REFUSES)
		return dev_check(t, SENSE_ILLEGAL_REQUEST, ASC_INVALID_OPCODE);
	if (!pass_cdb_len(t->cdb, t->cdb_len))
		return dev_bad_field(t, 7, -1);
	return 0;
}

/* This device server implements NACA. An ACA condition in the SCSI device would
 * block the commands of all initiators. */
static void copy_cdb(struct pass_req *r, const struct dev_task *t)
{
	int control = dev_control_at(t->cdb);

	r->cdb_len = (uint8_t)pass_cdb_len(t->cdb, t->cdb_len);
	memcpy(r->cdb, t->cdb, r->cdb_len);
	if (control >= 0)
		r->cdb[control] &= (uint8_t)~CONTROL_NACA;
}

/* expected returns direction and length that the initiator expects, for a CDB
 * that does not determine them. */
static struct pass_data expected(const struct dev_task *t)
{
	return (struct pass_data){
		.dir = t->edtl.out  ? PASS_OUT
		       : t->edtl.in ? PASS_IN
				    : PASS_NONE,
		.len = t->edtl.out ? t->edtl.out : t->edtl.in,
	};
}

int dev_pass_prepare(struct dev_task *t, uint64_t *out_len)
{
	const struct pass *p = t->lu->pass.device;
	struct pass_req *r = &t->own.pass;
	struct pass_data d;

	/* In the ranges of range.c the whole unit is one block. */
	t->lba = 0;
	t->own.blocks = t->own.row->flags & CMD_ANY_LUN ? 0 : 1;
	if (!pass_cdb_data(p, t->cdb, &d))
		d = expected(t);
	else if (d.dir == PASS_IN && !d.unit) /* an allocation length */
		d.len = MIN(d.len, (uint64_t)p->max_transfer);
	if (d.len > p->max_transfer)
		return dev_check(t, SENSE_ILLEGAL_REQUEST,
				 ASC_INVALID_FIELD_IN_CDB);
	r->worker = t->nexus->cfg.worker;
	copy_cdb(r, t);
	r->dir = d.len ? d.dir : PASS_NONE;
	r->len = (uint32_t)d.len;
	r->buf = NULL;
	r->timeout = pass_timeout(p, t->cdb);
	t->own.count = d.whole ? d.unit : 0;
	t->own.passing.of_blocks = d.unit;
	if (r->dir == PASS_OUT)
		*out_len = d.len;
	return 0;
}

/* ---- end of a command ---- */

static void end_now(struct dev_task *t)
{
	dev_end(t, t->status);
}

/* host_ended ends t, for which the host reports a failure instead of a status of
 * the SCSI device. */
static void host_ended(struct dev_task *t, enum pass_end end)
{
	t->in = (struct bufv){ 0 };
	t->total.in = 0;
	switch (end) {
	case PASS_GONE:
		dev_check(t, SENSE_HARDWARE_ERROR, ASC_NO_SELECTION_RESPONSE);
		break;
	case PASS_TIMEOUT:
		dev_check(t, SENSE_ABORTED_COMMAND, ASC_COMMAND_TIMEOUT);
		break;
	case PASS_RESET:
		dev_check(t, SENSE_ABORTED_COMMAND, ASC_BUS_DEVICE_RESET);
		break;
	case PASS_BUSY:
		dev_end(t, SCSI_BUSY);
		break;
	case PASS_PARITY:
		dev_check(t, SENSE_ABORTED_COMMAND, ASC_SCSI_PARITY_ERROR);
		break;
	case PASS_REFUSED:
		dev_check(t, SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
		break;
	case PASS_FORBIDDEN:
		dev_check(t, SENSE_ILLEGAL_REQUEST, ASC_NO_ACCESS_RIGHTS);
		break;
	case PASS_NO_MEMORY:
		dev_no_resources(t);
		break;
	default:
		dev_check(t, SENSE_ABORTED_COMMAND, ASC_LU_COMMUNICATION);
	}
}

/* moved returns how many octets of the buffer the SCSI device sent. Some hosts
 * report no residual of a command that failed. Then moved returns 0, because the
 * initiator must not get memory that the device did not write. */
static uint32_t moved(const struct dev_task *t, const struct scsi_sense *s)
{
	const struct pass_req *r = &t->own.pass;

	if (r->dir != PASS_IN)
		return 0;
	if (t->status == SCSI_GOOD || t->status == SCSI_CONDITION_MET)
		return r->len - r->resid;
	if (t->status != SCSI_CHECK_CONDITION)
		return 0;
	return r->resid || s->key <= SENSE_RECOVERED_ERROR ? r->len - r->resid
							   : 0;
}

static void take_data(struct dev_task *t, uint32_t len)
{
	const struct pass_req *r = &t->own.pass;

	if (r->dir == PASS_OUT)
		t->total.out -= MIN((uint64_t)r->resid, t->total.out);
	if (r->dir != PASS_IN)
		return;
	t->total.in = len;
	t->own.mem.iov[0] = (struct iovec){ r->buf, MIN(len, t->edtl.in) };
	t->in = bufv_of(t->own.mem.iov, 1);
}

/* learn_block_size takes the block size from the answer to READ CAPACITY of any
 * initiator: a FORMAT UNIT or another medium may change the size. */
static void learn_block_size(struct pass *p, const struct dev_task *t,
			     uint32_t len)
{
	const uint8_t *data = t->own.pass.buf;
	uint32_t size;

	if (t->cdb[0] == SCSI_READ_CAPACITY_10 && len >= 8)
		size = get_be32(data + 4);
	else if (t->cdb[0] == SCSI_SERVICE_ACTION_IN_16 &&
		 (t->cdb[1] & 0x1f) == SCSI_SAI_READ_CAPACITY_16 && len >= 12)
		size = get_be32(data + 8);
	else
		return;
	__atomic_store_n(&p->block_size, size <= PASS_BLOCK_MAX ? size : 0,
			 __ATOMIC_RELAXED);
}

/*
 * The SCSI device reports a unit attention once, to its only nexus, this host.
 * end_and_notify ends t and sets the attention for the other nexuses of the unit
 * (SAM-5 §5.14). After a MODE SELECT the device reports nothing, because its only
 * nexus made the change; so end_and_notify sets that attention, too.
 */
static void end_and_notify(struct dev_task *t, const struct scsi_sense *s)
{
	if (t->status == SCSI_CHECK_CONDITION &&
	    s->key == SENSE_UNIT_ATTENTION) {
		__atomic_store_n(&t->lu->pass.attention, s->asc,
				 __ATOMIC_RELAXED);
		dev_attention_others(t, UA_OF_DEVICE, end_now);
	} else if (t->status == SCSI_GOOD &&
		   (t->cdb[0] == SCSI_MODE_SELECT_6 ||
		    t->cdb[0] == SCSI_MODE_SELECT_10)) {
		dev_attention_others(t, UA_MODE_CHANGED, end_now);
	} else {
		end_now(t);
	}
}

void pass_ended(struct dev_task *t, int err)
{
	const struct pass_req *r = &t->own.pass;
	struct scsi_sense s = { .key = SENSE_NO_SENSE };
	uint32_t len;

	(void)err;
	t->status = r->status;
	if (t->status == SCSI_CHECK_CONDITION && r->sense_len == 0) {
		host_ended(t, PASS_FAILED); /* no sense data: unknown cause */
		return;
	}
	if (t->status == SCSI_CHECK_CONDITION) {
		t->sense.len = r->sense_len;
		(void)scsi_sense_parse(&s, t->sense.data, t->sense.len);
	}
	len = moved(t, &s);
	take_data(t, len);
	if (t->status == SCSI_GOOD)
		learn_block_size(t->lu->pass.device, t, len);
	end_and_notify(t, &s);
}

static void came_back(struct pass_req *r)
{
	struct dev_task *t = container_of(r, struct dev_task, own.pass);

	t->own.passing.sent = false;
	if (t->own.abort.due)
		end_now(t);
	else if (r->end != PASS_ENDED)
		host_ended(t, r->end);
	else
		t->own.io.then(t, 0);
}

/* ---- send ---- */

void pass_send(struct dev_task *t, void (*then)(struct dev_task *t, int err))
{
	struct pass *p = t->lu->pass.device;
	struct pass_req *r = &t->own.pass;

	t->own.io.then = then;
	t->own.passing.sent = true;
	r->sense = t->sense.data;
	r->sense_max = (uint8_t)MIN(sizeof(t->sense.data), 252u);
	r->done = came_back;
	p->ops->submit(p, r);
}

/* fits adapts the CDB to an initiator that sends fewer blocks than the CDB says;
 * dev_task_begin refused every other difference. False: without data fits has
 * ended t with GOOD. */
static bool fits(struct dev_task *t)
{
	struct pass_req *r = &t->own.pass;

	if (t->out_len == r->len)
		return true;
	if (t->out_len == 0) {
		dev_good(t);
		return false;
	}
	pass_cdb_cut(r->cdb, t->out_len / t->own.count);
	r->len = t->out_len;
	return true;
}

void dev_pass_run(struct dev_task *t)
{
	struct pass_req *r = &t->own.pass;

	if (pass_report(t) || (r->dir == PASS_OUT && !fits(t)))
		return;
	if (r->dir == PASS_IN) {
		if (!dev_buf(t, r->len))
			return;
		/* The device may send less than an allocation length. */
		if (!t->own.passing.of_blocks)
			memset(t->own.mem.buf, 0, r->len);
	}
	r->buf = r->dir == PASS_NONE ? NULL : t->own.mem.buf;
	pass_send(t, pass_ended);
}

bool dev_pass_withdraw(struct dev_task *t)
{
	struct pass *p = t->lu ? t->lu->pass.device : NULL;

	if (!p || !t->own.passing.used || !t->own.passing.sent ||
	    !p->ops->withdraw(p, &t->own.pass))
		return false;
	t->own.passing.sent = false;
	dev_range_drop(&t->own.range);
	return true;
}

void dev_lu_interrupt(struct dev_lu *lu, unsigned worker)
{
	if (lu->pass.device)
		lu->pass.device->ops->reset(lu->pass.device, worker);
}
