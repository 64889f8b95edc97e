/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The program of rate laws for the host. */
#include "texts.h"
#include "rate_law.bpf.c"

_Static_assert(sizeof(struct connection) <= sizeof(storage), "storage");

static void call(const struct row *row, struct tcp_sock *tp)
{
	/* A packet is sent when all but the six packets before it have been delivered. */
	struct rate_sample sample = {.prior_delivered = row->delivered - row->acked - 6, .delivered = row->acked,
				     .rtt_us = 40000, .acked_sacked = row->acked};
	u64 ctx[4] = {(u64)tp, 0, 0, (u64)&sample};

	switch (row->call) {
	case CALL_INIT:
		init(ctx);
		break;
	case CALL_ACKED:
		cong_control(ctx);
		break;
	case CALL_RELEASE:
		release(ctx);
		break;
	}
}
