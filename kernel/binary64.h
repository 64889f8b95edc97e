/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Arithmetic of IEEE 754 binary64 with integers: the kernel has no floating point.
 *
 * A number is the u64 of its bits. Every operation rounds to the nearest number, ties to even, and
 * gives the bits that Rust's f64 gives, with subnormal numbers, infinities and signed zeros. Of
 * all NaNs it gives B64_NAN.
 *
 * For BPF, each operation is a global function: the verifier checks it once, not at each call.
 * Significands are shifted and not searched for bits, because the verifier follows both paths of a
 * branch.
 */
#ifndef CWND_BINARY64_H
#define CWND_BINARY64_H
#include "fixed.h"

#ifdef __bpf__
#define B64_FUNCTION __attribute__((noinline))
#else
#define B64_FUNCTION static __attribute__((unused))
#endif

#define B64_SIGN (1ULL << 63)
#define B64_MAGNITUDE (~B64_SIGN)
#define B64_INFINITY (0x7ffULL << 52)
#define B64_NAN (0xfffULL << 51)
/* The fraction of a normal number, and its leading bit, which is not stored. */
#define B64_FRACTION (B64_LEADING - 1)
#define B64_LEADING (1ULL << 52)
#define B64_ONE (0x3ffULL << 52)

FX_INLINE u64 b64_neg(u64 a)
{
	return a ^ B64_SIGN;
}

FX_INLINE u64 b64_abs(u64 a)
{
	return a & B64_MAGNITUDE;
}

FX_INLINE u32 b64_is_nan(u64 a)
{
	return b64_abs(a) > B64_INFINITY;
}

/* x / 2^shift for a shift of 0..63. The lowest bit is set if the result is not exact. */
FX_INLINE u64 b64_shift(u64 x, u32 shift)
{
	u64 shifted = x >> shift;

	return shifted | (shifted << shift != x);
}

/*
 * The number m 2^(e - 1085) with a sign: its exponent field is e if m is 2^62..2^63. e is at least
 * 1, and m is less than 2^62 only if e is 1: a subnormal number. The lowest bit of m stands for
 * all lower ones.
 */
FX_INLINE u64 b64_round_normal(u64 sign, s64 e, u64 m)
{
	if (e > 0x7fe)
		return sign | B64_INFINITY;
	/*
	 * The leading bit adds 1 to the exponent field, and a carry adds 1 more, up to that of
	 * infinity.
	 */
	return sign + ((u64)(e - 1) << 52) + ((m + 0x1ff + (m >> 10 & 1)) >> 10);
}

/* The same for m of 2^62..2^63 and any e. */
FX_INLINE u64 b64_round(u64 sign, s64 e, u64 m)
{
	if (e < 1) {
		m = b64_shift(m, fx_min(1 - e, 63));
		e = 1;
	}
	return b64_round_normal(sign, e, m);
}

/*
 * The significand of a finite x > 0, 2^52..2^53, and its exponent field, which is less than 1 for
 * a subnormal number.
 */
FX_INLINE u64 b64_significand(u64 x, s64 *e)
{
	u32 shift;

	*e = x >> 52;
	if (*e)
		return (x & B64_FRACTION) | B64_LEADING;
	shift = fx_zeros(x) - 11;
	*e = 1 - (s64)shift;
	return x << shift;
}

B64_FUNCTION u64 b64_add(u64 a, u64 b)
{
	u64 x = b64_abs(a), y = b64_abs(b), m, n;
	u32 normal_x, normal_y;
	s64 e;

	if (x < y) {
		m = a;
		a = b;
		b = m;
		x = b64_abs(a);
		y = b64_abs(b);
	}
	if (x >= B64_INFINITY) {
		if (x > B64_INFINITY || (y == B64_INFINITY && a != b))
			return B64_NAN;
		return a;
	}
	normal_x = x >= B64_LEADING;
	normal_y = y >= B64_LEADING;
	e = (x >> 52) + !normal_x;
	m = ((x & B64_FRACTION) | (u64)normal_x << 52) << 10;
	n = ((y & B64_FRACTION) | (u64)normal_y << 52) << 10;
	n = b64_shift(n, fx_min(e - (s64)(y >> 52) - !normal_y, 63));
	if ((a ^ b) >> 63) {
		u64 shift;

		m -= n;
		if (!m)
			return 0;
		shift = fx_min(fx_zeros(m) - 1, e - 1);
		m <<= shift;
		e -= shift;
	} else {
		m += n;
		if (m >> 63) {
			m = b64_shift(m, 1);
			e++;
		}
	}
	return b64_round_normal(a & B64_SIGN, e, m);
}

FX_INLINE u64 b64_sub(u64 a, u64 b)
{
	return b64_add(a, b64_neg(b));
}

B64_FUNCTION u64 b64_mul(u64 a, u64 b)
{
	u64 sign = (a ^ b) & B64_SIGN, x = b64_abs(a), y = b64_abs(b), x1, x0, y1, y0, middle, m;
	s64 e, e_y;

	if (x >= B64_INFINITY || y >= B64_INFINITY) {
		if (x > B64_INFINITY || y > B64_INFINITY || !x || !y)
			return B64_NAN;
		return sign | B64_INFINITY;
	}
	if (!x || !y)
		return sign;
	x = b64_significand(x, &e) << 11;
	y = b64_significand(y, &e_y) << 10;
	x1 = x >> 32;
	x0 = (u32)x;
	y1 = y >> 32;
	y0 = (u32)y;
	/*
	 * The high half of the product of 128 bits, 2^61..2^63; its lowest bit stands for the low
	 * half.
	 */
	x = x0 * y0;
	y = x1 * y0;
	x0 *= y1;
	middle = (x >> 32) + (u32)y + (u32)x0;
	m = x1 * y1 + (y >> 32) + (x0 >> 32) + (middle >> 32);
	m |= (u32)middle || (u32)x;
	e += e_y - 1022;
	/* Shifted left if the highest bit is not set. */
	x = ~m >> 62 & 1;
	return b64_round(sign, e - (s64)x, m << x);
}

B64_FUNCTION u64 b64_div(u64 a, u64 b)
{
	u64 sign = (a ^ b) & B64_SIGN, x = b64_abs(a), y = b64_abs(b), divisor, high, m;
	s64 e, e_y;

	if (x >= B64_INFINITY || y >= B64_INFINITY) {
		if (x > B64_INFINITY || y > B64_INFINITY || x == y)
			return B64_NAN;
		return x == B64_INFINITY ? sign | B64_INFINITY : sign;
	}
	if (!y)
		return x ? sign | B64_INFINITY : B64_NAN;
	if (!x)
		return sign;
	x = b64_significand(x, &e);
	y = b64_significand(y, &e_y);
	/*
	 * The quotient in units of 2^-56 from two divisions by the 32 highest bits of y, rounded
	 * up, so that no remainder is negative. The first quotient is at most 5 units of 2^-32 too
	 * small, and its remainder is less than 5 y. The second is less than 1 + 5 2^-7 units too
	 * small, so that its remainder is less than 2 y.
	 */
	divisor = (y >> 21) + 1;
	high = (x << 11) / divisor;
	x = (x << 32) - high * y;
	m = (x << 3) / divisor;
	x = (x << 24) - m * y;
	high = (high << 24) + m;
	m = (y - 1 - x) >> 63;
	high += m;
	x -= y & -m;
	/* 2^55..2^57. */
	m = ~high >> 56 & 1;
	return b64_round(sign, e - e_y + 1023 - (s64)m, high << (6 + m) | (x != 0));
}

/* A step of Newton's method for the inverse root y (Q32) of x (Q30): y (3 - x y^2) / 2. */
FX_INLINE u64 b64_inverse_root_step(u64 y, u64 x)
{
	return y * (((3ULL << 62) - x * (y * y >> 32)) >> 32) >> 31;
}

B64_FUNCTION u64 b64_sqrt(u64 a)
{
	u64 x, high, y, root, rest;
	s64 e;

	if (b64_is_nan(a))
		return B64_NAN;
	if (!b64_abs(a) || a == B64_INFINITY)
		return a;
	if (a >> 63)
		return B64_NAN;
	/* 2^62..2^64: the significand times a power of 2 whose root is one too. */
	x = b64_significand(a, &e) << 10;
	x <<= ~e & 1;
	/* The inverse root: a parabola, at most 2.5 % off, and three steps. */
	high = x >> 32;
	y = 5735575324 - (high * (1763812404 - (219924856 * high >> 30)) >> 30);
	y = b64_inverse_root_step(y, high);
	y = b64_inverse_root_step(y, high);
	y = b64_inverse_root_step(y, high);
	/* The root of x in units of 1: 0..9 too small. */
	root = (high * y >> 31) - 2;
	/*
	 * In units of 2^-24: less than 1 too large. The rest is exact, and its sign decides the
	 * lower bits.
	 */
	rest = x - root * root;
	root = (root << 24) + (rest << 23) / root;
	rest = (x << 48) - root * root;
	return b64_round(0, (e + 1023) >> 1, (root << 7) + ((s64)rest >> 63 | (rest != 0)));
}

/* The largest integer that is at most a. */
B64_FUNCTION u64 b64_floor(u64 a)
{
	u32 e = a >> 52 & 0x7ff;
	u64 fraction;

	if (b64_is_nan(a))
		return B64_NAN;
	if (e >= 1075 || !b64_abs(a))
		return a;
	if (e < 1023)
		return a >> 63 ? b64_neg(B64_ONE) : 0;
	fraction = B64_FRACTION >> (e - 1023);
	/* A carry into the exponent is right: the significand becomes 1. */
	return (a + (fraction & -(a >> 63))) & ~fraction;
}

/* The smallest integer that is at least a. */
FX_INLINE u64 b64_ceil(u64 a)
{
	return b64_is_nan(a) ? B64_NAN : b64_neg(b64_floor(b64_neg(a)));
}

/* A number that orders as a does, if a is not NaN: both zeros are 0. */
FX_INLINE s64 b64_order(u64 a)
{
	s64 sign = (s64)a >> 63;

	return (b64_abs(a) ^ sign) - sign;
}

FX_INLINE u32 b64_ordered(u64 a, u64 b)
{
	return !b64_is_nan(a) && !b64_is_nan(b);
}

/* Comparisons: false if a or b is NaN. */
B64_FUNCTION u32 b64_less(u64 a, u64 b)
{
	return b64_ordered(a, b) && b64_order(a) < b64_order(b);
}

B64_FUNCTION u32 b64_at_most(u64 a, u64 b)
{
	return b64_ordered(a, b) && b64_order(a) <= b64_order(b);
}

B64_FUNCTION u32 b64_equal(u64 a, u64 b)
{
	return b64_ordered(a, b) && b64_order(a) == b64_order(b);
}

B64_FUNCTION u64 b64_from_u64(u64 a)
{
	u32 zeros;

	if (!a)
		return 0;
	zeros = fx_zeros(a);
	return b64_round_normal(0, 1023 + 63 - zeros, b64_shift(a << zeros, 1));
}

/* The integer part of a: 0 if a is negative or NaN, and 2^64 - 1 if it is larger. */
B64_FUNCTION u64 b64_to_u64(u64 a)
{
	u32 e = a >> 52;

	if (e < 1023 || a > B64_INFINITY)
		return 0;
	if (e > 1023 + 63)
		return FX_MAX;
	a = ((a & B64_FRACTION) | B64_LEADING) << 11;
	return a >> (1023 + 63 - e);
}

#endif
