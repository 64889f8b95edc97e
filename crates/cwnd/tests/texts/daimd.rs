use super::{context, context_at};
use cwnd::laws::AnyRateLaw;
use cwnd::{
    Context, Dur, Law, Lost, MakeController, Rate, RateLaw, Report, Settings, Signal, Spec, Time,
};

fn daimd(parameters: &str) -> AnyRateLaw {
    let spec = Spec::parse(&format!("daimd({parameters})")).unwrap();
    match spec.law(&Settings::default()) {
        Some(Law::Rate(law)) => law,
        other => panic!("{other:?}"),
    }
}

fn of_packet(packet: u32) -> Context {
    let mut cx = context();
    cx.packet = packet;
    cx
}

/// The increase at `mbits`, in packets per second, with 1 Gb/s.
fn alpha(mbits: f64, packet: u32) -> f64 {
    let rate = Rate::from_bits(mbits * 1e6, packet);
    let grown = daimd("capacity=1gbit").tick(rate, &of_packet(packet));
    grown.as_per_sec() - rate.as_per_sec()
}

/// On 1 Gb/s, log10 L = 9: Eq. 8 starts at 10^(9-9) packet in each 10 ms, which is 100 packets/s.
#[test]
fn stages_of_the_increase() {
    for (mbits, expected) in [(0.0, 100.0), (899.0, 100.0), (950.0, 10.0)] {
        assert!((alpha(mbits, 1500) - expected).abs() < 1e-9, "{mbits}");
    }
    assert_eq!([alpha(1000.0, 1500), alpha(1200.0, 1500)], [0.0; 2]);
    // Half the packet size, twice the packets.
    assert_eq!(alpha(0.0, 750), 200.0);
}

/// Section III: 9 (L - R0) / alpha0 = 750 intervals to 90 % of an L that is a power of ten.
#[test]
fn reaches_ninety_percent_in_seven_and_a_half_seconds() {
    let mut law = daimd("capacity=1gbit");
    let (mut rate, mut intervals) = (Rate::ZERO, 0);
    while rate.as_bits(1500) < 0.9e9 {
        rate = law.tick(rate, &context());
        intervals += 1;
    }
    assert_eq!(intervals, 750);
}

/// The rates after loss reports of 1, 3 and 2 packets at 0, 4 and 12 ms, from 729 packets/s on.
/// The last two are of packets sent before the first reduction.
fn after_reports(feedback: &str) -> [f64; 3] {
    let mut law = daimd(&format!("feedback={feedback}"));
    let mut rate = Rate::per_sec(729.0);
    [(0, 1, true), (4, 3, false), (12, 2, false)].map(|(millis, packets, fresh)| {
        let cx = context_at(millis);
        law.losses(&Lost::new(packets, Time::ZERO, 100), rate, &cx);
        rate = law.cut(rate, fresh, Signal::Loss, &cx);
        rate.as_per_sec()
    })
}

fn assert_near(rates: [f64; 3], expected: [f64; 3]) {
    for (rate, expected) in rates.into_iter().zip(expected) {
        assert!((rate - expected).abs() < 1e-9, "{rates:?}");
    }
}

/// Pathload's thresholds for 16 round-trip times: of 15 differences, more than 0.66 are 10 rises,
/// and more than 0.54 are 9.
#[test]
fn a_trend_of_the_round_trip_time_is_found() {
    let rising = |steps: &[i64]| {
        let mut law = daimd("");
        let mut rtt = 100;
        law.observe(&Report::new(1, 1, Dur::from_millis(rtt)), &context());
        for step in steps {
            rtt = rtt.wrapping_add_signed(*step);
            law.observe(&Report::new(1, 1, Dur::from_millis(rtt)), &context());
        }
        law.delay_rises(&context())
    };
    assert!(rising(&[1; 15]));
    assert!(!rising(&[1; 14]), "fewer than 16 samples");
    assert!(!rising(&[-1; 15]));
    let of = |ups: usize, up: i64, down: i64| {
        let mut steps = [down; 15];
        steps[..ups].fill(up);
        rising(&steps)
    };
    // 10 rises: PDT is (30 - 10) / 40 = 0.5, or (30 - 15) / 45 = 0.33.
    assert!(of(10, 3, -2));
    assert!(!of(10, 3, -3));
    // 9 rises: PDT is (27 - 6) / 33 = 0.64, or (27 - 12) / 39 = 0.38; 8 are too few.
    assert!(of(9, 3, -1));
    assert!(!of(9, 3, -2));
    assert!(!of(8, 9, -1));
}

#[test]
fn a_rise_reduces_the_rate_once_in_two_round_trip_times() {
    let (mut law, mut without) = (daimd(""), daimd("delay=off"));
    let mut risen = Vec::new();
    for n in 0..60 {
        let rtt = Dur::from_millis(100 + n);
        let cx = context_at(10 * n);
        for law in [&mut law, &mut without] {
            law.observe(&Report::new(1, 1, rtt), &cx);
        }
        if law.delay_rises(&cx) {
            risen.push(n);
            let cut = law.cut(Rate::per_sec(729.0), true, Signal::Delay, &cx);
            assert_eq!(cut.as_per_sec(), 648.0);
        }
        assert!(!without.delay_rises(&cx));
    }
    assert_eq!(risen, [15, 36, 57]);
}

/// A congestion event; (8/9)^n of the rate for n lost packets (Eq. 3); a SYN; a report.
#[test]
fn a_negative_feedback_is_what_the_parameter_says() {
    assert_near(after_reports("event"), [648.0, 648.0, 648.0]);
    let after_four = 648.0 * (512.0 / 729.0);
    assert_near(after_reports("packet"), [648.0, after_four, after_four * 64.0 / 81.0]);
    assert_near(after_reports("syn"), [648.0, 648.0, 576.0]);
    assert_near(after_reports("report"), [648.0, 576.0, 512.0]);
}

/// A timeout is one feedback, independent of the number of packets in the report before it.
#[test]
fn a_timeout_is_one_feedback() {
    for feedback in ["event", "packet", "syn", "report"] {
        let mut law = daimd(&format!("feedback={feedback}"));
        let (cx, rate) = (context(), Rate::per_sec(900.0));
        law.losses(&Lost::new(5, Time::ZERO, 100), rate, &cx);
        let rate = law.cut(rate, true, Signal::Timeout, &cx);
        assert!((rate.as_per_sec() - 800.0).abs() < 1e-9, "{feedback}");
    }
}

/// Packets of half the size: the same capacity, arrival rate, window and increase in bytes.
#[test]
fn rescaling_keeps_the_bytes() {
    let mut law = daimd("");
    let mut report = Report::new(1, 1, Dur::from_millis(90));
    report.arrival = Some(Rate::per_sec(1000.0));
    report.capacity = Some(Rate::per_sec(90_000.0));
    law.observe(&report, &context());
    let grown = law.tick(Rate::per_sec(500.0), &context());
    law.rescale(2.0);
    let cx = of_packet(750);
    assert_eq!(law.tick(Rate::per_sec(1000.0), &cx).as_bits(750), grown.as_bits(1500));
    assert_eq!(law.window(&cx), Some(200.0));
    assert_eq!(law.start(10.0, &cx), Rate::per_sec(2000.0));
}

#[test]
fn flow_window_follows_the_arrival_rate() {
    let mut law = daimd("");
    let mut report = Report::new(1, 1, Dur::from_millis(90));
    report.arrival = Some(Rate::per_sec(1000.0));
    law.observe(&report, &context());
    assert_eq!(law.window(&context()), Some(100.0));
    report.arrival = Some(Rate::per_sec(2000.0));
    law.observe(&report, &context());
    // 7/8 of 100 and 1/8 of 200.
    assert_eq!(law.window(&context()), Some(112.5));
    assert_eq!(daimd("lambda=1").window(&context()), None);
}
