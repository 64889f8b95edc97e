//! The part of a sender that drives its controller, for every kind of sender: events, records and counters.

use crate::engine::clock::Clock;
use crate::engine::schedule::NONE;
use crate::record::CutRecord;
use cwnd::record::{Entry, Record};
use cwnd::{AnyController, Controller, Dur, Event, Limit};

/// What a sender has done since the measurement began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub rtt_sum: u64,
    /// Ticks limited by the window, pacing, the receiver and the application.
    pub limited: [u64; 4],
    pub retransmitted: u64,
    /// Packets sent before.
    sent_before: u64,
    pub rtt_count: u32,
    pub timeouts: u32,
    pub mark_cuts: u32,
}

/// Its order is that in which a packet needs it: what is rare comes last.
pub(crate) struct Driver {
    pub controller: AnyController,
    pub packets_sent: u64,
    pub last_rtt: u64,
    pub min_rtt: u64,
    limit_since: u64,
    pub completed: u64,
    /// Every event told to the controller and its answer, when they are recorded.
    pub told: Option<Box<Record>>,
    pub counters: Counters,
    pub cuts: Vec<CutRecord>,
    pub clock: Clock,
    /// What keeps the sender from sending more.
    pub limit: Limit,
}

impl Driver {
    pub(crate) fn new(clock: Clock, controller: AnyController, tell: bool) -> Self {
        Driver {
            controller,
            packets_sent: 0,
            last_rtt: 0,
            min_rtt: u64::MAX,
            limit_since: 0,
            completed: NONE,
            told: tell.then(Box::default),
            counters: Counters::default(),
            cuts: Vec::new(),
            clock,
            limit: Limit::Application,
        }
    }

    /// The measurement begins.
    pub(crate) fn reset(&mut self, now: u64) {
        self.settle(now);
        self.counters = Counters { sent_before: self.packets_sent, ..Counters::default() };
    }

    /// Packets sent since the measurement began.
    pub(crate) fn sent(&self) -> u64 {
        self.packets_sent - self.counters.sent_before
    }

    /// The congestion window, or the flow window, in packets.
    #[inline(always)]
    pub(crate) fn window(&self) -> f64 {
        match &self.controller {
            AnyController::Window(machine) => machine.window().get(),
            controller => controller.output().window.get(),
        }
    }

    /// The transfer begins.
    pub(crate) fn start(&mut self, now: u64) {
        self.limit_since = now;
    }

    /// Tells the controller.
    #[inline(always)]
    pub(crate) fn tell(&mut self, now: u64, event: Event) {
        let now = self.clock.time(now);
        self.controller.on(now, &event);
        if let Some(told) = &mut self.told {
            told.entries.push(Entry { at: now, event, output: self.controller.output() });
        }
    }

    /// Tells the controller of what may make it cut, and notes the cut. True if there was one.
    pub(crate) fn tell_congestion(&mut self, now: u64, event: Event) -> bool {
        self.tell(now, event);
        let cut = self.controller.take_cut();
        self.cuts.extend(cut.map(|cut| CutRecord { at: self.clock.time(now), cut }));
        cut.is_some()
    }

    /// A round-trip time was measured.
    #[inline(always)]
    pub(crate) fn measured(&mut self, rtt: u64) -> Dur {
        self.last_rtt = rtt;
        self.min_rtt = self.min_rtt.min(rtt);
        self.counters.rtt_sum += rtt;
        self.counters.rtt_count += 1;
        self.clock.dur(rtt)
    }

    /// From now on this is what keeps the sender from sending more.
    #[inline(always)]
    pub(crate) fn limited_by(&mut self, now: u64, limit: Limit) {
        self.settle(now);
        self.limit = limit;
    }

    /// Brings the time that each limit held up to date. What comes after the end (duplicates, a
    /// burst put off) is no time of the transfer.
    #[inline(always)]
    pub(crate) fn settle(&mut self, now: u64) {
        if self.completed == NONE {
            self.counters.limited[self.limit as usize] += now - self.limit_since;
            self.limit_since = now;
        }
    }
}
