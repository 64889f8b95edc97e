//! Units as types: time in integer nanoseconds, windows in packets, rates in packets per second.
//! Every conversion between them is here and nowhere else.

use core::ops::{Add, AddAssign, Sub};

/// A congestion window or a number of packets, as the papers count them: real-valued.
pub type Packets = f64;

/// A point in time: nanoseconds since the driver's epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A span of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dur(u64);

/// A sending, arrival or service rate in packets per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Rate(f64);

const NANOS: f64 = 1e9;

impl Time {
    /// The driver's epoch.
    pub const ZERO: Time = Time(0);
    /// Later than any event.
    pub const NEVER: Time = Time(u64::MAX);

    /// A time from nanoseconds since the epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Time(nanos)
    }
    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Seconds since the epoch.
    pub fn as_secs(self) -> f64 {
        self.0 as f64 / NANOS
    }
    /// The time since `earlier`; zero when `earlier` is later.
    pub const fn since(self, earlier: Time) -> Dur {
        Dur(self.0.saturating_sub(earlier.0))
    }
}

impl Dur {
    /// No time at all.
    pub const ZERO: Dur = Dur(0);
    /// Longer than any run.
    pub const MAX: Dur = Dur(u64::MAX);

    /// A span from nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Dur(nanos)
    }
    /// A span from milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Dur(millis * 1_000_000)
    }
    /// A span from seconds, rounded to the nanosecond; negative and NaN become zero.
    pub fn from_secs(secs: f64) -> Self {
        Dur((secs * NANOS + 0.5) as u64)
    }
    /// Nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Seconds.
    pub fn as_secs(self) -> f64 {
        self.0 as f64 / NANOS
    }
    /// Whether the span is empty.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Rate {
    /// Nothing is sent.
    pub const ZERO: Rate = Rate(0.0);

    /// A rate from packets per second.
    pub const fn per_sec(packets: f64) -> Self {
        Rate(packets)
    }
    /// A rate from a packet-sending period.
    pub fn from_period(period: Dur) -> Self {
        Rate(NANOS / period.0 as f64)
    }
    /// `packets` in every `span`.
    pub fn over(packets: Packets, span: Dur) -> Self {
        Rate(packets * NANOS / span.0 as f64)
    }
    /// A rate from bits per second, for packets of `bytes`.
    pub fn from_bits(bits_per_sec: f64, bytes: u32) -> Self {
        Rate(bits_per_sec / (8.0 * f64::from(bytes)))
    }
    /// Packets per second.
    pub const fn as_per_sec(self) -> f64 {
        self.0
    }
    /// Bits per second, for packets of `bytes`.
    pub fn as_bits(self, bytes: u32) -> f64 {
        self.0 * 8.0 * f64::from(bytes)
    }
    /// The time between two packets; [`Dur::MAX`] at rate zero.
    pub fn period(self) -> Dur {
        if self.0 > 0.0 { Dur((NANOS / self.0 + 0.5) as u64) } else { Dur::MAX }
    }
    /// The packets sent in `span`.
    pub fn packets(self, span: Dur) -> Packets {
        self.0 * span.as_secs()
    }
}

impl Add<Dur> for Time {
    type Output = Time;
    fn add(self, span: Dur) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Dur> for Time {
    fn add_assign(&mut self, span: Dur) {
        *self = *self + span;
    }
}

impl Sub<Dur> for Time {
    type Output = Time;
    fn sub(self, span: Dur) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Add for Dur {
    type Output = Dur;
    fn add(self, other: Dur) -> Dur {
        Dur(self.0.saturating_add(other.0))
    }
}

impl Sub for Dur {
    type Output = Dur;
    fn sub(self, other: Dur) -> Dur {
        Dur(self.0.saturating_sub(other.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_the_inverse_of_its_rate() {
        let rate = Rate::from_period(Dur::from_millis(2));
        assert_eq!(rate.as_per_sec(), 500.0);
        assert_eq!(rate.period(), Dur::from_millis(2));
        assert_eq!(Rate::ZERO.period(), Dur::MAX);
    }

    #[test]
    fn bits_and_packets_agree() {
        let rate = Rate::from_bits(12e6, 1500);
        assert_eq!(rate.as_per_sec(), 1000.0);
        assert_eq!(rate.as_bits(1500), 12e6);
        assert_eq!(rate.packets(Dur::from_millis(10)), 10.0);
    }

    #[test]
    fn time_never_wraps() {
        assert_eq!(Time::NEVER + Dur::from_millis(1), Time::NEVER);
        assert_eq!(Time::ZERO.since(Time::from_nanos(5)), Dur::ZERO);
        assert_eq!(Dur::from_secs(-1.0), Dur::ZERO);
    }
}
