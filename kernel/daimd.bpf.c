/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * DAIMD as the kernel's tcp_congestion_ops: it paces by TCP's own timer, without a queueing discipline,
 * and its flow window is the congestion window. TCP's receiver measures no rate: the arrival
 * rate is the kernel's delivery rate, and an unset capacity the largest of them. This file also implements
 * the parts of the paced machine: the control interval, slow start, the minimum rate and window.
 */
#include "daimd.h"
#include "trace.h"

#define SMALLEST_RATE (1ULL << 24)
#define SMALLEST_WINDOW 16
/* At most this many packets give no rate: UDT's receiver requires more than 8 intervals too. */
#define FEW_PACKETS 8

struct flow {
	struct daimd_state law;
	u64 interval; /* us: start of the current control interval */
	u64 sampled;  /* the newest delivery rate, Q24 */
	u64 reported; /* us: time of the last rate */
	u32 arrived;  /* packets since then */
	u32 acked;    /* packets in the current interval */
	u32 cut_at;   /* packets delivered before the last cut */
	u8 lost;
	u8 cut; /* whether there was a cut */
};

_Static_assert(sizeof(struct flow) <= 104, "icsk_ca_priv has 104 bytes");

/* Not const: the loader fills it, and clang would fold the zeros of a constant. */
struct daimd_params params SEC(".rodata.params");

FX_INLINE u32 packet_of(struct tcp_sock *tp)
{
	return tp->mss_cache + tp->tcp_header_len + 20;
}

FX_INLINE u32 rtt_of(struct tcp_sock *tp)
{
	return tp->srtt_us >> 3;
}

FX_INLINE void tell(struct tcp_sock *tp, struct flow *f, u32 kind, u64 before, u64 after)
{
	struct event *event = event_begin(tp, kind);

	if (!event)
		return;
	event->before = before;
	event->after = after;
	event->arrival = f->law.arrival;
	event->capacity = f->law.capacity;
	event->rtt = rtt_of(tp);
	bpf_ringbuf_submit(event, 0);
}

FX_INLINE void leave_slow_start(struct tcp_sock *tp, struct flow *f)
{
	u64 w = (u64)tp->snd_cwnd << 40;

	daimd_start(&params, &f->law, fx_min(w, FX_MAX_WINDOW), rtt_of(tp));
	f->law.rate = fx_max(f->law.rate, SMALLEST_RATE);
	f->interval = tp->tcp_mstamp;
	tell(tp, f, EVENT_START, w, f->law.rate);
}

FX_INLINE void cut(struct tcp_sock *tp, struct flow *f, u32 kind)
{
	u64 before;

	if (!f->law.rate)
		leave_slow_start(tp, f);
	before = f->law.rate;
	daimd_cut(&params, &f->law);
	f->law.rate = fx_max(f->law.rate, SMALLEST_RATE);
	f->lost = f->cut = 1;
	f->cut_at = tp->delivered;
	tell(tp, f, kind, before, f->law.rate);
}

/* Whether a loss report begins a congestion event: prior_delivered is the number of packets delivered when
 * the newest packet that it reports as delivered was sent. */
FX_INLINE u32 begins_event(struct flow *f, const struct rate_sample *rs)
{
	return !f->cut || (rs->delivered > 0 && (s32)(rs->prior_delivered - f->cut_at) >= 0);
}

FX_INLINE void interval(struct tcp_sock *tp, struct flow *f)
{
	u64 before = f->law.rate;

	if (tp->tcp_mstamp - f->interval < params.syn)
		return;
	f->interval = tp->tcp_mstamp;
	/* Slow start opens the window at intervals, so that an overshoot is lost in few gaps, each a loss
	 * report. No report acknowledges more than a window. */
	if (!before && window_limited(tp))
		tp->snd_cwnd += fx_min(f->acked, tp->snd_cwnd);
	/* If a round trip has too few packets, all since the last report, as in (21). */
	if (!f->sampled && f->arrived > FEW_PACKETS)
		f->sampled = fx_ratio((u64)f->arrived * FX_MICROS, tp->tcp_mstamp - f->reported, 24);
	if (f->sampled) {
		u64 window = f->law.window;

		daimd_observe(&params, &f->law, f->sampled, rtt_of(tp));
		tell(tp, f, EVENT_REPORT, window, f->law.window);
		f->sampled = f->arrived = 0;
		f->reported = tp->tcp_mstamp;
	}
	if (before && f->acked && !f->lost) {
		daimd_tick(&params, &f->law, packet_of(tp));
		tell(tp, f, EVENT_TICK, before, f->law.rate);
	}
	f->acked = f->lost = 0;
}

FX_INLINE void pace(struct tcp_sock *tp, struct flow *f)
{
	struct sock *sk = sock_of(tp);
	u64 bytes = ~0UL, window = tp->snd_cwnd;

	if (f->law.rate) {
		bytes = fx_mul(f->law.rate, tp->mss_cache, 24);
		window = tp->snd_cwnd_clamp;
		if (params.lambda < FX_ONE && f->law.window)
			window = fx_min(window, f->law.window >> 40);
	}
	window = fx_max(window, SMALLEST_WINDOW);
	sk->sk_pacing_rate = fx_min(bytes, sk->sk_max_pacing_rate);
	tp->snd_cwnd = fx_min(window, fx_max(tp->snd_cwnd_clamp, 1));
}

SEC("struct_ops/init") int init(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	struct flow *f = private_of(tp);
	struct sock *sk = sock_of(tp);

	__builtin_memset(f, 0, sizeof(*f));
	f->interval = f->reported = tp->tcp_mstamp;
	/* A pacing queueing discipline may already have set SK_PACING_FQ. */
	if (!sk->sk_pacing_status)
		sk->sk_pacing_status = SK_PACING_NEEDED;
	tell(tp, f, EVENT_BEGIN, 0, 0);
	pace(tp, f);
	return 0;
}

SEC("struct_ops/release") int release(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);

	tell(tp, private_of(tp), EVENT_END, 0, 0);
	return 0;
}

SEC("struct_ops/cong_control") int cong_control(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	const struct rate_sample *rs = (void *)ctx[3];
	struct flow *f = private_of(tp);
	s32 delivered = rs->delivered;
	long micros = rs->interval_us;

	f->acked += rs->acked_sacked;
	f->arrived += rs->acked_sacked;
	if (delivered > FEW_PACKETS && micros > 0)
		f->sampled = fx_ratio((u64)delivered * FX_MICROS, micros, 24);
	interval(tp, f);
	if (rs->losses > 0) {
		/* No growth in an interval with losses, also without a cut. */
		f->lost = 1;
		if (params.report || begins_event(f, rs))
			cut(tp, f, EVENT_CUT);
	}
	pace(tp, f);
	return 0;
}

SEC("struct_ops/cwnd_event") int cwnd_event(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);

	if ((u32)ctx[1] == CA_EVENT_LOSS)
		cut(tp, private_of(tp), EVENT_TIMEOUT);
	return 0;
}

/* There is no threshold and no undo: cuts reduce the rate. */
SEC("struct_ops/ssthresh") u32 ssthresh(u64 *ctx)
{
	return tcp_of(ctx)->snd_ssthresh;
}

SEC("struct_ops/undo_cwnd") u32 undo_cwnd(u64 *ctx)
{
	return tcp_of(ctx)->snd_cwnd;
}

/* One packet at a time: TCP would send at least two and then pause for both. */
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

char of_this[] SEC("license") = "Dual MIT/GPL";
