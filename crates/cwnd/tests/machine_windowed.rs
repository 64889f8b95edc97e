//! The window machine: rounds.

use cwnd::{
    Acked, Context, Controller, Event, Lost, Round, Settings, Signal, Time, WindowLaw, Windowed,
};

/// A law that records its rounds: packets sent and lost, and milliseconds.
#[derive(Clone, Debug, Default)]
struct Rounds {
    rounds: Vec<(u64, u64, u64)>,
    timeouts_continue: bool,
}

impl WindowLaw for Rounds {
    fn grow(&mut self, w: f64, acked: f64, _: &Context) -> f64 {
        w + acked / w
    }
    fn cut(&mut self, w: f64, _: Signal, _: &Context) -> f64 {
        w / 2.0
    }
    fn round(&mut self, round: &Round, _: &Context) {
        self.rounds.push((round.sent, round.lost, round.took.as_nanos() / 1_000_000));
    }
    fn timeout_ends_round(&self) -> bool {
        !self.timeouts_continue
    }
}

/// The losses of a round stay with the packets of that round, whatever happens to its repair.
#[test]
fn a_timeout_in_recovery_does_not_mix_two_rounds() {
    let at = |millis: u64| Time::from_nanos(millis * 1_000_000);
    let lost = |packets, sent| Event::Lost(Lost::new(packets, at(10), sent));
    let mut machine = Windowed::new(Rounds::default(), &Settings::default());
    machine.on(at(20), &lost(3, 100));
    machine.on(at(21), &lost(1, 101));
    assert!(machine.law().rounds.is_empty());
    // The repair fails: the round ends with what it had, and the timeout begins no other.
    machine.on(at(400), &Event::Timeout { sent: 102 });
    assert_eq!(machine.law().rounds, [(100, 4, 20)]);
    // The probe is lost as well.
    machine.on(at(900), &Event::Timeout { sent: 103 });
    assert_eq!(machine.law().rounds, [(100, 4, 20)]);
    machine.on(at(950), &Event::Acked(Acked::new(4, at(900))));
    // A timeout without a loss report ends a round, in which at least one packet was lost.
    machine.on(at(2000), &Event::Timeout { sent: 143 });
    assert_eq!(machine.law().rounds, [(100, 4, 20), (43, 1, 1980)]);
}

/// A law can let a round continue after a timeout: the lost packet counts in that round.
#[test]
fn a_round_continues_after_a_timeout_if_the_law_says_so() {
    let at = |millis: u64| Time::from_nanos(millis * 1_000_000);
    let law = Rounds { timeouts_continue: true, ..Rounds::default() };
    let mut machine = Windowed::new(law, &Settings::default());
    machine.on(at(400), &Event::Timeout { sent: 60 });
    assert!(machine.law().rounds.is_empty());
    machine.on(at(900), &Event::Lost(Lost::new(2, at(800), 100)));
    machine.on(at(1000), &Event::Recovered);
    assert_eq!(machine.law().rounds, [(100, 3, 900)]);
    // A recovery that fails closes its own round.
    machine.on(at(1500), &Event::Lost(Lost::new(1, at(1400), 130)));
    machine.on(at(2000), &Event::Timeout { sent: 135 });
    assert_eq!(machine.law().rounds, [(100, 3, 900), (30, 1, 600)]);
}
