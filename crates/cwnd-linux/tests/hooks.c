/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The program of window laws compiled for the host, for hooks.rs. Reads rows: a hook, the sender's window and threshold, and
 * the window before its last cut as the kernel remembers it. Each row is a connection whose window is 10 packets, after a cut
 * from 20. Writes rows: what the hook returns, the window, the threshold, and the largest window in an event.
 */
#include "host.h"
#include "window_law.bpf.c"

static struct tcp_sock tp;

int main(void)
{
	u64 row[4], result[4], at, ctx[3] = { (u64)(long)&tp };
	struct ack_sample sample = { 1, 1000 };
	struct connection *c = (void *)storage;

	control.until = ~0ULL;
	has_storage = 1;
	while (fread(row, sizeof(row), 1, stdin) == 1) {
		memset(storage, 0, sizeof(*c));
		memset(&tp, 0, sizeof(tp));
		tp.mss_cache = 1448;
		tp.is_cwnd_limited = 1;
		tp.snd_cwnd_clamp = ~0U;
		c->common.packet = packet_bytes(&tp);
		c->w = b64_from_u64(10);
		c->saved_w = b64_from_u64(20);
		tp.snd_cwnd = row[1];
		tp.snd_ssthresh = row[2];
		prior_window = row[3];
		heard.count = result[0] = result[3] = 0;
		ctx[1] = row[0] == 0 ? (u64)(long)&sample : CA_EVENT_LOSS;
		ctx[2] = 1;
		switch (row[0]) {
		case 0: pkts_acked(ctx); break;
		case 1: cong_avoid(ctx); break;
		case 2: result[0] = ssthresh(ctx); break;
		case 3: set_state(ctx); break;
		case 4: cwnd_event(ctx); break;
		case 5: result[0] = undo_cwnd(ctx); break;
		}
		result[1] = tp.snd_cwnd;
		result[2] = tp.snd_ssthresh;
		for (at = 0; at < heard.count; at++)
			result[3] = fx_max(result[3], ((struct event *)heard.events[at])->cwnd);
		if (control.missed || fwrite(result, sizeof(result), 1, stdout) != 1)
			return 1;
	}
	return 0;
}
