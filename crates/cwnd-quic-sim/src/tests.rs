//! The datagrams of one version of each stack.

use crate::message::Message;
use crate::{noq, quinn};
use cwnd::{Limit, Output, Time};
use cwnd_sim::datagrams::{Codepoint, Connection, Datagram, Datagrams, End, Feedback};
use cwnd_sim::network::QuicStack;
use cwnd_sim::record::{FlowRecord, Records};
use cwnd_sim::scenario::Scenario;
use cwnd_sim::{Options, QuicFlow, Simulation};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

type Sent = Box<dyn FnMut(Time, End, &Datagram<Message>) + Send>;
type Arrived = Box<dyn FnMut(End, Codepoint) -> Codepoint + Send>;

/// A connection whose datagrams a test observes.
struct Watched<P> {
    inner: P,
    /// Gets each datagram that an end sends.
    sent: Sent,
    /// Returns the ECN field of each datagram that arrives at an end.
    arrived: Arrived,
}

impl<P: Datagrams<Message = Message>> Datagrams for Watched<P> {
    type Message = Message;

    fn stop(&mut self, now: Time) {
        self.inner.stop(now);
    }

    fn receive(&mut self, now: Time, end: End, ecn: Codepoint, message: Message) -> u64 {
        let ecn = (self.arrived)(end, ecn);
        self.inner.receive(now, end, ecn, message)
    }

    fn wake(&mut self, now: Time, end: End) {
        self.inner.wake(now, end);
    }

    fn poll(&mut self, now: Time, end: End) -> Option<Datagram<Message>> {
        let datagram = self.inner.poll(now, end)?;
        (self.sent)(now, end, &datagram);
        Some(datagram)
    }

    fn deadline(&mut self, end: End) -> Option<Time> {
        self.inner.deadline(end)
    }

    fn feedback(&mut self) -> Feedback {
        self.inner.feedback()
    }

    fn limit(&self) -> Limit {
        self.inner.limit()
    }

    fn output(&self) -> Output {
        self.inner.output()
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        self.inner.gauges(emit);
    }

    fn total(&self) -> Option<u64> {
        self.inner.total()
    }

    fn open(&mut self) {
        self.inner.open();
    }

    fn make_available(&mut self, units: u64) -> u64 {
        self.inner.make_available(units)
    }

    fn acknowledged(&self) -> u64 {
        self.inner.acknowledged()
    }

    fn begin_measurement(&mut self) {
        self.inner.begin_measurement();
    }

    fn finish(self, record: &mut FlowRecord) {
        self.inner.finish(record);
    }
}

/// Runs a scenario whose flow is watched.
fn watch(text: &str, seed: u64, make: impl Fn() -> (Sent, Arrived)) -> Records {
    let network = Scenario::from_toml(text, "watched.toml").unwrap().network(seed).unwrap();
    let connect = |flow: QuicFlow| {
        let (sent, arrived) = make();
        Ok(match flow.quic.stack {
            QuicStack::Noq => {
                Connection::new(Watched { inner: noq::connect(flow)?, sent, arrived })
            }
            QuicStack::Quinn => {
                Connection::new(Watched { inner: quinn::connect(flow)?, sent, arrived })
            }
        })
    };
    let options = Options { quic: Some(&connect), ..Options::default() };
    let mut simulation = Simulation::new(network, seed, &options).unwrap();
    simulation.run();
    simulation.finish()
}

/// Returns the digest (FNV-1a) of the datagrams of a transfer with losses, marks and reordering,
/// with TLS or without.
fn digest(stack: &str, controller: &str, seed: u64, tls: bool) -> u64 {
    let text = format!(
        r#"
        duration = "3s"
        [dumbbell]
        rate = "5mbit"
        delay = "10ms"
        queue = {{ kind = "codel", ecn = true }}
        loss = 0.01
        loss_of_acks = true
        reorder = {{ probability = 0.01, delay = "3ms" }}
        [[flow]]
        protocol = "quic"
        stack = "{stack}"
        controller = "{controller}"
        bytes = 500000
        quic = {{ streams = 2, tls = {tls} }}
        "#
    );
    let digest = Arc::new(AtomicU64::new(0xcbf2_9ce4_8422_2325));
    let records = watch(&text, seed, || {
        let digest = digest.clone();
        let add = move |now: Time, _, datagram: &Datagram<Message>| {
            let bytes = now.as_nanos().to_le_bytes().into_iter();
            let add =
                |digest: u64, byte: u8| (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            let all = bytes.chain(datagram.message.datagram.iter().copied());
            digest.store(all.fold(digest.load(Ordering::Relaxed), add), Ordering::Relaxed);
        };
        (Box::new(add), Box::new(|_, ecn| ecn))
    });
    assert_eq!(records.flows[0].bytes_delivered, 500_000, "{:?}", records.flows[0].closed);
    digest.load(Ordering::Relaxed)
}

/// docs/quic-findings.md: ECN validation compares the counts with the number of ranges, not of
/// packets, and so does not notice a cleared field (RFC 9000 section 13.4.2.1). If this fails, a
/// stack has been mended.
#[test]
fn a_cleared_ecn_field_is_not_noticed() {
    for stack in ["noq", "quinn"] {
        let text = format!(
            r#"
            duration = "5s"
            dumbbell = {{ rate = "20mbit", delay = "20ms", queue = "1bdp" }}
            flow = [{{ protocol = "quic", stack = "{stack}", controller = "own:cubic",
                       bytes = 1000000 }}]
            "#
        );
        // Datagrams of the client, from the 400th on, and those of them that are ECN-capable.
        let counts = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let records = watch(&text, 1, || {
            let (counts, mut left, mut arrived) = (counts.clone(), 0, 0);
            let count = move |_, end, datagram: &Datagram<Message>| {
                left += u32::from(end == End::Source);
                if end == End::Source && left >= 400 {
                    counts[0].fetch_add(1, Ordering::Relaxed);
                    let capable = u64::from(datagram.ecn == Codepoint::Ect0);
                    counts[1].fetch_add(capable, Ordering::Relaxed);
                }
            };
            let clear = move |end, ecn| {
                arrived += u32::from(end == End::Sink);
                if end == End::Sink && arrived == 151 { Codepoint::NotEct } else { ecn }
            };
            (Box::new(count), Box::new(clear))
        });
        let [all, capable] = [0, 1].map(|at| counts[at].load(Ordering::Relaxed));
        assert!(all > 200 && capable == all, "{stack}: {capable} of {all} are ECN-capable");
        assert_eq!(records.flows[0].bytes_delivered, 1_000_000);
    }
}

/// A change of these values is a change of all results: of a stack's version, its configuration or
/// the seeds. Another process, with other addresses in memory and other times, has the same.
#[test]
fn digests_of_the_versions() {
    let found: Vec<_> = [
        ("noq", "own:cubic"),
        ("noq", "own:reno"),
        ("noq", "cubic"),
        ("noq", "bbr3"),
        ("quinn", "own:cubic"),
        ("quinn", "own:reno"),
        ("quinn", "cubic"),
        ("quinn", "reno"),
    ]
    .into_iter()
    .map(|(stack, controller)| {
        format!("{stack} {controller} {:016x}", digest(stack, controller, 1, false))
    })
    .collect();
    assert_eq!(found, DIGESTS);
    assert_ne!(digest("noq", "own:cubic", 1, false), digest("noq", "own:cubic", 2, false));
}

/// The keys are random.
#[cfg(feature = "tls")]
#[test]
fn tls_encrypts_the_datagrams() {
    for stack in ["noq", "quinn"] {
        let [first, second] = [(); 2].map(|()| digest(stack, "cubic", 1, true));
        assert!(first != second && first != digest(stack, "cubic", 1, false));
    }
}

/// Of noq-proto 1.4.0 and quinn-proto 0.11.19.
const DIGESTS: [&str; 8] = [
    "noq own:cubic ee38355feff32e4a",
    "noq own:reno 291ea681f6f60c8e",
    "noq cubic d8e9d4da352c95a3",
    "noq bbr3 86e1f98fb12677b5",
    "quinn own:cubic cf5d9abbbf244fe1",
    "quinn own:reno b0421841e514b9b3",
    "quinn cubic 4173e61c20251db8",
    "quinn reno c0c3aead437a3a4f",
];
