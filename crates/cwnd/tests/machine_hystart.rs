//! HyStart++ (RFC 9406) in the window machine.

use cwnd::laws::Reno;
use cwnd::{Acked, Controller, Dur, Event, Limit, Lost, MakeController, Marked, Packets};
use cwnd::{Settings, SlowStart, Spec, Time, Windowed};

fn ms(millis: u64) -> Dur {
    Dur::from_millis(millis)
}

/// A connection with HyStart++ and the time at which its round began.
struct Connection {
    machine: Windowed<Reno>,
    began: Time,
}

impl Connection {
    fn new(window: f64, limit: f64) -> Self {
        let mut settings = Settings::default();
        settings.initial_window = Packets::new(window);
        settings.slow_start = SlowStart::HyStart;
        settings.slow_start_limit = limit;
        Connection { machine: Windowed::new(Reno::new(), &settings), began: Time::ZERO }
    }

    /// Rounds of ten acknowledgements of `packets` packets, with these round-trip times in
    /// milliseconds; the window after each.
    fn rounds(&mut self, packets: u32, limit: Limit, rtts: &[u64]) -> Vec<f64> {
        let round = |&rtt: &u64| {
            let now = self.began + ms(rtt);
            for n in 0..10 {
                let mut acked = Acked::new(packets, if n == 9 { self.began } else { Time::ZERO });
                (acked.rtt, acked.limit) = (Some(ms(rtt)), limit);
                self.machine.on(now, &Event::Acked(acked));
            }
            self.began = now;
            self.machine.window().get()
        };
        rtts.iter().map(round).collect()
    }
}

/// Section 4.2: "If CSS_ROUNDS rounds are complete, enter congestion avoidance by setting the
/// ssthresh to the current cwnd". Section 4.3: L limits the growth before it is divided.
#[test]
fn congestion_avoidance_begins_at_the_window_of_conservative_slow_start() {
    let rtts = [100, 100, 120, 120, 120, 120, 120];
    for (limit, packets, grown) in [(2.0, 2, 2.0), (8.0, 40, 8.0), (f64::INFINITY, 40, 40.0)] {
        let mut connection = Connection::new(10.0, limit);
        let windows = connection.rounds(packets, Limit::Window, &rtts);
        // Two rounds of slow start, one that becomes conservative with its eighth sample, and four
        // more.
        let third = 10.0 + 28.0 * grown + 2.0 * grown / 4.0;
        assert_eq!(windows[..3], [10.0 + 10.0 * grown, 10.0 + 20.0 * grown, third]);
        assert_eq!(windows[6], third + 40.0 * grown / 4.0);
        assert_eq!(connection.machine.ssthresh().get(), windows[6]);
        assert!(!connection.machine.in_slow_start());
    }
}

/// Section 4.2: a loss or an ECN mark ends slow start and conservative slow start at any time.
/// Section 4.3: later slow starts are the standard one.
#[test]
fn a_congestion_signal_ends_it_for_the_connection() {
    let now = Time::ZERO + ms(1000);
    let loss = Event::Lost(Lost::new(1, now, 50));
    for signal in [loss, Event::Marked(Marked::new(1, now, 50))] {
        for before in [&[100, 100][..], &[100, 100, 120, 120]] {
            let mut connection = Connection::new(100.0, 2.0);
            connection.rounds(1, Limit::Window, before);
            connection.machine.on(now, &signal);
            assert!(!connection.machine.in_slow_start());
            connection.machine.on(now + ms(500), &Event::Timeout(Lost::new(0, Time::ZERO, 60)));
            connection.began = now + ms(500);
            assert!(connection.machine.ssthresh().get() > 25.0);
            assert_eq!(connection.rounds(1, Limit::Window, &[100, 120]), [11.0, 21.0]);
        }
    }
}

/// Section 4.3: HyStart++ is for the slow start whose threshold is arbitrarily high. It still is
/// after an undo of the first reduction.
#[test]
fn section_4_3_it_continues_after_a_spurious_loss() {
    let now = Time::ZERO + ms(1000);
    for signal in [Event::Lost(Lost::new(1, now, 50)), Event::Timeout(Lost::new(0, Time::ZERO, 50))]
    {
        let mut connection = Connection::new(100.0, 2.0);
        connection.rounds(1, Limit::Window, &[100, 100]);
        connection.machine.on(now, &signal);
        connection.machine.on(now + ms(10), &Event::Undo);
        assert!(connection.machine.ssthresh().get().is_infinite());
        assert_eq!(connection.machine.window().get(), 120.0);
        connection.began = now + ms(10);
        let windows = connection.rounds(1, Limit::Window, &[100, 120, 120]);
        // The second round becomes conservative with its eighth sample.
        assert_eq!(windows, [130.0, 138.5, 141.0]);
    }
}

/// Section 4.3: a specification with HyStart++ has L = 8, and no limit if the sender is paced.
#[test]
fn section_4_3_one_acknowledgement_opens_the_window_by_eight_packets() {
    for (spec, grown) in [
        ("cubic(start=hystart)", 8.0),
        ("cubic(start=hystart, pacing=1.25)", 40.0),
        ("cubic(start=standard)", 2.0),
        ("cubic", 2.0),
    ] {
        let spec: Spec = spec.parse().unwrap();
        let mut controller = spec.controller(&Settings::default());
        controller.on(Time::ZERO + ms(100), &Event::Acked(Acked::new(40, Time::ZERO)));
        assert_eq!(controller.output().window.get(), 10.0 + grown, "{spec}");
    }
}

/// `cubictcp_state` of Linux 6.18: its HyStart begins anew after a timeout. A train of
/// acknowledgements ends that slow start too.
#[test]
fn hystart_of_linux_is_for_later_slow_starts_too() {
    let mut settings = Settings::default();
    settings.slow_start = SlowStart::HyStartLinux;
    settings.initial_window = Packets::new(1000.0);
    settings.slow_start_limit = f64::INFINITY;
    let sent = 1000;
    for event in [
        Event::Timeout(Lost::new(0, Time::ZERO, 50)),
        Event::Reduced { window: Packets::new(1.0), idle: false },
    ] {
        let mut machine = Windowed::new(Reno::new(), &settings);
        machine.on(Time::ZERO + ms(500), &Event::Lost(Lost::new(1, Time::ZERO + ms(500), 40)));
        machine.on(Time::ZERO + ms(600), &Event::Recovered);
        machine.on(Time::ZERO + ms(sent), &event);
        // Acknowledgements of a round-trip time of 100 ms, one each millisecond.
        let mut acks = 0;
        while machine.in_slow_start() && acks < 100 {
            let now = Time::ZERO + ms(sent + 200 + acks);
            // The first one covers 20 packets: the low window of 16 packets is passed.
            let mut acked = Acked::new(if acks == 0 { 20 } else { 1 }, now - ms(100));
            acked.rtt = Some(ms(100));
            machine.on(now, &Event::Acked(acked));
            acks += 1;
        }
        // Half of 100 ms and half of 1 ms after the first one.
        assert_eq!((acks, machine.ssthresh().get()), (52, 71.0), "after {event:?}");
    }
}

/// Section 4.2 measures "each arriving ACK", also those for which the window does not grow (RFC
/// 7661).
#[test]
fn an_unused_window_is_observed() {
    let mut connection = Connection::new(10.0, 2.0);
    let windows = connection.rounds(1, Limit::Application, &[100, 100, 120, 120]);
    assert_eq!(windows, [10.0; 4]);
    assert_eq!(connection.rounds(1, Limit::Window, &[120]), [12.5]);
    connection.rounds(1, Limit::Application, &[120, 120]);
    assert!(!connection.machine.in_slow_start());
    assert_eq!(connection.machine.ssthresh().get(), 12.5);
}
