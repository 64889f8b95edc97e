/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "aiad.h"

#define LAW(part) aiad_##part
#define LAW_OBSERVE observe
#define LAW_REMEMBERS
#define LAW_THRESHOLD
#define LAW_CUT(p, s, w, timeout, min_rtt) aiad_cut(p, s, w, min_rtt)
struct tcp_sock;
struct connection;
static __attribute__((always_inline)) void observe(struct tcp_sock *tp, struct connection *c, u32 acked);
#include "window.h"

/* Passes an acknowledgement to the law, with the sender's or the receiver's clock. Without timestamps there is
 * no receiver's clock, and no estimate. */
static __attribute__((always_inline)) void observe(struct tcp_sock *tp, struct connection *c, u32 acked)
{
	u32 timestamp = tp->rx_opt.rcv_tsval;

	if (!params.receiver_clock)
		aiad_observe(&params, &c->law, acked, tp->tcp_mstamp * 1000);
	else if (timestamp)
		aiad_observe(&params, &c->law, acked, aiad_receiver_time(&c->law, timestamp));
}
