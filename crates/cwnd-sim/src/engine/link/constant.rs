//! The transmitter of a link at a constant rate, and at a rate that changes in steps.

use crate::cast::whole;
use crate::clock::Clock;
use crate::engine::schedule::AFTER_END;
use crate::network::Change;

/// Fractional bits of the ticks per byte.
const FRACTION: u32 = 8;

/// The transmitter at a constant rate.
#[derive(Clone, Copy)]
pub(super) struct Service {
    /// Transmission time in 2^-8 ticks per byte; 0 for an infinite rate.
    per_byte: u64,
}

impl Service {
    pub(super) fn new(rate: Option<f64>, clock: Clock) -> Self {
        let byte = clock.ticks_in(8.0) * f64::from(1u32 << FRACTION);
        Service { per_byte: rate.map_or(0, |rate| whole((byte / rate).round())) }
    }

    /// Transmission time in ticks, rounded up: the link never exceeds its rate.
    #[inline(always)]
    pub(super) fn time(self, size: u64) -> u64 {
        (size * self.per_byte + (1 << FRACTION) - 1) >> FRACTION
    }

    /// The fraction of `window` ticks that `bytes` take, after `carried` ticks for the rest of a
    /// packet. At most 1 if the link transmits them in this time.
    pub(super) fn share(self, bytes: u64, carried: i64, window: u64) -> f64 {
        let used =
            i128::from(bytes) * i128::from(self.per_byte) + (i128::from(carried) << FRACTION);
        used as f64 / (i128::from(window) << FRACTION) as f64
    }

    /// The bytes transmitted in `ticks` at a finite rate.
    fn bytes(self, ticks: u64) -> f64 {
        (u128::from(ticks) << FRACTION) as f64 / self.per_byte as f64
    }

    /// What is left of the packet in transmission at `now`, which departs at `departs`.
    pub(super) fn left(self, now: u64, departs: u64) -> Left {
        let ticks = departs.saturating_sub(now);
        let bytes = if ticks > 0 && self.is_finite() { self.bytes(ticks) } else { 0.0 };
        Left { ticks, bytes, tokens: 0.0 }
    }

    /// Whether the rate is finite.
    #[inline(always)]
    pub(super) fn is_finite(self) -> bool {
        self.per_byte > 0
    }

    /// Whether every packet takes time.
    pub(super) fn takes_time(self) -> bool {
        self.per_byte >> FRACTION > 0
    }
}

/// What is left of a packet in transmission at one end of the measured window: a packet counts for
/// the part of its transmission in the window.
#[derive(Clone, Copy, Default)]
pub(super) struct Left {
    /// Ticks to its departure; only at a constant rate.
    pub ticks: u64,
    pub bytes: f64,
    /// Bytes of a shaper's tokens, after those that the packet takes.
    pub tokens: f64,
}

/// A transmitter whose rate is constant between the changes of a run. Up to the first change, the
/// departures are those of [`Service`] to the tick.
#[derive(Clone)]
pub(super) struct Steps {
    first: Service,
    /// The changes in the order of time.
    steps: Vec<(u64, Service)>,
}

impl Steps {
    /// Returns the transmitter of a link with this rate at the beginning; `None` if it does not
    /// change.
    pub(super) fn new(rate: Option<f64>, changes: &[Change], clock: Clock) -> Option<Self> {
        let step = |change: &Change| {
            let at = clock.ticks(change.at.as_nanos());
            Some((at, Service::new(Some(change.rate?), clock)))
        };
        let steps: Vec<_> = changes.iter().filter_map(step).collect();
        (!steps.is_empty()).then(|| Steps { first: Service::new(rate, clock), steps })
    }

    /// The rate at `time`, and until when it is constant.
    fn at(&self, time: u64) -> (Service, u64) {
        let passed = self.steps.partition_point(|&(at, _)| at <= time);
        let service = passed.checked_sub(1).map_or(self.first, |last| self.steps[last].1);
        (service, self.steps.get(passed).map_or(u64::MAX, |&(at, _)| at))
    }

    /// The departure of a packet of `size` bytes whose transmission starts at `start`.
    pub(super) fn departure(&self, start: u64, size: u64) -> u64 {
        let (mut from, (mut service, mut until)) = (start, self.at(start));
        // In 2^-8 ticks at the current rate.
        let mut left = u128::from(size) * u128::from(service.per_byte);
        loop {
            let departs = u128::from(from) + left.div_ceil(1 << FRACTION);
            if departs <= u128::from(until) {
                return u64::try_from(departs).unwrap_or(AFTER_END);
            }
            left -= u128::from(until - from) << FRACTION;
            let before = service.per_byte;
            from = until;
            (service, until) = self.at(from);
            left = (left * u128::from(service.per_byte)).div_ceil(u128::from(before));
        }
    }

    /// The bytes that can be transmitted from `from` until `until`.
    pub(super) fn bytes(&self, mut from: u64, until: u64) -> f64 {
        let mut sum = 0.0;
        while from < until {
            let (service, end) = self.at(from);
            sum += service.bytes(end.min(until) - from);
            from = end;
        }
        sum
    }
}
