/* SPDX-License-Identifier: BSD-2-Clause */
/* login_replay_test.c: what both ends of a login answer and come to, for the
 * corpus of their fuzz target with single bits inverted (flips.h). */
#include "iscsi/login.h"
#include "unit/flips.h"

static int seen_rx(struct iscsi_login_engine *e, const struct iscsi_pdu *pdu,
		   const uint8_t *data)
{
	int r = iscsi_login_rx(e, pdu, data);

	see_number((uint64_t)(int64_t)r);
	return r;
}

static void seen_tx(struct iscsi_login_engine *e, struct iscsi_pdu *pdu,
		    uint8_t *data)
{
	uint8_t bhs[ISCSI_BHS_LEN];

	iscsi_login_tx(e, pdu, data);
	iscsi_bhs_encode(pdu, bhs);
	see(bhs, sizeof(bhs));
	see(data, pdu->dsl);
}

/* The end of the run: what was negotiated, and why not. */
static void seen_free(struct iscsi_login_engine *e)
{
	const struct iscsi_login_failure *f = iscsi_login_failure(e);
	const struct iscsi_params *p = iscsi_login_params(e);
	const uint64_t values[] = { p->header_digest,
				    p->data_digest,
				    p->max_recv_dsl,
				    p->max_send_dsl,
				    p->initial_r2t,
				    p->immediate_data,
				    p->max_burst_length,
				    p->first_burst_length,
				    p->default_time2wait,
				    p->default_time2retain,
				    p->max_outstanding_r2t,
				    p->rdma_extensions,
				    p->declared,
				    p->refused };

	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		see_number(values[i]);
	see_number(f->status);
	see_number(f->chap);
	see(f->redirect, strlen(f->redirect));
	see_number((uint64_t)(int64_t)iscsi_login_tpgt(e));
	see_number(iscsi_login_id(e)->tsih);
	see_number(iscsi_login_id(e)->discovery);
	iscsi_login_free(e);
}

#define iscsi_login_rx	 seen_rx
#define iscsi_login_tx	 seen_tx
#define iscsi_login_free seen_free
#include "fuzz/iscsi/login_fuzz.c"

int main(int argc, char **argv)
{
	return flips_main(argc, argv, "iscsi_login");
}
