/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * AIMD(alpha, beta): crates/cwnd/src/laws/aimd.rs in fixed point.
 *
 *   each ACK      w <- w + alpha / w
 *   at a loss     w <- w - beta w
 *
 * alpha is a gain (Q40), beta a fraction (Q32), both rounded to the nearest at load.
 *
 * One step from the same window differs from the real law's by at most
 *
 *   grow by g for n packets    2^-30 g + 2^-39 n
 *       the ratio's 2^-30 of g; n times its unit and alpha's half a unit over w >= 1
 *   cut                        2^-32 w + 2^-39
 *       beta's half a unit times w, and the product's unit
 */
#ifndef CWND_AIMD_H
#define CWND_AIMD_H
#include "fixed.h"

struct aimd_params {
	u64 alpha;
	u64 beta;
};

struct aimd_state {};

FX_INLINE u64 aimd_grow(const struct aimd_params *p, struct aimd_state *s, u64 w, u32 acked)
{
	return fx_grow(w, p->alpha, acked);
}

FX_INLINE u64 aimd_cut(const struct aimd_params *p, struct aimd_state *s, u64 w, u32 timeout)
{
	return w - fx_mul(w, p->beta, 32);
}

#endif
