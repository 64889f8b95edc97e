/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * BBR version 3: crates/cwnd/src/controllers/bbr3.rs in fixed point. Functions and members have its names, which
 * are those of draft-ietf-ccwg-bbr (commit 4ce5e87); the equations are on its card. Times are microseconds, volumes
 * Q40 packets, rates Q24 packets per second, fractions Q60, and counters whole packets.
 *
 * The kernel's rate_sample lacks the state of a packet at its transmission. bbr3_sample() approximates it:
 *
 *   RS.lost            P.lost is read from a history of the loss counter, by P.delivered: it is exact. The history
 *                      has BBR3_HISTORY detections of losses; more in one flight are joined to the newest. Losses
 *                      that a timer detects count as known to the packets sent since the last acknowledgement.
 *   RS.tx_in_flight    the packets delivered or lost since P was sent. If the network keeps the order, each packet
 *                      in flight when P was sent has been delivered or lost when P is delivered. Packets that are
 *                      not yet declared lost are missed; packets that overtook P are counted too.
 *   a lost packet      has the state of the last sample, as in the Rust controller for losses without a state: the
 *                      packet whose acknowledgement reveals the loss was sent shortly after the lost one.
 *
 * An operation rounds a rate by less than 2^-24 packets/s, and a volume by less than 2^-40 packets; a volume that is
 * a rate times a time t has in addition t times the error of the rate and 2^-42 of itself. From the same events, as
 * long as both controllers decide alike, the results are within
 *
 *   pacing rate   r = (k + 4) 2^-24 packets/s, after k rounds that reduced bw_shortterm
 *   window        r (3 min_rtt + t) + (k + 16) 2^-40 + 2^-40 w packets; extra_acked counts over t
 *
 * A decision is close if its sides differ by less than 2^-30 of the larger one: rounding may change it, for example
 * whether the packets in flight have fallen to the BDP. `close` counts these decisions.
 */
#ifndef CWND_BBR3_H
#define CWND_BBR3_H
#include "bbr3_parts.h"

/* --- The state machine (section 5.3) --- */

#define BBR3_ENTER(s, phase, gain, window_gain)                                                      \
	((s)->state = (phase), (s)->pacing_gain = BBR3_Q60((gain) * BBR3_PACING_MARGIN),             \
	 (s)->cwnd_gain = (window_gain))

FX_INLINE void bbr3_enter_startup(struct bbr3_state *s)
{
	BBR3_ENTER(s, BBR3_STARTUP, BBR3_STARTUP_PACING_GAIN, BBR3_CWND_GAIN);
}

FX_INLINE void bbr3_start_down(struct bbr3_state *s, u64 now)
{
	s->is_loss_in_round = 0;
	s->bw_latest = s->inflight_latest = 0;
	s->probe_up_acked_per_inc = BBR3_INFINITE;
	s->rounds_since_probe_up = bbr3_random(s) & 1;
	s->bw_probe_wait = BBR3_PROBE_WAIT_NS + fx_mul(bbr3_random(s) >> 11, 1000000000, 53);
	s->cycle_stamp = now;
	s->ack_phase = BBR3_ACKS_STOPPING;
	bbr3_start_round(s);
	BBR3_ENTER(s, BBR3_DOWN, BBR3_DOWN_PACING_GAIN, BBR3_CWND_GAIN);
}

/* Ends the cycle of max_bw as QUICHE does, unless it has ended since the last Refill. */
FX_INLINE void bbr3_leave_down(struct bbr3_state *s)
{
	if (s->state == BBR3_DOWN && !s->has_advanced && s->has_sample && s->aging == BBR3_AGING_QUICHE)
		bbr3_advance_max_bw_filter(s);
}

FX_INLINE void bbr3_start_cruise(struct bbr3_state *s)
{
	bbr3_leave_down(s);
	BBR3_ENTER(s, BBR3_CRUISE, 1.0, BBR3_CWND_GAIN);
}

FX_INLINE void bbr3_start_refill(struct bbr3_state *s)
{
	bbr3_leave_down(s);
	s->has_advanced = 0;
	bbr3_reset_short_term_model(s);
	s->bw_probe_up_rounds = 0;
	s->bw_probe_up_acked = 0;
	s->prev_probe_precautionary = 0;
	s->ack_phase = BBR3_ACKS_REFILLING;
	bbr3_start_round(s);
	BBR3_ENTER(s, BBR3_REFILL, 1.0, BBR3_CWND_GAIN);
}

FX_INLINE void bbr3_raise_inflight_longterm_slope(struct bbr3_state *s)
{
	u32 rounds = s->bw_probe_up_rounds;

	s->bw_probe_up_rounds = fx_min(rounds + 1, BBR3_MAX_UP_ROUNDS);
	s->probe_up_acked_per_inc = fx_max(s->w >> (rounds & 31), FX_PACKET);
}

FX_INLINE void bbr3_start_up(struct bbr3_state *s, const struct bbr3_ack *a)
{
	s->ack_phase = BBR3_ACKS_STARTING;
	bbr3_start_round(s);
	bbr3_reset_full_bw(s, a->rate);
	BBR3_ENTER(s, BBR3_UP, BBR3_UP_PACING_GAIN, BBR3_UP_CWND_GAIN);
	bbr3_raise_inflight_longterm_slope(s);
}

FX_INLINE void bbr3_check_full_bw_reached(struct bbr3_state *s, const struct bbr3_ack *a)
{
	if (s->full_bw_now || !s->round_start || a->application_limited || !a->rate)
		return;
	bbr3_decide_product(s, a->rate, bbr3_fraction(s->full_bw, BBR3_Q60(1.25)));
	if (a->rate >= bbr3_fraction(s->full_bw, BBR3_Q60(1.25))) {
		bbr3_reset_full_bw(s, a->rate);
		return;
	}
	s->full_bw_count++;
	s->full_bw_now = s->full_bw_count >= BBR3_FULL_BW_COUNT;
	s->full_bw_reached |= s->full_bw_now;
}

FX_INLINE void bbr3_check_startup_done(struct bbr3_state *s, const struct bbr3_ack *a)
{
	if (s->loss_round_start) {
		u32 events = s->loss_events;

		s->loss_events = 0;
		if (s->state == BBR3_STARTUP && !s->full_bw_reached && s->recovery == BBR3_FAST_RECOVERY &&
		    s->round_count > s->recovery_round && events >= BBR3_STARTUP_FULL_LOSS_COUNT &&
		    bbr3_is_inflight_too_high(a->lost, a->tx_in_flight)) {
			s->saved_state = BBR3_STARTUP;
			s->full_bw_reached = s->full_bw_now = 1;
			s->inflight_longterm = fx_max(bbr3_bdp_multiple(s, s->bw, BBR3_Q60(1.0)), s->inflight_latest);
		}
	}
	if (s->state == BBR3_STARTUP && s->full_bw_reached) {
		BBR3_ENTER(s, BBR3_DRAIN, BBR3_DRAIN_PACING_GAIN, BBR3_CWND_GAIN);
		s->drain_start_round = s->round_count;
	}
}

FX_INLINE void bbr3_check_drain_done(struct bbr3_state *s, u64 now)
{
	u64 bdp;

	if (s->state != BBR3_DRAIN)
		return;
	bdp = bbr3_inflight(s, s->bw);
	bbr3_decide_product(s, BBR3_PACKETS(s->in_flight), bdp);
	if (BBR3_PACKETS(s->in_flight) <= bdp || s->round_count > s->drain_start_round + BBR3_DRAIN_ROUNDS)
		bbr3_start_down(s, now);
}

FX_INLINE u32 bbr3_is_in_probe_bw(const struct bbr3_state *s)
{
	return s->state >= BBR3_DOWN && s->state <= BBR3_UP;
}

FX_INLINE u32 bbr3_is_time_to_probe_bw(struct bbr3_state *s, u64 now)
{
	u64 rounds = fx_min(bbr3_target_inflight(s), BBR3_PACKETS(BBR3_RENO_ROUNDS));
	u64 elapsed = now > s->cycle_stamp ? (now - s->cycle_stamp) * 1000 : 0;

	if (rounds < BBR3_PACKETS(BBR3_RENO_ROUNDS))
		bbr3_decide_product(s, BBR3_PACKETS(s->rounds_since_probe_up), rounds);
	/* The wait of the real controller may be a nanosecond longer or shorter. */
	s->close += elapsed + 1 - s->bw_probe_wait <= 2;
	return elapsed > s->bw_probe_wait || BBR3_PACKETS(s->rounds_since_probe_up) >= rounds;
}

FX_INLINE u32 bbr3_is_time_to_cruise(struct bbr3_state *s)
{
	u64 in_flight = BBR3_PACKETS(s->in_flight), most = bbr3_inflight_with_headroom(s);
	u64 bdp = bbr3_inflight(s, s->max_bw);

	bbr3_decide_product(s, in_flight, most);
	bbr3_decide_product(s, in_flight, bdp);
	return in_flight <= most && in_flight <= bdp;
}

FX_INLINE u32 bbr3_is_time_to_go_down(struct bbr3_state *s, const struct bbr3_ack *a)
{
	/* A window with a fraction never has as many packets in flight: one more would exceed it. */
	u64 one_more = BBR3_PACKETS((u64)a->in_flight + a->packets + 1);

	bbr3_decide(s, s->w, s->inflight_longterm);
	if (s->prev_probe_too_high) {
		bbr3_decide_product(s, one_more, s->inflight_longterm);
		if (one_more > s->inflight_longterm) {
			s->prev_probe_precautionary = 1;
			return 1;
		}
	}
	if (s->is_cwnd_limited && s->w >= s->inflight_longterm) {
		bbr3_reset_full_bw(s, a->rate);
		return 0;
	}
	return s->full_bw_now;
}

FX_INLINE void bbr3_probe_inflight_longterm_upward(struct bbr3_state *s, const struct bbr3_ack *a)
{
	bbr3_decide(s, s->w, s->inflight_longterm);
	if (!s->is_cwnd_limited || s->w < s->inflight_longterm)
		return;
	s->bw_probe_up_acked = fx_add(s->bw_probe_up_acked, BBR3_PACKETS(a->packets));
	bbr3_decide(s, s->bw_probe_up_acked, s->probe_up_acked_per_inc);
	if (s->bw_probe_up_acked >= s->probe_up_acked_per_inc) {
		u64 delta = s->bw_probe_up_acked / s->probe_up_acked_per_inc;

		s->bw_probe_up_acked -= delta * s->probe_up_acked_per_inc;
		bbr3_decide(s, s->bw_probe_up_acked + s->probe_up_acked_per_inc, s->probe_up_acked_per_inc);
		s->inflight_longterm = fx_min(s->inflight_longterm + BBR3_PACKETS(delta), FX_MAX_WINDOW);
	}
	if (s->round_start)
		bbr3_raise_inflight_longterm_slope(s);
}

/* AdaptLongTermModel: whether it has changed the state. */
FX_INLINE u32 bbr3_adapt_long_term_model(struct bbr3_state *s, const struct bbr3_ack *a)
{
	if (s->ack_phase == BBR3_ACKS_STARTING && s->round_start)
		s->ack_phase = BBR3_ACKS_FEEDBACK;
	if (s->ack_phase == BBR3_ACKS_STOPPING && s->round_start) {
		s->is_bw_probe_sample = 0;
		s->ack_phase = BBR3_ACKS_INIT;
		if (bbr3_is_in_probe_bw(s) && !a->application_limited &&
		    !(s->has_advanced && s->aging == BBR3_AGING_QUICHE))
			bbr3_advance_max_bw_filter(s);
		if (bbr3_is_in_probe_bw(s) && s->prev_probe_precautionary && !s->prev_probe_too_high) {
			bbr3_start_refill(s);
			return 1;
		}
	}
	if (!bbr3_is_inflight_too_high(a->lost, a->tx_in_flight) && s->inflight_longterm != BBR3_INFINITE) {
		s->inflight_longterm = fx_max(s->inflight_longterm, BBR3_PACKETS(a->tx_in_flight));
		if (s->state == BBR3_UP)
			bbr3_probe_inflight_longterm_upward(s, a);
	}
	return 0;
}

FX_INLINE void bbr3_update_probe_bw_cycle_phase(struct bbr3_state *s, const struct bbr3_ack *a)
{
	if (!s->full_bw_reached || !a->packets || bbr3_adapt_long_term_model(s, a))
		return;
	if (s->state == BBR3_DOWN || s->state == BBR3_CRUISE) {
		if (bbr3_is_time_to_probe_bw(s, a->now))
			bbr3_start_refill(s);
		else if (s->state == BBR3_DOWN && bbr3_is_time_to_cruise(s))
			bbr3_start_cruise(s);
	} else if (s->state == BBR3_REFILL && s->round_start) {
		s->is_bw_probe_sample = 1;
		bbr3_start_up(s, a);
	} else if (s->state == BBR3_UP && bbr3_is_time_to_go_down(s, a)) {
		s->prev_probe_too_high = 0;
		bbr3_start_down(s, a->now);
	}
}

FX_INLINE void bbr3_check_probe_rtt_done(struct bbr3_state *s, u64 now)
{
	if (!s->probe_rtt_done || now <= s->probe_rtt_done)
		return;
	s->probe_rtt_done = 0;
	s->probe_rtt_min_stamp = now;
	bbr3_restore_cwnd(s);
	bbr3_reset_short_term_model(s);
	if (s->full_bw_reached) {
		bbr3_start_down(s, now);
		bbr3_start_cruise(s);
	} else {
		bbr3_enter_startup(s);
	}
}

/* The packets in flight and those sent from now on are limited by the application. */
FX_INLINE void bbr3_extend_limited_phase(struct bbr3_state *s)
{
	if (!s->has_limited_phase || s->limited_to < s->delivered)
		s->limited_from = s->delivered;
	s->limited_to = s->delivered + s->in_flight;
	s->has_limited_phase = 1;
}

FX_INLINE void bbr3_handle_probe_rtt(struct bbr3_state *s, u64 now)
{
	bbr3_extend_limited_phase(s);
	if (!s->probe_rtt_done) {
		u64 most = bbr3_probe_rtt_cwnd(s);

		bbr3_decide_product(s, BBR3_PACKETS(s->in_flight), most);
		if (BBR3_PACKETS(s->in_flight) <= most) {
			s->probe_rtt_done = now + BBR3_PROBE_RTT_DURATION;
			s->probe_rtt_round_done = 0;
			bbr3_start_round(s);
		}
		return;
	}
	s->probe_rtt_round_done |= s->round_start;
	if (s->probe_rtt_round_done)
		bbr3_check_probe_rtt_done(s, now);
}

FX_INLINE void bbr3_check_probe_rtt(struct bbr3_state *s, const struct bbr3_ack *a)
{
	if (s->state != BBR3_PROBE_RTT && s->probe_rtt_expired && !s->idle_restart) {
		bbr3_save_cwnd(s);
		BBR3_ENTER(s, BBR3_PROBE_RTT, 1.0, BBR3_PROBE_RTT_CWND_GAIN);
		s->probe_rtt_done = 0;
		s->ack_phase = BBR3_ACKS_STOPPING;
		bbr3_start_round(s);
	}
	if (s->state == BBR3_PROBE_RTT)
		bbr3_handle_probe_rtt(s, a->now);
	if (a->delivered)
		s->idle_restart = 0;
}

/* --- Events --- */

FX_INLINE void bbr3_init(struct bbr3_state *s, u32 aging, u32 window, u32 packet, u64 seed)
{
	__builtin_memset(s, 0, sizeof(*s));
	s->aging = aging;
	s->packet = fx_max(packet, 1);
	s->initial_window = fx_max(window, 1);
	s->max_window = FX_MAX_WINDOW;
	s->random = seed;
	s->w = BBR3_PACKETS(s->initial_window);
	s->pace = fx_mul(bbr3_rate(s->initial_window, BBR3_NOMINAL_RTT), BBR3_Q60(BBR3_STARTUP_PACING_GAIN), 60);
	bbr3_enter_startup(s);
	bbr3_reset_short_term_model(s);
	s->inflight_longterm = s->probe_up_acked_per_inc = BBR3_INFINITE;
	s->saved_state = BBR3_NONE;
}

/* Sets the clocks at the first event. */
FX_INLINE void bbr3_start(struct bbr3_state *s, u64 now)
{
	if (s->started)
		return;
	s->started = 1;
	s->min_rtt_stamp = s->probe_rtt_min_stamp = s->extra_acked_start = s->cycle_stamp = now;
}

/* Whether the packet of a sample was sent in a phase that the application or ProbeRTT limited. */
FX_INLINE u32 bbr3_is_sample_limited(const struct bbr3_state *s, const struct bbr3_ack *a)
{
	return a->sent_application_limited || (s->has_limited_phase && a->prior_delivered >= s->limited_from &&
					       a->prior_delivered <= s->limited_to);
}

/* GenerateRateSample, and HandleRestartFromIdle before it. */
FX_INLINE void bbr3_take_sample(struct bbr3_state *s, struct bbr3_ack *a)
{
	if (!s->in_flight && a->has_sample && bbr3_is_sample_limited(s, a) && s->delivered &&
	    a->sent_at >= s->acked_at) {
		s->idle_restart = 1;
		s->extra_acked_start = a->sent_at;
		s->extra_acked_delivered = 0;
	}
	s->in_flight = a->in_flight;
	s->acked_at = a->now;
	s->delivered += a->packets;
	if (a->window_limited) {
		s->has_cwnd_limited_at = 1;
		s->cwnd_limited_at = s->delivered;
	}
	a->rate = a->volume = 0;
	if (a->has_sample) {
		s->delivered = a->prior_delivered + a->delivered;
		a->volume = bbr3_sized(s, a->prior_delivered, a->delivered);
		if (a->interval)
			a->rate = bbr3_rate(a->delivered, a->interval);
		if (a->volume != BBR3_PACKETS(a->delivered))
			a->rate = fx_min(fx_mul(a->rate, a->volume / a->delivered, 40), BBR3_MAX_RATE);
		a->application_limited = bbr3_is_sample_limited(s, a);
		s->last_lost = a->lost;
		s->last_tx_in_flight = a->tx_in_flight;
		s->last_application_limited = a->application_limited;
	} else {
		a->prior_delivered = a->delivered = 0;
		a->lost = s->last_lost;
		a->tx_in_flight = s->last_tx_in_flight;
		a->application_limited = s->last_application_limited;
	}
	s->is_cwnd_limited = s->has_cwnd_limited_at && s->cwnd_limited_at >= a->prior_delivered;
}

/* UpdateOnACK consists of five parts, because the verifier does not follow it as a whole. */
FX_INLINE void bbr3_update_model(struct bbr3_state *s, struct bbr3_ack *a)
{
	bbr3_start(s, a->now);
	bbr3_take_sample(s, a);
	bbr3_update_latest_delivery_signals(s, a);
	bbr3_update_congestion_signals(s, a);
	bbr3_update_ack_aggregation(s, a);
}

FX_INLINE void bbr3_update_startup(struct bbr3_state *s, const struct bbr3_ack *a)
{
	bbr3_check_full_bw_reached(s, a);
	bbr3_check_startup_done(s, a);
	bbr3_check_drain_done(s, a->now);
}

FX_INLINE void bbr3_update_probe_rtt(struct bbr3_state *s, const struct bbr3_ack *a)
{
	bbr3_update_min_rtt(s, a->now, a->rtt);
	bbr3_check_probe_rtt(s, a);
	if (s->loss_round_start) {
		s->bw_latest = a->rate;
		s->inflight_latest = a->volume;
	}
	s->bw = fx_min(s->max_bw, s->bw_shortterm);
}

FX_INLINE void bbr3_update_control(struct bbr3_state *s, const struct bbr3_ack *a)
{
	if (s->recovery == BBR3_TIMEOUT_RECOVERY && s->round_count > s->recovery_round + 1)
		bbr3_recovered(s);
	bbr3_set_pacing_rate(s, a->rtt);
	bbr3_set_cwnd(s, a->packets);
	if (!s->in_flight && a->idles && bbr3_is_in_probe_bw(s))
		bbr3_set_pacing_rate_with_gain(s, BBR3_Q60(BBR3_PACING_MARGIN));
}

FX_INLINE void bbr3_acked(struct bbr3_state *s, struct bbr3_ack *a)
{
	bbr3_update_model(s, a);
	bbr3_update_startup(s, a);
	bbr3_update_probe_bw_cycle_phase(s, a);
	bbr3_update_probe_rtt(s, a);
	bbr3_update_control(s, a);
}

/* HandleLostPacket, for packets with the state of the last sample. */
FX_INLINE void bbr3_handle_lost_packet(struct bbr3_state *s, u64 now, u32 packets)
{
	u64 lost = s->last_lost + packets;

	if (!s->is_loss_in_round) {
		s->loss_round_delivered = s->delivered;
		bbr3_save_cwnd(s);
		bbr3_save_state(s);
	}
	s->is_loss_in_round = 1;
	if (!s->is_bw_probe_sample || !bbr3_is_inflight_too_high(lost, s->last_tx_in_flight))
		return;
	/* HandleInflightTooHigh. */
	s->prev_probe_too_high = 1;
	s->is_bw_probe_sample = 0;
	if (!s->last_application_limited)
		s->inflight_longterm = fx_max(bbr3_inflight_at_loss(lost, s->last_tx_in_flight),
					      bbr3_fraction(bbr3_target_inflight(s), BBR3_BETA));
	if (s->state == BBR3_UP) {
		s->saved_state = BBR3_UP;
		bbr3_start_down(s, now);
	}
}

/* Packets are declared lost: OnEnterFastRecovery and HandleLostPacket. */
FX_INLINE void bbr3_lost(struct bbr3_state *s, u64 now, u32 packets)
{
	bbr3_start(s, now);
	s->in_flight -= fx_min(s->in_flight, packets);
	if (s->recovery == BBR3_NO_RECOVERY) {
		bbr3_save_cwnd(s);
		bbr3_save_state(s);
		s->recovery = BBR3_FAST_RECOVERY;
		s->recovery_round = s->round_count;
	}
	if (!packets)
		return;
	s->loss_events++;
	bbr3_handle_lost_packet(s, now, packets);
	bbr3_bound_cwnd_for_model(s);
}

/* OnEnterRTO: the kernel has marked `packets` packets as lost. */
FX_INLINE void bbr3_timeout(struct bbr3_state *s, u64 now, u32 packets)
{
	bbr3_start(s, now);
	bbr3_save_cwnd(s);
	bbr3_save_state(s);
	s->recovery = BBR3_TIMEOUT_RECOVERY;
	s->recovery_round = s->round_count;
	if (packets)
		bbr3_handle_lost_packet(s, now, packets);
	s->in_flight -= fx_min(s->in_flight, packets);
	s->w = FX_PACKET;
}

/* HandleSpuriousLossDetection. */
FX_INLINE void bbr3_undo(struct bbr3_state *s)
{
	u32 saved = s->saved_state;

	bbr3_restore_cwnd(s);
	s->is_loss_in_round = 0;
	bbr3_reset_full_bw(s, 0);
	s->bw_shortterm = fx_max(s->bw_shortterm, s->saved_bw_shortterm);
	s->inflight_shortterm = fx_max(s->inflight_shortterm, s->saved_inflight_shortterm);
	s->inflight_longterm = fx_max(s->inflight_longterm, s->saved_inflight_longterm);
	s->saved_state = BBR3_NONE;
	if (saved == BBR3_STARTUP && s->state != BBR3_STARTUP) {
		s->full_bw_reached = 0;
		if (s->state != BBR3_PROBE_RTT)
			bbr3_enter_startup(s);
	} else if (saved == BBR3_UP && s->state != BBR3_UP && s->state != BBR3_PROBE_RTT) {
		bbr3_start_refill(s);
	}
	s->bw = fx_min(s->max_bw, s->bw_shortterm);
	s->recovery = BBR3_NO_RECOVERY;
	bbr3_bound_cwnd(s);
}

FX_INLINE u64 bbr3_rescaled(u64 value, u64 ratio)
{
	return value == BBR3_INFINITE ? value : fx_mul(value, ratio, 44);
}

/* The packets have another size in bytes, below 2^20. */
FX_INLINE void bbr3_rescale(struct bbr3_state *s, u32 packet)
{
	u64 ratio;
	u32 k;

	packet = fx_max(packet, 1);
	ratio = ((u64)s->packet << 44) / packet;
	bbr3_change_size(s, packet);
	s->w = fx_min(fx_max(bbr3_rescaled(s->w, ratio), FX_PACKET), s->max_window);
	s->prior_cwnd = bbr3_rescaled(s->prior_cwnd, ratio);
	s->pace = fx_min(bbr3_rescaled(s->pace, ratio), BBR3_MAX_RATE);
	s->max_bw = fx_min(bbr3_rescaled(s->max_bw, ratio), BBR3_MAX_RATE);
	s->bw = bbr3_rescaled(s->bw, ratio);
	s->bw_shortterm = bbr3_rescaled(s->bw_shortterm, ratio);
	s->inflight_shortterm = bbr3_rescaled(s->inflight_shortterm, ratio);
	s->inflight_longterm = bbr3_rescaled(s->inflight_longterm, ratio);
	s->bw_latest = bbr3_rescaled(s->bw_latest, ratio);
	s->inflight_latest = bbr3_rescaled(s->inflight_latest, ratio);
	s->extra_acked = bbr3_rescaled(s->extra_acked, ratio);
	s->extra_acked_delivered = bbr3_rescaled(s->extra_acked_delivered, ratio);
	s->bw_probe_up_acked = bbr3_rescaled(s->bw_probe_up_acked, ratio);
	s->full_bw = bbr3_rescaled(s->full_bw, ratio);
	s->probe_up_acked_per_inc = bbr3_rescaled(s->probe_up_acked_per_inc, ratio);
	s->saved_bw_shortterm = bbr3_rescaled(s->saved_bw_shortterm, ratio);
	s->saved_inflight_shortterm = bbr3_rescaled(s->saved_inflight_shortterm, ratio);
	s->saved_inflight_longterm = bbr3_rescaled(s->saved_inflight_longterm, ratio);
	for (k = 0; k < 3; k++) {
		s->max_bw_filter.value[k] = fx_min(bbr3_rescaled(s->max_bw_filter.value[k], ratio), BBR3_MAX_RATE);
		s->extra_acked_filter.value[k] = bbr3_rescaled(s->extra_acked_filter.value[k], ratio);
	}
}

/* A restart after an idle period: HandleRestartFromIdle in ProbeRTT. */
FX_INLINE void bbr3_tick(struct bbr3_state *s, u64 now)
{
	bbr3_start(s, now);
	if (!s->in_flight && s->state == BBR3_PROBE_RTT)
		bbr3_check_probe_rtt_done(s, now);
}

#endif
