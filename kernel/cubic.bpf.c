/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * CUBIC as tcp_congestion_ops, in fixed point (cubic.h).
 *
 * Slow start, recovery, proportional rate reduction and the timers are the kernel's. The law's window has
 * fractional bits, the kernel's is its integer part. If it is not, the kernel has changed its window (recovery,
 * idle restart), and the law continues from the kernel's window.
 */
#include "cubic.h"
#include "trace.h"

struct connection {
	u64 w;
	u64 saved_w;
	struct cubic_state law;
	struct cubic_state saved;
	u32 delivered;
	u32 min_rtt;
	u32 acked_at; /* us, of the last acknowledgement */
	u8 avoidance_entered; /* congestion avoidance has begun since the last cut or slow start */
	u8 saved_avoidance_entered;
	u8 saved_slow_start;
};

_Static_assert(sizeof(struct connection) <= 104, "icsk_ca_priv has 104 bytes");

/* The loader writes the parameters. They are not const, because clang would fold the zeros of a constant. */
struct cubic_params params SEC(".rodata.params");

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

FX_INLINE void cut(struct tcp_sock *tp, struct connection *c, u32 timeout)
{
	u64 w = c->w, target = cubic_cut(&params, &c->law, w, timeout);
	struct event *event;

	/* After recovery the kernel sets the window to the threshold. This must not increase the window. */
	target = fx_min(target, timeout ? FX_MAX_WINDOW : w);
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

/* Cuts the window for a loss, and returns the threshold in packets. */
FX_INLINE u32 reduce(struct tcp_sock *tp, struct connection *c, u32 slow_start)
{
	adopt_kernel_window(tp, c);
	c->saved_w = c->w;
	c->saved_avoidance_entered = c->avoidance_entered;
	c->saved_slow_start = slow_start;
	c->saved = c->law;
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
	cubic_observe(&c->law, window_limited(tp), (u32)tp->tcp_mstamp - c->acked_at, tp->tcp_mstamp);
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
		cubic_enter(&params, &c->law, w, tp->tcp_mstamp);
		submit_event(tp, EVENT_ENTER, w, w, 0);
	}
	c->w = fx_min(cubic_grow(&params, &c->law, w, acked, tp->tcp_mstamp, tp->srtt_us >> 3),
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
	c->law = c->saved;
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
	if (c->saved_w >> 40 == window) {
		c->w = c->saved_w;
		c->avoidance_entered = c->saved_avoidance_entered;
		c->law = c->saved;
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
