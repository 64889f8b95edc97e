/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * DAIMD as tcp_congestion_ops. It paces with TCP's internal timer, without a queueing discipline, and its flow
 * window is the congestion window. TCP receivers do not measure rates: the kernel's delivery rate is used as
 * the arrival rate, and the largest delivery rate as the capacity if none is given. This file also implements
 * the paced machine: the control interval, slow start, and the minimum rate and window.
 */
#include "daimd.h"
#include "trace.h"

#define MIN_RATE (1ULL << 24)
#define MIN_WINDOW 16
/* A rate sample needs more packets than this, as UDT's receiver requires more than 8 intervals. */
#define TOO_FEW_PACKETS 8

struct connection {
	struct daimd_state law;
	u64 interval_start;   /* us: start of the current control interval */
	u64 delivery_rate;    /* Q24: newest sample since the last report; 0: none */
	u64 last_report;      /* us */
	u32 arrived;          /* packets since the last report */
	u32 acked;            /* packets in the current interval */
	u32 delivered_at_cut; /* packets delivered before the last cut */
	u8 interval_has_loss;
	u8 has_cut; /* whether there was a cut */
};

_Static_assert(sizeof(struct connection) <= 104, "icsk_ca_priv has 104 bytes");

/* The loader writes the parameters. They are not const, because clang would fold the zeros of a constant. */
struct daimd_params params SEC(".rodata.params");

FX_INLINE u32 smoothed_rtt(struct tcp_sock *tp)
{
	return tp->srtt_us >> 3;
}

FX_INLINE void submit_event(struct tcp_sock *tp, struct connection *c, u32 kind, u64 before, u64 after)
{
	struct event *event = event_begin(tp, kind);

	if (!event)
		return;
	event->before = before;
	event->after = after;
	event->arrival = c->law.arrival;
	event->capacity = c->law.capacity;
	event->rtt = smoothed_rtt(tp);
	event_submit(event);
}

FX_INLINE void leave_slow_start(struct tcp_sock *tp, struct connection *c)
{
	u64 w = (u64)tp->snd_cwnd << 40;

	daimd_start(&params, &c->law, fx_min(w, FX_MAX_WINDOW), smoothed_rtt(tp));
	c->law.rate = fx_max(c->law.rate, MIN_RATE);
	c->interval_start = tp->tcp_mstamp;
	submit_event(tp, c, EVENT_START, w, c->law.rate);
}

FX_INLINE void cut(struct tcp_sock *tp, struct connection *c, u32 kind)
{
	u64 before;

	if (!c->law.rate)
		leave_slow_start(tp, c);
	before = c->law.rate;
	daimd_cut(&params, &c->law);
	c->law.rate = fx_max(c->law.rate, MIN_RATE);
	c->interval_has_loss = c->has_cut = 1;
	c->delivered_at_cut = tp->delivered;
	submit_event(tp, c, kind, before, c->law.rate);
}

/* Whether a loss report begins a congestion event. prior_delivered is the number of packets that were
 * delivered when the newest packet acknowledged here was sent. */
FX_INLINE u32 begins_congestion_event(struct connection *c, const struct rate_sample *rs)
{
	return !c->has_cut || (rs->delivered > 0 && (s32)(rs->prior_delivered - c->delivered_at_cut) >= 0);
}

/* Ends the control interval if SYN has elapsed: slow start, report, increase. */
FX_INLINE void end_interval(struct tcp_sock *tp, struct connection *c)
{
	u64 before = c->law.rate;

	if (tp->tcp_mstamp - c->interval_start < params.syn)
		return;
	c->interval_start = tp->tcp_mstamp;
	/* Slow start opens the window once per interval, so that an overshoot is lost in few gaps; each gap
	 * is a loss report. An interval acknowledges at most one window. */
	if (!before && window_limited(tp))
		tp->snd_cwnd += fx_min(c->acked, tp->snd_cwnd);
	/* If a round trip has too few packets for a sample, use all packets since the last report, as in (21). */
	if (!c->delivery_rate && c->arrived > TOO_FEW_PACKETS)
		c->delivery_rate = fx_ratio((u64)c->arrived * FX_MICROS, tp->tcp_mstamp - c->last_report, 24);
	if (c->delivery_rate) {
		u64 window = c->law.window;

		daimd_observe(&params, &c->law, c->delivery_rate, smoothed_rtt(tp));
		submit_event(tp, c, EVENT_REPORT, window, c->law.window);
		c->delivery_rate = c->arrived = 0;
		c->last_report = tp->tcp_mstamp;
	}
	if (before && c->acked && !c->interval_has_loss) {
		daimd_tick(&params, &c->law, packet_bytes(tp));
		submit_event(tp, c, EVENT_TICK, before, c->law.rate);
	}
	c->acked = c->interval_has_loss = 0;
}

/* Sets the pacing rate and the congestion window. */
FX_INLINE void apply(struct tcp_sock *tp, struct connection *c)
{
	struct sock *sk = sock_of(tp);
	u64 bytes = ~0UL, window = tp->snd_cwnd;

	if (c->law.rate) {
		bytes = fx_mul(c->law.rate, tp->mss_cache, 24);
		/* The kernel computes with signed windows: it would not retransmit with a larger one. */
		window = FX_MAX_WINDOW >> 40;
		if (params.lambda < FX_ONE && c->law.window)
			window = fx_min(window, c->law.window >> 40);
	}
	window = fx_max(window, MIN_WINDOW);
	sk->sk_pacing_rate = fx_min(bytes, sk->sk_max_pacing_rate);
	tp->snd_cwnd = fx_min(window, fx_max(tp->snd_cwnd_clamp, 1));
}

SEC("struct_ops/init") int init(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	struct connection *c = private_of(tp);
	struct sock *sk = sock_of(tp);

	__builtin_memset(c, 0, sizeof(*c));
	c->interval_start = c->last_report = tp->tcp_mstamp;
	/* The queueing discipline fq may already have set SK_PACING_FQ. */
	if (!sk->sk_pacing_status)
		sk->sk_pacing_status = SK_PACING_NEEDED;
	submit_event(tp, c, EVENT_BEGIN, 0, 0);
	apply(tp, c);
	return 0;
}

SEC("struct_ops/release") int release(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);

	submit_event(tp, private_of(tp), EVENT_END, 0, 0);
	return 0;
}

SEC("struct_ops/cong_control") int cong_control(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	const struct rate_sample *rs = (void *)ctx[3];
	struct connection *c = private_of(tp);
	s32 delivered = rs->delivered;
	long micros = rs->interval_us;

	/* With many connections the kernel sometimes skips undo_cwnd: kernel/window.h. */
	if (tp->snd_cwnd > FX_MAX_WINDOW >> 40)
		tp->snd_cwnd = packets_in_flight(tp);
	c->acked += rs->acked_sacked;
	c->arrived += rs->acked_sacked;
	if (delivered > TOO_FEW_PACKETS && micros > 0)
		c->delivery_rate = fx_ratio((u64)delivered * FX_MICROS, micros, 24);
	end_interval(tp, c);
	if (rs->losses > 0) {
		/* The rate does not grow in an interval with losses, even without a cut. */
		c->interval_has_loss = 1;
		if (params.each_report || begins_congestion_event(c, rs))
			cut(tp, c, EVENT_CUT);
	}
	apply(tp, c);
	return 0;
}

SEC("struct_ops/cwnd_event") int cwnd_event(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);

	if ((u32)ctx[1] == CA_EVENT_LOSS)
		cut(tp, private_of(tp), EVENT_TIMEOUT);
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
