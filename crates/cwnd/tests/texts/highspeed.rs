use super::context;
use cwnd::laws::Highspeed;
use cwnd::{Signal, WindowLaw};

/// a(w) and b(w).
fn response(w: f64) -> (f64, f64) {
    let mut law = Highspeed::default();
    let grown = law.grow(w, w, &context());
    (grown - w, 1.0 - law.cut(w, Signal::Loss, &context()) / w)
}

/// The rows of RFC 3649's appendix B: the smallest window for each whole a(w), and b(w) there.
#[test]
fn agrees_with_the_table_of_the_rfc() {
    for (w, a, b) in [
        (118.0, 2.0, 0.44),
        (221.0, 3.0, 0.41),
        (347.0, 4.0, 0.38),
        (495.0, 5.0, 0.37),
        (1058.0, 8.0, 0.33),
    ] {
        let (increase, decrease) = response(w);
        assert!((increase / a - 1.0).abs() < 0.02, "a({w}) = {increase}");
        assert!((decrease - b).abs() < 0.006, "b({w}) = {decrease}");
    }
}

#[test]
fn is_reno_at_small_windows() {
    let mut law = Highspeed::default();
    assert_eq!(law.grow(38.0, 1.0, &context()), 38.0 + 1.0 / 38.0);
    assert_eq!(law.cut(38.0, Signal::Loss, &context()), 19.0);
}

/// Within a packet of the scaled window, where a(w) is not recomputed.
#[test]
fn rescaling_recomputes_the_increase() {
    let (mut law, mut other) = (Highspeed::default(), Highspeed::default());
    law.grow(50.0, 1.0, &context());
    law.rescale(0.99);
    other.grow(49.5, 1.0, &context());
    assert_eq!(law.grow(49.6, 1.0, &context()), other.grow(49.6, 1.0, &context()));
}

#[test]
fn the_ends_are_the_parameters() {
    assert!((response(83_000.0).1 - 0.1).abs() < 1e-12);
    assert!((response(1e7).1 - 0.1).abs() < 1e-12);
}
