/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * SIMD(beta): crates/cwnd/src/laws/simd.rs in fixed point.
 *
 *   each ACK       w <- w + alpha sqrt(w - w0) / w
 *   the first ACK  w <- w0 + alpha^2 / (4 w0)
 *   with           alpha = c / sqrt(w_max),   c = 3 sqrt(beta) / ((1 - 2 beta / 3) sqrt(2))
 *   at a loss      w_max <- w,  w <- w - beta w,  w0 <- w
 *   at a timeout   w_max <- w,  w0 <- 1 if reset_at_decrease
 *
 * c and alpha are gains (Q40), beta and remaining = 1 - beta fractions (Q32), w0 and w_max windows. c is
 * computed at load. A w_max of 0 means none: w / remaining is used.
 *
 * One step from the same state differs from the real law's by at most
 *
 *   enter      alpha by 2^-28 alpha + 2^-38
 *       the ratio's 2^-30, the root's 2^-31 and unit, half a unit of remaining over remaining / 2; half a
 *       unit of c over sqrt(w_max) >= 1
 *   grow by g for n packets    2^-26 g + 2^-31 n (1 + alpha) / w + 2^-37 n
 *       alpha's 2^-28, the ratio's 2^-30 and the root's 2^-31; the root's unit times alpha; the error of
 *       alpha times sqrt(w - w0) / w <= 1
 *   cut        2^-32 w + 2^-39
 *
 * for beta up to 15/16 without a cut (the relative error of remaining is then at most 2^-29), and a
 * w_max below 2^24 packets.
 */
#ifndef CWND_SIMD_H
#define CWND_SIMD_H
#include "fixed.h"

struct simd_params {
	u64 beta;
	u64 remaining;
	u64 c;
	u64 reset_at_decrease;
};

struct simd_state {
	u64 alpha;
	u64 w0;
	u64 w_max;
	u64 restarted;
};

FX_INLINE u64 simd_grow(const struct simd_params *p, struct simd_state *s, u64 w, u32 acked)
{
	u64 increase = w > s->w0 ? fx_mul(s->alpha, fx_root(w - s->w0), 32)
				 : fx_mul(s->alpha, s->alpha, 42);

	return fx_grow(w, increase, acked);
}

FX_INLINE u64 simd_cut(const struct simd_params *p, struct simd_state *s, u64 w, u32 timeout)
{
	s->w_max = w;
	s->restarted = timeout && p->reset_at_decrease;
	return w - fx_mul(w, p->beta, 32);
}

FX_INLINE void simd_enter(const struct simd_params *p, struct simd_state *s, u64 w)
{
	u64 w_max = s->w_max ? s->w_max : fx_ratio(w, p->remaining, 32);

	s->w0 = s->restarted ? FX_PACKET : w;
	s->restarted = 0;
	s->w_max = 0;
	s->alpha = fx_ratio(p->c, fx_root(w_max), 32);
}

#endif
