use super::{context, gauge};
use cwnd::laws::Bic;
use cwnd::{Signal, WindowLaw};

#[test]
fn it_halves_the_way_to_the_old_maximum() {
    let mut law = Bic::default();
    assert_eq!(law.cut(400.0, Signal::Loss, &context()), 350.0);
    // Half of the way is 25; at 100 packets below it would be 50, more than smax.
    assert_eq!(law.grow(350.0, 1.0, &context()), 350.0 + 25.0 / 350.0);
    assert_eq!(law.grow(300.0, 1.0, &context()), 300.0 + 32.0 / 300.0);
    assert_eq!(law.grow(399.999, 1.0, &context()), 399.999 + 0.01 / 399.999);
}

#[test]
fn past_the_maximum_it_doubles_its_steps() {
    let mut law = Bic::default();
    law.cut(400.0, Signal::Loss, &context());
    let steps = [(400.0, 1.0), (400.5, 1.0), (401.0, 2.0), (403.0, 4.0), (407.0, 8.0)];
    for (w, step) in steps {
        assert_eq!(law.grow(w, 1.0, &context()), w + step / w);
    }
    for (w, step) in [(415.0, 16.0), (431.0, 32.0), (463.0, 32.0)] {
        assert_eq!(law.grow(w, 1.0, &context()), w + step / w);
    }
}

#[test]
fn a_loss_below_the_old_maximum_lowers_the_target() {
    let mut law = Bic::default();
    law.cut(400.0, Signal::Loss, &context());
    law.cut(320.0, Signal::Loss, &context());
    // (2 - 1/8) / 2 * 320, halfway between 320 and the 280 after the loss.
    assert_eq!(gauge(&law, "w_max"), 300.0);
}

#[test]
fn rescaling_moves_the_maximum_and_the_probe() {
    let mut law = Bic::default();
    law.cut(400.0, Signal::Loss, &context());
    law.rescale(2.0);
    assert_eq!(law.grow(760.0, 1.0, &context()), 760.0 + 20.0 / 760.0);
    assert_eq!(law.grow(800.0, 1.0, &context()), 800.0 + 1.0 / 800.0);
    // The probe began at 800 packets, 1600 of the smaller ones: it doubles its step one packet
    // beyond.
    law.rescale(2.0);
    assert_eq!(law.grow(1600.5, 1.0, &context()), 1600.5 + 1.0 / 1600.5);
    assert_eq!(law.grow(1601.0, 1.0, &context()), 1601.0 + 2.0 / 1601.0);
}

#[test]
fn it_is_reno_at_small_windows() {
    let mut law = Bic::default();
    assert_eq!(law.grow(10.0, 1.0, &context()), 10.1);
    assert_eq!(law.cut(10.0, Signal::Loss, &context()), 5.0);
}
