//! Loss recovery of the Sack1, Newreno and Reno agents of ns-2.35. Differences from the RFCs:
//!
//! * SACK recovery estimates the packets in flight by a counter that starts at the beginning of recovery, retransmits
//!   every hole below a SACKed packet, and clears the scoreboard outside recovery.
//! * After a timeout the sender goes back to the oldest unacknowledged packet and retransmits everything (go-back-N).
//! * One round-trip time is sampled per window.
//! * NewReno's partial window deflation is permanent.
//! * Reno leaves recovery at the first new acknowledgement and may enter it again at once.

use super::scoreboard::{DUP_THRESH, Newly};
use super::sender::{Action, Covered, Sender};
use crate::cast::whole32;
use crate::engine::net::Net;
use crate::engine::packet::Extra;
use crate::network::Recovery;
use cwnd::{Conventions, Decided, Decision, Event, Limit, Marked, Packets, Signal};

/// Transmission time given for a loss that needs no further window reduction: earlier than every reduction.
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

/// Reduces the window as `slowdown()` does. In slow start, at the first reduction and after a timeout the threshold is
/// half of the window, unless the law has its own threshold. The threshold is rounded down; the window is not. A
/// timeout that follows a mark keeps the threshold.
fn reduce(decision: &Decision) -> Decided {
    let halves = decision.slow_start || decision.why == Signal::Timeout || decision.first;
    let inherited = if halves { decision.window / 2.0 } else { decision.cut };
    let target = decision.law_threshold.unwrap_or(inherited);
    let kept = decision.why == Signal::Timeout && decision.after_mark;
    let threshold = if kept { decision.threshold } else { target.floor().max(2.0) };
    Decided { threshold, window: target.min(decision.window).max(1.0) }
}

/// Handles a cumulative acknowledgement. Returns the most packets that may be sent for it; `None` if the sender must not
/// try to send.
#[inline(always)]
pub(super) fn acknowledgement(
    s: &mut Sender,
    net: &mut Net,
    now: u64,
    ack: u32,
    echo: bool,
    extra: &Extra,
) -> Option<u32> {
    if ack < s.board.una() {
        return None;
    }
    if echo {
        marked(s, now, ack);
    }
    match s.recovery {
        Recovery::Sack => selective(s, net, now, ack, echo, extra),
        Recovery::NewReno | Recovery::Reno => cumulative(s, net, now, ack, echo, extra),
    }
}

/// Handles ECN echo: reduces the window at most once per window of data.
fn marked(s: &mut Sender, now: u64, ack: u32) {
    if i64::from(ack) - 1 > s.recover || s.last_action == Action::Timeout {
        s.recover = i64::from(s.board.high()) - 1;
        s.last_action = Action::Mark;
        // A reduction from less than two packets closes the window until the retransmission timer expires (RFC 3168
        // section 6.1.2). A further mark backs the timer off.
        if s.closed_by_mark && s.unclamped_window() <= 1.0 {
            s.rto.back_off();
        }
        s.closed_by_mark = s.unclamped_window() < 2.0;
        s.driver.counters.mark_cuts += 1;
        let sent = s.driver.packets_sent;
        let marked = Marked::new(1, s.driver.clock.time(now), sent);
        s.report_congestion(now, Event::Marked(marked));
    }
}

fn sack(s: &mut Sender, extra: &Extra) -> Newly {
    s.board.sack(&extra.blocks[..extra.count as usize])
}

#[inline(always)]
fn selective(
    s: &mut Sender,
    net: &mut Net,
    now: u64,
    ack: u32,
    echo: bool,
    extra: &Extra,
) -> Option<u32> {
    let advanced = ack > s.board.una();
    if !s.in_recovery {
        if advanced {
            let newly = advance(s, net, now, ack, echo);
            report_acked(s, now, newly, echo, extra, true);
            s.connected = true;
            s.timed_out = false;
            s.board.clear();
        } else if !s.timed_out {
            let newly = sack(s, extra);
            report_acked(s, now, newly, echo, extra, false);
            if newly.changed {
                duplicate(s, net, now);
            }
        }
        // Nothing is sent for the third duplicate; recovery sends from the next acknowledgement on.
        return (s.duplicates == 0).then_some(u32::MAX);
    }
    repairing(s, net, now, ack, echo, extra);
    Some(u32::MAX)
}

/// Handles an acknowledgement in SACK recovery.
fn repairing(s: &mut Sender, net: &mut Net, now: u64, ack: u32, echo: bool, extra: &Extra) {
    let advanced = ack > s.board.una();
    s.pipe -= 1;
    if i64::from(ack) > s.recover {
        let newly = advance(s, net, now, ack, echo);
        report_acked(s, now, newly, echo, extra, false);
        s.in_recovery = false;
        s.recover = -1;
        s.timed_out = false;
        s.board.clear();
        s.driver.report(now, Event::Recovered);
    } else {
        let mut newly = Newly::default();
        if advanced {
            newly = s.board.acked(ack);
            s.next = s.next.max(ack);
            // A partial acknowledgement covers both the original packet and its retransmission.
            s.pipe -= 1;
            s.rto.restart();
            s.restart_timer(net, now);
        }
        newly = newly.and(sack(s, extra));
        report_acked(s, now, newly, echo, extra, false);
        let (found, _) = s.board.find_lost();
        if found > 0 {
            s.report_lost(now, found, KNOWN);
        }
    }
}

fn cumulative(
    s: &mut Sender,
    net: &mut Net,
    now: u64,
    ack: u32,
    echo: bool,
    extra: &Extra,
) -> Option<u32> {
    let mut burst = u32::MAX;
    if ack > s.board.una() {
        let partial = s.recovery == Recovery::NewReno
            && i64::from(ack) - 1 < s.recover
            && s.last_action == Action::Duplicates;
        if partial {
            partial_acknowledgement(s, net, now, ack, echo, extra);
            burst = RECOVERY_BURST;
        } else {
            if s.recovery == Recovery::Reno || s.inflation > 0 {
                leave(s, now);
            }
            s.first_partial = false;
            let newly = advance(s, net, now, ack, echo);
            report_acked(s, now, newly, echo, extra, true);
            s.connected = true;
        }
    } else {
        report_acked(s, now, Newly::default(), echo, extra, false);
        duplicate(s, net, now);
        if s.recovery == Recovery::NewReno {
            burst = RECOVERY_BURST;
        }
    }
    match s.duplicates {
        0 => Some(u32::MAX),
        DUP_THRESH.. => Some(burst),
        _ => None,
    }
}

fn leave(s: &mut Sender, now: u64) {
    s.inflation = 0;
    if s.last_action == Action::Duplicates {
        s.last_action = Action::None;
    }
    if std::mem::take(&mut s.in_recovery) {
        s.driver.report(now, Event::Recovered);
    }
}

/// Handles a NewReno partial acknowledgement: the first unacknowledged packet is lost too.
fn partial_acknowledgement(
    s: &mut Sender,
    net: &mut Net,
    now: u64,
    ack: u32,
    echo: bool,
    extra: &Extra,
) {
    if !std::mem::replace(&mut s.first_partial, true) {
        s.restart_timer(net, now);
    }
    let covered = i64::from(ack - s.board.una());
    if s.inflation > covered {
        s.inflation -= covered - 1;
    } else {
        let deflated = s.unclamped_window() - (covered - s.inflation) as f64;
        s.driver.report(now, Event::Reduced { window: Packets::new(deflated) });
        // A positive value means that recovery continues.
        s.inflation = 1;
    }
    let newly = s.board.acked(ack);
    s.next = s.next.max(ack);
    if s.timed.is_some_and(|(seq, _)| ack > seq) {
        s.timed = None;
        s.rto.restart();
    }
    report_acked(s, now, newly, echo, extra, false);
    s.report_lost(now, 1, KNOWN);
    s.repair(net, now, ack);
}

/// Handles an acknowledgement of new data.
#[inline(always)]
fn advance(s: &mut Sender, net: &mut Net, now: u64, ack: u32, echo: bool) -> Newly {
    s.duplicates = 0;
    let newly = s.board.acked(ack);
    s.next = s.next.max(ack);
    if let Some((seq, sent_at)) = s.timed
        && ack > seq
    {
        s.timed = None;
        if !(s.closed_by_mark && echo) {
            s.rto.restart();
        }
        s.rto.sample(now, sent_at);
    }
    s.closed_by_mark &= echo;
    s.restart_timer(net, now);
    newly
}

#[inline(always)]
fn report_acked(s: &mut Sender, now: u64, newly: Newly, echo: bool, extra: &Extra, grows: bool) {
    let covered = Covered {
        packets: newly.packets,
        newest: newly.newest,
        sent_at: newly.sent_at,
        rtt_from: newly.once.then_some(newly.sent_at),
        stamp: extra.stamp,
        echo,
        grows: grows && s.connected,
    };
    s.report_acked(now, covered);
}

/// Handles a duplicate acknowledgement.
fn duplicate(s: &mut Sender, net: &mut Net, now: u64) {
    s.duplicates += 1;
    if s.duplicates == DUP_THRESH {
        fast_retransmit(s, net, now);
    } else if s.duplicates > DUP_THRESH {
        if s.recovery != Recovery::Sack && s.last_action == Action::Duplicates {
            s.inflation += 1;
        }
    } else if s.limited_transmit {
        let una = f64::from(s.board.una());
        let next = f64::from(s.next);
        let fits = next + 1.0 <= una + s.unclamped_window() + f64::from(s.duplicates)
            && next + 1.0 <= una + f64::from(s.receiver_window);
        if fits && s.next < s.total {
            let seq = s.next;
            s.next += 1;
            s.repair(net, now, seq);
        }
    }
}

fn fast_retransmit(s: &mut Sender, net: &mut Net, now: u64) {
    let una = s.board.una();
    if una >= s.total {
        // Spurious retransmissions were acknowledged; the send queue is empty.
        return;
    }
    let highest_acked = i64::from(una) - 1;
    let fresh = highest_acked > s.recover
        || highest_acked == 0
        || s.recovery == Recovery::Reno && s.last_action == Action::Duplicates;
    if !fresh && s.last_action != Action::Mark {
        return;
    }
    s.last_action = Action::Duplicates;
    s.in_recovery = true;
    s.timed = None;
    if fresh {
        s.recover = i64::from(s.board.high()) - 1;
    }
    s.pipe = i64::from(s.board.high()) - i64::from(una) - i64::from(DUP_THRESH);
    if s.recovery != Recovery::Sack {
        s.inflation = i64::from(DUP_THRESH);
    }
    s.restart_timer(net, now);
    let (first, _) = s.board.mark_lost_below(una + 1);
    let (more, _) = s.board.find_lost();
    // Only a new loss reduces the window: a loss in a window with a mark has already reduced it.
    s.report_lost(now, (first + more).max(1), if fresh { now } else { KNOWN });
    s.repair(net, now, una);
}

/// Handles an expired retransmission timer.
pub(super) fn timeout(s: &mut Sender, net: &mut Net, now: u64) {
    let idle = s.board.high() == s.board.una();
    if idle && !s.closed_by_mark {
        return;
    }
    // ns-2 does not count timeouts that follow a mark.
    s.driver.counters.timeouts += u32::from(!idle && s.last_action != Action::Mark);
    s.duplicates = 0;
    s.inflation = 0;
    s.in_recovery = false;
    s.timed_out = true;
    s.closed_by_mark = false;
    s.timed = None;
    s.recover = i64::from(s.board.high()) - 1;
    s.last_action = Action::Timeout;
    s.board.clear();
    let sent = s.driver.packets_sent;
    s.report_congestion(now, Event::Timeout { sent });
    if !idle {
        s.rto.back_off();
    }
    s.restart_timer(net, now);
    s.next = s.board.una();
    s.resume(net, now);
}

/// Sends as many packets as the window allows, at most `burst`, and returns what limits the sender then.
#[inline(always)]
pub(super) fn send(s: &mut Sender, net: &mut Net, now: u64, burst: u32) -> Limit {
    let mut sent = 0;
    let open = if s.closed_by_mark { 0 } else { i64::from(whole32(s.window())) };
    let window = open + if s.recovery == Recovery::Sack { 0 } else { s.inflation };
    let window = window.min(i64::from(s.receiver_window));
    let repairs = s.in_recovery && s.recovery == Recovery::Sack;
    loop {
        let outstanding = i64::from(s.next) - i64::from(s.board.una());
        let open = if repairs {
            s.pipe < i64::from(whole32(s.unclamped_window()))
        } else {
            outstanding < window
        };
        if !open || sent >= burst {
            return s.closed();
        }
        let hole = if repairs { s.board.next_hole() } else { None };
        let seq = match hole {
            Some(seq) => seq,
            None if s.next >= s.total => return Limit::Application,
            None if outstanding >= i64::from(s.receiver_window) => return Limit::Receiver,
            None => s.next,
        };
        if s.delayed(now) {
            return Limit::Pacing;
        }
        s.next = s.next.max(seq + 1);
        s.pipe += 1;
        sent += 1;
        s.transmit(net, now, seq);
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

    /// Returns the threshold and the window after `event`. Before it the window is 40 packets in slow start or, after a
    /// mark, at least 40 packets in congestion avoidance.
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
        Event::Timeout { sent }
    }

    /// `slowdown()` in tcp.cc halves the window in slow start and at the first reduction, and the threshold after a
    /// timeout, regardless of the law's factor. The threshold is a whole number.
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

    /// The initial threshold is the receiver's window, slow start may exceed it, and the window also grows while the
    /// application limits the sender.
    #[test]
    fn slow_start_has_the_rules_of_ns2() {
        let mut settings = Settings::default();
        settings.initial_window = Packets::new(40.0);
        settings.max_window = Packets::new(41.0);
        settings.conventions = &CONVENTIONS;
        let mut machine = Windowed::new(cwnd::laws::Aimd::reno(), &settings);
        assert_eq!(machine.ssthresh().get(), 41.0);
        let mut acked = Acked::new(2, at(1));
        acked.limit = Limit::Application;
        machine.on(at(2), &Event::Acked(acked));
        assert_eq!((machine.unclamped().get(), machine.window().get()), (42.0, 41.0));
    }
}
