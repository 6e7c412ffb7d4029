/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iser_capture_test.c: the bytes that Linux, LIO, tgt, libiscsi and this
 * project exchanged (tests/vectors/captures, made in the laboratory's guests by
 * tests/lab/streams.py), decoded by this project's decoders, every octet.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"
#include "datamover/iser/header.h"
#include "iscsi/bhs.h"
#include "rcap/iwarp/mpa.h"
#include "rcap/iwarp/rdmap.h"

#define FILE_MAX    (128u << 10)
#define MESSAGE_MAX (16u << 10)
#define PIECES	    256
#define READS	    64

static const char *const *files;
static int nfiles;
static unsigned all_reads;

/* One direction of a connection. */
struct side {
	uint8_t octets[FILE_MAX];
	size_t n, at;
	struct mpa_stream stream;
	struct mpa_frame frame;
	/* the Send in progress */
	uint8_t message[MESSAGE_MAX];
	size_t message_len;
	uint32_t sends;	   /* MSN of the next one, less 1 */
	unsigned pdus[64]; /* by opcode */
};

/* RDMA Reads that were requested: how many bytes are still to come for which
 * sink. */
struct reads {
	uint32_t stag[READS], left[READS];
	unsigned n;
};

static void load(const char *path, struct side side[2])
{
	static uint8_t file[FILE_MAX];
	FILE *f = fopen(path, "rb");
	size_t n, at = 0;

	assert_non_null(f);
	n = fread(file, 1, sizeof(file), f);
	fclose(f);
	assert_true(n > 0 && n < sizeof(file));
	while (at < n) {
		struct side *s;
		size_t len;

		assert_true(n - at > 5 && file[at] < 2);
		s = &side[file[at]];
		len = get_be32(file + at + 1);
		assert_true(len <= n - at - 5);
		memcpy(s->octets + s->n, file + at + 5, len);
		s->n += len;
		at += 5 + len;
	}
}

/* Both ends derived the same terms from the two frames, and the frames have
 * iSER's flags. */
static void start(struct side side[2])
{
	struct mpa_terms terms;

	for (int i = 0; i < 2; i++) {
		struct side *s = &side[i];
		int n = mpa_frame_decode(&s->frame, s->octets, s->n);

		assert_true(n > 0);
		s->at = (size_t)n;
		assert_int_equal(s->frame.is_reply, i);
		assert_int_equal(s->frame.revision, 2);
		assert_true(s->frame.enhanced);
		/* tgt's reply has none */
		assert_true(s->frame.private_len == 4 ||
			    (i && !s->frame.private_len));
	}
	assert_int_equal(mpa_accept(&side[0].frame, &side[1].frame, &terms), 0);
	side[0].stream = (struct mpa_stream){ .markers = terms.markers_out,
					      .crc = terms.crc };
	side[1].stream = (struct mpa_stream){ .markers = terms.markers_in,
					      .crc = terms.crc };
}

/* RFC 7145 §9.2: a message is as long as its headers say, padded or not.
 * libiscsi's writes are the known exception: they count data that they do not
 * send. */
static void take_pdu(struct side *s, bool answers)
{
	struct iser_header h;
	struct iscsi_pdu p;
	size_t want;

	assert_int_equal(iser_header_decode(&h, s->message, s->message_len), 0);
	assert_int_equal(h.opcode, ISER_CONTROL);
	assert_true(s->message_len >= ISER_HEADER_LEN + ISCSI_BHS_LEN);
	assert_int_equal(iscsi_bhs_decode(&p, s->message + ISER_HEADER_LEN), 0);
	want = ISER_HEADER_LEN + ISCSI_BHS_LEN + p.ahs_len + p.dsl;
	if (!(h.wsv && s->message_len == want - p.dsl)) {
		assert_true(s->message_len >= want);
		assert_true(s->message_len <= ((want + 3) & ~(size_t)3));
	}
	assert_int_equal(p.op >= ISCSI_NOP_IN, answers);
	s->pdus[p.op]++;
}

static void take_send(struct side *s, const struct rdmap_header *h,
		      const uint8_t *data, size_t len, bool answers)
{
	assert_int_equal(h->qn, DDP_QN_SEND);
	assert_int_equal(h->msn, s->sends + 1);
	assert_int_equal(h->mo, s->message_len);
	assert_true(len <= MESSAGE_MAX - s->message_len);
	memcpy(s->message + s->message_len, data, len);
	s->message_len += len;
	if (!h->last)
		return;
	take_pdu(s, answers);
	s->message_len = 0;
	s->sends++;
}

static void asked(struct reads *r, const struct rdmap_header *h)
{
	assert_int_equal(h->qn, DDP_QN_READ);
	assert_true(r->n < READS);
	r->stag[r->n] = h->sink_stag;
	r->left[r->n++] = h->read_size;
}

/* Responses come in the order of their requests (RFC 5040 §5.5). */
static void answered(struct reads *r, const struct rdmap_header *h, size_t len,
		     unsigned *first)
{
	if (*first >= r->n)
		return; /* the capture ends before the request */
	assert_int_equal(h->stag, r->stag[*first]);
	assert_true(len <= r->left[*first]);
	r->left[*first] -= (uint32_t)len;
	assert_int_equal(h->last, r->left[*first] == 0);
	*first += h->last;
}

static void take_segment(struct side *s, const uint8_t *ulpdu, size_t len,
			 bool answers, struct reads *reads, unsigned *first)
{
	struct rdmap_header h;
	int head = rdmap_decode(&h, ulpdu, len, false);

	assert_true(head > 0);
	switch (h.opcode) {
	case RDMAP_SEND:
	case RDMAP_SEND_INV:
	case RDMAP_SEND_SE:
	case RDMAP_SEND_SE_INV:
		take_send(s, &h, ulpdu + head, len - (size_t)head, answers);
		break;
	case RDMAP_WRITE:
		/* of an initiator: Ready To Receive, RFC 6581 §9 */
		assert_true(answers || (len == (size_t)head && !s->sends &&
					s->frame.rtr & MPA_RTR_WRITE));
		break;
	case RDMAP_READ_REQUEST:
		assert_true(answers);
		asked(reads, &h);
		break;
	case RDMAP_READ_RESPONSE:
		assert_false(answers);
		answered(reads, &h, len - (size_t)head, first);
		break;
	default:
		fail_msg("RDMAP opcode %u", h.opcode);
	}
}

/* The last FPDU may be cut. */
static void replay(struct side *s, bool answers, struct reads *reads)
{
	static uint8_t ulpdu[FILE_MAX];
	unsigned first = 0;

	for (;;) {
		struct iovec iov[PIECES];
		size_t total = 0, len, n = 0;
		int pieces;

		mpa_fpdu_peek(&s->stream, s->octets + s->at, s->n - s->at,
			      &total);
		if (!total || total > s->n - s->at)
			return;
		pieces = mpa_fpdu_open(&s->stream, s->octets + s->at, total,
				       iov, PIECES, &len);
		assert_true(pieces > 0);
		for (int i = 0; i < pieces; i++) {
			memcpy(ulpdu + n, iov[i].iov_base, iov[i].iov_len);
			n += iov[i].iov_len;
		}
		assert_int_equal(n, len);
		take_segment(s, ulpdu, len, answers, reads, &first);
		s->at += total;
	}
}

static void check_file(const char *path)
{
	struct side *side = calloc(2, sizeof(*side));
	struct reads reads = { 0 };

	assert_non_null(side);
	load(path, side);
	start(side);
	replay(&side[1], true, &reads);
	replay(&side[0], false, &reads);
	/* the capture has a login and commands */
	assert_true(side[0].pdus[ISCSI_LOGIN_REQUEST] > 0);
	assert_int_equal(side[0].pdus[ISCSI_LOGIN_REQUEST],
			 side[1].pdus[ISCSI_LOGIN_RESPONSE]);
	assert_true(side[0].pdus[ISCSI_SCSI_COMMAND] > 1);
	assert_true(side[1].pdus[ISCSI_SCSI_RESPONSE] > 1);
	print_message("%s: %u requests, %u answers, %u RDMA Reads\n", path,
		      side[0].sends, side[1].sends, reads.n);
	all_reads += reads.n;
	free(side);
}

static void test_captures_decode(void **state)
{
	(void)state;
	assert_true(nfiles > 0);
	for (int i = 0; i < nfiles; i++)
		check_file(files[i]);
	assert_true(all_reads > 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_captures_decode),
	};

	files = (const char *const *)argv + 1;
	nfiles = argc - 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
