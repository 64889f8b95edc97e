/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The program of window laws for the host. */
#include "texts.h"
#include "window_law.bpf.c"

_Static_assert(sizeof(struct connection) <= sizeof(storage), "storage");

static void call(const struct row *row, struct tcp_sock *tp)
{
	struct ack_sample sample = {.pkts_acked = row->acked, .rtt_us = 40000};
	u64 acked[3] = {(u64)tp, (u64)&sample}, ctx[3] = {(u64)tp, 0, row->acked};

	switch (row->call) {
	case CALL_INIT:
		init(ctx);
		break;
	case CALL_ACKED:
		pkts_acked(acked);
		cong_avoid(ctx);
		break;
	case CALL_SSTHRESH:
		/* After recovery the kernel's window is the threshold. */
		tp->snd_cwnd = tp->snd_ssthresh = ssthresh(ctx);
		break;
	case CALL_RELEASE:
		release(ctx);
		break;
	}
}
