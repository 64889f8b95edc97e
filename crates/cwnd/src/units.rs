//! Units as types: time in integer nanoseconds, windows in packets, rates in packets per second.
//! All conversions between units are here.

use core::ops::{Add, AddAssign, Sub};
use core::time::Duration;

/// A number of packets, real-valued: the unit of congestion windows in the papers and RFCs (there
/// often named segments or SMSS).
///
/// Laws compute with plain `f64` packets, as their equations do; this type is what a driver sees.
///
/// ```
/// use cwnd::Packets;
///
/// let window = Packets::from_bytes(15_000, 1500);
/// assert_eq!(window, Packets::new(10.0));
/// assert_eq!(window.as_bytes(1500), 15_000);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Packets(f64);

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

/// Converts a count to floating point, rounding to nearest. Processors convert signed numbers in one
/// instruction; the other conversion is a function, or compilers would use it for all numbers.
#[inline]
pub(crate) fn to_f64(count: u64) -> f64 {
    #[cold]
    #[inline(never)]
    fn large(count: u64) -> f64 {
        count as f64
    }
    i64::try_from(count).map_or_else(|_| large(count), |count| count as f64)
}

impl Packets {
    /// No packets.
    pub const ZERO: Packets = Packets(0.0);
    /// No bound.
    pub const INFINITY: Packets = Packets(f64::INFINITY);

    /// A number of packets.
    pub const fn new(packets: f64) -> Self {
        Packets(packets)
    }
    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }
    /// The packets in `bytes`, for packets of `packet` bytes.
    pub fn from_bytes(bytes: u64, packet: u32) -> Self {
        Packets(bytes as f64 / f64::from(packet))
    }
    /// The bytes of these packets, for packets of `packet` bytes: rounded down, 0 for negative
    /// numbers and NaN, `u64::MAX` for numbers too large.
    pub fn as_bytes(self, packet: u32) -> u64 {
        (self.0 * f64::from(packet)) as u64
    }
}

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
        to_f64(self.0) / NANOS
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
        Dur(millis.saturating_mul(1_000_000))
    }
    /// A span from microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Dur(micros.saturating_mul(1_000))
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
        to_f64(self.0) / NANOS
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
    pub fn over(packets: f64, span: Dur) -> Self {
        Rate(packets * NANOS / to_f64(span.0))
    }
    /// A rate from bytes per second, for packets of `packet` bytes.
    pub fn from_bytes(bytes_per_sec: f64, packet: u32) -> Self {
        Rate(bytes_per_sec / f64::from(packet))
    }
    /// Bytes per second, for packets of `packet` bytes.
    pub fn as_bytes(self, packet: u32) -> f64 {
        self.0 * f64::from(packet)
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
    /// The time that `packets` take; [`Dur::MAX`] at rate zero.
    pub fn time_for(self, packets: f64) -> Dur {
        if self.0 > 0.0 { Dur((packets * NANOS / self.0 + 0.5) as u64) } else { Dur::MAX }
    }
    /// The packets sent in `span`.
    pub fn packets(self, span: Dur) -> f64 {
        self.0 * span.as_secs()
    }
}

impl From<Duration> for Dur {
    /// Saturates at [`Dur::MAX`], 584 years.
    fn from(span: Duration) -> Self {
        Dur(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Dur> for Duration {
    fn from(span: Dur) -> Self {
        Duration::from_nanos(span.0)
    }
}

#[cfg(feature = "std")]
impl Time {
    /// The time of `at` for a driver whose epoch is the instant `epoch`; zero for an earlier `at`.
    ///
    /// ```
    /// use cwnd::{Dur, Time};
    /// use std::time::{Duration, Instant};
    ///
    /// let epoch = Instant::now();
    /// let later = epoch + Duration::from_millis(20);
    /// assert_eq!(Time::from_instant(later, epoch), Time::ZERO + Dur::from_millis(20));
    /// ```
    pub fn from_instant(at: std::time::Instant, epoch: std::time::Instant) -> Self {
        Time::ZERO + at.saturating_duration_since(epoch).into()
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
    fn windows_convert_to_bytes_and_back() {
        assert_eq!(Packets::from_bytes(18_000, 1200).get(), 15.0);
        assert_eq!(Packets::new(2.5).as_bytes(1000), 2500);
        assert_eq!(Packets::new(-1.0).as_bytes(1000), 0);
        assert_eq!(Packets::INFINITY.as_bytes(1000), u64::MAX);
        assert_eq!(Rate::from_bytes(3e6, 1500).as_per_sec(), 2000.0);
        assert_eq!(Rate::per_sec(2000.0).as_bytes(1500), 3e6);
    }

    #[test]
    fn durations_convert_and_saturate() {
        assert_eq!(Dur::from(Duration::from_micros(1500)), Dur::from_micros(1500));
        assert_eq!(Duration::from(Dur::from_millis(3)), Duration::from_millis(3));
        assert_eq!(Dur::from(Duration::MAX), Dur::MAX);
    }

    #[test]
    fn time_never_wraps() {
        assert_eq!(Time::NEVER + Dur::from_millis(1), Time::NEVER);
        assert_eq!(Time::ZERO.since(Time::from_nanos(5)), Dur::ZERO);
        assert_eq!(Dur::from_secs(-1.0), Dur::ZERO);
    }
}
