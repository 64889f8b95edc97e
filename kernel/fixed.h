/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Fixed-point arithmetic of CUBIC and BBR: the kernel has no floating point.
 *
 * The code uses no kernel types and no libraries, so that it compiles for BPF and, in the tests, for the
 * host. Qn is an unsigned number in units of 2^-n.
 *
 *   windows          Q40   packets, up to 2^24
 *   fractions        Q32
 *   gains            Q40   packets
 *   rates            Q24   packets per second, up to 2^40
 *
 * A window of 2^24 full packets is 25 GB in flight.
 */
#ifndef CWND_FIXED_H
#define CWND_FIXED_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;

#define FX_INLINE static inline __attribute__((always_inline, unused))

#define FX_MAX (~0ULL)
/* A window of one packet (Q40). */
#define FX_PACKET (1ULL << 40)
/* The maximum window, and the maximum number of packets counted for one acknowledgement. */
#define FX_MAX_WINDOW (((1ULL << 24) - 1) << 40)
#define FX_MAX_ACKED 8191
/* Microseconds in a second. */
#define FX_MICROS 1000000

FX_INLINE u64 fx_min(u64 a, u64 b)
{
	return a < b ? a : b;
}

FX_INLINE u64 fx_max(u64 a, u64 b)
{
	return a > b ? a : b;
}

FX_INLINE u64 fx_add(u64 a, u64 b)
{
	return a + b < a ? FX_MAX : a + b;
}

/*
 * Number of leading zeros of x. BPF has no instruction for it. In a binary search, the verifier would follow
 * both paths of each branch to the end of the program. This function has no branches: it sets all bits below
 * the highest one, and counts the zeros.
 */
FX_INLINE u32 fx_zeros(u64 x)
{
	x |= x >> 1;
	x |= x >> 2;
	x |= x >> 4;
	x |= x >> 8;
	x |= x >> 16;
	x |= x >> 32;
	x = ~x;
	x -= x >> 1 & 0x5555555555555555ULL;
	x = (x & 0x3333333333333333ULL) + (x >> 2 & 0x3333333333333333ULL);
	x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	return x * 0x0101010101010101ULL >> 56;
}

/* a b / 2^shift for a shift of 1..63, rounded down; FX_MAX if the result exceeds 64 bits. */
FX_INLINE u64 fx_mul(u64 a, u64 b, u32 shift)
{
	u64 a1 = a >> 32, a0 = (u32)a, b1 = b >> 32, b0 = (u32)b;
	u64 low = a0 * b0, left = a1 * b0, right = a0 * b1;
	u64 middle = (low >> 32) + (u32)left + (u32)right;
	u64 high = a1 * b1 + (left >> 32) + (right >> 32) + (middle >> 32);

	if (high >> shift)
		return FX_MAX;
	return high << (64 - shift) | (middle << 32 | (u32)low) >> shift;
}

/*
 * a 2^shift / b for a shift of 0..63; FX_MAX if the result exceeds 64 bits or b is 0;
 * 0 if a is 0.
 *
 * b is truncated to its 32 highest bits (result at most 2^-31 too large), and the quotient has at least 32
 * bits (at most 2^-31 too small): the relative error is below 2^-30 before truncation to a unit.
 */
FX_INLINE u64 fx_ratio(u64 a, u64 b, u32 shift)
{
	u32 up, down;
	u64 quotient;

	if (!a)
		return 0;
	if (!b)
		return FX_MAX;
	down = fx_zeros(a) + 32;
	up = fx_zeros(b) + shift;
	quotient = (a << (down - 32)) / (b << (up - shift) >> 32);
	if (up < down)
		return down - up > 63 ? 0 : quotient >> (down - up);
	up -= down;
	/* The quotient has at most 34 bits. */
	if (up > 63 || quotient > FX_MAX >> up)
		return FX_MAX;
	return quotient << up;
}

/*
 * The cube root of a Q32 below 2^63 as a Q32: the relative error is below 2^-29 before truncation to a unit.
 * Newton's method from the chord of the root between 1 and 8, which is at most 11 % too small.
 */
FX_INLINE u64 fx_cube_root(u64 x)
{
	u32 zeros, step;
	u64 r;

	if (!x)
		return 0;
	/* 1, 4, 7, ... zeros, so that x has 62 to 64 bits and the exponent of its root is whole. */
	zeros = fx_zeros(x);
	zeros -= (zeros + 2) % 3;
	x <<= zeros;
	/* r is the root times 2^10: 2^30.3 to 2^31.3. */
	r = ((x >> 33) + (6ULL << 28)) / 7 * 1321123 >> 18;
	for (step = 0; step < 4; step++) {
		u64 quotient = fx_ratio(x, r * r, 30);

		r = (2 * r + quotient) / 3;
	}
	/* The root of x / 2^(32 + zeros). */
	step = (32 + zeros) / 3;
	return step > 22 ? r >> (step - 22) : r << (22 - step);
}

#endif
