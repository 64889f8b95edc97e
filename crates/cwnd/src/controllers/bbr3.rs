//! BBR version 3: a model of the path's bandwidth, round-trip time and acceptable packets in
//! flight, which losses reduce.
//!
//! Source: Cardwell, Swett and Beshay, draft-ietf-ccwg-bbr, commit 4ce5e87 of
//! ietf-wg-ccwg/draft-ietf-ccwg-bbr. Functions and variables have the draft's names in snake case,
//! without the prefix.
//!
//! ```text
//! max_bw: the largest delivery rate of this and the last ProbeBW cycle           (section 5.5.6)
//! aging = quiche: a cycle also ends with Down, if it has a sample                (deviation)
//! min_rtt: the smallest RTT of the last 10 s, at first that of the handshake      (sections 5.3.4.3, 5.2.1)
//! bw = min(max_bw, bw_shortterm), bdp = bw min_rtt                               (sections 2.9, 5.5.10)
//! pacing rate = 0.99 pacing_gain bw                                              (section 5.6.2)
//! max_inflight = cwnd_gain bdp + extra_acked, at least 4, 3 quanta               (section 5.6.4.2)
//! each ACK: w <- min(w + n, max_inflight), at least 4                            (section 5.6.4.6)
//! pipe not full: w <- w + n, while w < max_inflight                              (section 5.6.4.6)
//! w <= inflight_shortterm; in ProbeBW and ProbeRTT w <= inflight_longterm, less 15 % in Cruise and ProbeRTT  (section 5.6.4.7)
//! Startup: gains 2.77 and 2, until the rate grows by less than 25 % in 3 rounds, or 2 % and 6 times are lost in one  (section 5.3.1)
//! Drain: gains 0.5 and 2, until bdp is in flight, at most 3 rounds               (section 5.3.2)
//! Down: gains 0.9 and 2, until bdp and 0.85 inflight_longterm are in flight      (section 5.3.3.1)
//! Cruise: gains 1 and 2, until 2 to 3 s or min(bdp, w, 63) rounds after Up       (section 5.3.3.8)
//! Refill: gains 1 and 2, for a round, without the short-term model               (section 5.3.3.3)
//! Up: gains 1.25 and 2.25, until the rate grows by less than 25 % in 3 rounds, or a loss rate above 2 %  (section 5.3.3.7)
//! Up after such a loss rate: until inflight_longterm is in flight                (section 5.3.3.6)
//! Up: inflight_longterm grows by 1, 2, 4, ... packets in a round that it limits  (section 5.3.3.5)
//! loss rate above 2 % of packets sent in Refill or Up: inflight_longterm <- packets in flight then, at least 0.7 min(bdp, w)  (section 5.5.10.2)
//! round with a loss in other states: bw_shortterm <- max(bw_latest, 0.7 bw_shortterm)  (section 5.5.10.3)
//! inflight_shortterm <- max(inflight_latest, 0.7 inflight_shortterm)             (section 5.5.10.3)
//! ProbeRTT: w <= bdp/2 for 200 ms and a round, 5 s after the last smallest RTT   (section 5.3.4)
//! at a timeout: w <- 1 (QUIC: 2); end of recovery, ProbeRTT: w <- at least w before        (section 5.6.4.4)
//! extra_acked: the largest excess of acknowledged packets over bw t in 10 rounds  (section 5.5.9)
//! a spurious loss restores the model and the state                               (section 5.5.11)
//! ```
//!
//! n packets are newly acknowledged; a quantum has the data of 1 ms at the pacing rate, 2 packets
//! to 64 KB. the unit of rates is packets/s.
//!
//! | symbol | meaning | unit | range | default |
//! |---|---|---|---|---|
//! | `aging` | the rule by which max_bw ages: of Google's QUICHE, or of the draft alone | | quiche, draft | quiche |
//!
//! Known deviations:
//!
//! * With `aging=quiche` max_bw also ages when Down ends, if it has not since the last Refill and
//!   has a sample since (ExitProbeDown of Google's QUICHE, bbr3_sender.cc at commit 7bd55da), and
//!   packets sent in ProbeRTT give samples for it, as there. QUICHE clears the mark of a cycle that
//!   has ended at the beginning of Down; here Refill does, because each ProbeRTT ends through Down.
//!   By the draft alone (`aging=draft`) max_bw never ages where a queue of seconds brings a
//!   ProbeRTT before the end of each probe: the samples of a round trip after it are limited by the
//!   application.
//! * Volumes are real-valued, in packets.
//! * Losses follow the acknowledgement that reveals them: the model knows them at the next one, and
//!   the bounds that they change apply at once.
//! * The packets that are declared lost together are one packet P of the draft: the one sent last
//!   has its state. After scattered losses inflight_longterm is lower than with one P each, by up
//!   to their number.
//! * Losses without a state (of a driver without it, or at persistent congestion) have that of the
//!   last sample.
//! * Each event of losses counts as one discontiguous range in the exit of Startup.
//! * The exit of Startup for losses also sets full_bw_now, as the test cases of the draft require.
//! * A round whose sample is not reliable does not count as a plateau.
//! * C.inflight reaches inflight_longterm in Up if it does before the acknowledgement, in whole
//!   packets.
//! * Packets sent in ProbeRTT are identified by P.delivered; the driver does not mark them as
//!   limited by the application.
//! * A restart after an idle period is an acknowledgement of a packet sent when none was in flight
//!   and the application limited the sender. The pacing rate is that of gain 1 as soon as the
//!   application has sent all and nothing is in flight. ProbeRTT ends by a timer in an idle period,
//!   not at its end.
//! * A restart also sets extra_acked_delivered to 0, as its sampling interval begins anew (section
//!   5.5.9); the pseudo-code keeps it, and the window of an application-limited flow grows without
//!   bound.
//! * Acknowledgements without new data do not change the state.
//! * The window after a timeout is the least one, also if RACK keeps packets in flight; the draft
//!   adds these. A further timeout overwrites the saved state.
//! * The window before ProbeRTT is saved before the state changes.
//! * The filters of max_bw and extra_acked have three samples, and that of extra_acked covers a
//!   round more than the draft's.
//! * The recovery after a timeout ends with the second round after it; the driver does not report
//!   its end.
//! * The offload budget is three quanta for TCP, one for a driver that infers the end of recovery
//!   (QUIC).
//! * The first RTT sample sets the pacing rate of Startup anew, as in Linux: the initial rate is
//!   that of 1 ms.
//! * Connections without SACK are treated like those with it.
//! * Persistent congestion is a timeout with a window of two packets, at which all packets in
//!   flight are lost.
//! * After a change of the packet size a rate sample is converted by the sizes of its packets.
//!   Those sent between the last acknowledgement and the change count with the new size.
//! * The least pacing rate is a packet in a second.
//! * Marks (ECN) have no effect. Section 3.7 specifies no response of its own, but requires that a
//!   sender of ECN-capable packets treats marks as congestion: `bbr3` is for paths without marks.
//! * In the kernel (`cwnd kernel`) RS.tx_in_flight is the packets delivered or lost since the
//!   packet was sent; P.lost is read from a history of the loss counter by P.delivered; min_rtt
//!   begins with the first sample of data.

mod cycle;
mod model;

use super::limited::LimitedPhase;
use crate::controller::{Controller, Cut, Needs, Settings};
use crate::delivery::LossSample;
use crate::event::{Acked, Event, Limit, Lost, Output};
use crate::law::Signal;
use crate::parts::{PERSISTENT_WINDOW, PacketSizes, WindowedMax, rescale_max_window};
use crate::random::Random;
use crate::units::{Dur, Packets, Rate, Time};

/// BBR.StartupPacingGain, 4 ln 2.
const STARTUP_PACING_GAIN: f64 = 2.77;
const DRAIN_PACING_GAIN: f64 = 0.5;
const DOWN_PACING_GAIN: f64 = 0.9;
const UP_PACING_GAIN: f64 = 1.25;
/// BBR.DefaultCwndGain.
const CWND_GAIN: f64 = 2.0;
const UP_CWND_GAIN: f64 = 2.25;
const PROBE_RTT_CWND_GAIN: f64 = 0.5;
/// BBR.PacingMarginPercent: the pacing rate is 1 % below the estimate.
const PACING_MARGIN: f64 = 0.99;
const LOSS_THRESH: f64 = 0.02;
const BETA: f64 = 0.7;
const HEADROOM: f64 = 0.15;
const MIN_PIPE_CWND: f64 = 4.0;
/// BBRStartupFullLossCnt.
const STARTUP_FULL_LOSS_COUNT: u32 = 6;
/// The least and the largest send quantum: packets, bytes. A quantum is 1 ms long.
const MIN_QUANTUM: f64 = 2.0;
const MAX_QUANTUM: f64 = 64.0 * 1024.0;
const QUANTUM_SECONDS: f64 = 1e-3;
/// The nominal RTT before the first sample in seconds.
const NOMINAL_RTT: f64 = 1e-3;
/// The least pacing rate in packets per second.
const MIN_PACE: f64 = 1.0;
/// Largest bandwidth in packets per second and volume in packets, so that results stay finite.
const MAX_VALUE: f64 = 1e12;

/// BBR.state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Doubles the rate each round.
    Startup,
    /// Drains the queue of Startup.
    Drain,
    /// ProbeBW_DOWN: sends less than the bandwidth.
    Down,
    /// ProbeBW_CRUISE: sends the bandwidth.
    Cruise,
    /// ProbeBW_REFILL: fills the pipe.
    Refill,
    /// ProbeBW_UP: sends more than the bandwidth.
    Up,
    /// Empties the queue to measure min_rtt.
    ProbeRtt,
}

/// The rule by which max_bw ages, besides the draft's: a new cycle begins one round after Up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Aging {
    /// A cycle also ends with Down (`ExitProbeDown` of Google's QUICHE), and ProbeRTT gives
    /// samples.
    #[default]
    Quiche,
    /// The draft's rule alone.
    Draft,
}

/// BBR.ack_phase: what the acknowledgements that arrive say of the probe for bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckPhase {
    Init,
    Refilling,
    Starting,
    Feedback,
    Stopping,
}

/// The recovery of losses, with the round in which it began.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Recovery {
    None,
    Fast { began: Time, round: u64 },
    Timeout { round: u64 },
}

/// An acknowledgement with its rate sample (RS).
#[derive(Clone, Copy, Debug)]
struct Ack {
    now: Time,
    /// RS.newly_acked.
    newly: f64,
    rtt: Option<Dur>,
    /// RS.delivery_rate in packets per second; 0 without a reliable sample.
    rate: f64,
    delivered: f64,
    /// RS.prior_delivered; `None` without a sample.
    prior_delivered: Option<u64>,
    /// RS.lost, RS.tx_in_flight and RS.is_app_limited.
    sent: LossSample,
    /// Whether the sample counts for max_bw only if it raises it.
    low: bool,
    /// Packets in flight before this acknowledgement.
    prior_in_flight: f64,
}

/// The values saved at a loss: BBR.undo_*.
#[derive(Clone, Copy, Debug)]
struct Saved {
    state: Option<State>,
    bw_shortterm: f64,
    inflight_shortterm: f64,
    inflight_longterm: f64,
}

/// BBR version 3: see the [module](self).
#[derive(Clone, Debug)]
pub struct Bbr3 {
    sizes: PacketSizes,
    /// The least window in packets, after a timeout.
    least: f64,
    max_window: f64,
    initial_window: f64,
    /// Quanta of the offload budget.
    quanta: f64,
    infers_recovery: bool,
    random: Random,
    started: bool,

    /// C.cwnd and C.pacing_rate (packets per second).
    w: f64,
    pace: f64,
    has_seen_rtt: bool,
    state: State,
    pacing_gain: f64,
    cwnd_gain: f64,

    /// C.delivered and C.inflight.
    delivered: u64,
    in_flight: u32,
    acked_at: Time,
    /// The delivered count until which the window limits the sender, for C.is_cwnd_limited.
    cwnd_limited_at: Option<u64>,
    is_cwnd_limited: bool,
    limited: LimitedPhase,
    /// The state of the packet of the last sample.
    last_sent: LossSample,

    next_round_delivered: u64,
    round_start: bool,
    round_count: u64,

    aging: Aging,
    max_bw_filter: WindowedMax<f64>,
    cycle_count: u64,
    /// Whether the filter has advanced in this cycle, and has a sample since.
    has_advanced: bool,
    has_sample: bool,
    max_bw: f64,
    bw: f64,
    bw_shortterm: f64,
    inflight_shortterm: f64,
    inflight_longterm: f64,
    bw_latest: f64,
    inflight_latest: f64,
    loss_round_delivered: u64,
    loss_round_start: bool,
    is_loss_in_round: bool,
    loss_events: u32,

    min_rtt: Option<Dur>,
    min_rtt_stamp: Time,
    probe_rtt_min_delay: Option<Dur>,
    probe_rtt_min_stamp: Time,
    probe_rtt_expired: bool,
    probe_rtt_done: Option<Time>,
    probe_rtt_round_done: bool,
    idle_restart: bool,

    extra_acked_start: Time,
    extra_acked_delivered: f64,
    extra_acked_filter: WindowedMax<f64>,
    extra_acked: f64,

    full_bw_reached: bool,
    full_bw_now: bool,
    full_bw: f64,
    full_bw_count: u32,
    drain_start_round: u64,

    ack_phase: AckPhase,
    is_bw_probe_sample: bool,
    bw_probe_up_acked: f64,
    probe_up_acked_per_inc: f64,
    bw_probe_up_rounds: u32,
    rounds_since_probe_up: u64,
    bw_probe_wait: Dur,
    cycle_stamp: Time,
    prev_probe_too_high: bool,
    prev_probe_precautionary: bool,

    recovery: Recovery,
    prior_cwnd: f64,
    saved: Saved,
    cut: Option<Cut>,
}

impl Bbr3 {
    /// BBR at the start of a connection (OnInit).
    pub fn new(aging: Aging, settings: &Settings) -> Self {
        let least = settings.conventions.least_window;
        let initial_window = settings.initial_window.get().clamp(least, MAX_VALUE);
        let max_window = settings.max_window.get().clamp(1.0, MAX_VALUE);
        let infers_recovery = settings.conventions.infers_recovery;
        Bbr3 {
            sizes: PacketSizes::new(settings.packet),
            least,
            max_window,
            initial_window,
            quanta: if infers_recovery { 1.0 } else { 3.0 },
            infers_recovery,
            random: Random::new(settings.seed),
            started: false,
            w: initial_window.min(max_window),
            pace: STARTUP_PACING_GAIN * initial_window / NOMINAL_RTT,
            has_seen_rtt: false,
            state: State::Startup,
            pacing_gain: STARTUP_PACING_GAIN,
            cwnd_gain: CWND_GAIN,
            delivered: 0,
            in_flight: 0,
            acked_at: Time::ZERO,
            cwnd_limited_at: None,
            is_cwnd_limited: false,
            limited: LimitedPhase::default(),
            last_sent: LossSample::new(),
            next_round_delivered: 0,
            round_start: false,
            round_count: 0,
            aging,
            max_bw_filter: WindowedMax::new(1),
            cycle_count: 0,
            has_advanced: false,
            has_sample: false,
            max_bw: 0.0,
            bw: 0.0,
            bw_shortterm: f64::INFINITY,
            inflight_shortterm: f64::INFINITY,
            inflight_longterm: f64::INFINITY,
            bw_latest: 0.0,
            inflight_latest: 0.0,
            loss_round_delivered: 0,
            loss_round_start: false,
            is_loss_in_round: false,
            loss_events: 0,
            min_rtt: None,
            min_rtt_stamp: Time::ZERO,
            probe_rtt_min_delay: None,
            probe_rtt_min_stamp: Time::ZERO,
            probe_rtt_expired: false,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            idle_restart: false,
            extra_acked_start: Time::ZERO,
            extra_acked_delivered: 0.0,
            extra_acked_filter: WindowedMax::new(1),
            extra_acked: 0.0,
            full_bw_reached: false,
            full_bw_now: false,
            full_bw: 0.0,
            full_bw_count: 0,
            drain_start_round: 0,
            ack_phase: AckPhase::Init,
            is_bw_probe_sample: false,
            bw_probe_up_acked: 0.0,
            probe_up_acked_per_inc: f64::INFINITY,
            bw_probe_up_rounds: 0,
            rounds_since_probe_up: 0,
            bw_probe_wait: Dur::ZERO,
            cycle_stamp: Time::ZERO,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            recovery: Recovery::None,
            prior_cwnd: 0.0,
            saved: Saved {
                state: None,
                bw_shortterm: 0.0,
                inflight_shortterm: 0.0,
                inflight_longterm: 0.0,
            },
            cut: None,
        }
    }

    /// The state.
    pub const fn state(&self) -> State {
        self.state
    }

    /// Sets the clocks at the first event: a connection may begin at any time.
    fn start(&mut self, now: Time) {
        if !self.started {
            self.started = true;
            self.min_rtt_stamp = now;
            self.probe_rtt_min_stamp = now;
            self.extra_acked_start = now;
            self.cycle_stamp = now;
        }
    }

    /// UpdateOnACK.
    fn on_acked(&mut self, now: Time, acked: &Acked) {
        self.handle_restart_from_idle(acked);
        let ack = self.sample(now, acked);
        self.update_latest_delivery_signals(&ack);
        self.update_congestion_signals(&ack);
        self.update_ack_aggregation(&ack);
        self.check_full_bw_reached(&ack);
        self.check_startup_done(&ack);
        self.check_drain_done(now);
        self.update_probe_bw_cycle_phase(&ack);
        self.update_min_rtt(now, ack.rtt);
        self.check_probe_rtt(&ack);
        self.advance_latest_delivery_signals(&ack);
        self.bw = self.max_bw.min(self.bw_shortterm);
        self.end_recovery(acked);
        self.set_pacing_rate(ack.rtt);
        self.set_cwnd(ack.newly);
        if self.is_idle() && acked.limit == Limit::Application && self.is_in_probe_bw() {
            self.set_pacing_rate_with_gain(1.0);
        }
    }

    /// GenerateRateSample, and the state of the transport connection.
    fn sample(&mut self, now: Time, acked: &Acked) -> Ack {
        let prior_in_flight = f64::from(acked.in_flight.saturating_add(acked.packets));
        let newly = f64::from(acked.packets);
        let mut ack = Ack {
            now,
            newly,
            rtt: acked.rtt,
            rate: 0.0,
            delivered: 0.0,
            prior_delivered: None,
            sent: self.last_sent,
            low: false,
            prior_in_flight,
        };
        self.in_flight = acked.in_flight;
        self.acked_at = now;
        self.delivered = self.delivered.saturating_add(u64::from(acked.packets));
        if acked.limit == Limit::Window {
            self.cwnd_limited_at = Some(self.delivered);
        }
        if let Some(sample) = &acked.delivery {
            self.delivered = sample.prior_delivered.saturating_add(sample.delivered);
            ack.delivered = self.sizes.volume(sample.prior_delivered, sample.delivered);
            if sample.rate().is_some() {
                let rate = Rate::over(ack.delivered, sample.interval());
                ack.rate = rate.as_per_sec().min(MAX_VALUE);
            }
            ack.prior_delivered = Some(sample.prior_delivered);
            ack.sent.lost = sample.lost;
            ack.sent.in_flight = sample.in_flight;
            ack.sent.application_limited =
                sample.application_limited || self.limited.contains(sample.prior_delivered);
            ack.low = match self.aging {
                Aging::Quiche => sample.application_limited,
                Aging::Draft => ack.sent.application_limited,
            };
            self.last_sent = ack.sent;
        }
        // At any point in the last round trip: since the packet of the sample was sent.
        self.is_cwnd_limited =
            self.cwnd_limited_at.is_some_and(|at| at >= ack.prior_delivered.unwrap_or(0));
        ack
    }

    /// Whether nothing is in flight after the last acknowledgement.
    fn is_idle(&self) -> bool {
        self.started && self.in_flight == 0
    }

    /// HandleRestartFromIdle, at the first acknowledgement after it.
    fn handle_restart_from_idle(&mut self, acked: &Acked) {
        let limited = acked.delivery.is_some_and(|sample| {
            sample.application_limited || self.limited.contains(sample.prior_delivered)
        });
        if self.is_idle() && limited && self.delivered > 0 && acked.sent_at >= self.acked_at {
            self.idle_restart = true;
            self.extra_acked_start = acked.sent_at;
            self.extra_acked_delivered = 0.0;
        }
    }

    fn packets_in_flight(&self) -> f64 {
        f64::from(self.in_flight)
    }

    /// On a loss: OnEnterFastRecovery and HandleLostPacket.
    fn on_lost(&mut self, now: Time, lost: &Lost) {
        let before = self.w;
        self.in_flight = self.in_flight.saturating_sub(lost.packets);
        if self.recovery == Recovery::None {
            self.save_cwnd();
            self.save_state();
            self.recovery = Recovery::Fast { began: now, round: self.round_count };
        }
        if lost.packets == 0 {
            return;
        }
        self.loss_events = self.loss_events.saturating_add(1);
        self.handle_lost_packets(now, lost.packets, lost.delivery);
        self.bound_cwnd_for_model();
        self.note_cut(Signal::Loss, before);
    }

    /// HandleLostPacket for `packets` packets with the state `packet`, or that of the last sample.
    fn handle_lost_packets(&mut self, now: Time, packets: u32, packet: Option<LossSample>) {
        if packets == 0 {
            return;
        }
        let packet = packet.unwrap_or_else(|| {
            let mut sample = self.last_sent;
            sample.lost = sample.lost.saturating_add(u64::from(packets));
            sample
        });
        self.handle_lost_packet(now, packets, packet);
    }

    /// OnInit after a handshake.
    fn on_handshake(&mut self, rtt: Dur) {
        self.min_rtt = Some(rtt);
        self.set_pacing_rate(Some(rtt));
    }

    /// OnEnterRTO.
    fn on_timeout(&mut self, now: Time, lost: &Lost) {
        self.enter_rto(now, Signal::Timeout, self.least, (lost.packets, lost.delivery));
    }

    /// OnEnterRTO at persistent congestion. What is still in flight counts as lost.
    fn on_persistent_congestion(&mut self, now: Time) {
        let lost = (self.in_flight, None);
        self.enter_rto(now, Signal::PersistentCongestion, PERSISTENT_WINDOW, lost);
    }

    /// OnEnterRTO, with the number and the state of the lost packets.
    fn enter_rto(
        &mut self,
        now: Time,
        why: Signal,
        window: f64,
        (packets, packet): (u32, Option<LossSample>),
    ) {
        let before = self.w;
        self.save_cwnd();
        self.save_state();
        self.recovery = Recovery::Timeout { round: self.round_count };
        self.handle_lost_packets(now, packets, packet);
        self.in_flight = self.in_flight.saturating_sub(packets);
        self.w = window.min(before);
        self.note_cut(why, before);
    }

    /// Ends the recovery where the driver does not report its end.
    fn end_recovery(&mut self, acked: &Acked) {
        let ends = match self.recovery {
            Recovery::None => false,
            Recovery::Fast { began, .. } => self.infers_recovery && acked.sent_at > began,
            Recovery::Timeout { round } => self.round_count > round + 1,
        };
        if ends {
            self.recovered();
        }
    }

    /// The end of recovery: RestoreCwnd, and the bounds of the end of ACK processing.
    fn recovered(&mut self) {
        if self.recovery == Recovery::None {
            return;
        }
        self.recovery = Recovery::None;
        self.restore_cwnd();
        self.bound_cwnd(self.max_inflight());
    }

    fn save_cwnd(&mut self) {
        let modulated = self.recovery != Recovery::None || self.state == State::ProbeRtt;
        self.prior_cwnd = if modulated { self.prior_cwnd.max(self.w) } else { self.w };
    }

    fn restore_cwnd(&mut self) {
        self.w = self.w.max(self.prior_cwnd);
    }

    /// SetPacingRate, and InitPacingRate at the first RTT sample.
    fn set_pacing_rate(&mut self, rtt: Option<Dur>) {
        if let Some(rtt) = rtt
            && !self.has_seen_rtt
        {
            self.has_seen_rtt = true;
            let nominal = self.initial_window / rtt.as_secs().max(1e-6);
            self.pace = (STARTUP_PACING_GAIN * nominal).min(MAX_VALUE);
        }
        self.set_pacing_rate_with_gain(self.pacing_gain);
    }

    fn set_pacing_rate_with_gain(&mut self, gain: f64) {
        let rate = (gain * self.bw * PACING_MARGIN).max(MIN_PACE);
        if self.full_bw_reached || rate > self.pace {
            self.pace = rate;
        }
    }

    /// C.send_quantum in packets.
    fn send_quantum(&self) -> f64 {
        (self.pace * QUANTUM_SECONDS).min(MAX_QUANTUM / self.sizes.packet()).max(MIN_QUANTUM)
    }

    /// BDPMultiple.
    fn bdp_multiple(&self, bw: f64, gain: f64) -> f64 {
        let bdp = |rtt: Dur| (gain * bw * rtt.as_secs()).min(MAX_VALUE);
        self.min_rtt.map_or(self.initial_window, bdp)
    }

    fn quantization_budget(&self, inflight: f64) -> f64 {
        let offload_budget = self.quanta * self.send_quantum();
        let inflight = inflight.max(offload_budget).max(MIN_PIPE_CWND);
        if self.state == State::Up { inflight + 2.0 } else { inflight }
    }

    /// Inflight.
    fn inflight(&self, bw: f64, gain: f64) -> f64 {
        self.quantization_budget(self.bdp_multiple(bw, gain))
    }

    fn max_inflight(&self) -> f64 {
        self.quantization_budget(self.bdp_multiple(self.bw, self.cwnd_gain) + self.extra_acked)
    }

    fn target_inflight(&self) -> f64 {
        self.bdp_multiple(self.bw, 1.0).min(self.w)
    }

    fn set_cwnd(&mut self, newly: f64) {
        let max_inflight = self.max_inflight();
        if self.full_bw_reached
            || self.w < max_inflight
            || (self.delivered as f64) < self.initial_window
        {
            self.w += newly;
        }
        self.bound_cwnd(max_inflight);
    }

    /// The bounds of SetCwnd.
    #[inline]
    fn bound_cwnd(&mut self, max_inflight: f64) {
        if self.full_bw_reached {
            self.w = self.w.min(max_inflight);
        }
        self.w = self.w.max(MIN_PIPE_CWND).min(self.max_window);
        if self.state == State::ProbeRtt {
            self.w = self.w.min(self.probe_rtt_cwnd());
        }
        self.bound_cwnd_for_model();
    }

    fn probe_rtt_cwnd(&self) -> f64 {
        self.bdp_multiple(self.bw, PROBE_RTT_CWND_GAIN).max(MIN_PIPE_CWND)
    }

    fn bound_cwnd_for_model(&mut self) {
        let cap = match self.state {
            State::Startup | State::Drain => f64::INFINITY,
            State::Down | State::Refill | State::Up => self.inflight_longterm,
            State::Cruise | State::ProbeRtt => self.inflight_with_headroom(),
        };
        self.w = self.w.min(cap.min(self.inflight_shortterm).max(MIN_PIPE_CWND));
    }

    fn note_cut(&mut self, why: Signal, before: f64) {
        if self.w < before {
            self.cut = Some(Cut::window(why, Packets::new(before), Packets::new(self.w)));
        }
    }

    fn rescale(&mut self, packet: u32) {
        let factor = self.sizes.change(packet, self.delivered, self.in_flight);
        for volume in [
            &mut self.w,
            &mut self.prior_cwnd,
            &mut self.pace,
            &mut self.max_bw,
            &mut self.bw,
            &mut self.bw_shortterm,
            &mut self.inflight_shortterm,
            &mut self.inflight_longterm,
            &mut self.bw_latest,
            &mut self.inflight_latest,
            &mut self.extra_acked,
            &mut self.extra_acked_delivered,
            &mut self.full_bw,
            &mut self.bw_probe_up_acked,
            &mut self.probe_up_acked_per_inc,
            &mut self.saved.bw_shortterm,
            &mut self.saved.inflight_shortterm,
            &mut self.saved.inflight_longterm,
        ] {
            *volume *= factor;
        }
        self.max_window = rescale_max_window(self.max_window, factor, 1.0);
        self.w = self.w.max(self.least).min(self.max_window);
        self.pace = self.pace.min(MAX_VALUE);
        self.max_bw = self.max_bw.min(MAX_VALUE);
        self.max_bw_filter.map(|rate| (rate * factor).min(MAX_VALUE));
        self.extra_acked_filter.map(|volume| volume * factor);
    }
}

impl Controller for Bbr3 {
    fn on(&mut self, now: Time, event: &Event) {
        self.start(now);
        match event {
            Event::Acked(acked) => self.on_acked(now, acked),
            Event::Lost(lost) => self.on_lost(now, lost),
            Event::Recovered => self.recovered(),
            Event::Handshake { rtt } => self.on_handshake(*rtt),
            Event::Timeout(lost) => self.on_timeout(now, lost),
            Event::PersistentCongestion => self.on_persistent_congestion(now),
            Event::Undo => self.handle_spurious_loss_detection(),
            Event::Mtu { packet } => self.rescale(*packet),
            // HandleRestartFromIdle in ProbeRTT.
            Event::Tick if self.is_idle() && self.state == State::ProbeRtt => {
                self.check_probe_rtt_done(now);
            }
            _ => {}
        }
    }

    fn output(&self) -> Output {
        let mut output = Output::window(Packets::new(self.w));
        output.pace = Some(Rate::per_sec(self.pace));
        if self.is_idle() && self.state == State::ProbeRtt {
            output.wake = self.probe_rtt_done.map(|done| done + Dur::from_micros(1));
        }
        output
    }

    fn needs(&self) -> Needs {
        Needs { delivery_rate: true, ..Needs::default() }
    }

    fn take_cut(&mut self) -> Option<Cut> {
        self.cut.take()
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        let finite = |value: f64| if value.is_finite() { value } else { f64::NAN };
        emit("state", f64::from(self.state as u8));
        emit("bandwidth", self.bw);
        emit("max_bw", self.max_bw);
        emit("bw_shortterm", finite(self.bw_shortterm));
        emit("min_rtt", self.min_rtt.map_or(f64::NAN, Dur::as_secs));
        emit("inflight_longterm", finite(self.inflight_longterm));
        emit("inflight_shortterm", finite(self.inflight_shortterm));
        emit("extra_acked", self.extra_acked);
    }
}

#[cfg(test)]
mod tests;
