/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Binomial(k, l, alpha, beta): crates/cwnd/src/laws/binomial.rs in fixed point, for powers that are
 * multiples of 1/2; with them IIAD (1, 0) and SQRT (1/2, 1/2).
 *
 *   each ACK      w <- w + alpha / w^(k+1)
 *   at a loss     w <- w - beta w^l
 *
 * k and l are stored doubled; alpha is a gain (Q40), beta a fraction (Q32). The
 * increase alpha / w^k is computed by dividing alpha k times by w, and once by its root for the half.
 *
 * One step from the same window differs from the real law's by at most
 *
 *   grow by g for n packets    2^-27 g + 2^-37 n
 *       at most five ratios and a root of 2^-30 each; a unit for each, over w >= 1
 *   cut                        2^-30 w^l + 2^-31
 *       beta's half a unit and the root's 2^-31, and the root's unit
 */
#ifndef CWND_BINOMIAL_H
#define CWND_BINOMIAL_H
#include "fixed.h"

struct binomial_params {
	u64 twice_k;
	u64 twice_l;
	u64 alpha;
	u64 beta;
};

struct binomial_state {};

FX_INLINE u64 binomial_grow(const struct binomial_params *p, struct binomial_state *s, u64 w, u32 acked)
{
	u64 increase = p->alpha;
	u32 power;

	for (power = 2; power <= 8; power += 2)
		if (power <= p->twice_k)
			increase = fx_ratio(increase, w, 40);
	if (p->twice_k & 1)
		increase = fx_ratio(increase, fx_root(w), 32);
	return fx_grow(w, increase, acked);
}

FX_INLINE u64 binomial_cut(const struct binomial_params *p, struct binomial_state *s, u64 w, u32 timeout)
{
	u64 lost;

	if (p->twice_l == 0)
		lost = p->beta << 8;
	else if (p->twice_l == 1)
		lost = fx_mul(fx_root(w), p->beta, 24);
	else
		lost = fx_mul(w, p->beta, 32);
	return w - fx_min(lost, w);
}

#endif
