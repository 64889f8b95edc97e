//! BBR version 1: congestion control by a model of the path's bandwidth and round-trip time.
//!
//! Source: `net/ipv4/tcp_bbr.c` of Linux (Cardwell, Cheng, Gunn, Hassas Yeganeh and Jacobson, *BBR:
//! Congestion-Based Congestion Control*, ACM Queue 2016). The functions of that file are named in
//! parentheses.
//!
//! ```text
//! bw: the largest delivery rate of the last 10 rounds           (bbr_update_bw)
//! min_rtt: the smallest RTT of the last 10 s, at first that of the handshake  (bbr_update_min_rtt, bbr_init)
//! pacing rate = 0.99 pacing_gain bw                             (bbr_bw_to_pacing_rate)
//! bdp(gain) = ceil(gain bw min_rtt)                             (bbr_bdp)
//! inflight(gain) = bdp(gain) + 3 segments, even, + 2 in the probing phase  (bbr_quantization_budget)
//! target = inflight(cwnd_gain) + extra_acked                    (bbr_set_cwnd)
//! each ACK: w <- min(w + n, target), at least 4                 (bbr_set_cwnd)
//! pipe not full: w <- w + n, while w < target                   (bbr_set_cwnd)
//! Startup: gains 2.885, until bw grows by less than 25 % in 3 rounds  (bbr_check_full_bw_reached)
//! Drain: pacing_gain 1/2.885, until at most inflight(1) packets are in flight  (bbr_check_drain)
//! ProbeBW: pacing_gain 5/4, 3/4, then 1 in six phases of min_rtt, cwnd_gain 2  (bbr_update_cycle_phase)
//! 5/4 lasts until inflight(5/4) or a loss, 3/4 at most until inflight(1)  (bbr_is_next_cycle_phase)
//! ProbeRTT: w <= 4 for 200 ms and a round, 10 s after the last min_rtt  (bbr_update_min_rtt)
//! at a loss: w <- packets in flight + n for a round, then w <- w - lost  (bbr_set_cwnd_to_recover_or_restore)
//! at a timeout: w <- 1 (QUIC: 2)                                (state TCP_CA_Loss)
//! end of recovery, ProbeRTT: w <- at least w before             (bbr_set_cwnd_to_recover_or_restore)
//! extra_acked: the largest excess of acknowledged packets over bw t in 5 to 10 rounds, at most 100 ms of bw  (bbr_update_ack_aggregation)
//! policed: bw is the rate of two intervals of 4 to 16 rounds with 20 % loss, for 48 rounds  (bbr_lt_bw_sampling)
//! ```
//!
//! n packets are newly acknowledged; a segment has the data of 2^-10 s at the pacing rate, at least
//! two packets (one below 1.2 Mb/s). BBR has no parameters.
//!
//! Several flows in buffers below about 1.5 bandwidth-delay products cause losses without end:
//! losses do not reduce the estimates. `bbr` is here as a reference, not as a recommendation.
//!
//! Known deviations:
//!
//! * Bandwidths and gains are real-valued; windows are whole packets.
//! * Losses follow the acknowledgement that reveals them: the model knows them at the next one. The
//!   window is reduced at once, after its growth, also below the least one, and at losses that
//!   RACK's timer detects; Linux waits for the next acknowledgement.
//! * Where the driver does not report the departure time of the next packet, packets in flight are
//!   those in the network, and a segment more if the gain is above 1.
//! * Acknowledgements that may be delayed are not recognised: their RTT counts when min_rtt has
//!   expired.
//! * Packets sent in ProbeRTT are identified by P.delivered; Linux marks them as limited by the
//!   application.
//! * A restart after an idle period is an acknowledgement of a packet sent when none was in flight
//!   and the application limited the sender. The pacing rate is not reset then, and ProbeRTT ends
//!   at the acknowledgement.
//! * The window after a timeout is the least one; that of Linux is one above the packets in flight
//!   (tcp_enter_loss).
//! * The recovery after a timeout ends with the third round after it; the driver does not report
//!   its end.
//! * Persistent congestion is a timeout with a window of two packets.
//! * After a change of the packet size a rate sample is converted by the sizes of its packets.
//!   Those sent between the last acknowledgement and the change count with the new size.
//! * The least pacing rate is a packet in a second.
//! * The clock has no steps of a jiffy.

use super::limited::LimitedPhase;
use crate::controller::{Controller, Cut, Needs, Settings};
use crate::delivery::RateSample;
use crate::event::{Acked, Event, Lost, Output};
use crate::law::Signal;
use crate::parts::{PacketSizes, WindowedMax, rescale_max_window};
use crate::random::Random;
use crate::units::{Dur, Packets, Rate, Time};
use libm::{ceil, round};

/// 2885/1000, about 2/ln 2.
const HIGH_GAIN: f64 = 2.885;
/// The gains of the phases of ProbeBW.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const CWND_GAIN: f64 = 2.0;
/// The pacing rate is 1 % below the estimate.
const PACING_MARGIN: f64 = 0.99;
/// Rounds of the bandwidth filter.
const BW_ROUNDS: u64 = 10;
const MIN_RTT_WINDOW: Dur = Dur::from_millis(10_000);
const PROBE_RTT_TIME: Dur = Dur::from_millis(200);
/// The least window in packets, and that of ProbeRTT.
const MIN_WINDOW: u32 = 4;
/// The window after persistent congestion in packets (RFC 9002 section 7.6.2).
const PERSISTENT: u32 = 2;
/// Growth of the bandwidth, and rounds without it, that end Startup.
const FULL_BW_GROWTH: f64 = 1.25;
const FULL_BW_ROUNDS: u32 = 3;
/// TCP_INIT_CWND.
const INITIAL: u32 = 10;
/// Long-term sampling: rounds of an interval, loss per delivered packet, agreement of two
/// intervals, rounds of use.
const LT_ROUNDS: u32 = 4;
const LT_LOSS: f64 = 50.0 / 256.0;
const LT_RATIO: f64 = 1.0 / 8.0;
/// 4 kbit/s in bytes per second.
const LT_DIFFERENCE: f64 = 500.0;
const LT_USE: u32 = 48;
/// ACK aggregation: rounds of one of the two windows, and the longest time in seconds that the
/// window covers.
const EXTRA_ROUNDS: u32 = 5;
const EXTRA_TIME: f64 = 0.1;
/// Packets after which an epoch of aggregation begins anew.
const EPOCH_PACKETS: u32 = 1 << 20;
/// Segments: 2^10 in a second, of at most GSO_LEGACY_MAX_SIZE - 1 - MAX_TCP_HEADER bytes and 127
/// packets, one packet below 1.2 Mb/s.
const SEGMENTS_PER_SECOND: f64 = 1024.0;
const MAX_SEGMENT_BYTES: f64 = 65_215.0;
const MAX_SEGMENT: f64 = 127.0;
const SLOW_BYTES: f64 = 1_200_000.0 / 8.0;
/// The nominal RTT before the first sample in seconds.
const NOMINAL_RTT: f64 = 1e-3;
/// The least pacing rate in packets per second.
const MIN_PACE: f64 = 1.0;
/// Largest bandwidth in packets per second, so that results stay finite.
const MAX_RATE: f64 = 1e12;

/// The state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Doubles the rate each round.
    Startup,
    /// Drains the queue of Startup.
    Drain,
    /// Cycles the pacing gain.
    ProbeBw,
    /// Empties the queue to measure min_rtt.
    ProbeRtt,
}

/// The recovery of losses.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Recovery {
    None,
    /// Fast recovery.
    Fast,
    /// After a timeout, with the rounds begun since.
    Timeout(u32),
}

/// Long-term sampling: whether a policer limits the rate.
#[derive(Clone, Copy, Debug, Default)]
struct LongTerm {
    sampling: bool,
    /// The estimate is in use.
    used: bool,
    /// Packets per second; 0 before the first interval.
    bw: f64,
    rounds: u32,
    /// Beginning of the interval, and packets delivered and lost by then.
    began: Time,
    delivered: u64,
    lost: u64,
}

/// The degree of ACK aggregation.
#[derive(Clone, Copy, Debug, Default)]
struct Aggregation {
    began: Time,
    acked: u32,
    extra: [u32; 2],
    current: usize,
    rounds: u32,
}

/// BBR version 1: see the [module](self).
#[derive(Clone, Debug)]
pub struct Bbr {
    sizes: PacketSizes,
    /// The least window in packets.
    least: u32,
    max_window: u32,
    random: Random,
    state: State,
    w: u32,
    /// Packets per second.
    pace: f64,
    has_seen_rtt: bool,
    bw: WindowedMax<f64>,
    min_rtt: Option<Dur>,
    min_rtt_at: Time,
    probe_rtt_done: Option<Time>,
    probe_rtt_round: bool,
    pacing_gain: f64,
    cwnd_gain: f64,
    rounds: u64,
    /// The delivered count that ends the round.
    round_end: u64,
    round_start: bool,
    delivered: u64,
    lost: u64,
    /// Losses since the last acknowledgement.
    losses: u32,
    in_flight: u32,
    /// Packets and time of the last acknowledgement.
    acked: u32,
    acked_at: Time,
    full_bw: f64,
    full_bw_rounds: u32,
    pipe_full: bool,
    phase: usize,
    phase_began: Time,
    recovery: Recovery,
    conserves: bool,
    prior: u32,
    long_term: LongTerm,
    aggregation: Aggregation,
    /// Packets sent in ProbeRTT.
    limited: LimitedPhase,
    cut: Option<Cut>,
}

impl Bbr {
    /// BBR at the start of a connection.
    pub fn new(settings: &Settings) -> Self {
        let whole = |packets: f64| packets.max(1.0).min(f64::from(u32::MAX)) as u32;
        let w = whole(settings.initial_window.get().max(settings.conventions.least_window));
        let mut bbr = Bbr {
            sizes: PacketSizes::new(settings.packet),
            least: whole(settings.conventions.least_window),
            max_window: whole(settings.max_window.get()),
            random: Random::new(settings.seed),
            state: State::Startup,
            w,
            pace: 0.0,
            has_seen_rtt: false,
            bw: WindowedMax::new(BW_ROUNDS),
            min_rtt: None,
            min_rtt_at: Time::ZERO,
            probe_rtt_done: None,
            probe_rtt_round: false,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            rounds: 0,
            round_end: 0,
            round_start: false,
            delivered: 0,
            lost: 0,
            losses: 0,
            in_flight: 0,
            acked: 0,
            acked_at: Time::ZERO,
            full_bw: 0.0,
            full_bw_rounds: 0,
            pipe_full: false,
            phase: 0,
            phase_began: Time::ZERO,
            recovery: Recovery::None,
            conserves: false,
            prior: 0,
            long_term: LongTerm::default(),
            aggregation: Aggregation::default(),
            limited: LimitedPhase::default(),
            cut: None,
        };
        bbr.w = bbr.w.min(bbr.max_window);
        bbr.pace = HIGH_GAIN * PACING_MARGIN * f64::from(w) / NOMINAL_RTT;
        bbr
    }

    /// The state.
    pub const fn state(&self) -> State {
        self.state
    }

    fn max_bw(&self) -> f64 {
        self.bw.get().unwrap_or(0.0)
    }

    fn bandwidth(&self) -> f64 {
        if self.long_term.used { self.long_term.bw } else { self.max_bw() }
    }

    /// Packets of a segment (bbr_tso_segs_goal).
    fn segment(&self) -> u32 {
        let bytes = self.pace * self.sizes.packet();
        let least = if bytes < SLOW_BYTES { 1.0 } else { 2.0 };
        let size = (bytes / SEGMENTS_PER_SECOND).min(MAX_SEGMENT_BYTES);
        (size / self.sizes.packet()).max(least).min(MAX_SEGMENT) as u32
    }

    fn bdp(&self, bw: f64, gain: f64) -> u32 {
        match self.min_rtt {
            Some(rtt) => ceil(gain * bw * rtt.as_secs()).min(f64::from(u32::MAX / 2)) as u32,
            None => INITIAL,
        }
    }

    fn with_segments(&self, packets: u32) -> u32 {
        let packets = packets + 3 * self.segment();
        let probing = self.state == State::ProbeBw && self.phase == 0;
        packets + packets % 2 + if probing { 2 } else { 0 }
    }

    fn inflight(&self, bw: f64, gain: f64) -> u32 {
        self.with_segments(self.bdp(bw, gain))
    }

    fn set_window(&mut self, window: u32) {
        self.w = window.max(self.least).min(self.max_window);
    }

    fn save_window(&mut self) {
        let kept = self.recovery == Recovery::None && self.state != State::ProbeRtt;
        self.prior = if kept { self.w } else { self.prior.max(self.w) };
    }

    fn enter_probe_bw(&mut self, now: Time) {
        self.state = State::ProbeBw;
        // Any phase but the second one follows.
        self.phase = CYCLE.len() - 1 - self.random.below(CYCLE.len() as u64 - 1) as usize;
        self.advance_phase(now);
    }

    fn advance_phase(&mut self, now: Time) {
        self.phase = (self.phase + 1) % CYCLE.len();
        self.phase_began = now;
    }

    fn reset_long_term_interval(&mut self, now: Time) {
        let long_term = &mut self.long_term;
        (long_term.began, long_term.rounds) = (now, 0);
        (long_term.delivered, long_term.lost) = (self.delivered, self.lost);
    }

    fn reset_long_term(&mut self, now: Time) {
        self.long_term = LongTerm::default();
        self.reset_long_term_interval(now);
    }

    /// bbr_lt_bw_sampling.
    fn sample_long_term(&mut self, now: Time, losses: u32, application_limited: bool) {
        if self.long_term.used {
            if self.state == State::ProbeBw && self.round_start {
                self.long_term.rounds += 1;
                if self.long_term.rounds >= LT_USE {
                    self.reset_long_term(now);
                    self.enter_probe_bw(now);
                }
            }
            return;
        }
        if !self.long_term.sampling {
            if losses == 0 {
                return;
            }
            self.reset_long_term_interval(now);
            self.long_term.sampling = true;
        }
        if application_limited {
            return self.reset_long_term(now);
        }
        self.long_term.rounds += u32::from(self.round_start);
        if self.long_term.rounds < LT_ROUNDS {
            return;
        }
        if self.long_term.rounds > 4 * LT_ROUNDS {
            return self.reset_long_term(now);
        }
        let delivered = self.delivered - self.long_term.delivered;
        let volume = self.sizes.volume(self.long_term.delivered, delivered);
        let lost = (self.lost - self.long_term.lost) as f64;
        let elapsed = now.since(self.long_term.began);
        if losses == 0
            || delivered == 0
            || lost < LT_LOSS * delivered as f64
            || elapsed < Dur::from_millis(1)
        {
            return;
        }
        let bw = volume / elapsed.as_secs();
        let before = self.long_term.bw;
        let difference = (bw - before).abs();
        if before > 0.0
            && (difference <= LT_RATIO * before
                || difference * PACING_MARGIN * self.sizes.packet() <= LT_DIFFERENCE)
        {
            self.long_term.bw = f64::midpoint(bw, before);
            self.long_term.used = true;
            self.long_term.rounds = 0;
            self.pacing_gain = 1.0;
        } else {
            self.long_term.bw = bw;
            self.reset_long_term_interval(now);
        }
    }

    /// bbr_update_bw. Returns whether the sample is valid.
    fn update_bandwidth(&mut self, now: Time, sample: Option<&RateSample>) -> bool {
        self.round_start = false;
        let Some(sample) = sample.filter(|it| it.rate().is_some()) else { return false };
        let volume = self.sizes.volume(sample.prior_delivered, sample.delivered);
        let rate = Rate::over(volume, sample.interval());
        if sample.prior_delivered >= self.round_end {
            self.round_end = self.delivered;
            self.rounds += 1;
            self.round_start = true;
            self.conserves = false;
        }
        let limited = sample.application_limited || self.limited.contains(sample.prior_delivered);
        self.sample_long_term(now, self.losses, limited);
        let bw = rate.as_per_sec().min(MAX_RATE);
        if !limited || bw >= self.max_bw() {
            self.bw.add(self.rounds, bw);
        }
        if self.round_start && !self.pipe_full && !limited {
            self.check_full();
        }
        true
    }

    /// bbr_check_full_bw_reached.
    fn check_full(&mut self) {
        if self.max_bw() >= FULL_BW_GROWTH * self.full_bw {
            self.full_bw = self.max_bw();
            self.full_bw_rounds = 0;
            return;
        }
        self.full_bw_rounds += 1;
        self.pipe_full = self.full_bw_rounds >= FULL_BW_ROUNDS;
    }

    /// bbr_update_ack_aggregation.
    fn update_aggregation(&mut self, now: Time, packets: u32) {
        let bw = self.bandwidth();
        let window = self.w;
        let it = &mut self.aggregation;
        if self.round_start {
            it.rounds += 1;
            if it.rounds >= EXTRA_ROUNDS {
                it.rounds = 0;
                it.current = 1 - it.current;
                it.extra[it.current] = 0;
            }
        }
        let mut expected = (bw * now.since(it.began).as_secs()).min(f64::from(u32::MAX)) as u32;
        if it.acked <= expected || it.acked.saturating_add(packets) >= EPOCH_PACKETS {
            (it.acked, it.began) = (0, now);
            expected = 0;
        }
        it.acked = it.acked.saturating_add(packets);
        let extra = (it.acked - expected).min(window);
        it.extra[it.current] = it.extra[it.current].max(extra);
    }

    /// bbr_ack_aggregation_cwnd.
    fn extra_acked(&self) -> u32 {
        if !self.pipe_full {
            return 0;
        }
        let [first, second] = self.aggregation.extra;
        first.max(second).min((self.bandwidth() * EXTRA_TIME).min(f64::from(u32::MAX / 4)) as u32)
    }

    /// Packets in the network at the next departure, after `delay` (bbr_packets_in_net_at_edt).
    fn in_network(&self, in_flight: u32, delay: Dur) -> u32 {
        let delivered = (self.bandwidth() * delay.as_secs()).min(f64::from(u32::MAX)) as u32;
        let departs = if self.pacing_gain > 1.0 { self.segment() } else { 0 };
        in_flight.saturating_add(departs).saturating_sub(delivered)
    }

    /// bbr_update_cycle_phase.
    fn update_phase(&mut self, now: Time, prior_in_flight: u32, delay: Dur) {
        if self.state != State::ProbeBw {
            return;
        }
        let full_length = self.min_rtt.is_some_and(|rtt| now.since(self.phase_began) > rtt);
        let bw = self.max_bw();
        let in_flight = || self.in_network(prior_in_flight, delay);
        let ends = if self.pacing_gain > 1.0 {
            full_length && (self.losses > 0 || in_flight() >= self.inflight(bw, self.pacing_gain))
        } else if self.pacing_gain < 1.0 {
            full_length || in_flight() <= self.inflight(bw, 1.0)
        } else {
            full_length
        };
        if ends {
            self.advance_phase(now);
        }
    }

    /// bbr_check_drain.
    fn check_drain(&mut self, now: Time, delay: Dur) {
        if self.state == State::Startup && self.pipe_full {
            self.state = State::Drain;
        }
        if self.state == State::Drain
            && self.in_network(self.in_flight, delay) <= self.inflight(self.max_bw(), 1.0)
        {
            self.enter_probe_bw(now);
        }
    }

    /// bbr_update_min_rtt.
    fn update_min_rtt(&mut self, now: Time, rtt: Option<Dur>, after_idle: bool) {
        let expired = self.min_rtt.is_some() && now.since(self.min_rtt_at) > MIN_RTT_WINDOW;
        if let Some(rtt) = rtt
            && (expired || self.min_rtt.is_none_or(|min| rtt < min))
        {
            (self.min_rtt, self.min_rtt_at) = (Some(rtt), now);
        }
        if expired && !after_idle && self.state != State::ProbeRtt {
            self.state = State::ProbeRtt;
            self.save_window();
            self.probe_rtt_done = None;
        }
        if self.state != State::ProbeRtt {
            return;
        }
        self.limited.extend(self.delivered, self.in_flight);
        match self.probe_rtt_done {
            None if self.in_flight <= MIN_WINDOW => {
                self.probe_rtt_done = Some(now + PROBE_RTT_TIME);
                self.probe_rtt_round = false;
                self.round_end = self.delivered;
            }
            None => {}
            Some(done) => {
                self.probe_rtt_round |= self.round_start;
                if self.probe_rtt_round && now > done {
                    self.min_rtt_at = now;
                    self.set_window(self.w.max(self.prior));
                    if self.pipe_full {
                        self.enter_probe_bw(now);
                    } else {
                        self.state = State::Startup;
                    }
                }
            }
        }
    }

    /// bbr_update_gains.
    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.state {
            State::Startup => (HIGH_GAIN, HIGH_GAIN),
            State::Drain => (1.0 / HIGH_GAIN, HIGH_GAIN),
            State::ProbeBw if self.long_term.used => (1.0, CWND_GAIN),
            State::ProbeBw => (CYCLE[self.phase], CWND_GAIN),
            State::ProbeRtt => (1.0, 1.0),
        };
    }

    /// bbr_set_pacing_rate.
    fn set_pace(&mut self, rtt: Option<Dur>) {
        if let Some(rtt) = rtt
            && !self.has_seen_rtt
        {
            self.has_seen_rtt = true;
            self.pace = HIGH_GAIN * PACING_MARGIN * f64::from(self.w) / rtt.as_secs().max(1e-6);
        }
        let pace = (PACING_MARGIN * self.pacing_gain * self.bandwidth()).max(MIN_PACE);
        if self.pipe_full || pace > self.pace {
            self.pace = pace;
        }
    }

    /// The target of the window (bbr_set_cwnd).
    fn target(&self) -> u32 {
        self.with_segments(self.bdp(self.bandwidth(), self.cwnd_gain) + self.extra_acked())
    }

    fn grow(&mut self, packets: u32) {
        if self.conserves {
            self.set_window(self.w.max(self.in_flight.saturating_add(packets)));
        } else {
            let target = self.target();
            let grown = self.w.saturating_add(packets);
            let window = if self.pipe_full {
                grown.min(target)
            } else if self.w < target || self.delivered < u64::from(INITIAL) {
                grown
            } else {
                self.w
            };
            self.set_window(window.max(MIN_WINDOW));
        }
        if self.state == State::ProbeRtt {
            self.w = self.w.min(MIN_WINDOW);
        }
    }

    fn on_acked(&mut self, now: Time, acked: &Acked) {
        let prior_in_flight = acked.in_flight.saturating_add(acked.packets);
        let limited = acked.delivery.is_some_and(|sample| sample.application_limited);
        let after_idle = limited && self.in_flight == 0 && acked.sent_at >= self.acked_at;
        (self.in_flight, self.acked) = (acked.in_flight, acked.packets);
        self.delivered += u64::from(acked.packets);
        let valid = self.update_bandwidth(now, acked.delivery.as_ref());
        if valid {
            self.update_aggregation(now, acked.packets);
        }
        let delay = acked.departure.map_or(Dur::ZERO, |departure| departure.since(now));
        self.update_phase(now, prior_in_flight, delay);
        self.check_drain(now, delay);
        self.update_min_rtt(now, acked.rtt, after_idle);
        self.update_gains();
        self.set_pace(acked.rtt);
        if let Recovery::Timeout(rounds) = &mut self.recovery {
            *rounds += u32::from(self.round_start);
            if *rounds > 2 {
                self.recovered();
            }
        }
        self.grow(acked.packets);
        self.losses = 0;
        self.acked_at = now;
    }

    /// bbr_set_cwnd_to_recover_or_restore.
    fn on_lost(&mut self, lost: &Lost) {
        let before = self.w;
        self.lost += u64::from(lost.packets);
        self.losses = self.losses.saturating_add(lost.packets);
        self.in_flight = self.in_flight.saturating_sub(lost.packets);
        if self.recovery == Recovery::None {
            self.save_window();
            self.recovery = Recovery::Fast;
            self.conserves = true;
            self.round_end = self.delivered;
            self.set_window(self.in_flight.saturating_add(self.acked).min(before));
        } else {
            let conserved = self.in_flight.saturating_add(self.acked).min(before);
            let least = if self.conserves { conserved } else { self.least };
            self.set_window(before.saturating_sub(lost.packets).max(least));
        }
        self.note_cut(Signal::Loss, before);
    }

    fn recovered(&mut self) {
        if self.recovery == Recovery::None {
            return;
        }
        self.recovery = Recovery::None;
        self.conserves = false;
        let restored = self.w.max(self.prior);
        self.set_window(if self.pipe_full { restored.min(self.target()) } else { restored });
        if self.state == State::ProbeRtt {
            self.w = self.w.min(MIN_WINDOW);
        }
    }

    /// bbr_init: the handshake gives the first min_rtt and pacing rate.
    fn on_handshake(&mut self, now: Time, rtt: Dur) {
        (self.min_rtt, self.min_rtt_at) = (Some(rtt), now);
        self.set_pace(Some(rtt));
    }

    /// A timeout that declares `lost` packets lost, or persistent congestion.
    fn on_timeout(&mut self, now: Time, why: Signal, lost: u32, window: u32) {
        let before = self.w;
        self.lost += u64::from(lost);
        self.save_window();
        self.recovery = Recovery::Timeout(0);
        self.conserves = false;
        self.full_bw = 0.0;
        self.round_start = true;
        self.sample_long_term(now, 1, false);
        self.in_flight = 0;
        self.set_window(window.min(before));
        self.note_cut(why, before);
    }

    fn note_cut(&mut self, why: Signal, before: u32) {
        if self.w < before {
            let packets = |window: u32| Packets::new(f64::from(window));
            self.cut = Some(Cut::window(why, packets(before), packets(self.w)));
        }
    }

    fn rescale(&mut self, packet: u32) {
        let factor = self.sizes.change(packet, self.delivered, self.in_flight);
        let volume =
            |packets: u32| round(f64::from(packets) * factor).min(f64::from(u32::MAX)) as u32;
        let rate = |rate: f64| (rate * factor).min(MAX_RATE);
        let most = rescale_max_window(f64::from(self.max_window), factor, 1.0);
        self.max_window = round(most) as u32;
        self.set_window(volume(self.w));
        self.prior = volume(self.prior);
        self.bw.map(rate);
        self.full_bw = rate(self.full_bw);
        self.long_term.bw = rate(self.long_term.bw);
        self.pace = rate(self.pace);
        self.aggregation.acked = volume(self.aggregation.acked);
        self.aggregation.extra = self.aggregation.extra.map(volume);
    }
}

impl Controller for Bbr {
    fn on(&mut self, now: Time, event: &Event) {
        match event {
            Event::Acked(acked) => self.on_acked(now, acked),
            Event::Lost(lost) => self.on_lost(lost),
            Event::Recovered => self.recovered(),
            Event::Handshake { rtt } => self.on_handshake(now, *rtt),
            Event::Timeout(lost) => self.on_timeout(now, Signal::Timeout, lost.packets, self.least),
            Event::PersistentCongestion => {
                self.on_timeout(now, Signal::PersistentCongestion, 0, PERSISTENT);
            }
            Event::Undo => {
                (self.full_bw, self.full_bw_rounds) = (0.0, 0);
                self.reset_long_term(now);
                self.recovered();
            }
            Event::Reduced { window, .. } => {
                let window = window.get().max(1.0).min(f64::from(u32::MAX)) as u32;
                self.set_window(self.w.min(window));
            }
            Event::Mtu { packet } => self.rescale(*packet),
            _ => {}
        }
    }

    fn output(&self) -> Output {
        let mut output = Output::window(Packets::new(f64::from(self.w)));
        output.pace = Some(Rate::per_sec(self.pace));
        output
    }

    fn needs(&self) -> Needs {
        Needs { delivery_rate: true, ..Needs::default() }
    }

    fn take_cut(&mut self) -> Option<Cut> {
        self.cut.take()
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        emit("state", f64::from(self.state as u8));
        emit("bandwidth", self.bandwidth());
        emit("min_rtt", self.min_rtt.map_or(f64::NAN, Dur::as_secs));
        emit("pacing_gain", self.pacing_gain);
        emit("extra_acked", f64::from(self.extra_acked()));
    }
}

#[cfg(test)]
mod tests;
