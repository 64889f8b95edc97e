use super::{context, context_at, gauge};
use crate::common::at;
use cwnd::laws::Dctcp;
use cwnd::{Acked, Signal, WindowLaw};

const G: f64 = 1.0 / 16.0;

/// An acknowledgement at `now` of packets sent at `sent` ms.
fn ack(law: &mut Dctcp, now: u64, sent: u64, packets: u32, marked: u32) {
    let mut acked = Acked::new(packets, at(sent));
    acked.marked = marked;
    law.observe(&acked, &context_at(now));
}

/// Section 3.3: alpha is 1 at first, so that the first mark halves the window.
#[test]
fn the_first_mark_halves_the_window() {
    let mut law = Dctcp::new(G);
    assert_eq!(law.cut(40.0, Signal::Mark, &context()), 20.0);
    assert_eq!(law.threshold(20.0, Signal::Mark), Some(20.0));
}

/// Section 3.3, steps 4 to 8: one update for each window of data, with the fraction of its
/// packets.
#[test]
fn alpha_is_updated_once_for_each_window_of_data() {
    let mut law = Dctcp::new(G);
    ack(&mut law, 100, 0, 1, 0);
    let first = 1.0 - G;
    assert_eq!(gauge(&law, "alpha"), first);
    // Packets sent before the window began at 100 ms do not end it.
    ack(&mut law, 150, 50, 2, 1);
    ack(&mut law, 199, 99, 4, 0);
    assert_eq!(gauge(&law, "alpha"), first);
    ack(&mut law, 200, 100, 2, 1);
    assert_eq!(gauge(&law, "alpha"), first + G * (0.25 - first));
    // The counters began anew.
    let second = gauge(&law, "alpha");
    ack(&mut law, 300, 200, 1, 1);
    assert_eq!(gauge(&law, "alpha"), second + G * (1.0 - second));
}

/// Section 4.2: alpha stays between 0 and 1, with more marks than packets too.
#[test]
fn alpha_converges_to_the_marked_fraction() {
    let mut law = Dctcp::new(G);
    for round in 1..200 {
        ack(&mut law, 100 * round, 100 * (round - 1), 10, 1);
    }
    assert!((gauge(&law, "alpha") - 0.1).abs() < 1e-4, "{}", gauge(&law, "alpha"));
    // Section 3.3, step 9.
    let cut = law.cut(100.0, Signal::Mark, &context());
    assert!((cut - 95.0).abs() < 0.01, "{cut}");
    ack(&mut law, 30_000, 29_900, 1, 100);
    assert!(gauge(&law, "alpha") <= 1.0);
}

/// RFC 3168 section 6.1.2: the window does not grow for packets that were marked.
#[test]
fn marked_packets_do_not_enlarge_the_window() {
    let mut law = Dctcp::new(G);
    for (marked, grown) in [(0, 4.0), (1, 3.0), (4, 0.0), (9, 0.0)] {
        ack(&mut law, 100, 50, 4, marked);
        assert_eq!(law.grow(40.0, 4.0, &context()), 40.0 + grown / 40.0);
    }
}

/// Section 3.5: a loss and a timeout are answered as in conventional TCP, whatever alpha is.
#[test]
fn losses_halve_the_window() {
    let mut law = Dctcp::new(G);
    for round in 1..100 {
        ack(&mut law, 100 * round, 100 * (round - 1), 10, 0);
    }
    assert!(gauge(&law, "alpha") < 0.01);
    for why in [Signal::Loss, Signal::Timeout] {
        assert_eq!(law.cut(40.0, why, &context()), 20.0);
        assert_eq!(law.threshold(20.0, why), None);
    }
}

/// Section 3.3, step 3: with ECE every acknowledged packet counts as marked.
#[test]
fn an_echo_marks_its_acknowledgement() {
    let mut law = Dctcp::new(0.5);
    ack(&mut law, 100, 0, 1, 0);
    let before = gauge(&law, "alpha");
    let mut echo = Acked::new(2, at(100));
    echo.echo = true;
    law.observe(&echo, &context_at(200));
    assert_eq!(gauge(&law, "alpha"), before + 0.5 * (1.0 - before));
}

/// Section 3.4: growth as in RFC 5681, a packet in each window of data.
#[test]
fn growth_is_that_of_reno() {
    assert_eq!(Dctcp::new(G).grow(10.0, 2.0, &context()), 10.2);
}
