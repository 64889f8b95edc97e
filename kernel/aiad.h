/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * AIAD, with the rate from acknowledgements or from the receiver's timestamps:
 * crates/cwnd/src/laws/aiad.rs in fixed point.
 *
 *   each ACK       w <- w + 1 / w
 *   at a loss      w <- r d, at most w, at least 2
 *   threshold      ssthresh <- r d, at least 2, at a loss, in slow start and after a timeout
 *   sample k       b_k = packets acknowledged in D_k / D_k
 *   filter         r <- r + g (b_k + b_(k-1) - 2 r),   g = D_k / (2 tau + D_k)
 *   no sample for tau / 2: a sample of 0 with D = tau / 2
 *
 * The filter is that of the law, with numerator and denominator multiplied by D_k. r and b are rates
 * (Q24), g is Q60, times are in nanoseconds and d, the minimum round-trip time, in microseconds. The
 * receiver's timestamps count milliseconds (Linux; RFC 7323 allows 1 ms to 1 s).
 *
 * One step from the same state differs from the real law's by at most
 *
 *   grow by g for n packets    2^-30 g + 2^-39 n
 *   observe    r by 2^-28 g (b_k + b_(k-1) + 2 r) + 2^-22
 *       the ratios of b and g, and a unit each; in a gap every sample of 0 reduces the error
 *   cut        2^-29 r d + 2^-54 r + 2^-39
 *       the ratio of d to a second and its unit, and the product's unit
 *
 * if a gap is not within 10 ns of the bounds of its rules (tau / 2, and tau / 50 for its rest).
 */
#ifndef CWND_AIAD_H
#define CWND_AIAD_H
#include "fixed.h"

#define AIAD_MAX_ZERO_SAMPLES 128
/* The largest sample: 2^38 packets per second. */
#define AIAD_MAX_RATE (1ULL << 62)
/* 3/5, the factor of r at a second sample of 0: (2 tau - D) / (2 tau + D) with D = tau / 2. */
#define AIAD_ZERO_SAMPLE_FACTOR 2576980378ULL

struct aiad_params {
	u64 tau;      /* ns */
	u64 receiver_clock; /* 1: the clock is the receiver's timestamps */
};

struct aiad_state {
	u64 rate;
	u64 sample;          /* the last sample, b_(k-1) */
	u64 sample_time;     /* ns */
	u64 receiver_time;   /* ns */
	u32 pending;         /* packets since the last sample */
	u32 timestamp;       /* the receiver's newest timestamp */
	u32 started;
};

FX_INLINE void aiad_filter(const struct aiad_params *p, struct aiad_state *s, u64 sample, u64 gap)
{
	u64 g = fx_ratio(gap, 2 * p->tau + gap, 60);
	u64 new_sum = fx_add(sample, s->sample), old_sum = fx_add(s->rate, s->rate);

	if (new_sum >= old_sum)
		s->rate = fx_add(s->rate, fx_mul(new_sum - old_sum, g, 60));
	else
		s->rate -= fx_min(fx_mul(old_sum - new_sum, g, 60), s->rate);
	s->rate = fx_min(s->rate, AIAD_MAX_RATE);
	s->sample = sample;
}

/* Filters the samples of 0 in a gap without acknowledgements, and returns the rest of the gap. */
FX_INLINE u64 aiad_idle(const struct aiad_params *p, struct aiad_state *s, u64 gap)
{
	u64 step = p->tau / 2, zeros = gap / step, rest = gap - zeros * step;
	u32 count;

	if (rest * 50 < p->tau) {
		zeros -= 1;
		rest = step;
	}
	if (!zeros)
		return rest;
	aiad_filter(p, s, 0, step);
	for (count = 1; count < AIAD_MAX_ZERO_SAMPLES; count++) {
		if (count >= zeros)
			break;
		s->rate = fx_mul(s->rate, AIAD_ZERO_SAMPLE_FACTOR, 32);
	}
	return rest;
}

/* Updates the rate for an acknowledgement of `acked` packets at `now` (ns of the selected clock). */
FX_INLINE void aiad_observe(const struct aiad_params *p, struct aiad_state *s, u32 acked, u64 now)
{
	u64 gap, sample;

	s->pending += acked;
	if (!s->started) {
		s->started = 1;
		s->sample_time = now;
		s->pending = 0;
		return;
	}
	if (now <= s->sample_time || !s->pending)
		return;
	gap = now - s->sample_time;
	if (gap * 2 > p->tau)
		gap = aiad_idle(p, s, gap);
	sample = fx_ratio((u64)s->pending * 1000000000, gap, 24);
	aiad_filter(p, s, fx_min(sample, AIAD_MAX_RATE), gap);
	s->sample_time = now;
	s->pending = 0;
}

/* Returns the time of the receiver's clock, in nanoseconds since the first timestamp; monotonic. */
FX_INLINE u64 aiad_receiver_time(struct aiad_state *s, u32 timestamp)
{
	s32 ticks = s->started ? (s32)(timestamp - s->timestamp) : 0;

	if (ticks > 0)
		s->receiver_time += (u64)ticks * 1000000;
	if (ticks > 0 || !s->started)
		s->timestamp = timestamp;
	return s->receiver_time;
}

FX_INLINE u64 aiad_grow(const struct aiad_params *p, struct aiad_state *s, u64 w, u32 acked)
{
	return fx_grow(w, FX_PACKET, acked);
}

/* `min_rtt` is in microseconds, 0 without a sample. The result may exceed w; it saturates at 2^24 packets. */
FX_INLINE u64 aiad_cut(const struct aiad_params *p, struct aiad_state *s, u64 w, u32 min_rtt)
{
	if (!s->rate || !min_rtt)
		return w / 2;
	return fx_max(fx_packets(s->rate, min_rtt), 2 * FX_PACKET);
}

#endif
