//! Loss recovery of the RFCs: RFC 6675 with selective acknowledgements, RFC 6582 (NewReno) and RFC 5681 (Reno) without,
//! RFC 6298 for timeouts, RFC 3042 for limited transmit and RFC 3522 for the detection of spurious retransmissions.

use super::scoreboard::{DUP_THRESH, Newly};
use super::sender::{Covered, Sender};
use crate::engine::net::Net;
use crate::engine::packet::Extra;
use crate::engine::schedule::NONE;
use crate::network::Recovery;
use cwnd::{Event, Limit, Marked};

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
    let una = s.board.una();
    if ack < una {
        return None;
    }
    let advanced = ack > una;
    let mut newly = s.board.acked(ack);
    if extra.count > 0 {
        newly = newly.and(s.board.sack(&extra.blocks[..extra.count as usize]));
    }
    s.next = s.next.max(ack);
    let rtt_from = newly.once.then_some(newly.sent_at);
    if let Some(sent_at) = rtt_from {
        s.rto.sample(now, sent_at);
        s.rto.restart();
    }
    if advanced {
        spurious(s, now, extra);
    }
    s.report_acked(
        now,
        Covered {
            packets: newly.packets,
            newest: newly.newest,
            sent_at: newly.sent_at,
            rtt_from,
            stamp: extra.stamp,
            echo,
            grows: advanced && s.connected,
        },
    );
    s.connected |= advanced;
    if echo {
        let sent_at = s.driver.clock.time(newly.sent_at);
        let marked = Marked::new(1, sent_at, s.driver.packets_sent);
        let cut = s.report_congestion(now, Event::Marked(marked));
        s.driver.counters.mark_cuts += u32::from(cut);
    }
    if s.recovery == Recovery::Sack {
        selective(s, net, now, advanced, newly);
    } else {
        cumulative(s, net, now, advanced, ack - una);
    }
    Some(u32::MAX)
}

/// Eifel detection (RFC 3522): if the acknowledgement echoes a timestamp older than that of the retransmission, the
/// retransmission was spurious and the window reduction is undone.
fn spurious(s: &mut Sender, now: u64, extra: &Extra) {
    if let Some(stamp) = s.retransmit_ts.take()
        && extra.echo < stamp
    {
        s.board.clear();
        s.next = s.board.high();
        s.in_recovery = false;
        s.driver.report(now, Event::Undo);
    }
}

/// Loss recovery with SACK (RFC 6675 section 5).
#[inline(always)]
fn selective(s: &mut Sender, net: &mut Net, now: u64, advanced: bool, newly: Newly) {
    if advanced {
        s.duplicates = 0;
        s.restart_timer(net, now);
    } else if newly.changed {
        s.duplicates += 1;
    }
    if s.board.sacked() == 0 && !s.in_recovery {
        return;
    }
    let (found, newest) = s.board.find_lost();
    let una = s.board.una();
    if s.in_recovery {
        if i64::from(una) > s.recover {
            s.in_recovery = false;
            s.driver.report(now, Event::Recovered);
        } else if found > 0 {
            s.report_lost(now, found, newest);
        }
    }
    // Losses that the end of recovery reveals begin the next one.
    let begins = found > 0 || s.duplicates >= DUP_THRESH;
    if !s.in_recovery && begins && i64::from(una) > s.recover {
        let (first, _) = s.board.mark_lost_below(una + 1);
        let sent_at = s.board.sent_at(una);
        enter(s, now, found + first, newest.max(sent_at));
        if let Some(seq) = s.board.next_lost() {
            s.repair(net, now, seq);
        }
        s.restart_timer(net, now);
    }
}

/// Loss recovery without SACK (RFC 5681 section 3.2, RFC 6582 section 3.2).
fn cumulative(s: &mut Sender, net: &mut Net, now: u64, advanced: bool, covered: u32) {
    let una = s.board.una();
    if !advanced {
        if s.board.high() == una {
            return;
        }
        s.duplicates += 1;
        if s.in_recovery {
            s.inflation += 1;
        } else if s.duplicates == DUP_THRESH && i64::from(una) > s.recover {
            let sent_at = s.board.sent_at(una);
            enter(s, now, 1, sent_at);
            s.inflation = i64::from(DUP_THRESH);
            s.first_partial = true;
            s.repair(net, now, una);
            s.restart_timer(net, now);
        }
        return;
    }
    if s.in_recovery && s.recovery == Recovery::NewReno && i64::from(una) <= s.recover {
        // Partial acknowledgement: retransmit the first unacknowledged packet, deflate the window by the packets
        // acknowledged and add back one packet (RFC 6582 section 3.2, step 3).
        s.inflation -= i64::from(covered) - 1;
        let sent_at = s.board.sent_at(una);
        s.report_lost(now, 1, sent_at);
        s.repair(net, now, una);
        if std::mem::take(&mut s.first_partial) {
            s.restart_timer(net, now);
        }
        return;
    }
    s.duplicates = 0;
    s.inflation = 0;
    s.restart_timer(net, now);
    if std::mem::take(&mut s.in_recovery) {
        s.driver.report(now, Event::Recovered);
    }
}

/// Enters fast recovery after the loss of `packets` packets, the most recent of them sent at `sent_at`.
fn enter(s: &mut Sender, now: u64, packets: u32, sent_at: u64) {
    s.in_recovery = true;
    s.rescued = false;
    s.recover = i64::from(s.board.high()) - 1;
    s.report_lost(now, packets, sent_at);
    s.record_retransmit_ts(now);
}

/// Handles an expired retransmission timer (RFC 6298 section 5).
pub(super) fn timeout(s: &mut Sender, net: &mut Net, now: u64) {
    if s.board.high() == s.board.una() {
        return;
    }
    s.driver.counters.timeouts += 1;
    s.rto.back_off();
    s.in_recovery = false;
    s.inflation = 0;
    s.duplicates = 0;
    s.recover = i64::from(s.board.high()) - 1;
    let sent = s.driver.packets_sent;
    s.report_congestion(now, Event::Timeout { sent });
    s.record_retransmit_ts(now);
    if s.recovery == Recovery::Sack {
        let before = s.board.lost();
        s.board.mark_all_lost();
        s.record_lost(s.board.lost() - before);
    } else {
        s.next = s.board.una();
    }
    if s.connected {
        s.resume(net, now);
    } else {
        s.repair(net, now, 0);
    }
    if s.deadline == NONE {
        s.restart_timer(net, now);
    }
}

/// Sends as many packets as the window allows and returns what limits the sender then.
#[inline(always)]
pub(super) fn send(s: &mut Sender, net: &mut Net, now: u64) -> Limit {
    if s.recovery == Recovery::Sack {
        send_selective(s, net, now)
    } else {
        send_cumulative(s, net, now)
    }
}

#[inline(always)]
fn send_selective(s: &mut Sender, net: &mut Net, now: u64) -> Limit {
    let window = s.window();
    // Outside recovery SACKed packets permit new packets only with limited transmit (RFC 3042).
    let all = !s.limited_transmit && !s.in_recovery && s.board.lost() == 0;
    loop {
        let held_back = if all { s.board.sacked() } else { 0 };
        if f64::from(s.board.in_flight() + held_back) + 1.0 > window {
            return s.closed();
        }
        if let Some(seq) = s.board.next_lost() {
            if s.delayed(now) {
                return Limit::Pacing;
            }
            s.repair(net, now, seq);
            continue;
        }
        let high = s.board.high();
        let room = high - s.board.una() < s.receiver_window;
        if high < s.total && room {
            if s.delayed(now) {
                return Limit::Pacing;
            }
            s.transmit(net, now, high);
            s.next = high + 1;
            continue;
        }
        if s.in_recovery
            && let Some((seq, rescues)) = further_repair(s)
        {
            if s.delayed(now) {
                return Limit::Pacing;
            }
            s.rescued |= rescues;
            s.repair(net, now, seq);
            continue;
        }
        return if high < s.total { Limit::Receiver } else { Limit::Application };
    }
}

/// The packet to retransmit by rules 3 and 4 of RFC 6675's `NextSeg`: a hole not yet presumed lost, or the last
/// outstanding packet, once per recovery. Also returns whether it is the latter.
fn further_repair(s: &mut Sender) -> Option<(u32, bool)> {
    if let Some(seq) = s.board.next_hole() {
        return Some((seq, false));
    }
    let last = s.board.high() - 1;
    (!s.rescued && last >= s.board.highest_sacked()).then_some((last, true))
}

fn send_cumulative(s: &mut Sender, net: &mut Net, now: u64) -> Limit {
    let extra = if s.in_recovery {
        s.inflation as f64
    } else if s.limited_transmit && s.duplicates < DUP_THRESH {
        f64::from(s.duplicates)
    } else {
        0.0
    };
    let window = s.window() + extra;
    loop {
        let outstanding = s.next - s.board.una();
        if f64::from(outstanding) + 1.0 > window {
            return s.closed();
        }
        if s.next >= s.total {
            return Limit::Application;
        }
        if outstanding >= s.receiver_window {
            return Limit::Receiver;
        }
        if s.delayed(now) {
            return Limit::Pacing;
        }
        let seq = s.next;
        s.next += 1;
        s.transmit(net, now, seq);
    }
}
