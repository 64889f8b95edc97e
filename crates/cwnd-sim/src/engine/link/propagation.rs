//! Propagation whose delay varies, with jitter, aggregation of acknowledgements and reordering.

use super::profile::{self, Profile};
use crate::cast::whole;
use crate::clock::Clock;
use crate::engine::schedule::AFTER_END;
use crate::network::{self, Impairments};
use crate::packet::flags;
use crate::rng::Rng;

/// The propagation delay of a link. Packets arrive in the order of their departures, except late
/// ones.
#[derive(Clone)]
pub(super) struct Propagation {
    /// The delay, or the least one if it varies.
    least: u64,
    profile: Option<Profile>,
    jitter: Option<(Jitter, Rng)>,
    /// Packets without data are released at multiples of this time; 0 for at once.
    release: u64,
    late: Option<Late>,
    /// Arrival of the last packet that is not late.
    last: u64,
}

#[derive(Clone)]
struct Late {
    probability: f64,
    delay: u64,
    rng: Rng,
}

/// The distribution of a random delay, in ticks.
#[derive(Clone)]
enum Jitter {
    Uniform(u64),
    Wifi(WifiJitter),
}

/// The jitter of a Wi-Fi channel with hidden nodes, as in the tests of C4: `n1` intervals of 1 ms
/// for deferral, less a random part of one, and for a fraction of the packets `n2` intervals of 7.5
/// ms for retransmission. Both numbers have Poisson distributions, with means of 1 and 12.
#[derive(Clone)]
struct WifiJitter {
    millisecond: f64,
    /// Fraction of the packets that are retransmitted.
    fraction: f64,
}

impl WifiJitter {
    fn draw(&self, rng: &mut Rng) -> f64 {
        let n1 = poisson(rng, 1.0);
        let mut milliseconds = n1;
        if n1 >= 1.0 {
            milliseconds -= rng.uniform();
        }
        if rng.chance(self.fraction) {
            milliseconds += 7.5 * poisson(rng, 12.0);
        }
        milliseconds * self.millisecond
    }
}

/// Returns a Poisson-distributed number (Knuth's product of uniform numbers).
fn poisson(rng: &mut Rng, mean: f64) -> f64 {
    let least = libm::exp(-mean);
    let mut product = 1.0;
    let mut count = 0.0;
    loop {
        product *= rng.uniform();
        if product <= least {
            return count;
        }
        count += 1.0;
    }
}

impl Propagation {
    pub(super) fn new(
        link: &network::Link,
        impairments: &Impairments,
        clock: Clock,
        (index, seed): (usize, u64),
    ) -> Self {
        let ticks = |delay: cwnd::Dur| clock.ticks(delay.as_nanos());
        let rng = |name| Rng::new(seed, name, index as u64);
        let jitter = impairments.jitter.map(|jitter| {
            let jitter = match jitter {
                network::Jitter::Uniform(most) => Jitter::Uniform(ticks(most)),
                network::Jitter::Wifi(mean) => Jitter::Wifi(WifiJitter {
                    millisecond: clock.ticks_in(1e-3),
                    fraction: ((mean.as_secs() - 0.001) / 0.090).clamp(0.0, 1.0),
                }),
            };
            (jitter, rng("jitter"))
        });
        let late = impairments.reorder.filter(|_| impairments.reorders()).map(|reorder| Late {
            probability: reorder.probability,
            delay: ticks(reorder.delay),
            rng: rng("reorder"),
        });
        Propagation {
            least: ticks(link.least_delay()).min(AFTER_END),
            profile: profile::delay(link, impairments, clock, (index, seed)),
            jitter,
            release: ticks(impairments.ack_aggregation),
            late,
            last: 0,
        }
    }

    /// Whether every packet takes the same time.
    pub(super) fn is_constant(&self) -> bool {
        let Propagation { profile, jitter, release, late, .. } = self;
        profile.is_none() && jitter.is_none() && *release == 0 && late.is_none()
    }

    /// Takes over the state of the link before its delay changes.
    pub(super) fn resume(&mut self, before: Propagation) {
        (self.jitter, self.late, self.last) = (before.jitter, before.late, before.last);
    }

    /// The latest time at which a packet that has departed may arrive.
    pub(super) fn reach(&self) -> u64 {
        self.last + self.late.as_ref().map_or(0, |late| late.delay)
    }

    /// The arrival of a packet that departs at `departure`, and whether it is late.
    #[inline(always)]
    pub(super) fn arrival(&mut self, departure: u64, flags: u16) -> (u64, bool) {
        // At least the bound of the lookahead, whatever the rounding.
        let delay = self.profile.as_mut().map_or(0, |own| whole(own.at(departure))).max(self.least);
        let mut arrives = departure + delay;
        if let Some((jitter, rng)) = &mut self.jitter {
            arrives += match jitter {
                Jitter::Uniform(most) => rng.below(*most + 1),
                Jitter::Wifi(wifi) => whole(wifi.draw(rng)),
            };
        }
        arrives = arrives.max(self.last);
        if self.release > 0 && flags & flags::DATALESS != 0 {
            arrives = arrives.next_multiple_of(self.release);
        }
        self.last = arrives;
        if let Some(late) = &mut self.late
            && late.rng.chance(late.probability)
        {
            return (arrives + late.delay, true);
        }
        (arrives, false)
    }
}
