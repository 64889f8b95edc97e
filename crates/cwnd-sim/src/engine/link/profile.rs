//! Quantities of a link that vary: piecewise linear functions of time, generated in order of time.
//!
//! A profile depends on its parameters and on its own random stream only. The departures of a FIFO
//! link are therefore known at the arrivals, as with a constant rate.

use super::constant::Steps;
use crate::cast::whole;
use crate::clock::Clock;
use crate::network::{self, Cellular, Change, Impairments, Leo, Model, OPPORTUNITY, Trace};
use crate::rng::Rng;
use std::sync::Arc;

/// A linear piece of a function.
#[derive(Clone, Copy, Debug)]
struct Segment {
    from: u64,
    /// The end, which the next segment contains.
    until: u64,
    /// Value at `from`.
    value: f64,
    /// Change of the value per tick.
    slope: f64,
}

impl Segment {
    fn constant(from: u64, until: u64, value: f64) -> Self {
        Segment { from, until, value, slope: 0.0 }
    }

    fn at(&self, time: u64) -> f64 {
        self.value + self.slope * (time - self.from) as f64
    }
}

/// A function of time whose arguments do not decrease.
#[derive(Clone)]
pub(super) struct Profile {
    current: Segment,
    source: Source,
}

/// What generates the segments of a profile.
#[derive(Clone)]
enum Source {
    /// The remaining segments, the next one last.
    Changes(Vec<Segment>),
    Cellular(Box<CellularProcess>),
    Leo(Box<LeoProcess>),
    /// Values that repeat, each for as many ticks.
    Table {
        values: Arc<[u32]>,
        unit: f64,
        interval: u64,
        next: usize,
    },
}

impl Profile {
    fn new(mut source: Source) -> Self {
        let current = source.next(0);
        Profile { current, source }
    }

    /// Returns the function with the value `initial` and the changes that `value` selects.
    fn of_changes(
        initial: f64,
        changes: &[Change],
        clock: Clock,
        value: impl Fn(&Change) -> Option<f64>,
    ) -> Self {
        let mut segments = vec![Segment::constant(0, u64::MAX, initial)];
        for change in changes {
            let Some(target) = value(change) else { continue };
            let at = clock.ticks(change.at.as_nanos());
            // A change that begins during a transition starts from the value reached.
            while segments.last().is_some_and(|last| last.from >= at && segments.len() > 1) {
                segments.pop();
            }
            let Some(last) = segments.last_mut() else { continue };
            let reached = last.at(at.max(last.from));
            last.until = at;
            let over = clock.ticks(change.over.as_nanos());
            if over > 0 {
                let slope = (target - reached) / over as f64;
                segments.push(Segment { from: at, until: at + over, value: reached, slope });
            }
            segments.push(Segment::constant(at + over, u64::MAX, target));
        }
        segments.reverse();
        Profile::new(Source::Changes(segments))
    }

    /// Advances to the segment of `time`.
    fn advance(&mut self, time: u64) {
        while self.current.until <= time {
            self.current = self.source.next(self.current.until);
        }
    }

    /// The value at `time`.
    pub(super) fn at(&mut self, time: u64) -> f64 {
        self.advance(time);
        self.current.at(time)
    }

    /// The time at which the integral from `start` reaches `amount`, rounded up to a tick.
    fn reaches(&mut self, start: u64, mut amount: f64) -> u64 {
        let mut time = start;
        loop {
            self.advance(time);
            let Segment { until, slope, .. } = self.current;
            let value = self.current.at(time);
            if until == u64::MAX && value <= 0.0 {
                return until;
            }
            let span = (until - time) as f64;
            let all = span * (value + slope * span / 2.0);
            if all >= amount {
                // The smaller root of slope/2 x² + value x = amount, without cancellation.
                let root = (value * value + 2.0 * slope * amount).max(0.0).sqrt();
                let passed = whole((2.0 * amount / (value + root)).ceil());
                return time.saturating_add(passed).min(until);
            }
            amount -= all;
            time = until;
        }
    }

    /// The integral from `from` to `until`.
    fn integral(&mut self, from: u64, until: u64) -> f64 {
        let mut time = from;
        let mut sum = 0.0;
        while time < until {
            self.advance(time);
            let end = self.current.until.min(until);
            let middle = (self.current.at(time) + self.current.at(end)) / 2.0;
            sum += middle * (end - time) as f64;
            time = end;
        }
        sum
    }
}

impl Source {
    /// Returns the segment from `from` on.
    fn next(&mut self, from: u64) -> Segment {
        match self {
            Source::Changes(segments) => {
                segments.pop().unwrap_or(Segment::constant(from, u64::MAX, 0.0))
            }
            Source::Cellular(process) => process.next(from),
            Source::Leo(process) => process.next(from),
            Source::Table { values, unit, interval, next } => {
                let value = f64::from(values[*next]) * *unit;
                *next = (*next + 1) % values.len();
                Segment::constant(from, from + *interval, value)
            }
        }
    }
}

/// The rate process of Sprout: its receiver has the constants of the defaults.
#[derive(Clone)]
struct CellularProcess {
    rng: Rng,
    rate: f64,
    max: f64,
    /// Standard deviation of a step.
    deviation: f64,
    /// Probability that an outage ends in a step.
    escape: f64,
    step: u64,
}

impl CellularProcess {
    fn new(cellular: &Cellular, clock: Clock, mut rng: Rng) -> Self {
        let bytes = 1.0 / clock.ticks_in(8.0);
        let (step, max) = (cellular.step.as_secs(), cellular.max * bytes);
        CellularProcess {
            rate: rng.range(0.0, max),
            rng,
            max,
            deviation: cellular.sigma * bytes * step.sqrt(),
            escape: 1.0 - libm::exp(-step / cellular.outage.as_secs()),
            step: clock.ticks(cellular.step.as_nanos()),
        }
    }

    fn next(&mut self, from: u64) -> Segment {
        let segment = Segment::constant(from, from + self.step, self.rate);
        if self.rate > 0.0 || self.rng.chance(self.escape) {
            let change = self.deviation * self.rng.normal();
            let change = if self.rate > 0.0 { change } else { change.abs() };
            self.rate = (self.rate + change).clamp(0.0, self.max);
        }
        segment
    }
}

/// A quantity of a satellite link: drawn anew at each reconfiguration, after an outage if the
/// quantity is the rate.
#[derive(Clone)]
struct LeoProcess {
    rng: Rng,
    range: [f64; 2],
    interval: u64,
    outage: u64,
}

impl LeoProcess {
    fn new(leo: &Leo, range: [f64; 2], outage: u64, clock: Clock, rng: Rng) -> Self {
        let [interval, outage] = [leo.interval.as_nanos(), outage].map(|nanos| clock.ticks(nanos));
        LeoProcess { rng, range, interval, outage }
    }

    fn next(&mut self, from: u64) -> Segment {
        let begun = from % self.interval;
        if begun == 0 && from > 0 && self.outage > 0 {
            return Segment::constant(from, from + self.outage, 0.0);
        }
        let [low, high] = self.range;
        Segment::constant(from, from - begun + self.interval, self.rng.range(low, high))
    }
}

/// The delivery opportunities of a trace.
#[derive(Clone, Default)]
pub(super) struct Opportunities {
    times: Arc<[u32]>,
    millisecond: u64,
    next: usize,
    /// Beginning of the current repetition.
    base: u64,
    /// Time of the last departure.
    departed: u64,
    /// Time of the last opportunity that was used.
    last: u64,
    /// Bytes left of it, which packets that wait at this time may use.
    left: u64,
    /// Bytes of the last packet in opportunities at this time.
    used: u64,
}

impl Opportunities {
    fn new(trace: &Trace, clock: Clock) -> Self {
        Opportunities {
            times: trace.opportunities.clone(),
            millisecond: clock.ticks(1_000_000),
            ..Opportunities::default()
        }
    }

    /// Takes the next opportunity and returns its time.
    fn take(&mut self) -> u64 {
        let at = self.base + u64::from(self.times[self.next]) * self.millisecond;
        self.next += 1;
        if self.next == self.times.len() {
            self.next = 0;
            self.base = at;
        }
        at
    }

    /// The departure of a packet that is ready at `start`. It takes at least a tick.
    fn departure(&mut self, start: u64, size: u64) -> u64 {
        let mut from = self.last;
        if start > self.departed {
            (from, self.left) = (start, 0);
        }
        let mut needed = size;
        self.used = 0;
        while self.left < needed {
            needed -= self.left;
            self.used += self.left;
            let before = self.last;
            self.left = OPPORTUNITY;
            self.last = self.take();
            while self.last < from {
                self.last = self.take();
            }
            if self.last > before {
                self.used = 0;
            }
        }
        self.left -= needed;
        self.used += needed;
        self.departed = self.last.max(start + 1);
        self.departed
    }

    /// Bytes that opportunities from `from` until `until` deliver.
    fn bytes(&mut self, from: u64, until: u64) -> f64 {
        let mut count = 0u64;
        // The opportunity that is not counted is the first one of the next call.
        loop {
            let (next, base) = (self.next, self.base);
            let at = self.take();
            if at >= until {
                (self.next, self.base) = (next, base);
                return (count * OPPORTUNITY) as f64;
            }
            count += u64::from(at >= from);
        }
    }
}

/// A packet whose departure is known.
#[derive(Clone, Copy, Default)]
pub(super) struct Planned {
    /// Time of arrival at the queue.
    pub arrived: u64,
    /// Beginning and end of its transmission.
    pub start: u64,
    pub departs: u64,
    pub size: u64,
    /// Its bytes in the last opportunities that it uses.
    pub last: u64,
    /// Bytes of the shaper's tokens after its own.
    pub tokens: f64,
}

/// A transmitter whose rate varies.
#[derive(Clone)]
pub(super) enum Rate {
    /// In bytes per tick.
    Profile(Profile),
    Opportunities(Opportunities),
    /// Constant between the changes of a run.
    Steps(Steps),
}

impl Rate {
    /// Returns the transmitter of link number `index`; `None` if its rate is constant.
    pub(super) fn new(
        link: &network::Link,
        impairments: &Impairments,
        clock: Clock,
        (index, seed): (usize, u64),
    ) -> Option<Self> {
        let bytes = 1.0 / clock.ticks_in(8.0);
        let rng = || Rng::new(seed, "rate", index as u64);
        Some(match &impairments.model {
            Some(Model::Trace(trace)) => Rate::Opportunities(Opportunities::new(trace, clock)),
            Some(Model::Cellular(cellular)) => {
                let process = CellularProcess::new(cellular, clock, rng());
                Rate::Profile(Profile::new(Source::Cellular(Box::new(process))))
            }
            Some(Model::Leo(leo)) => {
                let range = leo.rate.map(|rate| rate * bytes);
                let process = LeoProcess::new(leo, range, leo.outage.as_nanos(), clock, rng());
                Rate::Profile(Profile::new(Source::Leo(Box::new(process))))
            }
            None if impairments.varies_rate() => {
                let rate = |change: &Change| change.rate.map(|rate| rate * bytes);
                let initial = link.rate? * bytes;
                Rate::Profile(Profile::of_changes(initial, &impairments.changes, clock, rate))
            }
            None => Rate::Steps(Steps::new(link.rate, &impairments.altered, clock)?),
        })
    }

    /// The departure of a packet of `size` bytes whose transmission starts at `start`, at least a
    /// tick later.
    pub(super) fn departure(&mut self, start: u64, size: u64) -> u64 {
        match self {
            Rate::Profile(profile) => profile.reaches(start, size as f64).max(start + 1),
            Rate::Opportunities(opportunities) => opportunities.departure(start, size),
            Rate::Steps(steps) => steps.departure(start, size),
        }
    }

    /// Whether the rate is constant between the changes of a run.
    pub(super) fn is_stepped(&self) -> bool {
        matches!(self, Rate::Steps(_))
    }

    /// The bytes of the last packet in the last opportunities that it used.
    pub(super) fn last(&self) -> u64 {
        match self {
            Rate::Profile(_) | Rate::Steps(_) => 0,
            Rate::Opportunities(opportunities) => opportunities.used,
        }
    }

    /// The bytes left at `now` of the last packet that started before.
    pub(super) fn left(&mut self, now: u64, packet: &Planned) -> f64 {
        match self {
            Rate::Profile(_) | Rate::Steps(_) if packet.departs <= now => 0.0,
            Rate::Steps(steps) => steps.bytes(now, packet.departs),
            Rate::Profile(profile) => packet.size as f64 - profile.integral(packet.start, now),
            // Opportunities at `now` are those of the time from `now` on.
            Rate::Opportunities(_) if packet.departs < now => 0.0,
            Rate::Opportunities(opportunities) => {
                opportunities.bytes(now, packet.departs) + packet.last as f64
            }
        }
    }

    /// The bytes that can be transmitted from `from` until `until`. Times do not decrease.
    fn bytes(&mut self, from: u64, until: u64) -> f64 {
        match self {
            Rate::Profile(profile) => profile.integral(from, until),
            Rate::Opportunities(opportunities) => opportunities.bytes(from, until),
            Rate::Steps(steps) => steps.bytes(from, until),
        }
    }
}

/// Returns the propagation delay in ticks of link number `index`; `None` if it is constant.
pub(super) fn delay(
    link: &network::Link,
    impairments: &Impairments,
    clock: Clock,
    (index, seed): (usize, u64),
) -> Option<Profile> {
    let ticks = |delay: cwnd::Dur| clock.ticks(delay.as_nanos()) as f64;
    match &impairments.model {
        Some(Model::Leo(leo)) => {
            let rng = Rng::new(seed, "delay", index as u64);
            let process = LeoProcess::new(leo, leo.delay.map(ticks), 0, clock, rng);
            Some(Profile::new(Source::Leo(Box::new(process))))
        }
        Some(Model::Trace(trace)) if !trace.delays.is_empty() => {
            Some(Profile::new(Source::Table {
                values: trace.delays.clone(),
                unit: clock.ticks(1_000_000) as f64,
                interval: clock.ticks(trace.interval.as_nanos()),
                next: 0,
            }))
        }
        _ => {
            // They have no delays in common.
            let changes = [&*impairments.changes, &impairments.altered].concat();
            let varies = changes.iter().any(|change| change.delay.is_some());
            let initial = ticks(link.delay);
            varies.then(|| {
                Profile::of_changes(initial, &changes, clock, |change| change.delay.map(ticks))
            })
        }
    }
}

/// Returns the probability of independent loss; `None` if it is constant.
pub(super) fn loss(initial: f64, changes: &[Change], clock: Clock) -> Option<Profile> {
    let varies = changes.iter().any(|change| change.loss.is_some());
    varies.then(|| Profile::of_changes(initial, changes, clock, |change| change.loss))
}

/// The capacity that link number `index` offers from `from` until `until`: the mean in bits per
/// second without a shaper; `None` for an infinite rate. If the rate varies, also the mean of each
/// sampling interval, which a shaper limits to the token rate.
pub(crate) fn capacity(
    link: &network::Link,
    clock: Clock,
    place: (usize, u64),
    [from, until]: [u64; 2],
    samples: &[u64],
) -> (Option<f64>, Vec<f64>) {
    let impairments = link.impairments.as_deref();
    let limit = impairments.and_then(|own| own.shaper).map_or(f64::INFINITY, |own| own.rate);
    let varying = || impairments.and_then(|own| Rate::new(link, own, clock, place));
    let mean = |rate: &mut Rate, from, until| {
        rate.bytes(from, until) * clock.ticks_in(8.0) / (until - from) as f64
    };
    let Some(mut whole) = varying() else { return (link.rate, Vec::new()) };
    let mut rate = whole.clone();
    let ends = samples.iter().skip(1).copied().chain([until]);
    let series =
        samples.iter().zip(ends).map(|(&from, until)| mean(&mut rate, from, until).min(limit));
    (Some(mean(&mut whole, from, until)), series.collect())
}
