/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A window law in fixed point as tcp_congestion_ops. A program defines these macros before it includes this file:
 *
 *   LAW(part)      the name of a part of the law: struct LAW(params), LAW(grow), ...
 *   LAW_GROW       calls the law's grow with w and the packets acknowledged; by default without the time
 *   LAW_ENTER      calls the law's enter with w and the time (us), if it has one
 *   LAW_ROUND      if the law has round and timeout_ends_round
 *   LAW_OBSERVE    the function that passes acknowledgements to the law, if it has observe
 *   LAW_REMEMBERS  if the law keeps its state when a cut is undone
 *   LAW_CUT        calls the law's cut with w, timeout and the minimum round-trip time (us)
 *   LAW_THRESHOLD  if the law's cut is also the threshold in slow start and after a timeout; for other laws
 *                  the threshold is then at most w / 2 (RFC 5681 equation 4)
 *
 * Slow start, recovery, proportional rate reduction and the timers are the kernel's. The law's window has
 * fractional bits, the kernel's is its integer part. If it is not, the kernel has changed its window (recovery,
 * idle restart), and the law continues from the kernel's window.
 */
#include "trace.h"

struct connection {
	u64 w;
	u64 saved_w;
	struct LAW(state) law;
#ifndef LAW_REMEMBERS
	struct LAW(state) saved;
#endif
	u32 delivered;
	u32 min_rtt;
	u32 acked_at; /* us, of the last acknowledgement */
#ifdef LAW_ROUND
	u32 sent_before_round; /* packets sent before the current round */
	u32 round_sent;        /* packets sent in the round that the last cut ended */
	u32 lost_before_round;
	u8 round_open; /* the losses of the last round are not complete */
#endif
	u8 avoidance_entered; /* congestion avoidance has begun since the last cut or slow start */
	u8 saved_avoidance_entered;
	u8 saved_slow_start;
};

_Static_assert(sizeof(struct connection) <= 104, "icsk_ca_priv has 104 bytes");

/* The loader writes the parameters. They are not const, because clang would fold the zeros of a constant. */
struct LAW(params) params SEC(".rodata.params");

#ifndef LAW_GROW
#define LAW_GROW(tp, p, s, w, acked) LAW(grow)(p, s, w, acked)
#endif

#define MIN_WINDOW (2 * FX_PACKET)

FX_INLINE void submit_event(struct tcp_sock *tp, u32 kind, u64 before, u64 after, u32 packets)
{
	struct event *event = event_begin(tp, kind);

	if (!event)
		return;
	event->before = before;
	event->after = after;
	event->packets = packets;
	event_submit(event);
}

/* Adopts the kernel's window if the kernel has changed it. */
FX_INLINE void adopt_kernel_window(struct tcp_sock *tp, struct connection *c)
{
	if (c->w >> 40 != tp->snd_cwnd)
		c->w = fx_min((u64)tp->snd_cwnd << 40, FX_MAX_WINDOW);
}

/* Passes a completed round to the law. */
FX_INLINE void close_round(struct tcp_sock *tp, struct connection *c)
{
#ifdef LAW_ROUND
	u32 lost = tp->lost - c->lost_before_round;
	struct event *event;

	if (!c->round_open)
		return;
	c->round_open = 0;
	c->lost_before_round = tp->lost;
	LAW(round)(&params, &c->law, lost, c->round_sent);
	event = event_begin(tp, EVENT_ROUND);
	if (!event)
		return;
	event->lost = lost;
	event->sent = c->round_sent;
	event_submit(event);
#endif
}

FX_INLINE void cut(struct tcp_sock *tp, struct connection *c, u32 timeout)
{
	u64 w = c->w, target = LAW_CUT(&params, &c->law, w, timeout, c->min_rtt);
	struct event *event;

	/* After recovery the kernel sets the window to the threshold. This must not increase the window. */
#ifdef LAW_THRESHOLD
	target = fx_min(target, timeout ? FX_MAX_WINDOW : w);
#else
	target = fx_min(target, c->saved_slow_start || timeout ? w / 2 : w);
#endif
	c->w = fx_max(target, MIN_WINDOW);
	event = event_begin(tp, timeout ? EVENT_TIMEOUT : EVENT_CUT);
	if (!event)
		return;
	event->before = w;
	event->after = c->w;
	event->min_rtt = c->min_rtt;
	event->lost = tp->lost;
	event->ssthresh = c->saved_slow_start;
	event_submit(event);
}

/* Ends the round, cuts the window for a loss, and returns the threshold in packets. */
FX_INLINE u32 reduce(struct tcp_sock *tp, struct connection *c, u32 slow_start)
{
	adopt_kernel_window(tp, c);
	close_round(tp, c);
	c->saved_w = c->w;
	c->saved_avoidance_entered = c->avoidance_entered;
	c->saved_slow_start = slow_start;
#ifndef LAW_REMEMBERS
	c->saved = c->law;
#endif
#ifdef LAW_ROUND
	c->round_sent = tp->data_segs_out - c->sent_before_round;
	c->sent_before_round = tp->data_segs_out;
	c->round_open = 1;
#endif
	c->avoidance_entered = 0;
	cut(tp, c, 0);
	return c->w >> 40;
}

/* With many connections the kernel sometimes skips ssthresh or undo_cwnd, and uses the low half of a kernel
 * address as the result, which exceeds all windows and thresholds. It calls set_state directly after ssthresh, but not
 * after each undo_cwnd. The connection, its window repaired. */
FX_INLINE struct connection *repaired(struct tcp_sock *tp)
{
	struct connection *c = private_of(tp);

	if (tp->snd_cwnd > FX_MAX_WINDOW >> 40)
		tp->snd_cwnd = c->w >> 40;
	return c;
}

/* Makes a skipped cut. */
FX_INLINE void repair_threshold(struct tcp_sock *tp, struct connection *c)
{
	if (tp->snd_ssthresh > TCP_INFINITE_SSTHRESH)
		tp->snd_ssthresh = reduce(tp, c, !c->avoidance_entered);
}

SEC("struct_ops/init") int init(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	struct connection *c = private_of(tp);

	__builtin_memset(c, 0, sizeof(*c));
	c->w = fx_min((u64)tp->snd_cwnd << 40, FX_MAX_WINDOW);
	c->delivered = tp->delivered;
#ifdef LAW_ROUND
	c->sent_before_round = tp->data_segs_out;
	c->lost_before_round = tp->lost;
#endif
	submit_event(tp, EVENT_BEGIN, c->w, c->w, 0);
	return 0;
}

SEC("struct_ops/release") int release(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);

	submit_event(tp, EVENT_END, 0, 0, 0);
	return 0;
}

SEC("struct_ops/pkts_acked") int pkts_acked(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	const struct ack_sample *sample = (void *)ctx[1];
	struct connection *c = repaired(tp);
	u32 arrived = tp->delivered - c->delivered;
	s32 rtt = sample->rtt_us;
	struct event *event;

	/* The kernel reports the acknowledgement of the handshake before init. */
	if (!c->w)
		return 0;
	c->delivered = tp->delivered;
	repair_threshold(tp, c);
	if (rtt > 0 && (!c->min_rtt || (u32)rtt < c->min_rtt))
		c->min_rtt = rtt;
#ifdef LAW_OBSERVE
	LAW_OBSERVE(tp, c, arrived);
#endif
	c->acked_at = tp->tcp_mstamp;
	event = event_begin(tp, EVENT_ACKED);
	if (!event)
		return 0;
	event->before = event->after = c->w;
	event->packets = arrived;
	event->rtt = rtt > 0 ? rtt : 0;
	event->min_rtt = c->min_rtt;
	event->timestamp = tp->rx_opt.rcv_tsval;
	event_submit(event);
	return 0;
}

SEC("struct_ops/cong_avoid") int cong_avoid(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	struct connection *c = repaired(tp);
	u32 acked = ctx[2];
	u64 w;

	close_round(tp, c);
	if (!window_limited(tp))
		return 0;
	if (tp->snd_cwnd < tp->snd_ssthresh) {
		u32 remaining = tcp_slow_start(tp, acked);

		c->avoidance_entered = 0;
		submit_event(tp, EVENT_SLOW, c->w, (u64)tp->snd_cwnd << 40, acked - remaining);
		acked = remaining;
		if (!acked)
			return 0;
	}
	adopt_kernel_window(tp, c);
	w = c->w;
	if (!c->avoidance_entered) {
		c->avoidance_entered = 1;
#ifdef LAW_ENTER
		LAW_ENTER(&params, &c->law, w, tp->tcp_mstamp);
#endif
		submit_event(tp, EVENT_ENTER, w, w, 0);
	}
	c->w = fx_min(LAW_GROW(tp, &params, &c->law, w, acked),
		      fx_max((u64)tp->snd_cwnd_clamp << 40, FX_PACKET));
	tp->snd_cwnd = c->w >> 40;
	submit_event(tp, EVENT_GROW, w, c->w, acked);
	return 0;
}

SEC("struct_ops/ssthresh") u32 ssthresh(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	struct connection *c = repaired(tp);

	return reduce(tp, c, tp->snd_cwnd < tp->snd_ssthresh);
}

/* The kernel calls this directly after ssthresh or undo_cwnd. */
SEC("struct_ops/set_state") int set_state(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);

	repair_threshold(tp, repaired(tp));
	return 0;
}

SEC("struct_ops/cwnd_event") int cwnd_event(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	struct connection *c = repaired(tp);

	/* The kernel calls ssthresh before it reports the timeout: restore the state before that cut. */
	if ((u32)ctx[1] != CA_EVENT_LOSS)
		return 0;
	repair_threshold(tp, c);
	c->w = c->saved_w;
#ifndef LAW_REMEMBERS
	c->law = c->saved;
#endif
#ifdef LAW_ROUND
	if (c->round_open && !LAW(timeout_ends_round)(&params)) {
		c->round_open = 0;
		c->sent_before_round -= c->round_sent;
	}
#endif
	cut(tp, c, 1);
	tp->snd_ssthresh = c->w >> 40;
	return 0;
}

SEC("struct_ops/undo_cwnd") u32 undo_cwnd(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	struct connection *c = repaired(tp);
	u32 window = tcp_reno_undo_cwnd(sock_of(tp));
	u64 before = c->w;

	/* The kernel remembers the window before a cut, as it was then. */
	if (window > FX_MAX_WINDOW >> 40)
		window = c->saved_w >> 40;
#ifdef LAW_ROUND
	c->round_open = 0;
#endif
	if (c->saved_w >> 40 == window) {
		c->w = c->saved_w;
		c->avoidance_entered = c->saved_avoidance_entered;
#ifndef LAW_REMEMBERS
		c->law = c->saved;
#endif
	}
	submit_event(tp, EVENT_UNDO, before, c->w, c->saved_w >> 40 == window);
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

char program_license[] SEC("license") = "Dual MIT/GPL";
