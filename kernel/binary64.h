/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Arithmetic of IEEE 754 binary64 with integers: the kernel has no floating point.
 *
 * A number is the u64 of its bits. Every operation rounds to the nearest number, ties to even, and
 * gives the bits that Rust's f64 gives, with subnormal numbers, infinities and signed zeros. Of
 * all NaNs it gives B64_NAN.
 *
 * For BPF, the longer operations are global functions: the verifier checks them once, not at each
 * call. They have few branches, because the verifier follows both paths of each.
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

/* x: the compiler does not replace shifts of it by comparisons, and those by branches. */
FX_INLINE u64 b64_opaque(u64 x)
{
	__asm__("" : "+r"(x));
	return x;
}

/* 1 if x is not 0. */
FX_INLINE u64 b64_any(u64 x)
{
	return b64_opaque(x | -x) >> 63;
}

/* x / 2^shift for a shift of 0..63. The lowest bit is set if the result is not exact. */
FX_INLINE u64 b64_shift(u64 x, u32 shift)
{
	u64 shifted = x >> shift;

	return shifted | b64_any(x - (shifted << shift));
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
	/* The leading bit adds 1 to the exponent field; a carry adds 1, up to that of infinity. */
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

FX_INLINE u64 b64_inline_add(u64 a, u64 b)
{
	u64 x = b64_abs(a), y = b64_abs(b), swap, normal_x, normal_y, m, n;
	u32 shift;
	s64 e;

	/* |a| becomes the larger one. */
	swap = (a ^ b) & (s64)b64_opaque(x - y) >> 63;
	a ^= swap;
	b ^= swap;
	x = b64_abs(a);
	y = b64_abs(b);
	if (x >= B64_INFINITY) {
		if (x > B64_INFINITY || (y == B64_INFINITY && a != b))
			return B64_NAN;
		return a;
	}
	normal_x = b64_any(x >> 52);
	normal_y = b64_any(y >> 52);
	e = (x >> 52) + 1 - normal_x;
	m = ((x & B64_FRACTION) | normal_x << 52) << 10;
	n = ((y & B64_FRACTION) | normal_y << 52) << 10;
	n = b64_shift(n, fx_min(e - (y >> 52) - 1 + normal_y, 63));
	if ((a ^ b) >> 63) {
		m -= n;
		if (!m)
			return 0;
		/* A shift by 0 or 1 is frequent, and its count fast. */
		shift = m >> 61 ? ~m >> 62 & 1 : fx_zeros(m) - 1;
		shift = fx_min(shift, e - 1);
		return b64_round_normal(a & B64_SIGN, e - shift, m << shift);
	}
	m += n;
	shift = m >> 63;
	return b64_round_normal(a & B64_SIGN, e + shift, m >> shift | (m & shift));
}

B64_FUNCTION u64 b64_add(u64 a, u64 b)
{
	return b64_inline_add(a, b);
}

FX_INLINE u64 b64_sub(u64 a, u64 b)
{
	return b64_add(a, b64_neg(b));
}

/* The higher half of the product of 128 bits. */
FX_INLINE u64 b64_high_product(u64 x, u64 y)
{
	u64 x1 = x >> 32, x0 = (u32)x, y1 = y >> 32, y0 = (u32)y;
	u64 left = x1 * y0, right = x0 * y1;
	u64 middle = (x0 * y0 >> 32) + (u32)left + (u32)right;

	return x1 * y1 + (left >> 32) + (right >> 32) + (middle >> 32);
}

FX_INLINE u64 b64_inline_mul(u64 a, u64 b)
{
	u64 sign = (a ^ b) & B64_SIGN, x = b64_abs(a), y = b64_abs(b), m, shift;
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
	/* 2^61..2^63; the lowest bit stands for the lower half. */
	m = b64_high_product(x, y) | b64_any(x * y);
	shift = ~m >> 62 & 1;
	return b64_round(sign, e + e_y - 1022 - (s64)shift, m << shift);
}

B64_FUNCTION u64 b64_mul(u64 a, u64 b)
{
	return b64_inline_mul(a, b);
}

/* c + x y, with two roundings. */
B64_FUNCTION u64 b64_add_product(u64 c, u64 x, u64 y)
{
	return b64_inline_add(c, b64_inline_mul(x, y));
}

/* c - x y. */
FX_INLINE u64 b64_sub_product(u64 c, u64 x, u64 y)
{
	return b64_add_product(c, b64_neg(x), y);
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
	return b64_round(sign, e - e_y + 1023 - (s64)m, high << (6 + m) | b64_any(x));
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
	return b64_round(0, (e + 1023) >> 1, (root << 7) + ((s64)rest >> 63 | b64_any(rest)));
}

/* A step of Newton's method for the root r of x, (2 r + x / r^2) / 3; r is Q30, x is Q60. */
FX_INLINE u64 b64_cube_root_step(u64 r, u64 x)
{
	return (2 * r + x / (r * r >> 30)) / 3;
}

/* It is rounded correctly, as that of libm. */
B64_FUNCTION u64 b64_cbrt(u64 a)
{
	u64 x = b64_abs(a), high, r, rest, m;
	u32 third;
	s64 e;

	if (x > B64_INFINITY)
		return B64_NAN;
	if (!x || x == B64_INFINITY)
		return a;
	/* |a| = x 2^(3 (third - 1365)), with x in 1..8 (Q52). */
	x = b64_significand(x, &e);
	third = (u32)(e + 3072) / 3;
	x <<= (u32)(e + 3072) - 3 * third;
	/* The root (Q30): a polynomial, at most 0.6 % off, and two steps; at most 2 too large. */
	high = x >> 24;
	r = 46503935 - (2483805 * high >> 28);
	r = 731952407 + ((391409267 - (r * high >> 28)) * high >> 28);
	r = b64_cube_root_step(r, x << 8);
	r = b64_cube_root_step(r, x << 8);
	/* Q28: 0 to 1.5 too small. */
	r = (r - 2) >> 2;
	rest = (x << 32) - r * r * r;
	/*
	 * Q53: less than 1 too small, and at most 0.3 too large. The odd one of it and the next is
	 * the middle m of two numbers, and the sign of x - m^3 (Q159) decides between them. Its
	 * 128 lowest bits are enough: the lower half borrows 1, because that of x is 0 and m is
	 * odd.
	 */
	m = ((r << 25) + rest / (3 * r * r >> 25)) | 1;
	high = b64_high_product(m * m, m) + b64_high_product(m, m) * m + 1;
	m = (m >> 1) + (((x << 43) - high) >> 63 ^ 1);
	return (a & B64_SIGN) + ((u64)(third - 343) << 52) + m;
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

/* Whether neither is NaN. */
FX_INLINE u32 b64_ordered(u64 a, u64 b)
{
	return ((B64_INFINITY - b64_abs(a)) | (B64_INFINITY - b64_abs(b))) >> 63 == 0;
}

/* Comparisons: false if a or b is NaN. */
FX_INLINE u32 b64_less(u64 a, u64 b)
{
	return b64_ordered(a, b) && b64_order(a) < b64_order(b);
}

FX_INLINE u32 b64_at_most(u64 a, u64 b)
{
	return b64_ordered(a, b) && b64_order(a) <= b64_order(b);
}

FX_INLINE u32 b64_equal(u64 a, u64 b)
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
FX_INLINE u64 b64_to_u64(u64 a)
{
	u32 e = a >> 52;

	if (e < 1023 || a > B64_INFINITY)
		return 0;
	if (e > 1023 + 63)
		return FX_MAX;
	a = ((a & B64_FRACTION) | B64_LEADING) << 11;
	return a >> (1023 + 63 - e);
}

/*
 * The functions below are the sequences of operations of the Rust crate libm 0.2.16: a
 * sequence in another order rounds differently.
 */

#define B64_HALF (0x3feULL << 52)
#define B64_TWO (1ULL << 62)
#define B64_ONE_AND_A_HALF (0x3ff8ULL << 48)

/* An integer with a sign. */
FX_INLINE u64 b64_from_s64(s64 a)
{
	return a < 0 ? b64_neg(b64_from_u64(-a)) : b64_from_u64(a);
}

/* a 2^power for a normal a > 0. */
FX_INLINE u64 b64_scale(u64 a, s64 power)
{
	return b64_round(0, (s64)(a >> 52) + power, ((a & B64_FRACTION) | B64_LEADING) << 10);
}

/* a without the 32 lowest bits of its fraction: products of two such numbers are nearly exact. */
FX_INLINE u64 b64_high(u64 a)
{
	return a >> 32 << 32;
}

/* a - t (1/6 - t/360 + ...), t = a^2: c of exp(a) = 1 + a + a c / (2 - c), for |a| < 0.35. */
B64_FUNCTION u64 b64_exp_part(u64 a)
{
	u64 t = b64_mul(a, a), sum;

	sum = b64_add_product(0xbebbbd41c5d26bf1, t, 0x3e66376972bea4d0);
	sum = b64_add_product(0x3f11566aaf25de2c, t, sum);
	sum = b64_add_product(0xbf66c16c16bebd93, t, sum);
	sum = b64_add_product(0x3fc555555555553e, t, sum);
	return b64_sub_product(a, t, sum);
}

B64_FUNCTION u64 b64_exp(u64 a)
{
	u64 x = b64_abs(a), sign = a & B64_SIGN, high = a, low = 0, c;
	s64 power = 0;

	if (x > B64_INFINITY)
		return B64_NAN;
	/* More than the logarithm of the largest number, or less than that of half the smallest. */
	if (x > (sign ? 0x40874910d52d3051 : 0x40862e42fefa39ef))
		return sign ? 0 : B64_INFINITY;
	/* At most 2^-28. */
	if (x >> 32 <= 0x3e300000)
		return b64_add(B64_ONE, a);
	/* exp(a) = 2^power exp(high - low), if |a| is more than log(2) / 2. */
	if (x >> 32 > 0x3fd62e42) {
		u64 p = B64_ONE;

		/* At least 1.5 log(2). */
		if (x >> 32 >= 0x3ff0a2b2) {
			power = b64_to_u64(b64_add_product(B64_HALF, x, 0x3ff71547652b82fe));
			p = b64_from_u64(power);
		} else {
			power = 1;
		}
		if (sign)
			power = -power;
		p |= sign;
		high = b64_sub_product(a, p, 0x3fe62e42fee00000);
		low = b64_mul(p, 0x3dea39ef35793c76);
		a = b64_sub(high, low);
	}
	c = b64_exp_part(a);
	x = b64_div(b64_mul(a, c), b64_sub(B64_TWO, c));
	x = b64_add(B64_ONE, b64_add(b64_sub(x, low), high));
	return power ? b64_scale(x, power) : x;
}

/* The natural logarithm, or that of base 10. */
B64_FUNCTION u64 b64_logarithm(u64 a, u32 decimal)
{
	u64 f, half, s, z, w, r, p, high, low;
	s64 power = -1023;

	if (!b64_abs(a))
		return B64_SIGN | B64_INFINITY;
	if (a > B64_INFINITY)
		return B64_NAN;
	if (a == B64_INFINITY)
		return a;
	if (a == B64_ONE)
		return 0;
	if (a < B64_LEADING) {
		/* 2^54. */
		a = b64_mul(a, 0x435ULL << 52);
		power -= 54;
	}
	/* a = 2^power (1 + f), with 1 + f between the roots of 1/2 and 2. */
	a += 0x95f62ULL << 32;
	power += a >> 52;
	p = b64_from_s64(power);
	f = b64_sub((a & B64_FRACTION) + (0x3fe6a09eULL << 32), B64_ONE);
	half = b64_mul(b64_mul(B64_HALF, f), f);
	s = b64_div(f, b64_add(B64_TWO, f));
	z = b64_mul(s, s);
	w = b64_mul(z, z);
	r = b64_add_product(0x3fc7466496cb03de, w, 0x3fc2f112df3e5244);
	r = b64_add_product(0x3fd2492494229359, w, r);
	r = b64_mul(z, b64_add_product(0x3fe5555555555593, w, r));
	z = b64_add_product(0x3fcc71c51d8e78af, w, 0x3fc39a09d078c69f);
	z = b64_mul(w, b64_add_product(0x3fd999999997fa04, w, z));
	r = b64_mul(s, b64_add(half, b64_add(r, z)));
	if (!decimal) {
		r = b64_add_product(r, p, 0x3dea39ef35793c76);
		r = b64_add(b64_sub(r, half), f);
		return b64_add_product(r, p, 0x3fe62e42fee00000);
	}
	/* log(1 + f) is high + low, and its products with 1 / log(10) are added. */
	high = b64_high(b64_sub(f, half));
	low = b64_add(b64_sub(b64_sub(f, high), half), r);
	r = b64_mul(p, 0x3d59fef311f12b36);
	r = b64_add_product(r, b64_add(low, high), 0x3dbb9438ca9aadd5);
	r = b64_add_product(r, low, 0x3fdbcb7b15200000);
	high = b64_mul(high, 0x3fdbcb7b15200000);
	p = b64_mul(p, 0x3fd34413509f6000);
	w = b64_add(p, high);
	return b64_add(b64_add(r, b64_add(b64_sub(p, w), high)), w);
}

FX_INLINE u64 b64_log(u64 a)
{
	return b64_logarithm(a, 0);
}

FX_INLINE u64 b64_log10(u64 a)
{
	return b64_logarithm(a, 1);
}

/* 0 if a is no integer, 1 if it is odd, 2 if it is even; for a that is neither 0 nor NaN. */
FX_INLINE u32 b64_parity(u64 a)
{
	u64 x = b64_abs(a);
	u32 e = x >> 52;

	if (e < 1023)
		return 0;
	if (e > 1075)
		return 2;
	/* The lowest bit of the integer part becomes the highest bit; the fraction follows. */
	x = ((x & B64_FRACTION) | B64_LEADING) << (e - 1012);
	return x << 1 ? 0 : 2 - (x >> 63);
}

/*
 * a^b of a > 0. The result has the sign `sign`.
 *
 * log2(a) is t + rest, and its product with b is z + rest. The power of 2 is that of the nearest
 * integer times that of the rest.
 */
B64_FUNCTION u64 b64_positive_power(u64 a, u64 b, u64 sign)
{
	u64 t, rest, u, v, w, z, product;
	u32 high = b64_abs(b) >> 32;
	s64 power = 0;

	/* |b| is more than 2^31. */
	if (high > 0x41e00000) {
		u32 a_high = a >> 32;

		/* It is more than 2^64, or a is not nearly 1. */
		if (high > 0x43f00000 || a_high < 0x3fefffff || a_high > 0x3ff00000)
			return sign | ((a >= B64_ONE) == !(b >> 63) ? B64_INFINITY : 0);
		/* log(1 + x) = x - x^2 (1/2 - x/3 + x^2/4). */
		u = b64_sub(a, B64_ONE);
		w = b64_sub_product(0x3fd5555555555555, u, 0x3fdULL << 52);
		w = b64_sub_product(B64_HALF, u, w);
		w = b64_mul(b64_mul(u, u), w);
		v = b64_sub_product(b64_mul(u, 0x3e54ae0bf85ddf44), w, 0x3ff71547652b82fe);
		u = b64_mul(u, 0x3ff7154760000000);
		t = b64_high(b64_add(u, v));
		rest = b64_sub(v, b64_sub(t, u));
	} else {
		u64 base = B64_ONE, base_log = 0, base_rest = 0, x, x_high, a_high;

		if (a < B64_LEADING) {
			/* 2^53. */
			a = b64_mul(a, 0x434ULL << 52);
			power = -53;
		}
		power += (s64)(a >> 52) - 1023;
		a = (a & B64_FRACTION) | B64_ONE;
		/* a is divided by 1, 3/2 or 2: from the roots of 3/2 and 3. */
		if (a >> 32 >= 0x3ffbb67a) {
			a -= B64_LEADING;
			power++;
		} else if (a >> 32 > 0x3ff3988e) {
			base = B64_ONE_AND_A_HALF;
			base_log = 0x3fe2b80340000000;
			base_rest = 0x3e4cfdeb43cfd006;
		}
		/* x = (a - base) / (a + base), as x_high + u. */
		u = b64_sub(a, base);
		v = b64_div(B64_ONE, b64_add(a, base));
		x = b64_mul(u, v);
		x_high = b64_high(x);
		a_high = ((a >> 33 | 0x20000000) + 0x80000) << 32;
		a_high += base >> 1 & 1ULL << 50;
		u = b64_sub_product(u, x_high, a_high);
		w = b64_sub(a, b64_sub(a_high, base));
		u = b64_mul(v, b64_sub_product(u, x_high, w));
		/* log((1 + x) / (1 - x)) = 2 x + x^3 (2/3 + ...): 3/2 of it is x (w + rest). */
		t = b64_mul(x, x);
		w = b64_add_product(0x3fcd864a93c9db65, t, 0x3fca7e284a454eef);
		w = b64_add_product(0x3fd17460a91d4101, t, w);
		w = b64_add_product(0x3fd55555518f264d, t, w);
		w = b64_add_product(0x3fdb6db6db6fabff, t, w);
		w = b64_add_product(0x3fe3333333333303, t, w);
		z = b64_add_product(b64_mul(b64_mul(t, t), w), u, b64_add(x_high, x));
		t = b64_mul(x_high, x_high);
		w = b64_high(b64_add(b64_add(0x4008ULL << 48, t), z));
		rest = b64_sub(z, b64_sub(b64_sub(w, 0x4008ULL << 48), t));
		v = b64_add_product(b64_mul(u, w), rest, x);
		u = b64_mul(x_high, w);
		w = b64_high(b64_add(u, v));
		v = b64_sub(v, b64_sub(w, u));
		/* Times 2 / (3 log(2)). */
		u = b64_mul(0x3feec709e0000000, w);
		v = b64_add_product(b64_mul(0xbe3e2fe0145b01f5, w), v, 0x3feec709dc3a03fd);
		v = b64_add(v, base_rest);
		z = b64_from_s64(power);
		t = b64_high(b64_add(b64_add(b64_add(u, v), base_log), z));
		rest = b64_sub(v, b64_sub(b64_sub(b64_sub(t, z), base_log), u));
	}

	u = b64_high(b);
	rest = b64_add_product(b64_mul(b64_sub(b, u), t), b, rest);
	product = b64_mul(u, t);
	z = b64_add(rest, product);
	/* At least 1024, or at most -1075. */
	if (b64_abs(z) >= (z >> 63 ? 0x4090ccULL << 40 : 0x409ULL << 52)) {
		w = b64_sub(z, product);
		if (z >> 63) {
			if (z != 0xc090ccULL << 40 || b64_at_most(rest, w))
				return sign;
		} else if (z != 0x409ULL << 52 || b64_less(w, b64_add(rest, 0x3c971547652b82fe))) {
			return sign | B64_INFINITY;
		}
	}
	high = b64_abs(z) >> 32;
	power = 0;
	/* More than 1/2. */
	if (high > 0x3fe00000) {
		u32 shift;

		/* 1/2 is added, and the fraction is cleared. */
		high += 0x100000 >> ((high >> 20) - 1022);
		shift = (high >> 20) - 1023;
		power = ((high & 0xfffff) | 0x100000) >> (20 - shift);
		high &= ~(0xfffffU >> shift);
		product = b64_sub(product, (u64)high << 32 | (z & B64_SIGN));
		if (z >> 63)
			power = -power;
	}
	t = b64_high(b64_add(rest, product));
	rest = b64_sub(rest, b64_sub(t, product));
	v = b64_add_product(b64_mul(rest, 0x3fe62e42fefa39ef), t, 0xbe205c610ca86c39);
	u = b64_mul(t, 0x3fe62e4300000000);
	/* exp(z + w) = 1 + z + w + ... */
	z = b64_add(u, v);
	w = b64_sub(v, b64_sub(z, u));
	t = b64_exp_part(z);
	v = b64_div(b64_mul(z, t), b64_sub(t, B64_TWO));
	v = b64_sub(v, b64_add_product(w, z, w));
	return sign | b64_scale(b64_sub(B64_ONE, b64_sub(v, z)), power);
}

/* a^b as the laws of the crate cwnd-law define it: products and roots where they are exact. */
B64_FUNCTION u64 b64_power(u64 a, u64 b)
{
	u64 x = b64_abs(a), y = b64_abs(b), sign = 0;
	u32 parity = 2;

	if (!y || a == B64_ONE)
		return B64_ONE;
	if (x > B64_INFINITY || y > B64_INFINITY)
		return B64_NAN;
	if (y == B64_INFINITY) {
		if (x == B64_ONE)
			return B64_ONE;
		return (x > B64_ONE) == !(b >> 63) ? B64_INFINITY : 0;
	}
	if (y == B64_ONE)
		return b >> 63 ? b64_div(B64_ONE, a) : a;
	if (b == B64_TWO)
		return b64_mul(a, a);
	/* Two results that are not those of libm. */
	if (b == B64_HALF)
		return b64_sqrt(a);
	if (b == 0x4008ULL << 48)
		return b64_mul(b64_mul(a, a), a);
	if (a >> 63) {
		parity = b64_parity(b);
		if (parity == 1)
			sign = B64_SIGN;
		else if (!parity && x && x != B64_INFINITY)
			return B64_NAN;
	}
	if (!x || x == B64_INFINITY)
		return sign | ((!x) == b >> 63 ? B64_INFINITY : 0);
	if (x == B64_ONE)
		return sign | B64_ONE;
	return b64_positive_power(x, b, sign);
}

#endif
