//! A sender's side of its controller, whichever way it sends: what the controller is told, and what
//! the records say of the sender.

use crate::engine::clock::Clock;
use crate::engine::schedule::NONE;
use crate::record::CutRecord;
use cwnd::record::{Entry, Record};
use cwnd::{AnyController, Controller, Dur, Event, Limit};

/// What a sender has done since the measurement began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub sent: u64,
    pub retransmitted: u64,
    pub lost: u64,
    pub timeouts: u64,
    pub mark_cuts: u64,
    pub rtt_sum: u64,
    pub rtt_count: u64,
    /// Ticks limited by the window, pacing, the receiver and the application.
    pub limited: [u64; 4],
}

pub(crate) struct Driver {
    pub clock: Clock,
    pub controller: AnyController,
    /// Every event told to the controller and its answer, when they are recorded.
    pub told: Option<Record>,
    pub cuts: Vec<CutRecord>,
    pub counters: Counters,
    /// What keeps the sender from sending more.
    pub limit: Limit,
    limit_since: u64,
    pub packets_sent: u64,
    pub min_rtt: u64,
    pub last_rtt: u64,
    pub completed: u64,
}

impl Driver {
    pub fn new(clock: Clock, controller: AnyController, told: Option<Record>) -> Self {
        Driver {
            clock,
            controller,
            told,
            cuts: Vec::new(),
            counters: Counters::default(),
            limit: Limit::Application,
            limit_since: 0,
            packets_sent: 0,
            min_rtt: u64::MAX,
            last_rtt: 0,
            completed: NONE,
        }
    }

    /// The congestion window, or the flow window, in packets.
    #[inline(always)]
    pub fn window(&self) -> f64 {
        self.controller.output().window
    }

    /// The transfer begins.
    pub fn start(&mut self, now: u64) {
        self.limit_since = now;
    }

    /// Tells the controller.
    #[inline(always)]
    pub fn tell(&mut self, now: u64, event: Event) {
        let now = self.clock.time(now);
        self.controller.on(now, &event);
        if let Some(told) = &mut self.told {
            told.entries.push(Entry { at: now, event, output: self.controller.output() });
        }
    }

    /// Tells the controller of what may make it cut, and notes the cut. True if there was one.
    pub fn tell_congestion(&mut self, now: u64, event: Event) -> bool {
        self.tell(now, event);
        let cut = self.controller.take_cut();
        self.cuts.extend(cut.map(|cut| CutRecord { at: self.clock.time(now), cut }));
        cut.is_some()
    }

    /// A round-trip time was measured.
    #[inline(always)]
    pub fn measured(&mut self, rtt: u64) -> Dur {
        self.last_rtt = rtt;
        self.min_rtt = self.min_rtt.min(rtt);
        self.counters.rtt_sum += rtt;
        self.counters.rtt_count += 1;
        self.clock.dur(rtt)
    }

    /// From now on this is what keeps the sender from sending more.
    #[inline(always)]
    pub fn limited_by(&mut self, now: u64, limit: Limit) {
        self.settle(now);
        self.limit = limit;
    }

    /// Brings the time that each limit held up to date. What comes after the end (duplicates, a
    /// burst put off) is no time of the transfer.
    #[inline(always)]
    pub fn settle(&mut self, now: u64) {
        if self.completed == NONE {
            self.counters.limited[self.limit as usize] += now - self.limit_since;
            self.limit_since = now;
        }
    }
}
