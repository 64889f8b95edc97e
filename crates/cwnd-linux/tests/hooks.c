/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The program of window laws compiled for the host, for hooks.rs, with the kernel's functions that it calls. Reads rows: a
 * hook, the sender's window and threshold, and the window before its last cut as the kernel remembers it. Each row is a
 * connection whose window is 10 packets, after a cut from 20. Writes rows: what the hook returns, the window, the threshold,
 * and the largest window in an event.
 */
#include <stdio.h>
#include <string.h>
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#define bpf_sk_storage_get unused_storage_get
#define bpf_sk_storage_delete unused_storage_delete
#define bpf_ringbuf_reserve unused_reserve
#define bpf_ringbuf_submit unused_submit
#include "kernel.h"
#undef bpf_sk_storage_get
#undef bpf_sk_storage_delete
#undef bpf_ringbuf_reserve
#undef bpf_ringbuf_submit


static unsigned char storage[1 << 16], ring[1 << 12];
static u32 prior_window;

static void *bpf_sk_storage_get(void *map, void *sk, void *value, u64 flags)
{
	return storage;
}

static long bpf_sk_storage_delete(void *map, void *sk)
{
	return 0;
}

static void *bpf_ringbuf_reserve(void *events, u64 size, u64 flags)
{
	return ring;
}

static void bpf_ringbuf_submit(void *data, u64 flags);

#include "window_law.bpf.c"

static u64 largest;

static void bpf_ringbuf_submit(void *data, u64 flags)
{
	struct event *event = data;

	largest = fx_max(largest, event->cwnd);
}

u32 tcp_slow_start(struct tcp_sock *tp, u32 acked)
{
	tp->snd_cwnd += acked;
	return 0;
}

u32 tcp_reno_undo_cwnd(struct sock *sk)
{
	return fx_max(((struct tcp_sock *)sk)->snd_cwnd, prior_window);
}

static struct tcp_sock tp;

int main(void)
{
	u64 row[4], result[4], ctx[3] = { (u64)(long)&tp };
	struct ack_sample sample = { 1, 1000 };
	struct connection *c = (void *)storage;

	control.until = ~0ULL;
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
		largest = result[0] = 0;
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
		result[3] = largest;
		if (fwrite(result, sizeof(result), 1, stdout) != 1)
			return 1;
	}
	return 0;
}
