//! Transmission within the window: retransmissions first, in Linux in segments of several packets.

use super::timer::Timer;
use super::{Core, LINUX_TIMEOUT_MIN, MS, Selective, State};
use crate::cast::whole32;
use crate::clock::Clock;
use crate::engine::net::Net;
use crate::tcp::recovery::LossRecovery;
use crate::tcp::tso::{Opportunity, Pace, Tso};
use cwnd::{AnyController, Limit};

/// Rules and state that only Linux has.
#[derive(Clone)]
pub(super) struct Linux {
    /// Added to the timeout of the reordering window, and the least time to a timer.
    pub(super) slack: u64,
    pub(super) millisecond: u64,
    pub(super) usage: WindowUsage,
    pub(super) tso: Tso,
    /// Time of the last transmission.
    pub(super) sent_at: u64,
}

impl Linux {
    pub(super) fn new(clock: Clock, packet: u32) -> Self {
        Linux {
            slack: clock.ticks(LINUX_TIMEOUT_MIN),
            millisecond: clock.ticks(MS),
            usage: WindowUsage::default(),
            tso: Tso::new(clock, packet),
            sent_at: 0,
        }
    }
}

/// How much of the window the sender uses (`tcp_cwnd_validate` in net/ipv4/tcp_output.c).
#[derive(Clone, Default)]
pub(super) struct WindowUsage {
    /// The window limited the sender in this round.
    limited: bool,
    /// The most packets outstanding in this round.
    max_packets_out: u32,
    /// The round ends when this packet is acknowledged.
    round_end: u32,
}

impl WindowUsage {
    pub(super) fn validate(&mut self, una: u32, high: u32, limited: bool) {
        let outstanding = high - una;
        if una >= self.round_end || limited || !self.limited && outstanding > self.max_packets_out {
            self.limited = limited;
            self.max_packets_out = outstanding;
            self.round_end = high;
        }
    }

    /// Whether the window may grow (`tcp_is_cwnd_limited`): in slow start if more than half of it
    /// was used.
    pub(super) fn permits_growth(&self, window: f64, slow_start: bool) -> bool {
        self.limited || slow_start && window < 2.0 * f64::from(self.max_packets_out)
    }
}
impl Selective {
    /// Sends as many packets as the window allows: retransmissions first.
    #[inline(always)]
    pub(super) fn send_packets(&mut self, core: &mut Core, net: &mut Net, now: u64) -> Limit {
        // Outside recovery SACKed packets permit new packets only with limited transmit (RFC 3042).
        let all = !self.limited_transmit && self.state == State::Open && core.board.lost() == 0;
        let window = match &self.prr {
            Some(prr) => prr.window(),
            None => core.window(),
        };
        let packets = whole32(window);
        let new_first = self.frto.new_first;
        loop {
            let new_left = self.frto.new_left().filter(|_| self.state == State::Loss);
            if new_left == Some(0) {
                return Limit::Window;
            }
            let held_back = if all { core.board.sacked() } else { 0 };
            if core.board.in_flight() + held_back >= packets {
                return core.closed();
            }
            let lost = if new_first || new_left.is_some() { None } else { core.board.next_lost() };
            if let Some(seq) = lost {
                if core.delayed(now) {
                    return Limit::Pacing;
                }
                self.retransmit(core, net, now, seq, window);
                if seq == core.board.una() && self.timer != Timer::Reordering {
                    core.restart_timer(net, now);
                    self.timer = Timer::Rto;
                }
                continue;
            }
            let high = core.board.high();
            if core.may_send_new() {
                if core.delayed(now) {
                    return Limit::Pacing;
                }
                if self.linux.is_some() {
                    if !self.send_segment(core, net, now, window) {
                        return Limit::Window;
                    }
                } else {
                    self.transmit(core, net, now, high);
                    core.next = high + 1;
                }
                if let Some(left) = new_left {
                    self.frto.new_sent(left);
                }
                continue;
            }
            if self.rack.is_none()
                && self.state == State::Recovery
                && let Some((seq, rescues)) = core.board.further_repair(self.rescued)
            {
                if core.delayed(now) {
                    return Limit::Pacing;
                }
                self.rescued |= rescues;
                let due = core.departure();
                self.repair(core, net, now, seq);
                self.segment_sent(core, now, due);
                continue;
            }
            return if high < core.total { Limit::Receiver } else { Limit::Application };
        }
    }

    /// Sends a segment of Linux. Returns false if the sender waits for a larger one.
    #[inline(never)]
    fn send_segment(&mut self, core: &mut Core, net: &mut Net, now: u64, window: f64) -> bool {
        let Some(burst) = self.burst(core, now, window) else { return false };
        let due = core.departure();
        let high = core.board.high();
        let end = high + burst;
        let pushes = burst > 1 || end == core.total;
        for seq in high..end {
            if pushes && seq + 1 == end {
                core.push();
            }
            self.transmit(core, net, now, seq);
            core.next = seq + 1;
        }
        self.segment_sent(core, now, due);
        true
    }

    /// Retransmits packet `seq`. A paced sender of Linux also retransmits the lost packets that
    /// follow it, as many as a segment has, if they were sent with it: they are the same segment
    /// (`tcp_xmit_retransmit_queue`).
    #[inline(never)]
    fn retransmit(&mut self, core: &mut Core, net: &mut Net, now: u64, seq: u32, window: f64) {
        let due = core.departure();
        let most = self.retransmitted_segment(core, now, window);
        let sent_at = core.board.sent_at(seq);
        self.repair(core, net, now, seq);
        for next in seq + 1..seq.saturating_add(most) {
            let room = f64::from(core.board.in_flight()) + 1.0 <= window;
            if !room || core.board.next_lost() != Some(next) || core.board.sent_at(next) != sent_at
            {
                break;
            }
            self.repair(core, net, now, next);
        }
        self.segment_sent(core, now, due);
    }

    /// Completes the pacing of a segment that was due at `due`.
    fn segment_sent(&self, core: &mut Core, now: u64, due: Option<u64>) {
        if self.linux.is_some()
            && let Some(due) = due
        {
            core.segment_sent(now, due);
        }
    }

    /// Returns how many packets to retransmit at once.
    fn retransmitted_segment(&self, core: &mut Core, now: u64, window: f64) -> u32 {
        let (Some(linux), Some(pace)) = (&self.linux, pace(core)) else { return 1 };
        linux.tso.segment(&self.opportunity(core, linux, now, window, pace))
    }

    /// Returns how many new packets to send at once; `None` if Linux's sender waits for a larger
    /// segment.
    fn burst(&self, core: &mut Core, now: u64, window: f64) -> Option<u32> {
        let Some(linux) = &self.linux else { return Some(1) };
        let pace = match (pace(core), &core.driver.controller) {
            (Some(pace), _) => pace,
            (None, AnyController::Window(machine)) if !self.is_recovering() => {
                Pace::window(f64::from(whole32(window)) < machine.ssthresh().get() / 2.0)
            }
            // Not paced: further packets follow at once.
            _ => return Some(1),
        };
        let left = core.total - core.board.high();
        linux.tso.burst(&self.opportunity(core, linux, now, window, pace), left)
    }

    #[inline(always)]
    fn opportunity(
        &self,
        core: &mut Core,
        linux: &Linux,
        now: u64,
        window: f64,
        pace: Pace,
    ) -> Opportunity {
        let (una, high) = (core.board.una(), core.board.high());
        let (window, outstanding) = (whole32(window), high - una);
        let permitted = core.receiver_window.saturating_sub(outstanding).min(core.total - high);
        let departure = if matches!(pace, Pace::Window { .. }) { None } else { core.departure() };
        Opportunity {
            now,
            sent_at: departure.unwrap_or(linux.sent_at),
            oldest: (high > una).then(|| core.board.sent_at(una)),
            srtt: core.rto.srtt(),
            min_rtt: core.driver.meter.min_rtt,
            window,
            pace,
            recovering: self.is_recovering(),
            outstanding,
            room: window.saturating_sub(core.board.in_flight()).min(permitted),
        }
    }
}

/// The controller's pacing rate, if it has one.
fn pace(core: &Core) -> Option<Pace> {
    core.demands.as_ref()?;
    let rate = core.driver.output().pace?.as_per_sec();
    let law = matches!(core.driver.controller, AnyController::Window(_));
    Some(if law { Pace::Law(rate) } else { Pace::Controller(rate) })
}
