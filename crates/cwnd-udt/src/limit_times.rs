//! The time by limiting cause: how long the window, pacing, the receiver, the application and the
//! processor each limited the sender.

use crate::config::Counters;
use cwnd::{Limit, Time};

/// Attributes the time since the connection opened to the sender's current limit, in whole
/// microseconds.
///
/// Interval boundaries are rounded, not interval lengths: the times add up to the time since the
/// connection opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LimitTimes {
    opened: Time,
    /// Microseconds accounted for since `opened`.
    accounted: u64,
    /// The current limit. `None` is the processor: packets are due and allowed, and not sent yet.
    limit: Option<Limit>,
}

impl LimitTimes {
    /// Starts at `opened` with the application as the limit.
    pub(crate) fn new(opened: Time) -> Self {
        LimitTimes { opened, accounted: 0, limit: Some(Limit::Application) }
    }

    /// The current limit; `None` if it is the processor.
    pub(crate) fn limit(&self) -> Option<Limit> {
        self.limit
    }

    /// Attributes the time up to `now` to the current limit. Does nothing if that time is already
    /// accounted for.
    pub(crate) fn elapse(&mut self, now: Time, count: &mut Counters) {
        self.attribute(now, self.limit, count);
    }

    /// Attributes the time up to `now` to the current limit and replaces the limit.
    #[inline]
    pub(crate) fn switch(&mut self, now: Time, limit: Option<Limit>, count: &mut Counters) {
        if limit != self.limit {
            self.elapse(now, count);
            self.limit = limit;
        }
    }

    /// Attributes the time up to `now` to the processor, whatever the current limit.
    pub(crate) fn busy_until(&mut self, now: Time, count: &mut Counters) {
        self.attribute(now, None, count);
    }

    fn attribute(&mut self, now: Time, limit: Option<Limit>, count: &mut Counters) {
        let until = now.since(self.opened).as_nanos() / 1000;
        let field = match limit {
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
