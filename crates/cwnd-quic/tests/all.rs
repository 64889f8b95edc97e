//! The adapters under real connections in memory.
#![cfg(all(feature = "noq", feature = "quinn"))]

mod support;

use cwnd_quic::{Controllers, Recordings};
use std::time::{Duration, Instant};
use support::link::{Fate, Link, Outcome};

#[test]
fn try_it() {
    for name in ["reno", "cubic", "bbr3", "udt", "simd", "copa"] {
        let recordings = Recordings::new();
        let start = Instant::now();
        let mut transport = noq_proto::TransportConfig::default();
        let c = Controllers::try_from(name).unwrap().record(&recordings);
        transport.congestion_controller_factory(cwnd_quic::noq::factory(c).unwrap());
        let mut client = support::noq::Host::client(start, 5_000_000, transport);
        let mut server = support::noq::Host::server(Default::default());
        let link = Link::new(|_, _| Fate::Pass);
        let o = link.run(start, [&mut client, &mut server], 5_000_000, Duration::from_secs(20));
        println!("noq {name} {o:?} {}", recordings.to_vec()[0].record.entries.len());
        if name == "bbr3" {
            let r = recordings.to_vec()[0].record.to_string();
            for l in r.lines().take(20) {
                println!("{l}")
            }
        }

        let recordings = Recordings::new();
        let start = Instant::now();
        let mut transport = quinn_proto::TransportConfig::default();
        let c = Controllers::try_from(name).unwrap().record(&recordings);
        transport
            .congestion_controller_factory(cwnd_quic::quinn::factory_even_if_paced(c).unwrap());
        let mut client = support::quinn::Host::client(start, 5_000_000, transport);
        let mut server = support::quinn::Host::server(Default::default());
        let link = Link::new(|_, _| Fate::Pass);
        let o = link.run(start, [&mut client, &mut server], 5_000_000, Duration::from_secs(20));
        println!("quinn {name} {o:?} {}", recordings.to_vec()[0].record.entries.len());
        if name == "bbr3" {
            let r = recordings.to_vec()[0].record.to_string();
            for l in r.lines().take(20) {
                println!("{l}")
            }
        }
    }
}
