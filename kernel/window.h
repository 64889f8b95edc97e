/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A window law as the kernel's tcp_congestion_ops. A program defines these before it includes this file:
 *
 *   LAW(part)      the names of the law's parts: struct LAW(params), LAW(grow), ...
 *   LAW_ENTER      if it has an enter; LAW_ROUND if a round and a timeout_ends_round; LAW_OBSERVE if an observe
 *   LAW_CUT        the call of its cut with w, timeout and the minimum round-trip time (us)
 *   LAW_THRESHOLD  if its cut is the threshold in slow start and after a timeout too; that of the others is
 *                  at most w / 2 there (RFC 5681 equation 4)
 *
 * Slow start, recovery, proportional rate reduction and the timers are the kernel's. The law's window has
 * a fraction, the kernel's is whole. If the two differ by more than that fraction, the kernel has changed
 * its own (recovery, idle restart), and the law continues from the kernel's.
 */
#include "trace.h"

struct flow {
	u64 w;
	u64 saved_w;
	struct LAW(state) law;
#ifndef LAW_OBSERVE
	struct LAW(state) saved;
#endif
	u32 delivered;
	u32 min_rtt;
	u32 began; /* packets sent before the current round */
	u32 sent;  /* packets of the round ended by the last cut */
	u32 lost;
	u8 entered;
	u8 round;
	u8 saved_entered;
	u8 saved_slow;
};

_Static_assert(sizeof(struct flow) <= 104, "icsk_ca_priv has 104 bytes");

/* Not const: the loader fills it, and clang would fold the zeros of a constant. */
struct LAW(params) params SEC(".rodata.params");

#define SMALLEST (2 * FX_PACKET)

FX_INLINE void tell(struct tcp_sock *tp, u32 kind, u64 before, u64 after, u32 packets)
{
	struct event *event = event_begin(tp, kind);

	if (!event)
		return;
	event->before = before;
	event->after = after;
	event->packets = packets;
	bpf_ringbuf_submit(event, 0);
}

/* Adopts the kernel's window if the kernel has changed it. */
FX_INLINE void follow(struct tcp_sock *tp, struct flow *f)
{
	if (f->w >> 40 != tp->snd_cwnd)
		f->w = fx_min((u64)tp->snd_cwnd << 40, FX_MAX_WINDOW);
}

FX_INLINE void close_round(struct tcp_sock *tp, struct flow *f, u32 least)
{
#ifdef LAW_ROUND
	u32 lost = fx_max(tp->lost - f->lost, least);
	struct event *event;

	if (!f->round)
		return;
	f->round = 0;
	f->lost = tp->lost;
	LAW(round)(&params, &f->law, lost, f->sent);
	event = event_begin(tp, EVENT_ROUND);
	if (!event)
		return;
	event->lost = lost;
	event->sent = f->sent;
	bpf_ringbuf_submit(event, 0);
#endif
}

FX_INLINE void cut(struct tcp_sock *tp, struct flow *f, u32 timeout)
{
	u64 w = f->w, target = LAW_CUT(&params, &f->law, w, timeout, f->min_rtt);
	struct event *event;

	/* After recovery the kernel sets the window to the threshold, which must not increase the window. */
#ifdef LAW_THRESHOLD
	target = fx_min(target, timeout ? FX_MAX_WINDOW : w);
#else
	target = fx_min(target, f->saved_slow || timeout ? w / 2 : w);
#endif
	f->w = fx_max(target, SMALLEST);
	event = event_begin(tp, timeout ? EVENT_TIMEOUT : EVENT_CUT);
	if (!event)
		return;
	event->before = w;
	event->after = f->w;
	event->min_rtt = f->min_rtt;
	event->lost = tp->lost;
	event->ssthresh = f->saved_slow;
	bpf_ringbuf_submit(event, 0);
}

/* Cuts, and returns the threshold. */
FX_INLINE u32 reduce(struct tcp_sock *tp, struct flow *f, u32 slow)
{
	follow(tp, f);
	close_round(tp, f, 0);
	f->saved_w = f->w;
	f->saved_entered = f->entered;
	f->saved_slow = slow;
#ifndef LAW_OBSERVE
	f->saved = f->law;
#endif
	f->sent = tp->data_segs_out - f->began;
	f->began = tp->data_segs_out;
	f->round = 1;
	f->entered = 0;
	cut(tp, f, 0);
	return f->w >> 40;
}

/* With many connections the kernel sometimes does not run ssthresh and undo_cwnd, and uses as their result
 * the low half of a kernel address, which exceeds all thresholds. */
FX_INLINE void mend(struct tcp_sock *tp, struct flow *f)
{
	if (tp->snd_cwnd > FX_MAX_WINDOW >> 40)
		tp->snd_cwnd = f->w >> 40;
	if (tp->snd_ssthresh > TCP_INFINITE_SSTHRESH)
		tp->snd_ssthresh = reduce(tp, f, !f->entered);
}

SEC("struct_ops/init") int init(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	struct flow *f = private_of(tp);

	__builtin_memset(f, 0, sizeof(*f));
	f->w = fx_min((u64)tp->snd_cwnd << 40, FX_MAX_WINDOW);
	f->delivered = tp->delivered;
	f->lost = tp->lost;
	tell(tp, EVENT_BEGIN, f->w, f->w, 0);
	return 0;
}

SEC("struct_ops/release") int release(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);

	tell(tp, EVENT_END, 0, 0, 0);
	return 0;
}

SEC("struct_ops/pkts_acked") int pkts_acked(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	const struct ack_sample *sample = (void *)ctx[1];
	struct flow *f = private_of(tp);
	u32 arrived = tp->delivered - f->delivered;
	s32 rtt = sample->rtt_us;
	struct event *event;

	/* The kernel reports the handshake's acknowledgement before init. */
	if (!f->w)
		return 0;
	f->delivered = tp->delivered;
	mend(tp, f);
	if (rtt > 0 && (!f->min_rtt || (u32)rtt < f->min_rtt))
		f->min_rtt = rtt;
#ifdef LAW_OBSERVE
	LAW_OBSERVE(tp, f, arrived);
#endif
	event = event_begin(tp, EVENT_ACKED);
	if (!event)
		return 0;
	event->before = event->after = f->w;
	event->packets = arrived;
	event->rtt = rtt > 0 ? rtt : 0;
	event->min_rtt = f->min_rtt;
	event->stamp = tp->rx_opt.rcv_tsval;
	bpf_ringbuf_submit(event, 0);
	return 0;
}

SEC("struct_ops/cong_avoid") int cong_avoid(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	struct flow *f = private_of(tp);
	u32 acked = ctx[2];
	u64 w;

	close_round(tp, f, 0);
	if (!window_limited(tp))
		return 0;
	if (tp->snd_cwnd < tp->snd_ssthresh) {
		acked = tcp_slow_start(tp, acked);
		f->entered = 0;
		tell(tp, EVENT_SLOW, f->w, (u64)tp->snd_cwnd << 40, acked);
		if (!acked)
			return 0;
	}
	follow(tp, f);
	w = f->w;
	if (!f->entered) {
		f->entered = 1;
#ifdef LAW_ENTER
		LAW(enter)(&params, &f->law, w);
#endif
		tell(tp, EVENT_ENTER, w, w, 0);
	}
	f->w = fx_min(LAW(grow)(&params, &f->law, w, acked),
		      fx_max((u64)tp->snd_cwnd_clamp << 40, FX_PACKET));
	tp->snd_cwnd = f->w >> 40;
	tell(tp, EVENT_GROW, w, f->w, acked);
	return 0;
}

SEC("struct_ops/ssthresh") u32 ssthresh(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);

	return reduce(tp, private_of(tp), tp->snd_cwnd < tp->snd_ssthresh);
}

/* The kernel calls it right after ssthresh or undo_cwnd. */
SEC("struct_ops/set_state") int set_state(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);

	mend(tp, private_of(tp));
	return 0;
}

SEC("struct_ops/cwnd_event") int cwnd_event(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	struct flow *f = private_of(tp);

	/* The kernel calls ssthresh first, and reports the timeout afterwards. */
	if ((u32)ctx[1] != CA_EVENT_LOSS)
		return 0;
	mend(tp, f);
	f->w = f->saved_w;
#ifndef LAW_OBSERVE
	f->law = f->saved;
#endif
#ifdef LAW_ROUND
	if (f->round && !LAW(timeout_ends_round)(&params)) {
		f->round = 0;
		f->began -= f->sent;
	}
#endif
	cut(tp, f, 1);
	tp->snd_ssthresh = f->w >> 40;
	return 0;
}

SEC("struct_ops/undo_cwnd") u32 undo_cwnd(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	struct flow *f = private_of(tp);
	u32 window = tcp_reno_undo_cwnd(sock_of(tp));
	u64 before = f->w;

	f->round = 0;
	if (f->saved_w >> 40 == window) {
		f->w = f->saved_w;
		f->entered = f->saved_entered;
#ifndef LAW_OBSERVE
		f->law = f->saved;
#endif
	}
	tell(tp, EVENT_UNDO, before, f->w, f->saved_w >> 40 == window);
	return window;
}

SEC(".struct_ops.link") struct tcp_congestion_ops controller = {
	.flags = TCP_CONG_NON_RESTRICTED,
	.ssthresh = ssthresh,
	.cong_avoid = cong_avoid,
	.set_state = set_state,
	.cwnd_event = cwnd_event,
	.undo_cwnd = undo_cwnd,
	.pkts_acked = pkts_acked,
	.init = init,
	.release = release,
};

char of_this[] SEC("license") = "Dual MIT/GPL";
