use super::{context, gauge};
use cwnd::laws::{Simd, SimdReset};
use cwnd::{Signal, WindowLaw};

/// The α of Eq. 3 for a window of `w_max` before the last decrease.
fn alpha(beta: f64, w_max: f64) -> f64 {
    3.0 * beta.sqrt() / ((1.0 - 2.0 * beta / 3.0) * (2.0 * w_max).sqrt())
}

/// For beta = 3/8 and w_max = 32: 3 sqrt(3/8) / ((1 - 1/4) sqrt(64)) = sqrt(3/8) / 2.
fn after_a_loss_at_32() -> (Simd, f64) {
    let mut law = Simd::new(0.375, SimdReset::Decrease);
    let w = law.cut(32.0, Signal::Loss, &context());
    assert_eq!(w, 20.0);
    law.enter(w, &context());
    (law, 0.375_f64.sqrt() / 2.0)
}

#[test]
fn alpha_follows_from_the_window_before_the_loss() {
    let (law, alpha) = after_a_loss_at_32();
    assert!((gauge(&law, "alpha") - alpha).abs() < 1e-15);
    assert_eq!(gauge(&law, "w0"), 20.0);
}

#[test]
fn the_first_ack_starts_the_square() {
    let (mut law, alpha) = after_a_loss_at_32();
    let first = law.grow(20.0, 1.0, &context());
    assert!((first - (20.0 + alpha * alpha / 80.0)).abs() < 1e-12);
    let second = law.grow(29.0, 2.0, &context());
    assert!((second - (29.0 + 2.0 * alpha * 3.0 / 29.0)).abs() < 1e-12);
}

/// Appendix B: w0 is the window of one packet, also when congestion avoidance begins again at half
/// of the window before the timeout.
#[test]
fn a_timeout_resets_w0_to_its_window() {
    for (reset, w0) in [(SimdReset::Decrease, 1.0), (SimdReset::Avoidance, 16.0)] {
        let mut law = Simd::new(0.375, reset);
        law.cut(32.0, Signal::Timeout, &context());
        law.enter(16.0, &context());
        assert_eq!((gauge(&law, "w0"), gauge(&law, "alpha")), (w0, alpha(0.375, 32.0)));
        // The next loss sets it to the window after the loss.
        let w = law.cut(24.0, Signal::Loss, &context());
        law.enter(w, &context());
        assert_eq!(gauge(&law, "w0"), 15.0);
    }
    let mut law = Simd::new(0.375, SimdReset::Decrease);
    law.cut(32.0, Signal::PersistentCongestion, &context());
    law.enter(16.0, &context());
    assert_eq!(gauge(&law, "w0"), 2.0);
}

/// Eq. 2, with as many ACKs in a round as the window has packets.
#[test]
fn grows_with_the_square_of_time() {
    let (mut law, alpha) = after_a_loss_at_32();
    let (mut w, mut t) = (20.0, 0.0);
    while t < 40.0 {
        t += 1.0 / w;
        w = law.grow(w, 1.0, &context());
    }
    let expected = 20.0 + alpha * alpha * t * t / 4.0;
    assert!((w - expected).abs() < 0.02 * expected, "{w} against {expected}");
}

/// Four times the packets: the same law after a loss at 128 packets, in recovery and after it.
#[test]
fn rescaling_is_the_same_law_at_scaled_windows() {
    let mut expected = Simd::new(0.375, SimdReset::Decrease);
    let w = expected.cut(128.0, Signal::Loss, &context());
    let mut in_recovery = Simd::new(0.375, SimdReset::Decrease);
    in_recovery.cut(32.0, Signal::Loss, &context());
    in_recovery.rescale(4.0);
    for law in [&mut expected, &mut in_recovery] {
        law.enter(w, &context());
    }
    assert_eq!(in_recovery, expected);
    let (mut law, _) = after_a_loss_at_32();
    law.rescale(4.0);
    assert_eq!(gauge(&law, "w0"), gauge(&expected, "w0"));
    assert!((gauge(&law, "alpha") - gauge(&expected, "alpha")).abs() < 1e-15);
}

#[test]
fn slow_start_without_a_loss_sets_both_windows() {
    let mut law = Simd::new(0.5, SimdReset::Decrease);
    law.enter(16.0, &context());
    assert_eq!(gauge(&law, "w0"), 16.0);
    assert_eq!(gauge(&law, "alpha"), alpha(0.5, 32.0));
}
