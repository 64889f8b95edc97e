/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * CUBIC: crates/cwnd/src/laws/cubic.rs in fixed point.
 *
 *   W(t) = C (t - K)^3 + w_max,   K = cbrt((w_max - w0) / C)
 *   each ACK      w_est <- w_est + alpha n / w;   w <- w_est, if W(t) < w_est;
 *                 else w <- w + n (target - w) / w,   target = W(t + RTT), at least w, at most 3/2 w
 *   at a loss     w_prior <- w;  w_max <- w, or (1 + kept) w / 2 if w < w_max;  w <- kept w
 *   avoidance     w0 <- w,  w_est <- w,  t <- 0;  w_max <- w, unless the last cut was for a loss
 *
 * t does not advance between two acknowledgements of which the second finds the sender limited by the
 * application. Times are microseconds, the low 32 bits of the kernel's clock. t is at most 2^31 us: W reaches
 * the maximum window before, for C >= 0.01. kept and half = (1 + kept) / 2 are Q32, C and alpha Q40, and K is
 * a Q32 in seconds.
 *
 * One step from the same state differs from the real law's by at most
 *
 *   cut              2^-32 w + 2^-39
 *   w_est            2^-30 g + 2^-39 n, of a gain g for n packets
 *   W(t)             e = C x^2 (2^-27 (K + 1) + 2^-32 / K^2) + 2^-31 C (x + 1) + 2^-40 x^3 + 2^-38
 *       x = |t - K|; K's 2^-29, of a ratio and a cube root, and a unit of t; a unit of K^3; a unit each
 *       of x^2, x^3, C and W
 *   grow by g for n packets    2^-30 g + n e / w + 2^-39 n
 *
 * if W(t) is not within e of w_est, w_est not within 2^-38 of w_prior, and K is 0 or at least 2^-10 s.
 */
#ifndef CWND_CUBIC_H
#define CWND_CUBIC_H
#include "fixed.h"

struct cubic_params {
	u64 c;
	u64 kept;
	u64 half;
	u64 alpha;
	u64 fast;
};

/* Packed: icsk_ca_priv has room for two of 36 bytes. */
struct cubic_state {
	u64 w_max;
	u64 w_est;
	s64 k;
	u64 w_prior : 63; /* Q39; 0: none */
	u64 after_loss : 1;
	u32 epoch;
} __attribute__((packed, aligned(4)));

/* A window as w_prior. */
#define CUBIC_PRIOR(w) ((w) >> 1)
#define CUBIC_MAX_TIME (1U << 31)

/* W at a time since the epoch. */
FX_INLINE u64 cubic_window(const struct cubic_params *p, const struct cubic_state *s, u64 micros)
{
	s64 x = (s64)((micros << 32) / FX_MICROS) - s->k;
	u64 distance = x < 0 ? -x : x;
	u64 cube = fx_mul(fx_mul(distance, distance, 32), distance, 32);
	u64 difference = fx_mul(cube, p->c, 32);

	if (x >= 0)
		return fx_min(fx_add(s->w_max, difference), FX_MAX_WINDOW);
	return s->w_max > difference ? s->w_max - difference : 0;
}

/* Passes the time `now` of an acknowledgement, `elapsed` after the last one. */
FX_INLINE void cubic_observe(struct cubic_state *s, u32 limited, u32 elapsed, u32 now)
{
	if (!limited)
		s->epoch += elapsed;
	if (now - s->epoch > CUBIC_MAX_TIME)
		s->epoch = now - CUBIC_MAX_TIME;
}

FX_INLINE u64 cubic_grow(const struct cubic_params *p, struct cubic_state *s, u64 w, u32 acked, u32 now,
			 u32 rtt)
{
	u64 alpha = CUBIC_PRIOR(s->w_est) < s->w_prior ? p->alpha : FX_PACKET;
	u64 n = fx_min(acked, FX_MAX_ACKED);
	u32 t = now - s->epoch;
	u64 target;

	s->w_est = fx_min(fx_add(s->w_est, fx_ratio(alpha, w, 40) * n), FX_MAX_WINDOW);
	if (cubic_window(p, s, t) < s->w_est)
		return fx_max(s->w_est, w);
	/* The sum has 32 bits: t is at most 2^31. */
	target = cubic_window(p, s, (u64)t + fx_min(rtt, CUBIC_MAX_TIME - 1));
	target = fx_min(fx_max(target, w), fx_add(w, w / 2));
	return w + fx_min(fx_ratio(target - w, w, 40) * n, target - w);
}

FX_INLINE u64 cubic_cut(const struct cubic_params *p, struct cubic_state *s, u64 w, u32 timeout)
{
	s->w_max = p->fast && w < s->w_max ? fx_mul(w, p->half, 32) : w;
	s->w_prior = CUBIC_PRIOR(w);
	s->after_loss = !timeout;
	return fx_mul(w, p->kept, 32);
}

FX_INLINE void cubic_enter(const struct cubic_params *p, struct cubic_state *s, u64 w, u32 now)
{
	s64 k;

	if (!s->after_loss)
		s->w_max = w;
	if (!s->w_prior)
		s->w_prior = CUBIC_PRIOR(w);
	s->epoch = now;
	s->w_est = w;
	k = fx_cube_root(fx_ratio(s->w_max > w ? s->w_max - w : w - s->w_max, p->c, 32));
	s->k = s->w_max < w ? -k : k;
}

#endif
