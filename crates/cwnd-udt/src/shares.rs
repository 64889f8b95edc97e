//! The time for which each limit kept the sender from sending.

use crate::config::Counters;
use cwnd::{Limit, Time};

/// Attributes the time of a connection to what limits its sender, in whole microseconds.
///
/// Interval boundaries are rounded, not interval lengths: the shares always add up to the time accounted for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shares {
    opened: Time,
    /// Microseconds accounted for since `opened`.
    accounted: u64,
    /// The current limit. `None`: packets are due and allowed, and the processor has yet to send them.
    state: Option<Limit>,
}

impl Shares {
    /// Starts the account of a sender that has nothing to send yet.
    pub(crate) fn new(opened: Time) -> Self {
        Shares { opened, accounted: 0, state: Some(Limit::Application) }
    }

    /// The current limit; `None` if it is the processor.
    pub(crate) fn state(&self) -> Option<Limit> {
        self.state
    }

    /// Attributes the time up to `now` to the current limit. Earlier times change nothing.
    pub(crate) fn elapse(&mut self, now: Time, count: &mut Counters) {
        self.attribute(now, self.state, count);
    }

    /// Attributes the time up to `now` to the current limit and replaces the limit.
    #[inline]
    pub(crate) fn switch(&mut self, now: Time, state: Option<Limit>, count: &mut Counters) {
        if state != self.state {
            self.elapse(now, count);
            self.state = state;
        }
    }

    /// Attributes the time up to `now` to the processor, whatever the current limit.
    pub(crate) fn busy_until(&mut self, now: Time, count: &mut Counters) {
        self.attribute(now, None, count);
    }

    fn attribute(&mut self, now: Time, state: Option<Limit>, count: &mut Counters) {
        let until = now.since(self.opened).as_nanos() / 1000;
        let field = match state {
            Some(Limit::Window) => &mut count.us_limited_window,
            Some(Limit::Pacing) => &mut count.us_limited_pacing,
            Some(Limit::Receiver) => &mut count.us_limited_receiver,
            Some(Limit::Application) => &mut count.us_limited_application,
            None => &mut count.us_limited_processor,
        };
        *field += until.saturating_sub(self.accounted);
        self.accounted = self.accounted.max(until);
    }
}
