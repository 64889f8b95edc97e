//! Loss of packets on a link, after the queue.

use super::profile::{self, Profile};
use crate::clock::Clock;
use crate::network::{self, GilbertElliott};
use crate::packet::flags;
use crate::rng::Rng;

/// Decides which packets are lost, at their arrival at the queue.
#[derive(Clone)]
pub(super) struct Loss {
    kind: Kind,
    of_acks: bool,
    rng: Rng,
    /// Beginnings and ends of blackouts, the next one last.
    blackouts: Vec<[u64; 2]>,
}

#[derive(Clone)]
enum Kind {
    Independent(f64),
    Varying(Profile),
    /// Changed during the run; whether packets draw also while the probability is zero.
    Changed(Profile, bool),
    GilbertElliott(GilbertElliott, bool),
}

impl Loss {
    /// Returns the loss of link number `index`; `None` if the link loses no packet.
    pub(super) fn new(
        link: &network::Link,
        clock: Clock,
        index: usize,
        seed: u64,
    ) -> Option<Box<Self>> {
        let impairments = link.impairments.as_deref();
        let varying = impairments.and_then(|own| profile::loss(link.loss, &own.changes, clock));
        let changed = impairments.and_then(|own| profile::loss(link.loss, &own.altered, clock));
        let draws = link.loss > 0.0 || impairments.is_some_and(|own| !own.blackouts.is_empty());
        let kind = match (impairments.and_then(|own| own.burst_loss), varying, changed) {
            (Some(bursts), ..) => Kind::GilbertElliott(bursts, false),
            (None, Some(profile), _) => Kind::Varying(profile),
            (None, None, Some(profile)) => Kind::Changed(profile, draws),
            (None, None, None) => Kind::Independent(link.loss),
        };
        let ticks = |nanos| clock.ticks(nanos);
        let blackouts = impairments.map_or(&[][..], |own| &own.blackouts).iter().rev();
        let blackouts: Vec<_> = blackouts
            .map(|dark| [dark.at.as_nanos(), (dark.at + dark.length).as_nanos()].map(ticks))
            .collect();
        let none = matches!(kind, Kind::Independent(probability) if probability <= 0.0);
        (!none || !blackouts.is_empty()).then(|| {
            let rng = Rng::new(seed, "loss", index as u64);
            Box::new(Loss { kind, of_acks: link.loss_of_acks, rng, blackouts })
        })
    }

    /// Takes over the state of the link before its loss changes.
    pub(super) fn resume(&mut self, before: Loss) {
        if matches!(self.kind, Kind::Changed(..)) {
            self.rng = before.rng;
        } else {
            *self = before;
        }
    }

    /// Whether a packet that reaches the queue at `now` is lost on the link.
    pub(super) fn loses(&mut self, now: u64, flags: u16) -> bool {
        while self.blackouts.last().is_some_and(|&[_, end]| end <= now) {
            self.blackouts.pop();
        }
        if self.blackouts.last().is_some_and(|&[start, _]| start <= now) {
            return true;
        }
        if flags & flags::DATALESS != 0 && !self.of_acks {
            return false;
        }
        let probability = match &mut self.kind {
            Kind::Independent(probability) => *probability,
            Kind::Varying(profile) => profile.at(now),
            Kind::Changed(profile, draws) => {
                let probability = profile.at(now);
                // A link without loss draws no numbers before its loss changes.
                if probability <= 0.0 && !*draws {
                    return false;
                }
                probability
            }
            Kind::GilbertElliott(chain, bad) => {
                // The state of a packet is that before its transition.
                let lost = self.rng.chance(if *bad { chain.bad } else { chain.good });
                *bad ^= self.rng.chance(if *bad { chain.r } else { chain.p });
                return lost;
            }
        };
        self.rng.chance(probability)
    }
}
