/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * DAIMD: crates/cwnd/src/laws/daimd.rs in fixed point.
 *
 *   each SYN with ACKs and no loss   x <- x + 10^(ceil(log10(L - C(x))) - tau) * 1500/S * 1/SYN
 *   at each negative feedback        x <- (1 - beta) x
 *     feedback = event               each congestion event
 *     feedback = report              each loss report
 *   flow window, at each report      W <- lambda W + (1 - lambda) AS (SYN + RTT)
 *
 * A loss report is an acknowledgement that reveals new losses. It begins a congestion event if it reports
 * the delivery of a packet sent after the last cut. The other two values of the law's feedback, packet
 * and syn, have no kernel implementation.
 *
 * x and AS are rates (Q24), L and C(x) = 8 S x whole bits per second, W a window (Q40), beta and lambda
 * fractions (Q32). gain[c] is the increase of stage c, 10^(c - tau) * 1500 / SYN, as a rate of packets
 * of one byte; it is computed at load.
 *
 * One step from the same state differs from the real law's by at most
 *
 *   tick by g   2^-29 g + 2^-22          the ratio to S, its unit, and gain's half a unit
 *   cut         2^-32 x + 2^-23
 *   observe     W by 2^-28 (W + AS (SYN + RTT)) + 2^-38 + 2^-54 AS
 *   start       2^-29 x + 2^-23
 *
 * if an increase is below 2^40 / S packets per second, and L - C(x) is not within 1 bit/s (2^-24 packets of x,
 * and the fraction of C) of a power of ten, at which the increase changes from one stage to the next.
 */
#ifndef CWND_DAIMD_H
#define CWND_DAIMD_H
#include "fixed.h"

#define DAIMD_STAGES 16
/* The largest rate: 2^38 packets per second. */
#define DAIMD_MAX_RATE (1ULL << 62)

struct daimd_params {
	u64 beta;
	u64 lambda;
	u64 syn;         /* us */
	u64 capacity;    /* bit/s; 0: the largest arrival rate */
	u64 each_report; /* 1: cut at each loss report; 0: at each congestion event */
	u64 gain[DAIMD_STAGES];
};

struct daimd_state {
	u64 rate; /* 0: in slow start */
	u64 arrival;
	u64 capacity; /* packets/s, Q24: the largest arrival rate */
	u64 window;   /* 0: none */
};

/* Converts a rate to bits per second, for packets of `bytes` bytes. */
FX_INLINE u64 daimd_bits(u64 rate, u32 bytes)
{
	return fx_mul(rate, 8ULL * bytes, 24);
}

FX_INLINE u64 daimd_alpha(const struct daimd_params *p, const struct daimd_state *s, u32 bytes)
{
	u64 capacity = p->capacity ? p->capacity : daimd_bits(s->capacity, bytes);
	u64 used = daimd_bits(s->rate, bytes), power = 1;
	u32 stage;

	if (capacity <= used || !bytes)
		return 0;
	for (stage = 0; stage < DAIMD_STAGES - 1; stage++) {
		if (power >= capacity - used)
			break;
		power *= 10;
	}
	return fx_ratio(p->gain[stage & (DAIMD_STAGES - 1)], bytes, 0);
}

FX_INLINE void daimd_tick(const struct daimd_params *p, struct daimd_state *s, u32 bytes)
{
	s->rate = fx_min(fx_add(s->rate, daimd_alpha(p, s, bytes)), DAIMD_MAX_RATE);
}

FX_INLINE void daimd_cut(const struct daimd_params *p, struct daimd_state *s)
{
	s->rate -= fx_mul(s->rate, p->beta, 32);
}

/* Processes a report: the arrival rate at the receiver, and the round-trip time in microseconds. */
FX_INLINE void daimd_observe(const struct daimd_params *p, struct daimd_state *s, u64 arrival, u32 rtt)
{
	u64 arrived = fx_packets(arrival, p->syn + rtt);

	s->arrival = arrival;
	s->capacity = fx_max(s->capacity, arrival);
	s->window = s->window ? fx_mul(s->window, p->lambda, 32) +
					fx_mul(arrived, FX_ONE - p->lambda, 32)
			      : arrived;
	s->window = fx_min(s->window, FX_MAX_WINDOW);
}

/* Leaves slow start at window w: the rate is the arrival rate, or w / (RTT + SYN) without one. */
FX_INLINE void daimd_start(const struct daimd_params *p, struct daimd_state *s, u64 w, u32 rtt)
{
	s->rate = s->arrival ? s->arrival : fx_ratio(fx_mul(w, FX_MICROS, 16), p->syn + rtt, 0);
	s->rate = fx_min(s->rate, DAIMD_MAX_RATE);
}

#endif
