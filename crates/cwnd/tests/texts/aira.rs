use super::{context, gauge};
use cwnd::laws::AnyLaw;
use cwnd::{Law, MakeController, Round, Settings, Signal, Spec, WindowLaw};

fn aira(parameters: &str) -> AnyLaw {
    let spec = Spec::parse(&format!("aira({parameters})")).unwrap();
    match spec.law(&Settings::default()) {
        Some(Law::Window(law)) => law,
        other => panic!("{other:?}"),
    }
}

fn unbounded() -> AnyLaw {
    aira("bound=0, mail=off")
}

/// A round of `sent` packets, of which `lost` were lost.
fn lose(law: &mut AnyLaw, lost: u64, sent: u64) {
    let mut round = Round::default();
    (round.lost, round.sent) = (lost, sent);
    law.round(&round, &context());
}

fn a(law: &AnyLaw) -> f64 {
    gauge(law, "a")
}

/// Whether `a` is reset at the window `w`.
fn resets(law: &AnyLaw, w: f64) -> bool {
    let mut law = law.clone();
    lose(&mut law, 9, 10);
    law.grow(w, 1.0, &context());
    a(&law) == 1.0
}

#[test]
fn the_peak_is_the_last_the_mean_or_the_largest() {
    for (peak, expected) in [("last", 20.0), ("mean", 100.0 / 3.0), ("largest", 40.0)] {
        let mut law = aira(&format!("peak={peak}"));
        // The first is older than the last 30.
        let peaks = [40.0, 40.0, 20.0].into_iter().cycle().take(30);
        for w in [100.0].into_iter().chain(peaks) {
            law.cut(w, Signal::Loss, &context());
        }
        law.cut(500.0, Signal::Timeout, &context());
        for factor in [1.0, 0.25] {
            let at = factor * 1.5 * expected;
            assert!(!resets(&law, at - 1e-9) && resets(&law, at + 1e-9), "{peak} {factor}");
            law.rescale(0.25);
        }
        // The peaks are of the new size too: 29 of them and 18.
        law.rescale(16.0);
        law.cut(18.0, Signal::Loss, &context());
        let expected = match peak {
            "last" => 18.0,
            "mean" => (100.0 / 3.0 * 30.0 - 40.0 + 18.0) / 30.0,
            _ => 40.0,
        };
        let at = 1.5 * expected;
        assert!(!resets(&law, at - 1e-9) && resets(&law, at + 1e-9), "{peak}");
    }
}

#[test]
fn more_loss_lowers_and_less_loss_raises_the_increase() {
    let mut law = unbounded();
    lose(&mut law, 1, 10);
    assert_eq!(a(&law), 0.9);
    lose(&mut law, 2, 8);
    assert_eq!(a(&law), 0.9 * 0.75);
    lose(&mut law, 1, 8);
    assert_eq!(a(&law), 0.9 * 0.75 * 1.125);
    // The same loss rate changes nothing.
    lose(&mut law, 2, 16);
    assert_eq!(a(&law), 0.9 * 0.75 * 1.125);
    assert_eq!(law.grow(10.0, 1.0, &context()), 10.0 + a(&law) / 10.0);
}

#[test]
fn the_bound_and_mail_hold_it_up() {
    let mut law = aira("mail=off");
    lose(&mut law, 99, 100);
    assert_eq!(a(&law), 0.1);
    // Eq. 23: 0.991 after one round, 0.1 after a hundred.
    let mut law = aira("");
    lose(&mut law, 99, 100);
    assert!((a(&law) - 0.991).abs() < 1e-12);
    for lost in (1..100).map(|i| 99 + i % 2) {
        lose(&mut law, lost, 100);
    }
    assert!((a(&law) - 0.1).abs() < 1e-12, "{}", a(&law));
}

#[test]
fn it_resets_at_three_halves_of_the_window_at_the_last_loss() {
    let mut law = unbounded();
    assert_eq!(law.cut(20.0, Signal::Loss, &context()), 10.0);
    lose(&mut law, 1, 2);
    law.grow(29.9, 1.0, &context());
    assert_eq!(a(&law), 0.5);
    law.grow(30.0, 1.0, &context());
    assert_eq!(a(&law), 1.0);
}

#[test]
fn the_free_choices_move_mail_and_the_reset() {
    let mut law = aira("rounds=10, ratio=1.25");
    law.cut(20.0, Signal::Loss, &context());
    lose(&mut law, 99, 100);
    assert!((a(&law) - 0.91).abs() < 1e-12);
    law.grow(24.9, 1.0, &context());
    assert!((a(&law) - 0.91).abs() < 1e-12);
    law.grow(25.0, 1.0, &context());
    assert_eq!(a(&law), 1.0);
}

#[test]
fn rescaling_moves_the_window_of_the_reset() {
    let mut law = unbounded();
    law.cut(20.0, Signal::Loss, &context());
    lose(&mut law, 1, 2);
    law.rescale(2.0);
    assert_eq!(law.grow(59.9, 1.0, &context()), 59.9 + 0.5 / 59.9);
    assert_eq!(law.grow(60.0, 1.0, &context()), 60.0 + 1.0 / 60.0);
}

#[test]
fn every_rule_can_be_switched_off() {
    let mut law = aira("bound=0, mail=off, reset=off, increase=off, decrease=off");
    law.cut(2.0, Signal::Loss, &context());
    for lost in [5, 1, 7] {
        lose(&mut law, lost, 10);
        assert_eq!(a(&law), 1.0);
    }
    let mut law = aira("bound=0, mail=off, reset=off, increase=off");
    law.cut(2.0, Signal::Loss, &context());
    lose(&mut law, 1, 2);
    lose(&mut law, 1, 4);
    law.grow(100.0, 1.0, &context());
    assert_eq!(a(&law), 0.5);
}
