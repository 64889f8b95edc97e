//! cwnd's controllers in s2n-quic, in its own simulated time.

use crate::events;
use crate::fixed::Fixed;
use cwnd::record::{Record, replay};
use cwnd::{Event, Output, Packets, Rate};
use cwnd_quic::events::TABLE;
use cwnd_quic::{Controllers, Recordings};
use s2n_quic::client::Connect;
use s2n_quic::provider::io::testing::network::{Buffers, Network, Packet};
use s2n_quic::provider::io::testing::{Handle, primary, spawn, test, time};
use s2n_quic::provider::tls;
use s2n_quic::{Client, Server};
use s2n_quic_core::crypto::tls::null;
use s2n_quic_core::inet::ExplicitCongestionNotification;
use s2n_quic_core::path::LocalAddress;
use s2n_quic_core::time::Timestamp;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

/// A handshake without TLS.
struct Plain;

impl tls::Provider for Plain {
    type Server = null::Endpoint;
    type Client = null::Endpoint;
    type Error = Infallible;

    fn start_server(self) -> Result<null::Endpoint, Infallible> {
        Ok(null::Endpoint::default())
    }

    fn start_client(self) -> Result<null::Endpoint, Infallible> {
        Ok(null::Endpoint::default())
    }
}

/// A path with 40 ms that marks one of the client's packets and drops some, and all for a while.
#[derive(Default)]
struct Path {
    /// Packets of the client so far.
    number: u64,
    client: Option<LocalAddress>,
    start: Option<Timestamp>,
}

impl Path {
    fn passes(&mut self, packet: &mut Packet, millis: u128) -> bool {
        let source = packet.path.local_address;
        if *self.client.get_or_insert(source) != source {
            return true;
        }
        self.number += 1;
        if self.number == 200 {
            packet.ecn = ExplicitCongestionNotification::Ce;
        }
        let lost = self.number > 400 && self.number.is_multiple_of(97);
        !(lost || (200..2000).contains(&millis))
    }
}

impl Network for Path {
    fn execute(&mut self, buffers: &Buffers) -> usize {
        let now = time::now();
        let start = *self.start.get_or_insert(now);
        let millis = now.saturating_duration_since(start).as_millis();
        let mut count = 0;
        buffers.drain_pending_transmissions(|mut packet| {
            if self.passes(&mut packet, millis) {
                count += 1;
                packet.switch();
                let buffers = buffers.clone();
                spawn(async move {
                    time::delay(Duration::from_millis(20)).await;
                    buffers.rx(*packet.path.local_address, |queue| queue.enqueue(packet));
                });
            }
            Ok(())
        });
        count
    }
}

/// The records of a client with `controllers` that sends `bytes` bytes.
fn transfer(controllers: Controllers, bytes: usize) -> Vec<cwnd_quic::Recording> {
    let recordings = Recordings::new();
    let factory = cwnd_quic::s2n::factory(controllers.record(&recordings)).expect("it was read");
    let start = |handle: &Handle| {
        let io = handle.builder().build()?;
        let mut server = Server::builder().with_io(io)?.with_tls(Plain)?.start()?;
        let address = server.local_addr()?;
        spawn(async move {
            while let Some(mut connection) = server.accept().await {
                spawn(async move {
                    while let Ok(Some(mut stream)) = connection.accept_receive_stream().await {
                        while let Ok(Some(_)) = stream.receive().await {}
                    }
                });
            }
        });
        let io = handle.builder().build()?;
        let client = Client::builder().with_io(io)?.with_tls(Plain)?;
        let client = client.with_congestion_controller(factory)?.start()?;
        primary::spawn(async move {
            let connect = Connect::new(address).with_server_name("localhost");
            let mut connection = client.connect(connect).await.expect("there is a server");
            let mut stream = connection.open_send_stream().await.expect("it is open");
            stream.send(vec![0; bytes].into()).await.expect("it is open");
            stream.finish().expect("it is open");
            stream.close().await.expect("all bytes arrive");
        });
        Ok(())
    };
    test(Path::default(), start).expect("it runs");
    recordings.to_vec()
}

fn named(name: &str) -> Controllers {
    Controllers::try_from(name).expect("it is in the registry")
}

/// Each event that the table calls exact or derived occurs in a connection, and each absent one
/// does not.
#[test]
fn the_table_of_events_is_true() {
    // s2n-quic establishes persistent congestion only while packets leave without a probe.
    let mut steady = Output::window(Packets::new(4000.0));
    steady.pace = Some(Rate::per_sec(2000.0));
    let steady = Controllers::from(Arc::new(Fixed(steady)));
    let recordings = [named("bbr3"), named("daimd"), steady].map(|each| transfer(each, 5_000_000));
    let records: Vec<Record> = recordings.into_iter().flatten().map(|each| each.record).collect();
    for row in TABLE {
        events::check(row, row.s2n, &records);
    }
}

#[test]
fn records_replay_bit_for_bit() {
    for name in ["reno", "cubic", "prague", "bbr3", "tfrc"] {
        let recordings = transfer(named(name), 2_000_000);
        // s2n-quic clones a controller before its first event.
        let longest = recordings.iter().max_by_key(|each| each.record.entries.len());
        let recording = longest.expect("there is a connection");
        assert!(recording.record.entries.len() > 100, "{name}");
        replay(named(name).controller(&recording.settings), &recording.record)
            .unwrap_or_else(|mismatch| panic!("{name}: {mismatch}"));
    }
}

/// Of docs/quic-findings.md: a probe skips a packet number, and packets on both sides of a gap are
/// not counted as one period of losses.
#[test]
fn s2n_does_not_establish_persistent_congestion_across_probes() {
    let recordings = transfer(named("reno"), 1_000_000);
    let entries = || recordings.iter().flat_map(|each| &each.record.entries);
    let lost = entries().filter_map(|entry| match entry.event {
        Event::Lost(lost) if lost.sent_at.as_secs() < 2.0 => Some(lost.sent_at.as_secs()),
        _ => None,
    });
    let (first, last) = lost.fold((f64::MAX, 0.0_f64), |(a, b), at| (a.min(at), b.max(at)));
    println!("s2n: all packets sent from {first} s to {last} s are lost");
    // The round-trip time is 40 ms, and so the period is less than 0.4 s.
    assert!(last - first > 1.0);
    assert!(entries().all(|entry| entry.event != Event::PersistentCongestion));
}
