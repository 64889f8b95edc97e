/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "cubic.h"

#define LAW(part) cubic_##part
#define LAW_OBSERVE(tp, c, acked)                                                                    \
	cubic_observe(&c->law, window_limited(tp), (u32)tp->tcp_mstamp - c->acked_at, tp->tcp_mstamp)
#define LAW_ENTER(p, s, w, now) cubic_enter(p, s, w, now)
#define LAW_GROW(tp, p, s, w, acked) cubic_grow(p, s, w, acked, tp->tcp_mstamp, tp->srtt_us >> 3)
#define LAW_THRESHOLD
#define LAW_CUT(p, s, w, timeout, min_rtt) cubic_cut(p, s, w, timeout)
#include "window.h"
