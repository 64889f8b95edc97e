/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A rate law that is a text as tcp_congestion_ops: the paced machine of crate cwnd (machine/paced.rs) around the law, with
 * the kernel's measurements in the place of UDT's receiver. It paces with TCP's internal
 * timer, without a queueing discipline, and its flow window is the congestion window. Both clocks of a law are that of
 * the acknowledgements.
 *
 * The state of a connection is in the socket's storage. Without memory for it the connection keeps its window.
 */
#include "law_connection.h"

#define MIN_WINDOW 16
/* A rate sample needs more packets than this, as UDT's receiver requires more than 8 intervals. */
#define TOO_FEW_PACKETS 8
/* 1e6, 1/2 */
#define MICROS 0x412e848000000000ULL
#define HALF 0x3fe0000000000000ULL

struct connection {
	struct law_connection common;
	u64 rate;           /* packets/s */
	u64 window;         /* packets; infinite: none, until the first report and of a law without one */
	u64 delivery_rate;  /* packets/s: newest sample since the last report; 0: none */
	u64 capacity;       /* packets/s: the largest delivery rate */
	u64 interval_start; /* ns: start of the current control interval */
	u64 last_report;    /* us */
	u32 arrived;        /* packets since the last report */
	u32 acked;          /* packets in the current interval */
	u32 lost;           /* packets lost in total, of which the law knows */
	u32 delivered_at_cut; /* packets delivered before the last cut */
	u8 started;           /* slow start is over */
	u8 interval_has_loss;
	u8 has_cut; /* whether there was a cut */
};

STORAGE(struct connection);

FX_INLINE struct connection *connection_of(struct tcp_sock *tp, u64 flags)
{
	return bpf_sk_storage_get(&connections, tp, 0, flags);
}

FX_INLINE u32 smoothed_rtt(struct tcp_sock *tp)
{
	return tp->srtt_us >> 3;
}

FX_INLINE void submit_event(struct tcp_sock *tp, struct connection *c, u32 kind, u64 before, u64 after, u32 packets)
{
	submit_law_event(tp, &c->common, kind, before, after, packets);
}

/* The least rate. */
FX_INLINE u64 least(struct connection *c)
{
	struct law_state *s = &c->common.law;

	return law_has(HOOK_LEAST) && law_call(s, HOOK_LEAST) ? s->answer : B64_ONE;
}

/* The rate that the machine takes from an answer: `otherwise` if it is not finite, and at least the least. */
FX_INLINE u64 bounded(struct connection *c, u64 rate, u64 otherwise)
{
	u64 bound = least(c);

	if (!b64_is_finite(rate))
		rate = otherwise;
	return b64_less(rate, bound) ? bound : rate;
}

FX_INLINE void leave_slow_start(struct tcp_sock *tp, struct connection *c)
{
	struct law_state *s = &c->common.law;
	u64 w = b64_from_u64(tp->snd_cwnd);

	if (c->started)
		return;
	give_context(tp, &c->common, 1);
	s->given[INPUT_W] = w;
	c->rate = bounded(c, law_call(s, HOOK_START) ? s->answer : 0, least(c));
	c->started = 1;
	c->interval_start = now_of(tp);
	submit_event(tp, c, EVENT_START, w, c->rate, 0);
}

/* Passes lost or marked packets to the law, if there are some, and then the signal. A reduction begins a congestion
 * period. */
FX_INLINE void cut(struct tcp_sock *tp, struct connection *c, u32 why, u32 fresh, u32 packets)
{
	u32 kind = why == SIGNAL_TIMEOUT ? EVENT_TIMEOUT : why == SIGNAL_DELAY ? EVENT_DELAY : EVENT_CUT;
	struct law_state *s = &c->common.law;
	u64 before, after, sent_at = law_since(now_of(tp), smoothed_rtt(tp) * MICRO);
	struct law_event *event;

	leave_slow_start(tp, c);
	before = c->rate;
	give_context(tp, &c->common, 0);
	s->given[INPUT_RATE] = before;
	s->given[INPUT_LOST_PACKETS] = packets;
	s->given[INPUT_LOST_SENT_AT] = sent_at;
	s->given[INPUT_LOST_SENT] = tp->data_segs_out;
	if (packets && law_has(HOOK_LOSSES))
		law_call(s, HOOK_LOSSES);
	/* The law answers one mark for each congestion period. */
	if (why == SIGNAL_MARK && !fresh) {
		kind = EVENT_LOST;
	} else {
		c->interval_has_loss = 1;
		s->given[INPUT_FRESH] = fresh;
		s->given[INPUT_WHY] = why;
		after = law_call(s, HOOK_CUT_RATE) ? s->answer : before;
		if (b64_less(after, before)) {
			c->common.last_cut = now_of(tp);
			c->has_cut = 1;
			c->delivered_at_cut = tp->delivered;
		} else {
			after = before;
		}
		c->rate = bounded(c, after, before);
	}
	event = law_event_begin(tp, &c->common, kind, before, c->rate);
	if (!event)
		return;
	event->event.packets = packets;
	event->time = sent_at;
	event->why = why;
	event->answer = fresh;
	event_submit(event);
}

/* Whether a loss report begins a congestion period. prior_delivered is the number of packets that were
 * delivered when the newest packet acknowledged here was sent. */
FX_INLINE u32 begins_congestion_period(struct connection *c, const struct rate_sample *rs)
{
	return !c->has_cut || (rs->delivered > 0 && (s32)(rs->prior_delivered - c->delivered_at_cut) >= 0);
}

/* Passes a report to the law, and asks for its flow window. */
FX_INLINE void report(struct tcp_sock *tp, struct connection *c)
{
	struct law_state *s = &c->common.law;
	u64 before = c->window;
	struct law_event *event;
	u32 rises;

	if (b64_less(c->capacity, c->delivery_rate))
		c->capacity = c->delivery_rate;
	give_context(tp, &c->common, !c->started);
	s->given[INPUT_REPORT_PACKETS] = c->arrived;
	s->given[INPUT_REPORT_SENT] = tp->data_segs_out;
	s->given[INPUT_REPORT_ARRIVAL] = c->delivery_rate;
	s->given[INPUT_REPORT_CAPACITY] = c->capacity;
	s->given[INPUT_REPORT_RTT] = smoothed_rtt(tp) * MICRO;
	if (law_has(HOOK_OBSERVE_REPORT))
		law_call(s, HOOK_OBSERVE_REPORT);
	rises = law_affirms(s, HOOK_DELAY_RISES, 0);
	c->window = law_has(HOOK_FLOW_WINDOW) && law_call(s, HOOK_FLOW_WINDOW) ? s->answer : B64_INFINITY;
	event = law_event_begin(tp, &c->common, EVENT_REPORT, before, c->window);
	if (event) {
		event->event.arrival = c->delivery_rate;
		event->event.capacity = c->capacity;
		event->event.packets = c->arrived;
		event->event.rtt = smoothed_rtt(tp);
		event->answer = rises;
		event_submit(event);
	}
	if (rises)
		cut(tp, c, SIGNAL_DELAY, 1, 0);
	c->delivery_rate = c->arrived = 0;
	c->last_report = tp->tcp_mstamp;
}

FX_INLINE void tick(struct tcp_sock *tp, struct connection *c)
{
	struct law_state *s = &c->common.law;
	u64 before = c->rate;

	give_context(tp, &c->common, 0);
	s->given[INPUT_RATE] = before;
	c->rate = bounded(c, law_call(s, HOOK_TICK) ? s->answer : before, before);
	submit_event(tp, c, EVENT_TICK, before, c->rate, 0);
}

/* The control interval in nanoseconds: at least a microsecond, as in laws/text.rs. */
FX_INLINE u64 interval(struct connection *c)
{
	struct law_state *s = &c->common.law;
	u64 seconds = law_call(s, HOOK_INTERVAL) ? s->answer : 0;

	return fx_max(b64_to_u64(b64_add(b64_mul(seconds, LAW_NANOS), HALF)), MICRO);
}

/* Ends the control interval if it has elapsed: slow start, report, increase. */
FX_INLINE void end_interval(struct tcp_sock *tp, struct connection *c)
{
	u32 started = c->started;

	if (law_since(now_of(tp), c->interval_start) < interval(c))
		return;
	c->interval_start = now_of(tp);
	/* Slow start opens the window once per interval, so that an overshoot is lost in few gaps; each gap
	 * is a loss report. An interval acknowledges at most one window. */
	if (!started && window_limited(tp))
		tp->snd_cwnd += fx_min(c->acked, tp->snd_cwnd);
	/* If a round trip has too few packets for a sample, use all packets since the last report. */
	if (!c->delivery_rate && c->arrived > TOO_FEW_PACKETS && tp->tcp_mstamp > c->last_report)
		c->delivery_rate = b64_div(b64_mul(b64_from_u64(c->arrived), MICROS),
					   b64_from_u64(tp->tcp_mstamp - c->last_report));
	if (c->delivery_rate)
		report(tp, c);
	if (started && (law_affirms(&c->common.law, HOOK_STARTS_ITSELF, 0) || (c->acked && !c->interval_has_loss)))
		tick(tp, c);
	c->acked = c->interval_has_loss = 0;
}

/* Sets the pacing rate and the congestion window. */
FX_INLINE void apply(struct tcp_sock *tp, struct connection *c)
{
	struct sock *sk = sock_of(tp);
	u64 bytes = ~0UL, window = tp->snd_cwnd;

	if (c->started) {
		bytes = b64_to_u64(b64_mul(c->rate, b64_from_u64(tp->mss_cache)));
		/* The kernel computes with signed windows: it would not retransmit with a larger one. */
		window = fx_min(MAX_WINDOW, b64_to_u64(c->window));
	}
	window = fx_max(window, MIN_WINDOW);
	sk->sk_pacing_rate = fx_min(bytes, sk->sk_max_pacing_rate);
	tp->snd_cwnd = fx_min(window, fx_max(tp->snd_cwnd_clamp, 1));
}

/* The packet size has changed: the rate stays the same number of bytes. */
FX_INLINE void rescale(struct tcp_sock *tp, struct connection *c)
{
	u32 packet = c->common.packet;
	u64 factor = rescale_law(tp, &c->common, HOOK_RESCALE_RATE), before = c->rate;

	if (!factor)
		return;
	if (c->started)
		c->rate = bounded(c, b64_mul(before, factor), before);
	submit_event(tp, c, EVENT_MTU, before, c->rate, packet);
}

SEC("struct_ops/init") int init(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	struct connection *c = connection_of(tp, STORAGE_CREATE);
	struct sock *sk = sock_of(tp);

	if (!c)
		return 0;
	begin_law(tp, &c->common);
	give_context(tp, &c->common, 1);
	c->window = B64_INFINITY;
	c->interval_start = now_of(tp);
	c->last_report = tp->tcp_mstamp;
	c->lost = tp->lost;
	/* The queueing discipline fq may already have set SK_PACING_FQ. */
	if (!sk->sk_pacing_status)
		sk->sk_pacing_status = SK_PACING_NEEDED;
	submit_event(tp, c, EVENT_BEGIN, 0, 0, 0);
	if (law_affirms(&c->common.law, HOOK_STARTS_ITSELF, 0))
		leave_slow_start(tp, c);
	apply(tp, c);
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

SEC("struct_ops/cong_control") int cong_control(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	const struct rate_sample *rs = (void *)ctx[3];
	struct connection *c = connection_of(tp, 0);
	u32 marked;

	if (!c)
		return 0;
	/* With many connections the kernel sometimes skips undo_cwnd: kernel/cubic.bpf.c. */
	if (tp->snd_cwnd > MAX_WINDOW)
		tp->snd_cwnd = packets_in_flight(tp);
	rescale(tp, c);
	add_rtt(&c->common, rs->rtt_us);
	c->acked += rs->acked_sacked;
	c->arrived += rs->acked_sacked;
	if (rs->delivered > TOO_FEW_PACKETS && rs->interval_us > 0)
		c->delivery_rate = b64_div(b64_mul(b64_from_u64(rs->delivered), MICROS),
					   b64_from_u64(rs->interval_us));
	end_interval(tp, c);
	if (rs->losses > 0)
		cut(tp, c, SIGNAL_LOSS, begins_congestion_period(c, rs), rs->losses);
	marked = tp->delivered_ce - c->common.marked;
	if (marked)
		cut(tp, c, SIGNAL_MARK, begins_congestion_period(c, rs), marked);
	c->common.marked = tp->delivered_ce;
	c->lost = tp->lost;
	apply(tp, c);
	return 0;
}

SEC("struct_ops/cwnd_event") int cwnd_event(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	struct connection *c = connection_of(tp, 0);

	if ((u32)ctx[1] != CA_EVENT_LOSS || !c)
		return 0;
	cut(tp, c, SIGNAL_TIMEOUT, 1, tp->lost - c->lost);
	c->lost = tp->lost;
	return 0;
}

/* The law cuts the rate: the threshold and the window stay, and undo changes nothing. */
SEC("struct_ops/ssthresh") u32 ssthresh(u64 *ctx)
{
	return tcp_of(ctx)->snd_ssthresh;
}

SEC("struct_ops/undo_cwnd") u32 undo_cwnd(u64 *ctx)
{
	return tcp_of(ctx)->snd_cwnd;
}

/* Send one packet at a time: by default TCP sends at least two, and then pauses for both. */
SEC("struct_ops/min_tso_segs") u32 min_tso_segs(u64 *ctx)
{
	return 1;
}

SEC(".struct_ops.link") struct tcp_congestion_ops controller = {
	.flags = TCP_CONG_NON_RESTRICTED,
	.ssthresh = ssthresh,
	.cwnd_event = cwnd_event,
	.undo_cwnd = undo_cwnd,
	.min_tso_segs = min_tso_segs,
	.cong_control = cong_control,
	.init = init,
	.release = release,
};

char program_license[] SEC("license") = "Dual MIT/GPL";
