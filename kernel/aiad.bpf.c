/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "aiad.h"

#define LAW(part) aiad_##part
#define LAW_OBSERVE observe
#define LAW_THRESHOLD
#define LAW_CUT(p, s, w, timeout, min_rtt) aiad_cut(p, s, w, min_rtt)
struct tcp_sock;
struct flow;
static __attribute__((always_inline)) void observe(struct tcp_sock *tp, struct flow *f, u32 acked);
#include "window.h"

/* The estimate uses one of two clocks; without timestamps the receiver's is not available. */
static __attribute__((always_inline)) void observe(struct tcp_sock *tp, struct flow *f, u32 acked)
{
	u32 stamp = tp->rx_opt.rcv_tsval;

	if (!params.receiver)
		aiad_observe(&params, &f->law, acked, tp->tcp_mstamp * 1000);
	else if (stamp)
		aiad_observe(&params, &f->law, acked, aiad_received(&f->law, stamp));
}
