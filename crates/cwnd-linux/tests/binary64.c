/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The operations of kernel/binary64.h, for binary64.rs.
 *
 * On the host, the program reads rows of the number of an operation and two operands, and answers
 * each with the results of this operation and the nine that follow. The BPF program applies one
 * operation to all operands of `rows`.
 */
#include "binary64.h"

static u64 apply(u64 op, u64 a, u64 b)
{
	switch (op) {
	case 0:
		return b64_add(a, b);
	case 1:
		return b64_sub(a, b);
	case 2:
		return b64_mul(a, b);
	case 3:
		return b64_div(a, b);
	case 4:
		return b64_sqrt(a);
	case 5:
		return b64_floor(a);
	case 6:
		return b64_ceil(a);
	case 7:
		return b64_from_u64(a >> (b & 63));
	case 8:
		return b64_to_u64(a);
	case 9:
		return b64_less(a, b) | b64_at_most(a, b) << 1 | b64_equal(a, b) << 2;
	case 10:
		return b64_exp(a);
	case 11:
		return b64_log(a);
	case 12:
		return b64_log10(a);
	case 13:
		return b64_cbrt(a);
	case 14:
		return b64_power(a, b);
	}
	return 0;
}

#ifdef __bpf__

#define SEC(name) __attribute__((section(name), used))
#define COUNT 4096

static long (*const bpf_loop)(u32 count, void *step, void *context, u64 flags) = (void *)181;

struct {
	u64 op;
	u64 a[COUNT], b[COUNT], result[COUNT];
} rows;

static long step(u32 k, void *context)
{
	k &= COUNT - 1;
	rows.result[k] = apply(rows.op, rows.a[k], rows.b[k]);
	return 0;
}

SEC("syscall") int run(void *context)
{
	bpf_loop(COUNT, step, 0, 0);
	return 0;
}

char _license[] SEC("license") = "Dual MIT/GPL";

#else
#include <stdio.h>

#define RESULTS 10

int main(void)
{
	u64 in[3], out[RESULTS];

	while (fread(in, sizeof(in), 1, stdin) == 1) {
		int k;

		for (k = 0; k < RESULTS; k++)
			out[k] = apply(in[0] + k, in[1], in[2]);
		fwrite(out, sizeof(out), 1, stdout);
	}
	return 0;
}

#endif
