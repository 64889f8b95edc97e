use super::context;
use cwnd::laws::{Aimd, Binomial, Iiad, Sqrt};
use cwnd::{Signal, WindowLaw};

#[test]
fn iiad_gains_the_inverse_and_loses_a_constant() {
    let mut iiad = Iiad::new();
    assert_eq!(iiad.grow(10.0, 1.0, &context()), 10.0 + 1.0 / 100.0);
    assert_eq!(iiad.cut(10.0, Signal::Loss, &context()), 10.0 - 2.0 / 3.0);
}

#[test]
fn sqrt_gains_and_loses_by_the_root() {
    let mut law = Sqrt::new();
    // 16^(3/2) = 64 and 16^(1/2) = 4.
    assert_eq!(law.grow(16.0, 2.0, &context()), 16.0 + 2.0 / 64.0);
    assert_eq!(law.cut(16.0, Signal::Loss, &context()), 16.0 - 4.0 * (2.0 / 3.0));
}

#[test]
fn aimd_is_the_case_of_k_0_and_l_1() {
    let (mut binomial, mut aimd) = (Binomial::new(0.0, 1.0, 0.31, 0.125), Aimd::new(0.31, 0.125));
    assert_eq!(binomial.grow(7.0, 1.0, &context()), aimd.grow(7.0, 1.0, &context()));
    let why = Signal::Mark;
    assert_eq!(binomial.cut(7.0, why, &context()), aimd.cut(7.0, why, &context()));
}

#[test]
fn other_powers_go_through_the_logarithm() {
    let mut law = Binomial::new(2.0, 0.25, 1.0, 0.5);
    assert!((law.grow(3.0, 1.0, &context()) - (3.0 + 1.0 / 27.0)).abs() < 1e-12);
    assert!((law.cut(16.0, Signal::Loss, &context()) - 15.0).abs() < 1e-12);
}
