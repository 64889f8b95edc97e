/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A window law that is a text as tcp_congestion_ops.
 *
 * Slow start, recovery, proportional rate reduction and the timers are the kernel's. The law's window is a binary64
 * number, the kernel's is its floor. If it is not, the kernel has changed its window (recovery, idle restart), and the
 * law continues from the kernel's window. The machine of crate cwnd around a law is machine/windowed.rs.
 *
 * The state of a connection is in the socket's storage: icsk_ca_priv has 104 bytes. Without memory for it the connection
 * keeps its window, and halves it at a loss.
 */
#include "law_connection.h"

struct connection {
	struct law_connection common;
	u64 saved[LAW_REGISTERS]; /* before the last cut, as are the next two */
	u64 saved_w;
	u64 saved_last_cut;
	u64 w;
	u64 round_began; /* ns */
	u64 round_took;  /* ns: the length of the round that the last cut ended */
	u64 receiver_time; /* ns since the first timestamp */
	u32 timestamp;     /* the receiver's newest timestamp */
	u32 has_timestamp;
	u32 delivered;
	u32 kernel_window;     /* after the last acknowledgement; 0 after a cut */
	u32 sent_before_round; /* packets sent before the current round */
	u32 round_sent;        /* packets sent in the round that the last cut ended */
	u32 lost_before_round;
	u32 marked_before_round;
	u8 round_open;        /* the losses of the last round are not complete */
	u8 avoidance_entered; /* congestion avoidance has begun since the last cut or slow start */
	u8 saved_avoidance_entered;
	u8 saved_slow_start;
};

STORAGE(struct connection);

#define TWO 0x4000000000000000ULL
#define HALF 0x3fe0000000000000ULL

FX_INLINE struct connection *connection_of(struct tcp_sock *tp, u64 flags)
{
	return bpf_sk_storage_get(&connections, tp, 0, flags);
}

FX_INLINE u64 kernel_window(struct tcp_sock *tp)
{
	return b64_from_u64(fx_min(tp->snd_cwnd, MAX_WINDOW));
}

FX_INLINE u32 in_slow_start(struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

FX_INLINE void submit_event(struct tcp_sock *tp, struct connection *c, u32 kind, u64 before, u64 after, u32 packets)
{
	submit_law_event(tp, &c->common, kind, before, after, packets);
}

/* Adopts the kernel's window if the kernel has changed it. */
FX_INLINE void adopt_kernel_window(struct tcp_sock *tp, struct connection *c)
{
	if (b64_to_u64(c->w) != tp->snd_cwnd)
		c->w = kernel_window(tp);
}

/* The kernel has reduced its window since the last acknowledgement, other than for congestion. */
FX_INLINE void note_reduction(struct tcp_sock *tp, struct connection *c)
{
	u64 before = c->w;

	if (tp->snd_cwnd >= c->kernel_window)
		return;
	c->w = kernel_window(tp);
	c->avoidance_entered = 0;
	if (!law_has(HOOK_REDUCED))
		return;
	c->common.law.given[INPUT_W] = c->w;
	law_call(&c->common.law, HOOK_REDUCED);
	submit_event(tp, c, EVENT_REDUCED, before, c->w, 0);
}

/* Passes a completed round to the law. */
FX_INLINE void close_round(struct tcp_sock *tp, struct connection *c)
{
	u32 lost = tp->lost - c->lost_before_round, marked = tp->delivered_ce - c->marked_before_round;
	u64 *given = c->common.law.given;
	struct law_event *event;

	if (!c->round_open)
		return;
	c->round_open = 0;
	c->lost_before_round = tp->lost;
	c->marked_before_round = tp->delivered_ce;
	if (!law_has(HOOK_ROUND))
		return;
	give_context(tp, &c->common, in_slow_start(tp));
	given[INPUT_ROUND_SENT] = c->round_sent;
	given[INPUT_ROUND_LOST] = lost;
	given[INPUT_ROUND_MARKED] = marked;
	given[INPUT_ROUND_TOOK] = c->round_took;
	law_call(&c->common.law, HOOK_ROUND);
	event = law_event_begin(tp, &c->common, EVENT_ROUND, c->w, c->w);
	if (!event)
		return;
	event->event.lost = lost;
	event->event.sent = c->round_sent;
	event->marked = marked;
	event->time = c->round_took;
	event_submit(event);
}

/* The law's threshold, or its cut, which is at most half of the window in slow start and after a timeout (RFC 5681
 * equation 4). After recovery the kernel sets the window to the threshold: this must not increase the window. */
FX_INLINE void cut(struct tcp_sock *tp, struct connection *c, u32 why)
{
	u32 timeout = why == SIGNAL_TIMEOUT, halves = c->saved_slow_start || timeout;
	struct law_state *s = &c->common.law;
	struct law_event *event;
	u64 w = c->w, target;

	give_context(tp, &c->common, c->saved_slow_start);
	s->given[INPUT_W] = w;
	s->given[INPUT_WHY] = why;
	target = law_call(s, HOOK_CUT) ? s->answer : w;
	if (!b64_is_finite(target))
		target = 0;
	s->given[INPUT_CUT] = target;
	if (law_has(HOOK_THRESHOLD) && law_call(s, HOOK_THRESHOLD) && !b64_is_nan(s->answer))
		target = b64_limit(s->answer, timeout ? b64_from_u64(MAX_WINDOW) : w);
	else
		target = b64_limit(target, halves ? b64_mul(w, HALF) : w);
	c->w = b64_at_least(target, TWO);
	event = law_event_begin(tp, &c->common, timeout ? EVENT_TIMEOUT : EVENT_CUT, w, c->w);
	c->common.last_cut = now_of(tp);
	if (!event)
		return;
	event->event.lost = tp->lost;
	event->event.ssthresh = c->saved_slow_start;
	event->why = why;
	event_submit(event);
}

/* A loss and a timeout have marked lost packets. A full queue of this host has not, but counts as a loss too unless the
 * connection has ECN. */
FX_INLINE u32 signal_of(struct tcp_sock *tp)
{
	return !tp->lost_out && tp->ecn_flags & TCP_ECN_OK ? SIGNAL_MARK : SIGNAL_LOSS;
}

/* Ends the round, cuts the window, and returns the threshold in packets. */
FX_INLINE u32 reduce(struct tcp_sock *tp, struct connection *c, u32 slow_start)
{
	u32 why = signal_of(tp);

	adopt_kernel_window(tp, c);
	close_round(tp, c);
	if (why == SIGNAL_MARK && law_has(HOOK_ANSWERS_MARK)) {
		give_context(tp, &c->common, slow_start);
		if (!law_affirms(&c->common.law, HOOK_ANSWERS_MARK, 1))
			return tp->snd_cwnd;
	}
	c->saved_w = c->w;
	c->saved_last_cut = c->common.last_cut;
	c->saved_avoidance_entered = c->avoidance_entered;
	c->saved_slow_start = slow_start;
	__builtin_memcpy(c->saved, c->common.law.registers, sizeof(c->saved));
	c->round_sent = tp->data_segs_out - c->sent_before_round;
	c->sent_before_round = tp->data_segs_out;
	c->round_took = law_since(now_of(tp), c->round_began);
	c->round_began = now_of(tp);
	c->round_open = 1;
	c->avoidance_entered = 0;
	c->kernel_window = 0;
	cut(tp, c, why);
	return b64_to_u64(c->w);
}

/* With many connections the kernel sometimes skips ssthresh or undo_cwnd: kernel/cubic.bpf.c. The connection, its window
 * repaired. */
FX_INLINE struct connection *repaired(struct tcp_sock *tp)
{
	struct connection *c = connection_of(tp, 0);

	if (c && tp->snd_cwnd > MAX_WINDOW)
		tp->snd_cwnd = b64_to_u64(c->w);
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
	struct connection *c = connection_of(tp, STORAGE_CREATE);

	if (!c)
		return 0;
	begin_law(tp, &c->common);
	give_context(tp, &c->common, 1);
	c->w = kernel_window(tp);
	c->delivered = tp->delivered;
	c->round_began = now_of(tp);
	c->sent_before_round = tp->data_segs_out;
	c->lost_before_round = tp->lost;
	c->marked_before_round = tp->delivered_ce;
	submit_event(tp, c, EVENT_BEGIN, c->w, c->w, 0);
	return 0;
}

SEC("struct_ops/release") int release(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	struct connection *c = connection_of(tp, 0);

	if (c)
		submit_event(tp, c, EVENT_END, 0, 0, 0);
	bpf_sk_storage_delete(&connections, tp);
	return 0;
}

/* The packet size has changed: the window stays the same number of bytes, unless the kernel has changed it. */
FX_INLINE void rescale(struct tcp_sock *tp, struct connection *c)
{
	u32 packet = c->common.packet;
	u64 factor = rescale_law(tp, &c->common, HOOK_RESCALE), before = c->w;

	if (!factor)
		return;
	c->saved_w = 0;
	if (b64_to_u64(before) == tp->snd_cwnd) {
		c->w = b64_limit(b64_at_least(b64_mul(before, factor), TWO), b64_from_u64(MAX_WINDOW));
		tp->snd_cwnd = b64_to_u64(c->w);
		if (tp->snd_ssthresh < TCP_INFINITE_SSTHRESH)
			tp->snd_ssthresh = b64_to_u64(b64_mul(b64_from_u64(tp->snd_ssthresh), factor));
	}
	c->kernel_window = tp->snd_cwnd;
	submit_event(tp, c, EVENT_MTU, before, c->w, packet);
}

/* The time of the receiver's clock, by timestamps of 1 ms as Linux sends them: monotonic. */
FX_INLINE void read_timestamp(struct tcp_sock *tp, struct connection *c)
{
	u32 timestamp = tp->rx_opt.rcv_tsval;
	s32 ticks = c->has_timestamp ? (s32)(timestamp - c->timestamp) : 0;

	if (!timestamp || (c->has_timestamp && ticks <= 0))
		return;
	c->has_timestamp = 1;
	c->timestamp = timestamp;
	c->receiver_time += ticks * 1000 * MICRO;
}

FX_INLINE void observe(struct tcp_sock *tp, struct connection *c, s32 rtt)
{
	u32 arrived = tp->delivered - c->delivered, marked = tp->delivered_ce - c->common.marked;
	u64 *given = c->common.law.given;
	struct law_event *event;

	read_timestamp(tp, c);
	give_context(tp, &c->common, in_slow_start(tp));
	if (law_has(HOOK_OBSERVE)) {
		given[INPUT_ACKED_PACKETS] = given[INPUT_ACKED_CREDIT] = arrived;
		given[INPUT_ACKED_IN_FLIGHT] = packets_in_flight(tp);
		given[INPUT_ACKED_SENT] = tp->data_segs_out;
		given[INPUT_ACKED_SENT_AT] = law_since(now_of(tp), rtt > 0 ? rtt * MICRO : 0);
		given[INPUT_ACKED_RTT] = rtt > 0 ? rtt * MICRO : LAW_NONE;
		given[INPUT_ACKED_RECEIVED_AT] = c->has_timestamp ? c->receiver_time : LAW_NONE;
		given[INPUT_ACKED_ECHO] = marked > 0;
		given[INPUT_ACKED_MARKED] = marked;
		given[INPUT_ACKED_LIMIT] = window_limited(tp) ? LIMIT_WINDOW : LIMIT_APPLICATION;
		law_call(&c->common.law, HOOK_OBSERVE);
	}
	c->delivered = tp->delivered;
	c->common.marked = tp->delivered_ce;
	event = law_event_begin(tp, &c->common, EVENT_ACKED, c->w, c->w);
	if (!event)
		return;
	event->event.packets = arrived;
	event->event.rtt = rtt > 0 ? rtt : 0;
	event->event.timestamp = c->has_timestamp;
	event->marked = marked;
	event->time = c->receiver_time;
	event_submit(event);
}

SEC("struct_ops/pkts_acked") int pkts_acked(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	const struct ack_sample *sample = (void *)ctx[1];
	struct connection *c = repaired(tp);

	/* The kernel reports the acknowledgement of the handshake before init. */
	if (!c)
		return 0;
	repair_threshold(tp, c);
	rescale(tp, c);
	add_rtt(&c->common, sample->rtt_us);
	observe(tp, c, sample->rtt_us);
	return 0;
}

/* Grows the window by the kernel's slow start. Returns the packets that remain for congestion avoidance. */
FX_INLINE u32 grow_in_slow_start(struct tcp_sock *tp, struct connection *c, u32 acked)
{
	u32 remaining = tcp_slow_start(tp, acked), leaves = 0;
	struct law_state *s = &c->common.law;
	struct law_event *event;

	s->given[INPUT_W] = kernel_window(tp);
	if (acked > remaining)
		leaves = law_affirms(s, HOOK_LEAVE_SLOW_START, 0);
	if (leaves)
		tp->snd_ssthresh = tp->snd_cwnd;
	c->avoidance_entered = 0;
	event = law_event_begin(tp, &c->common, EVENT_SLOW, c->w, s->given[INPUT_W]);
	if (event) {
		event->event.packets = acked - remaining;
		event->answer = leaves;
		event_submit(event);
	}
	return remaining;
}

FX_INLINE void enter(struct tcp_sock *tp, struct connection *c)
{
	struct law_state *s = &c->common.law;

	c->avoidance_entered = 1;
	s->given[INPUT_W] = c->w;
	if (law_has(HOOK_ENTER))
		law_call(s, HOOK_ENTER);
	submit_event(tp, c, EVENT_ENTER, c->w, c->w, 0);
}

/* A law may decrease its window (Vegas): that does not return to slow start. */
FX_INLINE void grow(struct tcp_sock *tp, struct connection *c, u32 acked)
{
	struct law_state *s = &c->common.law;
	u64 w = c->w, grown;

	s->given[INPUT_W] = w;
	s->given[INPUT_ACKED] = acked;
	grown = law_call(s, HOOK_GROW) ? s->answer : w;
	c->w = b64_limit(b64_at_least(grown, TWO), b64_from_u64(MAX_WINDOW));
	tp->snd_cwnd = fx_min(b64_to_u64(c->w), fx_max(tp->snd_cwnd_clamp, 1));
	tp->snd_ssthresh = fx_min(tp->snd_ssthresh, tp->snd_cwnd);
	submit_event(tp, c, EVENT_GROW, w, c->w, acked);
}

SEC("struct_ops/cong_avoid") int cong_avoid(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	struct connection *c = repaired(tp);
	u32 acked = ctx[2];

	if (!c)
		return 0;
	close_round(tp, c);
	note_reduction(tp, c);
	if (window_limited(tp)) {
		give_context(tp, &c->common, in_slow_start(tp));
		if (in_slow_start(tp))
			acked = grow_in_slow_start(tp, c, acked);
		if (!in_slow_start(tp)) {
			adopt_kernel_window(tp, c);
			if (!c->avoidance_entered)
				enter(tp, c);
			if (acked)
				grow(tp, c, acked);
		}
	}
	c->kernel_window = tp->snd_cwnd;
	return 0;
}

SEC("struct_ops/ssthresh") u32 ssthresh(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	struct connection *c = repaired(tp);

	if (!c)
		return fx_max(tp->snd_cwnd / 2, 2);
	return reduce(tp, c, in_slow_start(tp));
}

/* The kernel calls this directly after ssthresh or undo_cwnd. */
SEC("struct_ops/set_state") int set_state(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	struct connection *c = repaired(tp);

	if (c)
		repair_threshold(tp, c);
	return 0;
}

SEC("struct_ops/cwnd_event") int cwnd_event(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	struct connection *c = repaired(tp);

	/* The kernel calls ssthresh before it reports the timeout: restore the state before that cut. */
	if ((u32)ctx[1] != CA_EVENT_LOSS || !c)
		return 0;
	repair_threshold(tp, c);
	c->w = c->saved_w;
	c->common.last_cut = c->saved_last_cut;
	__builtin_memcpy(c->common.law.registers, c->saved, sizeof(c->saved));
	if (c->round_open && !law_affirms(&c->common.law, HOOK_TIMEOUT_ENDS_ROUND, 1)) {
		c->round_open = 0;
		c->sent_before_round -= c->round_sent;
		c->round_began -= c->round_took;
	}
	cut(tp, c, SIGNAL_TIMEOUT);
	tp->snd_ssthresh = b64_to_u64(c->w);
	return 0;
}

SEC("struct_ops/undo_cwnd") u32 undo_cwnd(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	struct connection *c = repaired(tp);
	u32 window = tcp_reno_undo_cwnd(sock_of(tp)), restores;
	u64 before;

	if (!c)
		return window;
	/* The kernel remembers the window before a cut, as it was then. */
	if (window > MAX_WINDOW)
		window = fx_max(b64_to_u64(c->saved_w), tp->snd_cwnd);
	before = c->w;
	restores = b64_to_u64(c->saved_w) == window;
	c->round_open = 0;
	if (restores) {
		c->w = c->saved_w;
		c->avoidance_entered = c->saved_avoidance_entered;
		__builtin_memcpy(c->common.law.registers, c->saved, sizeof(c->saved));
	}
	submit_event(tp, c, EVENT_UNDO, before, c->w, restores);
	return window;
}

/* The loader adds TCP_CONG_NEEDS_ECN for laws that need it. */
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
