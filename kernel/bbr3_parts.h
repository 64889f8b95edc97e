/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Parts of BBR version 3 (bbr3.h): constants, state, arithmetic, the maximum filter, the history of losses,
 * windows, and the model of the path.
 */
#ifndef CWND_BBR3_PARTS_H
#define CWND_BBR3_PARTS_H
#include "fixed.h"

/* A constant as Q60, with the bits of the double. */
#define BBR3_Q60(x) ((u64)((x) * 0x1p60))
#define BBR3_PACKETS(n) ((u64)(n) << 40)

#define BBR3_PACING_MARGIN 0.99
#define BBR3_STARTUP_PACING_GAIN 2.77
#define BBR3_DRAIN_PACING_GAIN 0.5
#define BBR3_DOWN_PACING_GAIN 0.9
#define BBR3_UP_PACING_GAIN 1.25
#define BBR3_CWND_GAIN BBR3_Q60(2.0)
#define BBR3_UP_CWND_GAIN BBR3_Q60(2.25)
#define BBR3_PROBE_RTT_CWND_GAIN BBR3_Q60(0.5)
#define BBR3_BETA BBR3_Q60(0.7)
#define BBR3_HEADROOM BBR3_Q60(0.15)
/* The inverse of LossThresh, 2 %. */
#define BBR3_LOSS_THRESH 50
#define BBR3_MIN_PIPE_CWND BBR3_PACKETS(4)
#define BBR3_STARTUP_FULL_LOSS_COUNT 6
#define BBR3_FULL_BW_COUNT 3
#define BBR3_DRAIN_ROUNDS 3
#define BBR3_RENO_ROUNDS 63
#define BBR3_MAX_UP_ROUNDS 30
/* Quanta of the offload budget, the least quantum, the bytes of the largest one, and its length. */
#define BBR3_QUANTA 3
#define BBR3_MIN_QUANTUM BBR3_PACKETS(2)
#define BBR3_MAX_QUANTUM (64 * 1024)
#define BBR3_QUANTUM_US 1000
#define BBR3_NOMINAL_RTT 1000
#define BBR3_MIN_PACE (1ULL << 24)
#define BBR3_PROBE_WAIT_NS 2000000000ULL
#define BBR3_PROBE_RTT_DURATION 200000
#define BBR3_PROBE_RTT_INTERVAL 5000000
#define BBR3_MIN_RTT_FILTER_LEN 10000000
#define BBR3_EXTRA_ACKED_FILTER_LEN 10
#define BBR3_STARTUP_EXTRA_ACKED_FILTER_LEN 1
/* No bound, no time. */
#define BBR3_INFINITE FX_MAX
/* The largest rate: 10^12 packets/s. */
#define BBR3_MAX_RATE (1000000000000ULL << 24)
/* Detections of losses that the history keeps: a power of two. */
#define BBR3_HISTORY 128
/* Changes of the packet size that are known. */
#define BBR3_SIZES 4

enum bbr3_phase {
	BBR3_STARTUP,
	BBR3_DRAIN,
	BBR3_DOWN,
	BBR3_CRUISE,
	BBR3_REFILL,
	BBR3_UP,
	BBR3_PROBE_RTT,
	BBR3_NONE,
};

enum bbr3_ack_phase {
	BBR3_ACKS_INIT,
	BBR3_ACKS_REFILLING,
	BBR3_ACKS_STARTING,
	BBR3_ACKS_FEEDBACK,
	BBR3_ACKS_STOPPING,
};

/* Parameter `aging`. */
enum bbr3_aging {
	BBR3_AGING_QUICHE,
	BBR3_AGING_DRAFT,
};

enum bbr3_recovery {
	BBR3_NO_RECOVERY,
	BBR3_FAST_RECOVERY,
	BBR3_TIMEOUT_RECOVERY,
};

/* The maximum of a sliding window: WindowedMax of crates/cwnd/src/parts/extremum.rs. */
struct bbr3_filter {
	u64 value[3];
	u64 at[3];
	u32 filled;
	u32 unused;
};

/* An acknowledgement with its rate sample: Acked and RateSample of crate cwnd. */
struct bbr3_ack {
	u64 now;
	u64 sent_at;         /* when the first packet after an idle period was sent; 0: no idle period */
	u64 prior_delivered; /* of the sample */
	u64 delivered;       /* of the sample */
	u64 interval;        /* 0: the sample is not reliable */
	u64 lost;            /* of the sample */
	u64 rate;            /* computed */
	u64 volume;          /* of the sample, in packets of the present size; computed */
	u32 packets;
	u32 in_flight; /* after the acknowledgement, before its losses */
	u32 rtt;       /* 0: none */
	u32 tx_in_flight;
	u8 has_sample;
	u8 sent_application_limited; /* the packet of the sample was sent in such a phase */
	u8 application_limited;      /* computed, with ProbeRTT */
	u8 window_limited;
	u8 idles; /* the application has no data to send */
	u8 unused[3];
};

struct bbr3_state {
	u64 w;
	u64 pace;
	u64 max_window;
	u64 random;
	u64 pacing_gain; /* with the margin */
	u64 cwnd_gain;
	u64 delivered;
	u64 acked_at;
	u64 cwnd_limited_at;
	u64 last_lost; /* of the last sample */
	u64 limited_from;
	u64 limited_to;
	u64 next_round_delivered;
	u64 round_count;
	u64 cycle_count;
	u64 max_bw;
	u64 bw;
	u64 bw_shortterm;
	u64 inflight_shortterm;
	u64 inflight_longterm;
	u64 bw_latest;
	u64 inflight_latest;
	u64 loss_round_delivered;
	u64 min_rtt_stamp;
	u64 probe_rtt_min_stamp;
	u64 probe_rtt_done; /* 0: none */
	u64 extra_acked_start;
	u64 extra_acked_delivered;
	u64 extra_acked;
	u64 full_bw;
	u64 drain_start_round;
	u64 bw_probe_up_acked;
	u64 probe_up_acked_per_inc;
	u64 rounds_since_probe_up;
	u64 bw_probe_wait; /* ns */
	u64 cycle_stamp;
	u64 recovery_round;
	u64 prior_cwnd;
	u64 saved_bw_shortterm;
	u64 saved_inflight_shortterm;
	u64 saved_inflight_longterm;
	u64 old_until[BBR3_SIZES]; /* packets up to these delivered counts have old sizes */
	u32 old_packet[BBR3_SIZES];
	struct bbr3_filter max_bw_filter;
	struct bbr3_filter extra_acked_filter;
	u32 packet; /* bytes */
	u32 initial_window;
	u32 in_flight;
	u32 last_tx_in_flight;
	u32 min_rtt;             /* 0: none */
	u32 probe_rtt_min_delay; /* 0: none */
	u32 loss_events;
	u32 full_bw_count;
	u32 bw_probe_up_rounds;
	u32 close; /* close decisions */
	u8 state;
	u8 saved_state;
	u8 ack_phase;
	u8 recovery;
	u8 started;
	u8 has_seen_rtt;
	u8 has_limited_phase;
	u8 has_cwnd_limited_at;
	u8 is_cwnd_limited;
	u8 last_application_limited;
	u8 round_start;
	u8 loss_round_start;
	u8 is_loss_in_round;
	u8 probe_rtt_expired;
	u8 probe_rtt_round_done;
	u8 idle_restart;
	u8 full_bw_reached;
	u8 full_bw_now;
	u8 is_bw_probe_sample;
	u8 prev_probe_too_high;
	u8 prev_probe_precautionary;
	u8 aging; /* enum bbr3_aging */
	u8 has_advanced;
	u8 has_sample;
};

/* The loss counter as of the packets sent since `delivered` packets were delivered. */
struct bbr3_history {
	u64 delivered[BBR3_HISTORY];
	u64 lost[BBR3_HISTORY];
	u64 known; /* the counter before the first entry */
	u32 first;
	u32 end;
};

/* --- Arithmetic --- */

/* A rate over a time of at most 2^40 us, rounded down. */
FX_INLINE u64 bbr3_rate(u64 packets, u64 micros)
{
	u64 scaled = packets * FX_MICROS;
	u64 whole = scaled / micros;

	if (whole >= BBR3_MAX_RATE >> 24)
		return BBR3_MAX_RATE;
	return whole << 24 | (scaled % micros << 24) / micros;
}

/* A rate times a time. */
FX_INLINE u64 bbr3_volume(u64 rate, u64 micros)
{
	u32 zeros;
	u64 seconds;

	if (!micros || !rate)
		return 0;
	micros = fx_min(micros, (1ULL << 40) - 1);
	zeros = fx_zeros(micros);
	seconds = (micros << zeros) / FX_MICROS;
	return fx_mul(rate, seconds, zeros - 16);
}

FX_INLINE u64 bbr3_fraction(u64 value, u64 q60)
{
	return value == BBR3_INFINITE ? value : fx_mul(value, q60, 60);
}

/* Counts a decision between values that rounding may exchange. Equal values are copies of one another. */
FX_INLINE void bbr3_decide(struct bbr3_state *s, u64 a, u64 b)
{
	u64 most = fx_max(a, b);

	s->close += a != b && most - fx_min(a, b) <= most >> 30;
}

/* As bbr3_decide, for values computed apart from one another. */
FX_INLINE void bbr3_decide_product(struct bbr3_state *s, u64 a, u64 b)
{
	u64 most = fx_max(a, b);

	s->close += most - fx_min(a, b) <= most >> 30;
}

/* --- Sizes of packets: PacketSizes of crates/cwnd/src/parts/sizes.rs --- */

/* The volume in packets of the present size of the `count` packets after the first `delivered` ones. */
FX_INLINE u64 bbr3_sized(const struct bbr3_state *s, u64 delivered, u64 count)
{
	u64 from = delivered, end = delivered + count, bytes = 0;
	u32 k;

	if (from >= s->old_until[BBR3_SIZES - 1])
		return BBR3_PACKETS(count);
	for (k = 0; k < BBR3_SIZES; k++) {
		u64 until = fx_min(fx_max(s->old_until[k], from), end);

		bytes += (until - from) * s->old_packet[k];
		from = until;
	}
	bytes += (end - from) * s->packet;
	count = fx_min(bytes / s->packet, (1U << 24) - 2);
	return BBR3_PACKETS(count) + BBR3_PACKETS(bytes % s->packet) / s->packet;
}

/* Packets sent from now on have another size. */
FX_INLINE void bbr3_change_size(struct bbr3_state *s, u32 packet)
{
	u64 until = s->delivered + s->in_flight;
	u32 k;

	for (k = 0; k + 1 < BBR3_SIZES; k++) {
		s->old_until[k] = fx_min(s->old_until[k + 1], until);
		s->old_packet[k] = s->old_packet[k + 1];
	}
	s->old_until[k] = until;
	s->old_packet[k] = s->packet;
	s->packet = packet;
}

/* --- The maximum filter --- */

FX_INLINE u64 bbr3_filter_add(struct bbr3_state *s, struct bbr3_filter *f, u64 length, u64 at, u64 value)
{
	if (f->filled) {
		bbr3_decide(s, value, f->value[0]);
		bbr3_decide(s, value, f->value[1]);
		bbr3_decide(s, value, f->value[2]);
	}
	if (!f->filled || value >= f->value[0] || at - f->at[2] > length) {
		f->filled = 1;
		f->value[0] = f->value[1] = f->value[2] = value;
		f->at[0] = f->at[1] = f->at[2] = at;
		return value;
	}
	if (value >= f->value[1]) {
		f->value[1] = f->value[2] = value;
		f->at[1] = f->at[2] = at;
	} else if (value >= f->value[2]) {
		f->value[2] = value;
		f->at[2] = at;
	}
	if (at - f->at[0] > length) {
		f->value[0] = f->value[1];
		f->at[0] = f->at[1];
		f->value[1] = f->value[2];
		f->at[1] = f->at[2];
		f->value[2] = value;
		f->at[2] = at;
		if (at - f->at[0] > length) {
			f->value[0] = f->value[1];
			f->at[0] = f->at[1];
			f->value[1] = value;
			f->at[1] = at;
		}
	} else if (f->at[1] == f->at[0] && at - f->at[0] > length / 4) {
		f->value[1] = f->value[2] = value;
		f->at[1] = f->at[2] = at;
	} else if (f->at[2] == f->at[1] && at - f->at[0] > length / 2) {
		f->value[2] = value;
		f->at[2] = at;
	}
	return f->value[0];
}

/* --- The state of packets at their transmission --- */

/* Losses are detected when `delivered` packets are delivered: `lost` packets are lost in total. */
FX_INLINE void bbr3_note_losses(struct bbr3_history *h, u64 delivered, u64 lost)
{
	u32 at = h->end;

	if (h->end - h->first == BBR3_HISTORY)
		at = h->end - 1;
	else
		h->end = at + 1;
	h->delivered[at & (BBR3_HISTORY - 1)] = delivered;
	h->lost[at & (BBR3_HISTORY - 1)] = lost;
}

/* Discards an entry that packets sent since `delivered` packets were delivered know of; 0 if there is none. */
FX_INLINE u32 bbr3_pop(struct bbr3_history *h, u64 delivered)
{
	u32 at = h->first & (BBR3_HISTORY - 1);

	if (h->first == h->end || h->delivered[at] > delivered)
		return 0;
	h->known = h->lost[at];
	h->first++;
	return 1;
}

/* Fills in RS.lost and RS.tx_in_flight, of `lost` packets lost in total, `losses` of them by this acknowledgement. */
FX_INLINE void bbr3_sample(struct bbr3_history *h, struct bbr3_ack *a, u64 lost, u64 losses)
{
	u32 k;

	for (k = 0; k < BBR3_HISTORY; k++)
		if (!bbr3_pop(h, a->prior_delivered))
			break;
	a->lost = lost - h->known;
	a->tx_in_flight = fx_min(a->delivered + a->lost, (1U << 24) - 1);
	a->lost -= fx_min(a->lost, losses);
}

/* --- Windows (section 5.6) --- */

FX_INLINE u64 bbr3_random(struct bbr3_state *s)
{
	u64 z = s->random += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

FX_INLINE void bbr3_save_cwnd(struct bbr3_state *s)
{
	u32 modulated = s->recovery != BBR3_NO_RECOVERY || s->state == BBR3_PROBE_RTT;

	s->prior_cwnd = modulated ? fx_max(s->prior_cwnd, s->w) : s->w;
}

FX_INLINE void bbr3_restore_cwnd(struct bbr3_state *s)
{
	s->w = fx_max(s->w, s->prior_cwnd);
}

FX_INLINE u64 bbr3_send_quantum(const struct bbr3_state *s)
{
	u64 most = BBR3_PACKETS(BBR3_MAX_QUANTUM) / s->packet;

	return fx_max(fx_min(bbr3_volume(s->pace, BBR3_QUANTUM_US), most), BBR3_MIN_QUANTUM);
}

FX_INLINE u64 bbr3_bdp_multiple(const struct bbr3_state *s, u64 bw, u64 gain)
{
	if (!s->min_rtt)
		return BBR3_PACKETS(s->initial_window);
	return fx_min(bbr3_fraction(bbr3_volume(bw, s->min_rtt), gain), FX_MAX_WINDOW);
}

FX_INLINE u64 bbr3_quantization_budget(const struct bbr3_state *s, u64 inflight)
{
	inflight = fx_max(inflight, BBR3_QUANTA * bbr3_send_quantum(s));
	inflight = fx_max(inflight, BBR3_MIN_PIPE_CWND);
	return s->state == BBR3_UP ? inflight + BBR3_PACKETS(2) : inflight;
}

FX_INLINE u64 bbr3_inflight(const struct bbr3_state *s, u64 bw)
{
	return bbr3_quantization_budget(s, bbr3_bdp_multiple(s, bw, BBR3_Q60(1.0)));
}

FX_INLINE u64 bbr3_max_inflight(const struct bbr3_state *s)
{
	u64 bdp = bbr3_bdp_multiple(s, s->bw, s->cwnd_gain);

	return bbr3_quantization_budget(s, fx_min(fx_add(bdp, s->extra_acked), FX_MAX_WINDOW));
}

FX_INLINE u64 bbr3_target_inflight(const struct bbr3_state *s)
{
	return fx_min(bbr3_bdp_multiple(s, s->bw, BBR3_Q60(1.0)), s->w);
}

FX_INLINE u64 bbr3_probe_rtt_cwnd(const struct bbr3_state *s)
{
	return fx_max(bbr3_bdp_multiple(s, s->bw, BBR3_PROBE_RTT_CWND_GAIN), BBR3_MIN_PIPE_CWND);
}

FX_INLINE u64 bbr3_inflight_with_headroom(const struct bbr3_state *s)
{
	u64 most = s->inflight_longterm;
	u64 headroom = fx_max(bbr3_fraction(most, BBR3_HEADROOM), FX_PACKET);

	if (most == BBR3_INFINITE)
		return most;
	return fx_max(most - fx_min(headroom, most), BBR3_MIN_PIPE_CWND);
}

FX_INLINE void bbr3_bound_cwnd_for_model(struct bbr3_state *s)
{
	u64 cap = BBR3_INFINITE;

	if (s->state == BBR3_CRUISE || s->state == BBR3_PROBE_RTT)
		cap = bbr3_inflight_with_headroom(s);
	else if (s->state != BBR3_STARTUP && s->state != BBR3_DRAIN)
		cap = s->inflight_longterm;
	s->w = fx_min(s->w, fx_max(fx_min(cap, s->inflight_shortterm), BBR3_MIN_PIPE_CWND));
}

FX_INLINE void bbr3_bound_cwnd(struct bbr3_state *s)
{
	if (s->full_bw_reached)
		s->w = fx_min(s->w, bbr3_max_inflight(s));
	s->w = fx_min(fx_max(s->w, BBR3_MIN_PIPE_CWND), s->max_window);
	if (s->state == BBR3_PROBE_RTT)
		s->w = fx_min(s->w, bbr3_probe_rtt_cwnd(s));
	bbr3_bound_cwnd_for_model(s);
}

FX_INLINE void bbr3_set_cwnd(struct bbr3_state *s, u32 newly)
{
	u64 most = bbr3_max_inflight(s);

	if (!s->full_bw_reached)
		bbr3_decide(s, s->w, most);
	if (s->full_bw_reached || s->w < most || s->delivered < s->initial_window)
		s->w = fx_min(fx_add(s->w, BBR3_PACKETS(newly)), FX_MAX_WINDOW);
	bbr3_bound_cwnd(s);
}

/* Sets the pacing rate for a gain with the margin. */
FX_INLINE void bbr3_set_pacing_rate_with_gain(struct bbr3_state *s, u64 gain)
{
	u64 rate = fx_max(fx_min(fx_mul(s->bw, gain, 60), BBR3_MAX_RATE), BBR3_MIN_PACE);

	if (s->full_bw_reached || rate > s->pace)
		s->pace = rate;
}

FX_INLINE void bbr3_set_pacing_rate(struct bbr3_state *s, u32 rtt)
{
	if (rtt && !s->has_seen_rtt) {
		s->has_seen_rtt = 1;
		s->pace = fx_mul(bbr3_rate(s->initial_window, rtt), BBR3_Q60(BBR3_STARTUP_PACING_GAIN), 60);
		s->pace = fx_min(s->pace, BBR3_MAX_RATE);
	}
	bbr3_set_pacing_rate_with_gain(s, s->pacing_gain);
}

/* The end of recovery. */
FX_INLINE void bbr3_recovered(struct bbr3_state *s)
{
	if (s->recovery == BBR3_NO_RECOVERY)
		return;
	s->recovery = BBR3_NO_RECOVERY;
	bbr3_restore_cwnd(s);
	bbr3_bound_cwnd(s);
}

/* --- The model (sections 5.5 and 5.3.4.3) --- */

FX_INLINE u32 bbr3_is_inflight_too_high(u64 lost, u32 tx_in_flight)
{
	return lost * BBR3_LOSS_THRESH > tx_in_flight;
}

/* InflightAtLoss: (in_flight - size) + (2 % of it - (lost - size)) / 98 %, at least 0. */
FX_INLINE u64 bbr3_inflight_at_loss(u64 lost, u32 tx_in_flight)
{
	s64 excess = (s64)tx_in_flight - (s64)lost;
	u64 volume = excess > 0 ? fx_min(BBR3_PACKETS(excess), FX_MAX_WINDOW) : 0;

	return volume + volume / (BBR3_LOSS_THRESH - 1);
}

FX_INLINE void bbr3_advance_max_bw_filter(struct bbr3_state *s)
{
	s->cycle_count++;
	s->has_advanced = 1;
	s->has_sample = 0;
}

FX_INLINE void bbr3_start_round(struct bbr3_state *s)
{
	s->next_round_delivered = s->delivered;
}

FX_INLINE void bbr3_reset_short_term_model(struct bbr3_state *s)
{
	s->bw_shortterm = s->inflight_shortterm = BBR3_INFINITE;
}

FX_INLINE void bbr3_reset_full_bw(struct bbr3_state *s, u64 rate)
{
	s->full_bw = rate;
	s->full_bw_count = s->full_bw_now = 0;
}

FX_INLINE void bbr3_update_latest_delivery_signals(struct bbr3_state *s, const struct bbr3_ack *a)
{
	s->loss_round_start = 0;
	s->bw_latest = fx_max(s->bw_latest, a->rate);
	s->inflight_latest = fx_max(s->inflight_latest, a->volume);
	if (a->has_sample && a->prior_delivered >= s->loss_round_delivered) {
		s->loss_round_delivered = s->delivered;
		s->loss_round_start = 1;
	}
}

FX_INLINE void bbr3_update_round(struct bbr3_state *s, const struct bbr3_ack *a)
{
	s->round_start = a->has_sample && a->prior_delivered >= s->next_round_delivered;
	if (!s->round_start)
		return;
	bbr3_start_round(s);
	s->round_count++;
	s->rounds_since_probe_up++;
}

/* With InitLowerBounds and LossLowerBounds. */
FX_INLINE void bbr3_adapt_lower_bounds_from_congestion(struct bbr3_state *s)
{
	u64 bw = s->bw_shortterm, inflight = s->inflight_shortterm;

	if (!s->is_loss_in_round || s->state == BBR3_STARTUP || s->state == BBR3_REFILL || s->state == BBR3_UP)
		return;
	if (bw == BBR3_INFINITE)
		bw = s->max_bw;
	if (inflight == BBR3_INFINITE)
		inflight = s->w;
	s->bw_shortterm = fx_max(s->bw_latest, bbr3_fraction(bw, BBR3_BETA));
	s->inflight_shortterm = fx_max(s->inflight_latest, bbr3_fraction(inflight, BBR3_BETA));
}

FX_INLINE void bbr3_update_congestion_signals(struct bbr3_state *s, const struct bbr3_ack *a)
{
	bbr3_update_round(s, a);
	if (a->rate && (a->rate >= s->max_bw || !(s->aging == BBR3_AGING_QUICHE ? a->sent_application_limited :
									     a->application_limited))) {
		s->max_bw = bbr3_filter_add(s, &s->max_bw_filter, 1, s->cycle_count, a->rate);
		s->has_sample = 1;
	}
	if (s->loss_round_start) {
		bbr3_adapt_lower_bounds_from_congestion(s);
		s->is_loss_in_round = 0;
	}
}

FX_INLINE void bbr3_update_ack_aggregation(struct bbr3_state *s, const struct bbr3_ack *a)
{
	u64 start = s->extra_acked_start, extra;
	u64 expected = bbr3_volume(s->bw, a->now > start ? a->now - start : 0);
	u64 length = s->full_bw_reached ? BBR3_EXTRA_ACKED_FILTER_LEN : BBR3_STARTUP_EXTRA_ACKED_FILTER_LEN;

	bbr3_decide(s, s->extra_acked_delivered, expected);
	if (s->extra_acked_delivered <= expected) {
		s->extra_acked_delivered = expected = 0;
		s->extra_acked_start = a->now;
	}
	s->extra_acked_delivered = fx_add(s->extra_acked_delivered, BBR3_PACKETS(a->packets));
	extra = fx_min(s->extra_acked_delivered - expected, s->w);
	s->extra_acked = bbr3_filter_add(s, &s->extra_acked_filter, length, s->round_count, extra);
}

FX_INLINE void bbr3_update_min_rtt(struct bbr3_state *s, u64 now, u32 rtt)
{
	u32 expired;

	s->probe_rtt_expired = now > s->probe_rtt_min_stamp + BBR3_PROBE_RTT_INTERVAL;
	if (rtt && (s->probe_rtt_expired || !s->probe_rtt_min_delay || rtt < s->probe_rtt_min_delay)) {
		s->probe_rtt_min_delay = rtt;
		s->probe_rtt_min_stamp = now;
	}
	expired = now > s->min_rtt_stamp + BBR3_MIN_RTT_FILTER_LEN;
	if (s->probe_rtt_min_delay && (expired || !s->min_rtt || s->probe_rtt_min_delay < s->min_rtt)) {
		s->min_rtt = s->probe_rtt_min_delay;
		s->min_rtt_stamp = s->probe_rtt_min_stamp;
	}
}

FX_INLINE void bbr3_save_state(struct bbr3_state *s)
{
	s->saved_state = BBR3_NONE;
	s->saved_bw_shortterm = s->bw_shortterm;
	s->saved_inflight_shortterm = s->inflight_shortterm;
	s->saved_inflight_longterm = s->inflight_longterm;
}

#endif
