//! Loss recovery of the Sack1, Newreno and Reno agents of ns-2.35. Differences from the RFCs:
//!
//! * SACK recovery estimates the packets in flight by a counter that starts at the beginning of
//!   recovery, retransmits every hole below a SACKed packet, and clears the scoreboard outside
//!   recovery.
//! * After a timeout the sender goes back to the oldest unacknowledged packet and retransmits
//!   everything (go-back-N).
//! * One round-trip time is sampled per window.
//! * NewReno's partial window deflation is permanent.
//! * Reno leaves recovery at the first new acknowledgement and may enter it again at once.

use super::recovery::LossRecovery;
use super::rto::CoarseSrtt;
use super::scoreboard::{DUP_THRESH, Losses, Newly};
use super::sender::{self, Ack, FirstPacket};
use crate::cast::whole32;
use crate::clock::Clock;
use crate::engine::net::Net;
use crate::network::{Recovery, Tcp};
use cwnd::{Conventions, Decided, Decision, Event, Limit, Marked, Packets, Signal};

/// Transmission time given for a loss that needs no further window reduction: earlier than every
/// reduction.
const KNOWN: u64 = 0;
/// The most packets that NewReno sends for one acknowledgement in recovery.
const RECOVERY_BURST: u32 = 2;

/// The window rules of `slowdown()` and `opencwnd()` in ns-2's tcp.cc.
pub(crate) static CONVENTIONS: Conventions = {
    let mut conventions = Conventions::RFC;
    conventions.reduce = reduce;
    conventions.marks_reduce_in_recovery = true;
    conventions.threshold_from_max_window = true;
    conventions.overshoots_threshold = true;
    conventions.grows_unused = true;
    conventions.grows_past_max_window = true;
    conventions
};

/// Reduces the window as `slowdown()` does. In slow start, at the first reduction and after a
/// timeout the threshold is half of the window, unless the law has its own threshold. The threshold
/// is rounded down; the window is not. A timeout that follows a mark keeps the threshold.
fn reduce(decision: &Decision) -> Decided {
    let halves = decision.slow_start || decision.why == Signal::Timeout || decision.first;
    let inherited = if halves { decision.window / 2.0 } else { decision.cut };
    let target = decision.law_threshold.unwrap_or(inherited);
    let kept = decision.why == Signal::Timeout && decision.after_mark;
    let threshold = if kept { decision.threshold } else { target.floor().max(2.0) };
    Decided { threshold, window: target.min(decision.window).max(1.0) }
}

type Core = sender::Core<CoarseSrtt>;

/// The cause of the last congestion action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Action {
    #[default]
    None,
    Duplicates,
    Mark,
    Timeout,
}

/// State of ns-2's loss recovery.
#[derive(Clone, Default)]
pub(crate) struct Ns2 {
    /// The packet that is timed, one per window: sequence number and transmission time.
    timed: Option<(u32, u64)>,
    /// ns-2's `recover_`: recovery ends when this packet is acknowledged; -1 before the first loss.
    recover: i64,
    /// Packets by which fast recovery inflates the window; 0 with SACK.
    inflation: i64,
    /// The estimate of the packets in flight in SACK recovery.
    pipe: i64,
    duplicates: u32,
    scheme: Recovery,
    last_action: Action,
    limited_transmit: bool,
    in_recovery: bool,
    /// A partial acknowledgement has arrived in this recovery.
    had_partial: bool,
    /// A mark closed the window: nothing is sent until the retransmission timer expires.
    closed_by_mark: bool,
    /// No new data has been acknowledged since the last timeout.
    timed_out: bool,
}

impl LossRecovery for Ns2 {
    type Estimator = CoarseSrtt;

    const FIRST_PACKET: FirstPacket = FirstPacket::Handshake;

    fn new(tcp: &Tcp, _: Clock) -> Self {
        Ns2 {
            recover: -1,
            scheme: tcp.recovery,
            limited_transmit: tcp.limited_transmit,
            ..Ns2::default()
        }
    }

    #[inline(always)]
    fn acknowledgement(
        &mut self,
        core: &mut Core,
        net: &mut Net,
        now: u64,
        ack: Ack,
    ) -> Option<u32> {
        if ack.number < core.board.una() {
            return None;
        }
        if ack.echo {
            self.marked(core, now, ack);
        }
        match self.scheme {
            Recovery::Sack => self.selective(core, net, now, ack),
            Recovery::NewReno | Recovery::Reno => self.cumulative(core, net, now, ack),
        }
    }

    fn timeout(&mut self, core: &mut Core, net: &mut Net, now: u64) -> bool {
        let idle = core.board.high() == core.board.una();
        if idle && !self.closed_by_mark {
            return false;
        }
        // ns-2 does not count timeouts that follow a mark.
        core.driver.meter.counters.timeouts += u32::from(!idle && self.last_action != Action::Mark);
        self.duplicates = 0;
        self.inflation = 0;
        self.in_recovery = false;
        self.timed_out = true;
        self.closed_by_mark = false;
        self.timed = None;
        self.recover = i64::from(core.board.high()) - 1;
        self.last_action = Action::Timeout;
        let mut lost = core.go_back();
        if !core.connected {
            // The timeout reduces the threshold, but a SYN is no data.
            lost.packets = 0;
        }
        core.board.clear();
        let lost = core.lost(lost);
        core.report_congestion(now, Event::Timeout(lost));
        if !idle {
            core.rto.back_off();
        }
        core.restart_timer(net, now);
        true
    }

    #[inline(always)]
    fn send(&mut self, core: &mut Core, net: &mut Net, now: u64, burst: u32) -> Limit {
        let mut sent = 0;
        let open = if self.closed_by_mark { 0 } else { i64::from(whole32(core.window())) };
        let window = (open + self.inflation).min(i64::from(core.receiver_window));
        let repairs = self.in_recovery && self.scheme == Recovery::Sack;
        loop {
            let outstanding = i64::from(core.next) - i64::from(core.board.una());
            let open = if repairs {
                self.pipe < i64::from(whole32(core.unclamped_window()))
            } else {
                outstanding < window
            };
            if !open || sent >= burst {
                return core.closed();
            }
            let hole = if repairs { core.board.next_hole() } else { None };
            let seq = match hole {
                Some(seq) => seq,
                None if core.next >= core.total => return Limit::Application,
                None if outstanding >= i64::from(core.receiver_window) => return Limit::Receiver,
                None => core.next,
            };
            if core.delayed(now) {
                return Limit::Pacing;
            }
            core.next = core.next.max(seq + 1);
            self.pipe += 1;
            sent += 1;
            self.transmit(core, net, now, seq);
        }
    }

    #[inline(always)]
    fn transmit(&mut self, core: &mut Core, net: &mut Net, now: u64, seq: u32) {
        if self.timed.is_none() && seq == core.board.high() {
            self.timed = Some((seq, now));
        }
        core.transmit(net, now, seq);
    }
}

impl Ns2 {
    /// Handles ECN echo: reduces the window at most once per window of data.
    fn marked(&mut self, core: &mut Core, now: u64, ack: Ack) {
        if i64::from(ack.number) - 1 > self.recover || self.last_action == Action::Timeout {
            self.recover = i64::from(core.board.high()) - 1;
            self.last_action = Action::Mark;
            // A reduction from less than two packets closes the window until the retransmission
            // timer expires (RFC 3168 section 6.1.2). A further mark backs the timer off.
            if self.closed_by_mark && core.unclamped_window() <= 1.0 {
                core.rto.back_off();
            }
            self.closed_by_mark = core.unclamped_window() < 2.0;
            core.driver.meter.counters.mark_cuts += 1;
            let sent = core.driver.packets_sent;
            let marked = Marked::new(1, core.driver.meter.clock.time(now), sent);
            core.report_congestion(now, Event::Marked(marked));
        }
    }

    #[inline(always)]
    fn selective(&mut self, core: &mut Core, net: &mut Net, now: u64, ack: Ack) -> Option<u32> {
        let advanced = ack.number > core.board.una();
        if !self.in_recovery {
            if advanced {
                let newly = self.advance(core, net, now, ack);
                core.report_acked(now, newly, ack, true);
                core.connected = true;
                self.timed_out = false;
                core.board.clear();
            } else if !self.timed_out {
                let newly = core.board.sack(ack.blocks());
                core.report_acked(now, newly, ack, false);
                if newly.changed {
                    self.duplicate(core, net, now);
                }
            }
            // Nothing is sent for the third duplicate; recovery sends from the next acknowledgement
            // on.
            return (self.duplicates == 0).then_some(u32::MAX);
        }
        self.repairing(core, net, now, ack);
        Some(u32::MAX)
    }

    /// Handles an acknowledgement in SACK recovery.
    fn repairing(&mut self, core: &mut Core, net: &mut Net, now: u64, ack: Ack) {
        let advanced = ack.number > core.board.una();
        self.pipe -= 1;
        if i64::from(ack.number) > self.recover {
            let newly = self.advance(core, net, now, ack);
            core.report_acked(now, newly, ack, false);
            self.in_recovery = false;
            self.recover = -1;
            self.timed_out = false;
            core.board.clear();
            core.driver.report(now, Event::Recovered);
        } else {
            let mut newly = Newly::default();
            if advanced {
                newly = core.board.acked(ack.number);
                core.next = core.next.max(ack.number);
                // A partial acknowledgement covers both the original packet and its retransmission.
                self.pipe -= 1;
                core.rto.restart();
                core.restart_timer(net, now);
            }
            newly = newly.and(core.board.sack(ack.blocks()));
            core.report_acked(now, newly, ack, false);
            let found = core.board.find_lost();
            if found.packets > 0 {
                core.report_lost(now, Losses { sent_at: KNOWN, ..found });
            }
        }
    }

    fn cumulative(&mut self, core: &mut Core, net: &mut Net, now: u64, ack: Ack) -> Option<u32> {
        let mut burst = u32::MAX;
        if ack.number > core.board.una() {
            let partial = self.scheme == Recovery::NewReno
                && i64::from(ack.number) - 1 < self.recover
                && self.last_action == Action::Duplicates;
            if partial {
                self.partial_acknowledgement(core, net, now, ack);
                burst = RECOVERY_BURST;
            } else {
                if self.scheme == Recovery::Reno || self.inflation > 0 {
                    self.leave(core, now);
                }
                self.had_partial = false;
                let newly = self.advance(core, net, now, ack);
                core.report_acked(now, newly, ack, true);
                core.connected = true;
            }
        } else {
            core.report_acked(now, Newly::default(), ack, false);
            self.duplicate(core, net, now);
            if self.scheme == Recovery::NewReno {
                burst = RECOVERY_BURST;
            }
        }
        match self.duplicates {
            0 => Some(u32::MAX),
            DUP_THRESH.. => Some(burst),
            _ => None,
        }
    }

    fn leave(&mut self, core: &mut Core, now: u64) {
        self.inflation = 0;
        if self.last_action == Action::Duplicates {
            self.last_action = Action::None;
        }
        if std::mem::take(&mut self.in_recovery) {
            core.driver.report(now, Event::Recovered);
        }
    }

    /// Handles a NewReno partial acknowledgement: the first unacknowledged packet is lost too.
    fn partial_acknowledgement(&mut self, core: &mut Core, net: &mut Net, now: u64, ack: Ack) {
        if !std::mem::replace(&mut self.had_partial, true) {
            core.restart_timer(net, now);
        }
        let covered = i64::from(ack.number - core.board.una());
        if self.inflation > covered {
            self.inflation -= covered - 1;
        } else {
            let deflated = core.unclamped_window() - (covered - self.inflation) as f64;
            core.driver.report(now, Event::Reduced { window: Packets::new(deflated), idle: false });
            // A positive value means that recovery continues.
            self.inflation = 1;
        }
        let newly = core.board.acked(ack.number);
        core.next = core.next.max(ack.number);
        if self.timed.is_some_and(|(seq, _)| ack.number > seq) {
            self.timed = None;
            core.rto.restart();
        }
        core.report_acked(now, newly, ack, false);
        core.report_lost(now, Losses { packets: 1, newest: ack.number, sent_at: KNOWN });
        self.repair(core, net, now, ack.number);
    }

    /// Handles an acknowledgement of new data.
    #[inline(always)]
    fn advance(&mut self, core: &mut Core, net: &mut Net, now: u64, ack: Ack) -> Newly {
        self.duplicates = 0;
        let newly = core.board.acked(ack.number);
        core.next = core.next.max(ack.number);
        if let Some((seq, sent_at)) = self.timed
            && ack.number > seq
        {
            self.timed = None;
            if !(self.closed_by_mark && ack.echo) {
                core.rto.restart();
            }
            core.rto.sample(now, sent_at);
        }
        self.closed_by_mark &= ack.echo;
        core.restart_timer(net, now);
        newly
    }

    /// Handles a duplicate acknowledgement.
    fn duplicate(&mut self, core: &mut Core, net: &mut Net, now: u64) {
        self.duplicates += 1;
        if self.duplicates == DUP_THRESH {
            self.fast_retransmit(core, net, now);
        } else if self.duplicates > DUP_THRESH {
            if self.scheme != Recovery::Sack && self.last_action == Action::Duplicates {
                self.inflation += 1;
            }
        } else if self.limited_transmit {
            let una = f64::from(core.board.una());
            let next = f64::from(core.next);
            let fits = next + 1.0 <= una + core.unclamped_window() + f64::from(self.duplicates)
                && next + 1.0 <= una + f64::from(core.receiver_window);
            if fits && core.next < core.total {
                let seq = core.next;
                core.next += 1;
                self.repair(core, net, now, seq);
            }
        }
    }

    fn fast_retransmit(&mut self, core: &mut Core, net: &mut Net, now: u64) {
        let una = core.board.una();
        if una >= core.total {
            // Spurious retransmissions were acknowledged; the send queue is empty.
            return;
        }
        let highest_acked = i64::from(una) - 1;
        let fresh = highest_acked > self.recover
            || highest_acked == 0
            || self.scheme == Recovery::Reno && self.last_action == Action::Duplicates;
        if !fresh && self.last_action != Action::Mark {
            return;
        }
        self.last_action = Action::Duplicates;
        self.in_recovery = true;
        self.timed = None;
        if fresh {
            self.recover = i64::from(core.board.high()) - 1;
        }
        self.pipe = i64::from(core.board.high()) - i64::from(una) - i64::from(DUP_THRESH);
        if self.scheme != Recovery::Sack {
            self.inflation = i64::from(DUP_THRESH);
        }
        core.restart_timer(net, now);
        let found = core.board.mark_lost_below(una + 1).and(core.board.find_lost());
        // Only a new loss reduces the window: a loss in a window with a mark has already reduced
        // it.
        let (packets, sent_at) = (found.packets.max(1), if fresh { now } else { KNOWN });
        core.report_lost(now, Losses { packets, sent_at, ..found });
        self.repair(core, net, now, una);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cwnd::laws::AnyLaw;
    use cwnd::{Acked, Controller, Dur, Law, MakeController, Settings, Spec, Time, Windowed};

    fn at(millis: u64) -> Time {
        Time::ZERO + Dur::from_millis(millis)
    }

    /// A machine with a window of 40 packets and ns-2's conventions.
    fn machine(spec: &str) -> Windowed<AnyLaw> {
        let mut settings = Settings::default();
        settings.initial_window = Packets::new(40.0);
        settings.conventions = &CONVENTIONS;
        match Spec::parse(spec).unwrap().law(&settings) {
            Some(Law::Window(law)) => Windowed::new(law, &settings),
            _ => panic!("{spec} is not a window law"),
        }
    }

    /// Returns the threshold and the window after `event`. Before it the window is 40 packets in
    /// slow start or, after a mark, at least 40 packets in congestion avoidance.
    fn after(spec: &str, avoidance: bool, event: impl Fn(u64) -> Event) -> (f64, f64) {
        let mut machine = machine(spec);
        let mut sent = 40;
        if avoidance {
            machine.on(at(1), &Event::Marked(Marked::new(1, at(1), sent)));
            while machine.unclamped().get() < 40.0 {
                sent += 1;
                machine.on(at(2), &Event::Acked(Acked::new(1, at(1))));
            }
        }
        machine.on(at(4), &event(sent));
        (machine.ssthresh().get(), machine.unclamped().get())
    }

    fn loss(sent: u64) -> Event {
        Event::Lost(cwnd::Lost::new(1, at(3), sent))
    }

    fn expiry(sent: u64) -> Event {
        Event::Timeout(cwnd::Lost::new(1, at(3), sent))
    }

    /// `slowdown()` in tcp.cc halves the window in slow start and at the first reduction, and the
    /// threshold after a timeout, regardless of the law's factor. The threshold is a whole number.
    #[test]
    fn reductions_halve_in_slow_start_and_after_timeouts() {
        for spec in ["gaimd(1, 1/4)", "gaimd(1, 7/8)", "iiad"] {
            assert_eq!(after(spec, false, loss), (20.0, 20.0), "{spec}");
            assert_eq!(after(spec, false, expiry), (20.0, 1.0), "{spec}");
            assert_eq!(after(spec, true, expiry), (20.0, 1.0), "{spec}");
        }
        let (threshold, window) = after("gaimd(1, 1/4)", true, loss);
        assert!(threshold == 10.0 && (10.0..10.1).contains(&window), "{threshold} {window}");
    }

    /// RFC 9438 sections 4.6 and 4.8: CUBIC's own threshold is 0.7 of the window.
    #[test]
    fn a_law_with_a_threshold_keeps_it() {
        assert_eq!(after("cubic", false, loss), (28.0, 28.0));
        assert_eq!(after("cubic", false, expiry), (28.0, 1.0));
        let (threshold, window) = after("cubic", true, expiry);
        assert!((28.0..28.1).contains(&threshold) && window == 1.0, "{threshold}");
    }

    #[test]
    fn a_mark_and_the_timeout_after_it_lower_the_threshold_once() {
        let mut machine = machine("reno");
        machine.on(at(1), &Event::Marked(Marked::new(1, at(1), 40)));
        machine.on(at(400), &expiry(41));
        assert_eq!((machine.ssthresh().get(), machine.unclamped().get()), (20.0, 1.0));
        machine.on(at(900), &expiry(42));
        assert_eq!(machine.ssthresh().get(), 2.0);
    }

    /// The initial threshold is the receiver's window, slow start may exceed it, and the window
    /// also grows while the application limits the sender.
    #[test]
    fn slow_start_has_the_rules_of_ns2() {
        let mut settings = Settings::default();
        settings.initial_window = Packets::new(40.0);
        settings.max_window = Packets::new(41.0);
        settings.conventions = &CONVENTIONS;
        let mut machine = Windowed::new(cwnd::laws::Reno::new(), &settings);
        assert_eq!(machine.ssthresh().get(), 41.0);
        let mut acked = Acked::new(2, at(1));
        acked.limit = Limit::Application;
        machine.on(at(2), &Event::Acked(acked));
        assert_eq!((machine.unclamped().get(), machine.window().get()), (42.0, 41.0));
    }
}
