//! The model of the path (draft-ietf-ccwg-bbr sections 5.5 and 5.3.4.3).

use super::{Ack, BETA, Bbr3, LOSS_THRESH, State};
use crate::delivery::LossSample;
use crate::units::{Dur, Time};

/// BBR.MinRTTFilterLen and BBR.ProbeRTTInterval.
const MIN_RTT_FILTER_LEN: Dur = Dur::from_millis(10_000);
const PROBE_RTT_INTERVAL: Dur = Dur::from_millis(5_000);
/// BBR.ExtraAckedFilterLen in rounds, and its length in Startup. A sample leaves the filter when it
/// is older.
const EXTRA_ACKED_FILTER_LEN: u64 = 10;
const STARTUP_EXTRA_ACKED_FILTER_LEN: u64 = 1;

impl Bbr3 {
    pub(super) fn update_latest_delivery_signals(&mut self, ack: &Ack) {
        self.loss_round_start = false;
        self.bw_latest = self.bw_latest.max(ack.rate);
        self.inflight_latest = self.inflight_latest.max(ack.delivered);
        if ack.prior_delivered.is_some_and(|prior| prior >= self.loss_round_delivered) {
            self.loss_round_delivered = self.delivered;
            self.loss_round_start = true;
        }
    }

    pub(super) fn advance_latest_delivery_signals(&mut self, ack: &Ack) {
        if self.loss_round_start {
            self.bw_latest = ack.rate;
            self.inflight_latest = ack.delivered;
        }
    }

    pub(super) fn reset_congestion_signals(&mut self) {
        self.is_loss_in_round = false;
        self.bw_latest = 0.0;
        self.inflight_latest = 0.0;
    }

    pub(super) fn update_congestion_signals(&mut self, ack: &Ack) {
        self.update_max_bw(ack);
        if self.loss_round_start {
            self.adapt_lower_bounds_from_congestion();
            self.is_loss_in_round = false;
        }
    }

    fn update_max_bw(&mut self, ack: &Ack) {
        self.update_round(ack);
        if ack.rate > 0.0 && (ack.rate >= self.max_bw || !ack.low) {
            self.max_bw = self.max_bw_filter.add(self.cycle_count, ack.rate);
            self.has_sample = true;
        }
    }

    fn update_round(&mut self, ack: &Ack) {
        self.round_start =
            ack.prior_delivered.is_some_and(|prior| prior >= self.next_round_delivered);
        if self.round_start {
            self.start_round();
            self.round_count += 1;
            self.rounds_since_probe_up += 1;
        }
    }

    pub(super) fn start_round(&mut self) {
        self.next_round_delivered = self.delivered;
    }

    pub(super) fn advance_max_bw_filter(&mut self) {
        self.cycle_count += 1;
        (self.has_advanced, self.has_sample) = (true, false);
    }

    fn is_probing_bw(&self) -> bool {
        matches!(self.state, State::Startup | State::Refill | State::Up)
    }

    /// InitLowerBounds and LossLowerBounds included.
    fn adapt_lower_bounds_from_congestion(&mut self) {
        if self.is_probing_bw() || !self.is_loss_in_round {
            return;
        }
        let bw = if self.bw_shortterm.is_infinite() { self.max_bw } else { self.bw_shortterm };
        let inflight =
            if self.inflight_shortterm.is_infinite() { self.w } else { self.inflight_shortterm };
        self.bw_shortterm = self.bw_latest.max(BETA * bw);
        self.inflight_shortterm = self.inflight_latest.max(BETA * inflight);
    }

    pub(super) fn reset_short_term_model(&mut self) {
        self.bw_shortterm = f64::INFINITY;
        self.inflight_shortterm = f64::INFINITY;
    }

    pub(super) fn update_ack_aggregation(&mut self, ack: &Ack) {
        let interval = ack.now.since(self.extra_acked_start).as_secs();
        let mut expected = self.bw * interval;
        if self.extra_acked_delivered <= expected {
            self.extra_acked_delivered = 0.0;
            self.extra_acked_start = ack.now;
            expected = 0.0;
        }
        self.extra_acked_delivered += ack.newly;
        let extra = (self.extra_acked_delivered - expected).min(self.w);
        self.extra_acked_filter.set_length(if self.full_bw_reached {
            EXTRA_ACKED_FILTER_LEN
        } else {
            STARTUP_EXTRA_ACKED_FILTER_LEN
        });
        self.extra_acked = self.extra_acked_filter.add(self.round_count, extra);
    }

    pub(super) fn update_min_rtt(&mut self, now: Time, rtt: Option<Dur>) {
        self.probe_rtt_expired = now > self.probe_rtt_min_stamp + PROBE_RTT_INTERVAL;
        if let Some(rtt) = rtt
            && (self.probe_rtt_expired || self.probe_rtt_min_delay.is_none_or(|min| rtt < min))
        {
            self.probe_rtt_min_delay = Some(rtt);
            self.probe_rtt_min_stamp = now;
        }
        let expired = now > self.min_rtt_stamp + MIN_RTT_FILTER_LEN;
        if let Some(delay) = self.probe_rtt_min_delay
            && (expired || self.min_rtt.is_none_or(|min| delay < min))
        {
            self.min_rtt = Some(delay);
            self.min_rtt_stamp = self.probe_rtt_min_stamp;
        }
    }

    pub(super) fn is_inflight_too_high(&self, packet: LossSample) -> bool {
        packet.lost as f64 > f64::from(packet.in_flight) * LOSS_THRESH
    }

    /// HandleLostPacket, with NoteLoss, for `packets` packets.
    pub(super) fn handle_lost_packet(&mut self, now: Time, packets: u32, packet: LossSample) {
        if !self.is_loss_in_round {
            self.loss_round_delivered = self.delivered;
            self.save_cwnd();
            self.save_state();
        }
        self.is_loss_in_round = true;
        if self.is_bw_probe_sample && self.is_inflight_too_high(packet) {
            let in_flight = inflight_at_loss(packet, f64::from(packets));
            self.handle_inflight_too_high(now, in_flight, packet.application_limited);
        }
    }

    fn handle_inflight_too_high(&mut self, now: Time, in_flight: f64, application_limited: bool) {
        self.prev_probe_too_high = true;
        self.is_bw_probe_sample = false;
        if !application_limited {
            self.inflight_longterm = in_flight.max(self.target_inflight() * BETA);
        }
        if self.state == State::Up {
            self.saved.state = Some(State::Up);
            self.start_down(now);
        }
    }

    /// SaveStateUponLoss without its SaveCwnd.
    pub(super) fn save_state(&mut self) {
        self.saved.state = None;
        self.saved.bw_shortterm = self.bw_shortterm;
        self.saved.inflight_shortterm = self.inflight_shortterm;
        self.saved.inflight_longterm = self.inflight_longterm;
    }

    pub(super) fn handle_spurious_loss_detection(&mut self) {
        self.restore_cwnd();
        self.is_loss_in_round = false;
        self.reset_full_bw();
        self.bw_shortterm = self.bw_shortterm.max(self.saved.bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(self.saved.inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(self.saved.inflight_longterm);
        match self.saved.state.take() {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_bw_reached = false;
                if self.state != State::ProbeRtt {
                    self.enter_startup();
                }
            }
            Some(State::Up) if !matches!(self.state, State::Up | State::ProbeRtt) => {
                self.start_refill();
            }
            _ => {}
        }
        self.bw = self.max_bw.min(self.bw_shortterm);
        self.recovery = super::Recovery::None;
        self.bound_cwnd(self.max_inflight());
    }
}

/// InflightAtLoss: the packets in flight at which the losses of P exceed the threshold.
fn inflight_at_loss(packet: LossSample, size: f64) -> f64 {
    let inflight_prev = f64::from(packet.in_flight) - size;
    let lost_prev = packet.lost as f64 - size;
    let lost_prefix = (LOSS_THRESH * inflight_prev - lost_prev) / (1.0 - LOSS_THRESH);
    inflight_prev + lost_prefix
}
