/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The laws of kernel/ compiled for the host, for native.rs and bbr3.rs. Reads rows of 32 numbers: the law, its
 * parameters from the second number on, and its arguments from the 25th on. Writes rows of 4 results. A row of BBR is
 * an event; its state is kept from one row to the next.
 */
#include <stdio.h>
#include <string.h>
#include "bbr3.h"
#include "cubic.h"

/* An event (`words` of bbr3.rs): the window, the pacing rate and the state with the close decisions after it, and the
 * longest time over which extra_acked has counted. */
static void compute_bbr3(const u64 *a, u64 *out)
{
	static struct bbr3_state s;
	static u64 longest;
	struct bbr3_ack ack = {0};
	u64 now = a[1];

	switch (a[0]) {
	case 0: /* initial window, bytes, seed, aging */
		bbr3_init(&s, a[4], a[1], a[2], a[3]);
		longest = 0;
		break;
	case 1:
		ack.now = now;
		ack.sent_at = a[2];
		ack.packets = a[3];
		ack.in_flight = a[4];
		ack.rtt = a[5];
		ack.window_limited = a[6];
		ack.has_sample = a[7];
		ack.prior_delivered = a[8];
		ack.delivered = a[9];
		ack.interval = a[10];
		ack.lost = a[11];
		ack.tx_in_flight = a[12];
		ack.sent_application_limited = a[13];
		ack.idles = a[14];
		if (s.started)
			longest = fx_max(longest, now - s.extra_acked_start);
		bbr3_acked(&s, &ack);
		break;
	case 2: /* packets */
		bbr3_lost(&s, now, a[2]);
		break;
	case 3:
		bbr3_start(&s, now);
		bbr3_recovered(&s);
		break;
	case 4: /* packets */
		bbr3_timeout(&s, now, a[2]);
		break;
	case 5:
		bbr3_start(&s, now);
		bbr3_undo(&s);
		break;
	case 6:
		bbr3_tick(&s, now);
		break;
	case 7: /* bytes */
		bbr3_start(&s, now);
		bbr3_rescale(&s, a[2]);
		break;
	}
	out[0] = s.w;
	out[1] = s.pace;
	out[2] = s.state | (u64)s.close << 8;
	out[3] = longest;
}

/* The history of losses, and the sample of a packet. */
static void compute_history(const u64 *a, u64 *out)
{
	static struct bbr3_history history;
	struct bbr3_ack ack = {0};

	switch (a[0]) {
	case 0:
		memset(&history, 0, sizeof(history));
		break;
	case 1: /* delivered, lost in total */
		bbr3_note_losses(&history, a[1], a[2]);
		break;
	case 2: /* delivered when the packet was sent, delivered since, lost in total, by this acknowledgement */
		ack.prior_delivered = a[1];
		ack.delivered = a[2];
		bbr3_sample(&history, &ack, a[3], a[4]);
		out[0] = ack.lost;
		out[1] = ack.tx_in_flight;
		break;
	}
}

static void compute(const u64 *in, u64 *out)
{
	const void *params = in + 1;
	const u64 *a = in + 24;

	switch (in[0]) {
	case 0: { /* a, b, shift: arithmetic */
		out[0] = fx_mul(a[0], a[1], a[2]);
		out[1] = fx_ratio(a[0], a[1], a[2]);
		out[2] = a[0] ? fx_zeros(a[0]) : 0;
		break;
	}
	case 7: { /* the times of an epoch and a round trip, w at two cuts, w0, w, acked */
		struct cubic_state s = {0};

		if (a[2])
			out[0] = cubic_cut(params, &s, a[2], 0);
		if (a[3])
			out[0] = cubic_cut(params, &s, a[3], 0);
		cubic_enter(params, &s, a[4], 0);
		out[1] = cubic_window(params, &s, a[0]);
		out[3] = cubic_grow(params, &s, a[5], a[6], a[0], a[1]);
		out[2] = s.w_est;
		break;
	}
	case 8: /* x: the cube root */
		out[0] = fx_cube_root(a[0]);
		break;
	case 9:
		compute_bbr3(in + 1, out);
		break;
	case 10:
		compute_history(in + 1, out);
		break;
	}
}

int main(void)
{
	u64 in[32], out[4];

	while (fread(in, sizeof(in), 1, stdin) == 1) {
		memset(out, 0, sizeof(out));
		compute(in, out);
		fwrite(out, sizeof(out), 1, stdout);
	}
	return 0;
}
