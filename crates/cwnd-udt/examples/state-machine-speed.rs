//! Measures the time per packet of the state machine: two connections exchange datagrams in memory,
//! without system calls.
//!
//! `cargo run --release -p cwnd-udt --example state-machine-speed [LAW] [BATCH]` transfers 4 GB and
//! prints nanoseconds per packet of the sender (writing, sending, processing acknowledgements) and
//! of the receiver (receiving, reading, sending acknowledgements).

use cwnd::{Dur, Spec, Time};
use cwnd_udt::{Answer, Config, Connection, Listener, Seq, SocketType};
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let law = arguments.next().unwrap_or_else(|| "udt".to_owned());
    let batch: usize = arguments.next().map_or(Ok(44), |text| text.parse())?;
    let config = Config::new(Spec::parse(&law)?);
    let address: std::net::SocketAddr = "127.0.0.1:9000".parse()?;
    let mut now = Time::ZERO;
    let mut sender = Connection::connect(&config, now, 1, Seq::new(7), address.ip());
    let listener = Listener::new([0; 16], SocketType::Stream);
    let mut receiver = loop {
        let Some(request) = sender.poll_transmit(now, 1) else { return Err("no request".into()) };
        match listener.handle(now, address, request.datagrams) {
            Answer::Ignore => {}
            Answer::Reply(reply) => sender.handle_datagram(now, &reply),
            Answer::Accept(incoming) => break Connection::accept(&config, now, 2, &incoming),
        }
    };
    let total: u64 = 4_000_000_000;
    let data = vec![7; 1 << 17];
    let mut out = vec![0; 1 << 17];
    let (mut written, mut read) = (0, 0);
    let (mut sending, mut receiving) = (Duration::ZERO, Duration::ZERO);
    let mut wire = vec![0; 1 << 17];
    while read < total {
        now += Dur::from_nanos(20_000);
        let began = Instant::now();
        sender.handle_timeout(now);
        if sender.is_open() && written < total {
            let left = usize::try_from(total - written)?;
            written += sender.write(&data[..data.len().min(left)])? as u64;
        }
        let filled = sender.poll_transmit_into(now, batch, &mut wire);
        let sent = Instant::now();
        if let Some(filled) = filled {
            receiver.handle_batch(now, &wire[..filled.length], filled.segment);
        }
        receiver.handle_timeout(now);
        read += receiver.read(now, &mut out)? as u64;
        let received = Instant::now();
        while let Some(transmit) = receiver.poll_transmit(now, 1) {
            sender.handle_datagram(now, transmit.datagrams);
        }
        sending += sent - began;
        receiving += received - sent;
    }
    let packets = receiver.stats(now, false).total.pkt_recv;
    let each = |time: Duration| time.as_nanos() as f64 / packets as f64;
    let took = sending.max(receiving).as_secs_f64();
    #[expect(clippy::print_stdout, reason = "the result of the example")]
    {
        println!("{law}, batches of {batch}: {packets} packets");
        println!("send {:.0} ns, receive {:.0} ns a packet", each(sending), each(receiving));
        println!("{:.1} Gb/s with a core for each side", total as f64 * 8e-9 / took);
    }
    Ok(())
}
