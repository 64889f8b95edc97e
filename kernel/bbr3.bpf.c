/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * BBR version 3 as tcp_congestion_ops. Its state is in the socket's storage (BPF_MAP_TYPE_SK_STORAGE), because
 * icsk_ca_priv has only 104 bytes. Without memory for it the connection keeps its window and does not pace.
 *
 * It paces with TCP's internal timer or fq, and sends 1 ms at a time (TSO autosizing), at least two packets. The
 * slow start threshold is not used. The kernel calls cong_control after it has detected the losses of an
 * acknowledgement; the model processes the acknowledgement first.
 */
#include "bbr3.h"
#include "trace.h"

/* A global function: the verifier follows it once, on its own, and not at each call. */
#define PART __attribute__((noinline))

struct connection {
	struct bbr3_state bbr;
	struct bbr3_history history;
	struct bbr3_ack ack;
	u64 restarted_at; /* us; when an idle sender restarted; 0: none since the last acknowledgement */
	u64 lost;         /* packets lost in total */
	u32 kernel_lost;  /* the part of tcp_sock.lost in `lost` */
	u8 in_loss_state; /* the timeout of TCP_CA_Loss has been processed */
};

STORAGE(struct connection);

struct bbr3_params {
	u64 aging; /* enum bbr3_aging */
} params SEC(".rodata.params");

FX_INLINE struct connection *connection_of(struct tcp_sock *tp, u64 flags)
{
	return bpf_sk_storage_get(&connections, tp, 0, flags);
}

FX_INLINE void submit_event(struct tcp_sock *tp, struct connection *c, u32 kind, u64 before, u32 count)
{
	struct whole_event *event = (void *)event_begin_sized(tp, kind, sizeof(*event));
	u32 acked = kind == EVENT_ACKED, lost = kind == EVENT_LOST || kind == EVENT_TIMEOUT;

	if (!event)
		return;
	event->event.before = before;
	event->event.after = c->bbr.w;
	event->event.min_rtt = c->bbr.min_rtt;
	event->event.packets = lost ? 0 : count;
	event->event.lost = lost ? count : 0;
	event->event.packet_bytes = c->bbr.packet;
	event->event.in_flight = c->bbr.in_flight;
	event->pace = c->bbr.pace;
	event->seed = kind == EVENT_BEGIN ? c->bbr.random : 0;
	event->sent_at = event->prior_delivered = event->sample_delivered = event->interval = 0;
	event->sample_lost = event->tx_in_flight = event->flags = event->unused = 0;
	event->close = c->bbr.close;
	event->state = c->bbr.state;
	if (acked) {
		event->event.rtt = c->ack.rtt;
		event->event.in_flight = c->ack.in_flight;
		event->event.limited = c->ack.window_limited;
		event->sent_at = c->ack.sent_at;
		event->prior_delivered = c->ack.prior_delivered;
		event->sample_delivered = c->ack.delivered;
		event->interval = c->ack.interval;
		event->sample_lost = c->ack.lost;
		event->tx_in_flight = c->ack.tx_in_flight;
		event->flags = (c->ack.has_sample ? EVENT_HAS_SAMPLE : 0) |
			       (c->ack.sent_application_limited ? EVENT_APPLICATION_LIMITED : 0) |
			       (c->ack.idles ? EVENT_IDLES : 0);
	}
	event_submit(event);
}

/* Sets the pacing rate and the congestion window. */
FX_INLINE void apply(struct tcp_sock *tp, struct connection *c)
{
	struct sock *sk = sock_of(tp);

	sk->sk_pacing_rate = fx_min(fx_mul(c->bbr.pace, tp->mss_cache, 24), sk->sk_max_pacing_rate);
	tp->snd_cwnd = fx_max(fx_min(c->bbr.w >> 40, tp->snd_cwnd_clamp), 1);
}

PART int sample(struct connection *c, u32 losses)
{
	if (c)
		bbr3_sample(&c->history, &c->ack, c->lost + losses, losses);
	return 0;
}

/* The parts of bbr3_acked(). */
#define ACKED_PART(name, update)                                                                     \
	PART int name(struct connection *c)                                                          \
	{                                                                                            \
		if (c)                                                                               \
			update(&c->bbr, &c->ack);                                                    \
		return 0;                                                                            \
	}

ACKED_PART(update_model, bbr3_update_model)
ACKED_PART(update_startup, bbr3_update_startup)
ACKED_PART(update_cycle, bbr3_update_probe_bw_cycle_phase)
ACKED_PART(update_probe_rtt, bbr3_update_probe_rtt)
ACKED_PART(update_control, bbr3_update_control)

PART int lost(struct connection *c, u64 now, u32 packets)
{
	if (c)
		bbr3_lost(&c->bbr, now, packets);
	return 0;
}

PART int timed_out(struct connection *c, u64 now, u32 packets)
{
	if (c)
		bbr3_timeout(&c->bbr, now, packets);
	return 0;
}

/* Adds the losses that the kernel has detected since the last call, and returns their number. */
FX_INLINE u32 count_losses(struct tcp_sock *tp, struct connection *c, u32 kernel_lost)
{
	u32 losses = kernel_lost - c->kernel_lost;

	c->kernel_lost = kernel_lost;
	c->lost += losses;
	if (losses)
		bbr3_note_losses(&c->history, c->bbr.delivered, c->lost);
	return losses;
}

FX_INLINE void lose(struct tcp_sock *tp, struct connection *c, u32 losses)
{
	u64 before = c->bbr.w;

	if (!losses)
		return;
	lost(c, tp->tcp_mstamp, losses);
	submit_event(tp, c, EVENT_LOST, before, losses);
}

FX_INLINE void time_out(struct tcp_sock *tp, struct connection *c)
{
	u32 losses = count_losses(tp, c, tp->lost);
	u64 before = c->bbr.w;

	c->in_loss_state = 1;
	timed_out(c, tp->tcp_mstamp, losses);
	submit_event(tp, c, EVENT_TIMEOUT, before, losses);
}

/* Fills in the acknowledgement. `losses` are the packets that it reveals as lost, and are in `kernel_lost`. */
FX_INLINE void fill_ack(struct tcp_sock *tp, struct connection *c, const struct rate_sample *rs, u32 losses)
{
	struct bbr3_ack *a = &c->ack;
	long micros = rs->interval_us, rtt = rs->rtt_us;
	u64 delivered = c->bbr.delivered + rs->acked_sacked;
	s32 sampled = rs->delivered;

	a->now = tp->tcp_mstamp;
	a->sent_at = c->restarted_at;
	a->packets = rs->acked_sacked;
	a->in_flight = tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out + losses;
	/* A sample of 0 us is less than a microsecond. */
	a->rtt = rtt > 0 ? rtt : rtt == 0;
	a->has_sample = sampled > 0;
	a->delivered = sampled > 0 ? fx_min(sampled, delivered) : 0;
	a->prior_delivered = delivered - a->delivered;
	a->interval = sampled > 0 && micros > 0 ? micros : 0;
	a->sent_application_limited = rs->is_app_limited != 0;
	a->window_limited = BITS(tp, is_cwnd_limited) != 0;
	a->idles = !a->window_limited && tp->app_limited != 0;
}

FX_INLINE void process_ack(struct tcp_sock *tp, struct connection *c, const struct rate_sample *rs, u32 losses)
{
	u64 before = c->bbr.w;

	fill_ack(tp, c, rs, losses);
	sample(c, losses);
	update_model(c);
	update_startup(c);
	update_cycle(c);
	update_probe_rtt(c);
	update_control(c);
	c->restarted_at = 0;
	submit_event(tp, c, EVENT_ACKED, before, c->ack.packets);
}

SEC("struct_ops/init") int init(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	struct connection *c = connection_of(tp, STORAGE_CREATE);
	struct sock *sk = sock_of(tp);
	u64 seed = bpf_get_prandom_u32();

	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	if (!c)
		return 0;
	bbr3_init(&c->bbr, params.aging, tp->snd_cwnd, packet_bytes(tp), seed);
	c->kernel_lost = tp->lost;
	/* The queueing discipline fq may already have set SK_PACING_FQ. */
	if (!sk->sk_pacing_status)
		sk->sk_pacing_status = SK_PACING_NEEDED;
	submit_event(tp, c, EVENT_BEGIN, c->bbr.w, c->bbr.initial_window);
	apply(tp, c);
	return 0;
}

SEC("struct_ops/release") int release(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	struct connection *c = connection_of(tp, 0);

	if (c)
		submit_event(tp, c, EVENT_END, c->bbr.w, 0);
	bpf_sk_storage_delete(&connections, tp);
	return 0;
}

SEC("struct_ops/cong_control") int cong_control(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	const struct rate_sample *rs = (void *)ctx[3];
	struct connection *c = connection_of(tp, 0);
	u64 ca_state = BITS(&tp->inet_conn, icsk_ca_state);
	u32 losses = rs->losses > 0 ? rs->losses : 0;

	if (!c)
		return 0;
	/* With many connections the kernel sometimes skips a program: kernel/cubic.bpf.c. */
	if (tp->snd_ssthresh > TCP_INFINITE_SSTHRESH)
		tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	if (ca_state != TCP_CA_LOSS)
		c->in_loss_state = 0;
	else if (!c->in_loss_state)
		time_out(tp, c);
	if (packet_bytes(tp) != c->bbr.packet) {
		bbr3_rescale(&c->bbr, packet_bytes(tp));
		submit_event(tp, c, EVENT_MTU, c->bbr.w, 0);
	}
	/* Losses that a timer has detected, then the acknowledgement, then the losses that it reveals. */
	losses = fx_min(losses, tp->lost - c->kernel_lost);
	lose(tp, c, count_losses(tp, c, tp->lost - losses));
	if (rs->acked_sacked)
		process_ack(tp, c, rs, losses);
	if (c->bbr.recovery == BBR3_FAST_RECOVERY && ca_state < TCP_CA_RECOVERY) {
		u64 before = c->bbr.w;

		bbr3_recovered(&c->bbr);
		submit_event(tp, c, EVENT_RECOVERED, before, 0);
	}
	lose(tp, c, count_losses(tp, c, tp->lost));
	apply(tp, c);
	return 0;
}

SEC("struct_ops/set_state") int set_state(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	struct connection *c = connection_of(tp, 0);

	if (!c || (u8)ctx[1] != TCP_CA_LOSS)
		return 0;
	time_out(tp, c);
	apply(tp, c);
	return 0;
}

SEC("struct_ops/cwnd_event") int cwnd_event(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	struct connection *c = connection_of(tp, 0);
	u64 before;

	if (!c || (u32)ctx[1] != CA_EVENT_TX_START)
		return 0;
	c->restarted_at = tp->tcp_mstamp;
	if (c->bbr.in_flight || c->bbr.state != BBR3_PROBE_RTT)
		return 0;
	before = c->bbr.w;
	bbr3_tick(&c->bbr, tp->tcp_mstamp);
	submit_event(tp, c, EVENT_TICK, before, 0);
	apply(tp, c);
	return 0;
}

SEC("struct_ops/undo_cwnd") u32 undo_cwnd(u64 *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	struct connection *c = connection_of(tp, 0);
	u64 before;

	if (!c)
		return tp->snd_cwnd;
	before = c->bbr.w;
	bbr3_undo(&c->bbr);
	submit_event(tp, c, EVENT_UNDO, before, 0);
	apply(tp, c);
	return tp->snd_cwnd;
}

SEC("struct_ops/ssthresh") u32 ssthresh(u64 *ctx)
{
	return tcp_of(ctx)->snd_ssthresh;
}

/* The least send quantum, in packets. */
SEC("struct_ops/min_tso_segs") u32 min_tso_segs(u64 *ctx)
{
	return BBR3_MIN_QUANTUM >> 40;
}

SEC(".struct_ops.link") struct tcp_congestion_ops controller = {
	.flags = TCP_CONG_NON_RESTRICTED,
	.ssthresh = ssthresh,
	.set_state = set_state,
	.cwnd_event = cwnd_event,
	.undo_cwnd = undo_cwnd,
	.min_tso_segs = min_tso_segs,
	.cong_control = cong_control,
	.init = init,
	.release = release,
};

char program_license[] SEC("license") = "Dual MIT/GPL";
