use super::context;
use cwnd::laws::Scalable;
use cwnd::{Signal, WindowLaw};

#[test]
fn scales_above_the_legacy_window_and_is_reno_below() {
    let mut law = Scalable::new(0.01, 0.125, 16.0);
    assert_eq!(law.grow(100.0, 3.0, &context()), 100.0 + 0.03);
    assert_eq!(law.cut(100.0, Signal::Loss, &context()), 87.5);
    assert_eq!(law.grow(16.0, 1.0, &context()), 16.0 + 1.0 / 16.0);
    assert_eq!(law.cut(16.0, Signal::Loss, &context()), 8.0);
}

/// From 7/8 w back to w at 1 % a round-trip time: ln(8/7) / ln(1.01) = 13.4, at any window.
#[test]
fn recovers_in_the_same_time_at_any_window() {
    for w in [100.0, 10_000.0] {
        let mut law = Scalable::new(0.01, 0.125, 16.0);
        let (mut now, mut rounds) = (law.cut(w, Signal::Loss, &context()), 0);
        while now < w {
            now = law.grow(now, now, &context());
            rounds += 1;
        }
        assert_eq!(rounds, 14);
    }
}
