//! A link in simulated time between two endpoints.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// A datagram with its ECN field.
pub(crate) struct Datagram {
    pub(crate) bytes: Vec<u8>,
    pub(crate) ecn: u8,
}

/// One end of a connection.
pub(crate) trait Peer {
    /// The next datagram to send.
    fn transmit(&mut self, now: Instant) -> Option<Datagram>;
    /// A datagram arrived.
    fn receive(&mut self, now: Instant, datagram: Datagram);
    /// When [`expire`](Self::expire) is due.
    fn wake(&mut self) -> Option<Instant>;
    fn expire(&mut self, now: Instant);
    /// Why the connection is over.
    fn closed(&self) -> Option<String>;
    /// Bytes that the application has received.
    fn received(&self) -> u64;
}

/// What happens to a datagram of the client, by its number and the time since the start: returns
/// how long it is held back, so that others overtake it, and `None` if it is lost.
pub(crate) type Fate = dyn FnMut(u64, Duration, &mut Datagram) -> Option<Duration>;

/// A datagram passes.
pub(crate) const PASS: Option<Duration> = Some(Duration::ZERO);

/// A link with the same delay both ways, and a rate and a queue from the client to the server.
pub(crate) struct Link {
    pub(crate) delay: Duration,
    /// Bytes per second.
    pub(crate) rate: f64,
    /// Bytes.
    pub(crate) queue: f64,
    pub(crate) fate: Box<Fate>,
}

/// How a transfer ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) time: Duration,
    pub(crate) received: u64,
    pub(crate) closed: Option<String>,
}

impl Link {
    /// A link of 20 Mb/s and 40 ms with a queue of one bandwidth-delay product.
    pub(crate) fn new(
        fate: impl FnMut(u64, Duration, &mut Datagram) -> Option<Duration> + 'static,
    ) -> Self {
        let (delay, rate) = (Duration::from_millis(20), 2.5e6);
        Link { delay, rate, queue: 0.04 * rate, fate: Box::new(fate) }
    }

    /// Runs until the server has received `bytes`, a connection is over, or `deadline`.
    pub(crate) fn run(
        mut self,
        start: Instant,
        ends: [&mut dyn Peer; 2],
        bytes: u64,
        deadline: Duration,
    ) -> Outcome {
        let [client, server] = ends;
        let (mut now, mut idle_at, mut number) = (start, start, 0);
        let mut flying: [VecDeque<(Instant, Datagram)>; 2] = Default::default();
        loop {
            while let Some(mut datagram) = client.transmit(now) {
                number += 1;
                let Some(held) = (self.fate)(number, now - start, &mut datagram) else { continue };
                let begin = idle_at.max(now);
                let queued = (begin - now).as_secs_f64() * self.rate;
                if queued + datagram.bytes.len() as f64 > self.queue {
                    continue;
                }
                idle_at = begin + Duration::from_secs_f64(datagram.bytes.len() as f64 / self.rate);
                let arrival = idle_at + self.delay + held;
                let place = flying[0].partition_point(|(at, _)| *at <= arrival);
                flying[0].insert(place, (arrival, datagram));
            }
            while let Some(datagram) = server.transmit(now) {
                flying[1].push_back((now + self.delay, datagram));
            }
            let closed = client.closed().or(server.closed());
            let received = server.received();
            if received >= bytes || closed.is_some() {
                return Outcome { time: now - start, received, closed };
            }
            let arrivals = flying.iter().filter_map(|queue| queue.front().map(|(at, _)| *at));
            let timers = client.wake().into_iter().chain(server.wake());
            let next = arrivals.chain(timers).min();
            now = match next.filter(|next| *next <= start + deadline) {
                Some(next) => now.max(next),
                None => return Outcome { time: deadline, received, closed: None },
            };
            for (queue, end) in flying.iter_mut().zip([&mut *server, &mut *client]) {
                while queue.front().is_some_and(|(at, _)| *at <= now) {
                    let (_, datagram) = queue.pop_front().expect("there is one");
                    end.receive(now, datagram);
                }
                if end.wake().is_some_and(|at| at <= now) {
                    end.expire(now);
                }
            }
        }
    }
}
