//! HyStart++ (RFC 9406) in the window machine.

use cwnd::laws::Aimd;
use cwnd::{Acked, Controller, Dur, Event, Limit, Lost, Marked, Packets, Settings, SlowStart};
use cwnd::{Time, Windowed};

fn ms(millis: u64) -> Dur {
    Dur::from_millis(millis)
}

/// A connection with HyStart++ and the time at which its round began.
struct Connection {
    machine: Windowed<Aimd>,
    began: Time,
}

impl Connection {
    fn new(window: f64, limit: f64) -> Self {
        let mut settings = Settings::default();
        settings.initial_window = Packets::new(window);
        settings.slow_start = SlowStart::HyStart;
        settings.slow_start_limit = limit;
        Connection { machine: Windowed::new(Aimd::reno(), &settings), began: Time::ZERO }
    }

    /// Rounds of ten acknowledgements of `packets` packets, with these round-trip times in milliseconds; the
    /// window after each.
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

/// Section 4.2: "If CSS_ROUNDS rounds are complete, enter congestion avoidance by setting the ssthresh to the
/// current cwnd". Section 4.3: L limits the growth before it is divided.
#[test]
fn congestion_avoidance_begins_at_the_window_of_conservative_slow_start() {
    let rtts = [100, 100, 120, 120, 120, 120, 120];
    for (limit, packets, grown) in [(2.0, 2, 2.0), (8.0, 40, 8.0), (f64::INFINITY, 40, 40.0)] {
        let mut connection = Connection::new(10.0, limit);
        let windows = connection.rounds(packets, Limit::Window, &rtts);
        // Two rounds of slow start, one that becomes conservative with its eighth sample, and four more.
        let third = 10.0 + 28.0 * grown + 2.0 * grown / 4.0;
        assert_eq!(windows[..3], [10.0 + 10.0 * grown, 10.0 + 20.0 * grown, third]);
        assert_eq!(windows[6], third + 40.0 * grown / 4.0);
        assert_eq!(connection.machine.ssthresh().get(), windows[6]);
        assert!(!connection.machine.in_slow_start());
    }
}

/// Section 4.2: a loss or an ECN mark ends slow start and conservative slow start at any time. Section 4.3: later slow
/// starts are the standard one.
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
            connection.machine.on(now + ms(500), &Event::Timeout { sent: 60 });
            connection.began = now + ms(500);
            assert!(connection.machine.ssthresh().get() > 25.0);
            assert_eq!(connection.rounds(1, Limit::Window, &[100, 120]), [11.0, 21.0]);
        }
    }
}

/// Section 4.2 measures "each arriving ACK", also those for which the window does not grow (RFC 7661).
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
