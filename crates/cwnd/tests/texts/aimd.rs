use super::context;
use cwnd::laws::{Aimd, Friendly, Gaimd, GaimdThreshold, Reno};
use cwnd::{Conventions, Signal, WindowLaw};

#[test]
fn the_threshold_after_a_timeout_is_half_or_kept() {
    let mut law = Gaimd::new(0.31, 0.875, GaimdThreshold::Kept);
    let cut = law.cut(80.0, Signal::Timeout, &context());
    assert_eq!(law.threshold(cut, Signal::Timeout), Some(70.0));
    assert_eq!(law.threshold(cut, Signal::Loss), None);
    assert_eq!(Gaimd::default().threshold(cut, Signal::Timeout), None);
}

#[test]
fn published_friendly_pairs() {
    let alpha = |beta, timeouts| Friendly::new(beta, timeouts).grow(1.0, 1.0, &context()) - 1.0;
    assert_eq!(alpha(0.5, false), 1.0);
    assert_eq!(alpha(0.5, true), 1.0);
    assert_eq!(alpha(0.125, true), 0.3125);
    assert!((alpha(1.0 / 16.0, false) - 0.0968).abs() < 1e-4);
}

/// Acknowledged packets, and the window of AIMD(1, 1/2) under the conventions of Linux after them.
fn linux(mut w: f64, acknowledgements: &[f64]) -> f64 {
    let (mut reno, mut aimd) = (Reno::new(), Aimd::default());
    reno.adopt(&Conventions::LINUX);
    aimd.adopt(&Conventions::LINUX);
    for acked in acknowledgements {
        let grown = reno.grow(w, *acked, &context());
        assert_eq!(aimd.grow(w, *acked, &context()), grown);
        w = grown;
    }
    w
}

#[test]
fn in_linux_the_window_grows_by_one_packet_for_each_window_of_packets() {
    // 10 packets at a window of 10, and 11 at a window of 11.
    for (count, window) in [(9, 10.0), (10, 11.0), (20, 11.0), (21, 12.0)] {
        assert_eq!(linux(10.0, &vec![1.0; count]), window, "{count}");
    }
    // Two growths at once; 5 packets remain, which 7 more complete.
    assert_eq!(linux(10.0, &[25.0]), 12.0);
    assert_eq!(linux(10.0, &[25.0, 7.0]), 13.0);
    // Other parameters are those of a law in real numbers.
    let mut law = Aimd::new(1.0, 0.25);
    law.adopt(&Conventions::LINUX);
    assert_eq!(law.grow(10.0, 1.0, &context()), 10.1);
}

#[test]
fn in_linux_a_loss_leaves_whole_packets_and_no_credit() {
    let mut law = Reno::new();
    law.adopt(&Conventions::LINUX);
    law.grow(11.0, 10.0, &context());
    assert_eq!(law.cut(11.0, Signal::Loss, &context()), 5.0);
    assert_eq!(law.grow(5.0, 4.0, &context()), 5.0);
    // A credit that was collected at a larger window counts for one packet.
    assert_eq!(law.grow(2.0, 1.0, &context()), 3.0);
}
