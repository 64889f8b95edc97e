//! The state machine (draft-ietf-ccwg-bbr section 5.3).

use super::{
    Ack, AckPhase, Aging, Bbr3, CWND_GAIN, DOWN_PACING_GAIN, DRAIN_PACING_GAIN, HEADROOM,
    MIN_PIPE_CWND, PROBE_RTT_CWND_GAIN, Recovery, STARTUP_FULL_LOSS_COUNT, STARTUP_PACING_GAIN,
    State, UP_CWND_GAIN, UP_PACING_GAIN,
};
use crate::units::{Dur, Time};
use libm::floor;

/// Growth of the delivery rate, and rounds without it, that fill the pipe.
const FULL_BW_GROWTH: f64 = 1.25;
const FULL_BW_COUNT: u32 = 3;
/// Rounds of Drain after which it ends.
const DRAIN_ROUNDS: u64 = 3;
/// The least wait between two probes for bandwidth in seconds; a random second is added.
const PROBE_WAIT: f64 = 2.0;
/// Rounds in which Reno would probe.
const RENO_ROUNDS: f64 = 63.0;
/// Doublings of the growth of inflight_longterm.
const MAX_UP_ROUNDS: u32 = 30;
const PROBE_RTT_DURATION: Dur = Dur::from_millis(200);

impl Bbr3 {
    fn enter(&mut self, state: State, pacing_gain: f64, cwnd_gain: f64) {
        self.state = state;
        self.pacing_gain = pacing_gain;
        self.cwnd_gain = cwnd_gain;
    }

    pub(super) fn enter_startup(&mut self) {
        self.enter(State::Startup, STARTUP_PACING_GAIN, CWND_GAIN);
    }

    fn enter_drain(&mut self) {
        self.enter(State::Drain, DRAIN_PACING_GAIN, CWND_GAIN);
        self.drain_start_round = self.round_count;
    }

    pub(super) fn start_down(&mut self, now: Time) {
        self.reset_congestion_signals();
        self.probe_up_acked_per_inc = f64::INFINITY;
        self.pick_probe_wait();
        self.cycle_stamp = now;
        self.ack_phase = AckPhase::Stopping;
        self.start_round();
        self.enter(State::Down, DOWN_PACING_GAIN, CWND_GAIN);
    }

    /// Ends the cycle of max_bw as QUICHE does, unless it has ended since the last Refill.
    fn leave_down(&mut self) {
        let ends = self.state == State::Down && !self.has_advanced && self.has_sample;
        if ends && self.aging == Aging::Quiche {
            self.advance_max_bw_filter();
        }
    }

    pub(super) fn start_cruise(&mut self) {
        self.leave_down();
        self.enter(State::Cruise, 1.0, CWND_GAIN);
    }

    pub(super) fn start_refill(&mut self) {
        self.leave_down();
        self.has_advanced = false;
        self.reset_short_term_model();
        self.bw_probe_up_rounds = 0;
        self.bw_probe_up_acked = 0.0;
        self.prev_probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.enter(State::Refill, 1.0, CWND_GAIN);
    }

    fn start_up(&mut self, ack: &Ack) {
        self.ack_phase = AckPhase::Starting;
        self.start_round();
        self.reset_full_bw();
        self.full_bw = ack.rate;
        self.enter(State::Up, UP_PACING_GAIN, UP_CWND_GAIN);
        self.raise_inflight_longterm_slope();
    }

    pub(super) fn reset_full_bw(&mut self) {
        self.full_bw = 0.0;
        self.full_bw_count = 0;
        self.full_bw_now = false;
    }

    pub(super) fn check_full_bw_reached(&mut self, ack: &Ack) {
        if self.full_bw_now || !self.round_start || ack.sent.application_limited || ack.rate == 0.0
        {
            return;
        }
        if ack.rate >= self.full_bw * FULL_BW_GROWTH {
            self.reset_full_bw();
            self.full_bw = ack.rate;
            return;
        }
        self.full_bw_count += 1;
        self.full_bw_now = self.full_bw_count >= FULL_BW_COUNT;
        self.full_bw_reached |= self.full_bw_now;
    }

    pub(super) fn check_startup_done(&mut self, ack: &Ack) {
        self.check_startup_high_loss(ack);
        if self.state == State::Startup && self.full_bw_reached {
            self.enter_drain();
        }
    }

    /// CheckStartupHighLoss, once a round.
    fn check_startup_high_loss(&mut self, ack: &Ack) {
        if !self.loss_round_start {
            return;
        }
        let events = core::mem::take(&mut self.loss_events);
        let in_recovery = match self.recovery {
            Recovery::Fast { round, .. } => self.round_count > round,
            _ => false,
        };
        if self.state == State::Startup
            && !self.full_bw_reached
            && in_recovery
            && events >= STARTUP_FULL_LOSS_COUNT
            && self.is_inflight_too_high(ack.sent)
        {
            self.saved.state = Some(State::Startup);
            self.full_bw_reached = true;
            self.full_bw_now = true;
            self.inflight_longterm = self.bdp_multiple(self.bw, 1.0).max(self.inflight_latest);
        }
    }

    pub(super) fn check_drain_done(&mut self, now: Time) {
        if self.state == State::Drain
            && (self.packets_in_flight() <= self.inflight(self.bw, 1.0)
                || self.round_count > self.drain_start_round + DRAIN_ROUNDS)
        {
            self.start_down(now);
        }
    }

    pub(super) fn is_in_probe_bw(&self) -> bool {
        matches!(self.state, State::Down | State::Cruise | State::Refill | State::Up)
    }

    pub(super) fn update_probe_bw_cycle_phase(&mut self, ack: &Ack) {
        if !self.full_bw_reached || ack.newly == 0.0 || self.adapt_long_term_model(ack) {
            return;
        }
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe_bw(ack.now) => self.start_refill(),
            State::Down if self.is_time_to_cruise() => self.start_cruise(),
            State::Refill if self.round_start => {
                self.is_bw_probe_sample = true;
                self.start_up(ack);
            }
            State::Up => self.end_up_if_due(ack),
            _ => {}
        }
    }

    fn end_up_if_due(&mut self, ack: &Ack) {
        if self.is_time_to_go_down(ack) {
            self.prev_probe_too_high = false;
            self.start_down(ack.now);
        }
    }

    fn is_time_to_cruise(&self) -> bool {
        let in_flight = self.packets_in_flight();
        in_flight <= self.inflight_with_headroom() && in_flight <= self.inflight(self.max_bw, 1.0)
    }

    fn is_time_to_go_down(&mut self, ack: &Ack) -> bool {
        // A window with a fraction never has as many packets in flight: one more would exceed it.
        if self.prev_probe_too_high && ack.prior_in_flight + 1.0 > self.inflight_longterm {
            self.prev_probe_precautionary = true;
            return true;
        }
        if self.is_cwnd_limited && self.w >= self.inflight_longterm {
            self.reset_full_bw();
            self.full_bw = ack.rate;
            return false;
        }
        self.full_bw_now
    }

    fn is_time_to_probe_bw(&self, now: Time) -> bool {
        let reno_rounds = self.target_inflight().min(RENO_ROUNDS);
        now > self.cycle_stamp + self.bw_probe_wait
            || self.rounds_since_probe_up as f64 >= reno_rounds
    }

    fn pick_probe_wait(&mut self) {
        self.rounds_since_probe_up = self.random.below(2);
        self.bw_probe_wait = Dur::from_secs(PROBE_WAIT + self.random.unit());
    }

    pub(super) fn inflight_with_headroom(&self) -> f64 {
        let headroom = (HEADROOM * self.inflight_longterm).max(1.0);
        if self.inflight_longterm.is_infinite() {
            return f64::INFINITY;
        }
        (self.inflight_longterm - headroom).max(MIN_PIPE_CWND)
    }

    fn raise_inflight_longterm_slope(&mut self) {
        let growth = f64::from(1_u32 << self.bw_probe_up_rounds);
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(MAX_UP_ROUNDS);
        self.probe_up_acked_per_inc = (self.w / growth).max(1.0);
    }

    fn probe_inflight_longterm_upward(&mut self, ack: &Ack) {
        if !self.is_cwnd_limited || self.w < self.inflight_longterm {
            return;
        }
        self.bw_probe_up_acked += ack.newly;
        if self.bw_probe_up_acked >= self.probe_up_acked_per_inc {
            let delta = floor(self.bw_probe_up_acked / self.probe_up_acked_per_inc);
            self.bw_probe_up_acked -= delta * self.probe_up_acked_per_inc;
            self.inflight_longterm += delta;
        }
        if self.round_start {
            self.raise_inflight_longterm_slope();
        }
    }

    /// AdaptLongTermModel: whether it has changed the state.
    fn adapt_long_term_model(&mut self, ack: &Ack) -> bool {
        if self.ack_phase == AckPhase::Starting && self.round_start {
            self.ack_phase = AckPhase::Feedback;
        }
        if self.ack_phase == AckPhase::Stopping && self.round_start {
            self.is_bw_probe_sample = false;
            self.ack_phase = AckPhase::Init;
            let ended = self.has_advanced && self.aging == Aging::Quiche;
            if self.is_in_probe_bw() && !ack.sent.application_limited && !ended {
                self.advance_max_bw_filter();
            }
            if self.is_in_probe_bw() && self.prev_probe_precautionary && !self.prev_probe_too_high {
                self.start_refill();
                return true;
            }
        }
        if !self.is_inflight_too_high(ack.sent) && self.inflight_longterm.is_finite() {
            let sent = f64::from(ack.sent.in_flight);
            self.inflight_longterm = self.inflight_longterm.max(sent);
            if self.state == State::Up {
                self.probe_inflight_longterm_upward(ack);
            }
        }
        false
    }

    pub(super) fn check_probe_rtt(&mut self, ack: &Ack) {
        if self.state != State::ProbeRtt && self.probe_rtt_expired && !self.idle_restart {
            self.save_cwnd();
            self.enter(State::ProbeRtt, 1.0, PROBE_RTT_CWND_GAIN);
            self.probe_rtt_done = None;
            self.ack_phase = AckPhase::Stopping;
            self.start_round();
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(ack.now);
        }
        if ack.delivered > 0.0 {
            self.idle_restart = false;
        }
    }

    fn handle_probe_rtt(&mut self, now: Time) {
        self.limited.extend(self.delivered, self.in_flight);
        if self.probe_rtt_done.is_none() {
            if self.packets_in_flight() <= self.probe_rtt_cwnd() {
                self.probe_rtt_done = Some(now + PROBE_RTT_DURATION);
                self.probe_rtt_round_done = false;
                self.start_round();
            }
            return;
        }
        self.probe_rtt_round_done |= self.round_start;
        if self.probe_rtt_round_done {
            self.check_probe_rtt_done(now);
        }
    }

    pub(super) fn check_probe_rtt_done(&mut self, now: Time) {
        if self.probe_rtt_done.is_some_and(|done| now > done) {
            self.probe_rtt_done = None;
            self.probe_rtt_min_stamp = now;
            self.restore_cwnd();
            self.exit_probe_rtt(now);
        }
    }

    fn exit_probe_rtt(&mut self, now: Time) {
        self.reset_short_term_model();
        if self.full_bw_reached {
            self.start_down(now);
            self.start_cruise();
        } else {
            self.enter_startup();
        }
    }
}
