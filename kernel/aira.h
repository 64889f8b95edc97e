/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * AIRA: crates/cwnd/src/laws/aira.rs in fixed point.
 *
 *   each ACK                       w <- w + a / w
 *   at a loss                      w <- w - beta w
 *   after round i, p_i = lost / sent
 *     decrease, if p_i > p_(i-1)   a <- a (1 - p_i)
 *     increase, if p_i < p_(i-1)   a <- a (1 + p_(i-1) - p_i)
 *     bound                        a >= bound
 *     MAIL                         a >= 1 - (1 - bound) R_N / R, R_N rounds completed
 *   reset                          a <- 1 once w reaches ratio times its value at the last loss
 *
 * A timeout ends a round with timeout=ends; with timeout=continues the round continues.
 *
 * a, p, beta, bound and ratio are Q32; slope = (1 - bound) / R is Q48. A round without packets
 * has p = 0 at first and p = min(lost, sent) / 1 later, which is 0 too. Loss rates are compared as
 * fractions, without rounding: lost_i sent_(i-1) against lost_(i-1) sent_i.
 *
 * One step from the same state differs from the real law's by at most
 *
 *   grow by g for n packets    2^-30 g + 2^-39 n
 *   cut                        2^-32 w + 2^-39
 *   round      a by 2^-30
 *       two loss rates and a product of a unit each; R slopes of half a unit are 2^-35
 *
 * if w is not within 2^-31 of its reset (ratio's half a unit).
 */
#ifndef CWND_AIRA_H
#define CWND_AIRA_H
#include "fixed.h"

struct aira_params {
	u64 beta;
	u64 bound;
	u64 slope;
	u64 rounds;
	u64 ratio;
	u64 mail;
	u64 reset;
	u64 increase;
	u64 decrease;
	u64 timeout_ends_round;
};

struct aira_state {
	/* The window at which a is reset; 0: none. */
	u64 reset_at;
	u32 one_minus_a; /* Stored so that a zeroed state has a = 1. */
	u32 rounds;
	u32 lost;
	u32 sent;
};

FX_INLINE u64 aira_a(const struct aira_state *s)
{
	return FX_ONE - s->one_minus_a;
}

FX_INLINE u64 aira_grow(const struct aira_params *p, struct aira_state *s, u64 w, u32 acked)
{
	if (s->reset_at && w >= s->reset_at)
		s->one_minus_a = 0;
	return fx_grow(w, aira_a(s) << 8, acked);
}

FX_INLINE u64 aira_cut(const struct aira_params *p, struct aira_state *s, u64 w, u32 timeout)
{
	if (p->reset && !timeout)
		s->reset_at = fx_mul(w, p->ratio, 32);
	return w - fx_mul(w, p->beta, 32);
}

FX_INLINE u32 aira_timeout_ends_round(const struct aira_params *p)
{
	return p->timeout_ends_round;
}

FX_INLINE void aira_round(const struct aira_params *p, struct aira_state *s, u32 lost, u32 sent)
{
	u64 a = aira_a(s), product, last_product, rate, last_rate, minimum = p->bound;

	lost = fx_min(lost, sent);
	sent = fx_max(sent, 1);
	product = (u64)lost * fx_max(s->sent, 1);
	last_product = (u64)s->lost * sent;
	rate = ((u64)lost << 32) / sent;
	last_rate = ((u64)s->lost << 32) / fx_max(s->sent, 1);
	s->rounds = fx_min((u64)s->rounds + 1, p->rounds);
	if (product > last_product && p->decrease)
		a = fx_mul(a, FX_ONE - rate, 32);
	else if (product < last_product && p->increase)
		a = fx_mul(a, FX_ONE + last_rate - rate, 32);
	if (p->mail)
		minimum = fx_max(minimum, FX_ONE - (p->slope * s->rounds >> 16));
	a = fx_min(fx_max(a, minimum), FX_ONE);
	/* An a of 0 would need a 33rd bit: it is stored as 2^-32. */
	s->one_minus_a = FX_ONE - fx_max(a, 1);
	s->lost = lost;
	s->sent = sent;
}

#endif
