//! Measures the time to seal and to open batches of datagrams in memory, without connections or
//! system calls.
//!
//! `cargo run --release -p cwnd-udt --example secure-speed [BATCH] [BYTES]` seals and opens 2
//! million datagrams of BYTES (default 1440: 1496 on the wire) and prints the 10th percentile of
//! the nanoseconds per datagram.

use cwnd::{Dur, Time};
use cwnd_udt::secure::{Credentials, Initiator, Key, Reply, Responder};
use std::time::Instant;

const TURNS: usize = 200;
const DATAGRAMS: usize = 10_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let batch = arguments.next().unwrap_or(Ok(44))?.max(1);
    let bytes = arguments.next().unwrap_or(Ok(1440))?.max(1);

    let secret: [u8; 32] = std::array::from_fn(|at| at.to_le_bytes()[0]);
    let key = Credentials::Key(Key::from_file_contents(&secret)?);
    let mut responder = Responder::new(&key, secret, b"here");
    let address = "127.0.0.1:9000".parse()?;
    let mut initiator = Initiator::new(&key, Time::ZERO, 1, Dur::from_millis(1_000))?;
    let mut hello = initiator.poll(Time::ZERO).ok_or("no hello")?.to_vec();
    let Reply::Send(answer) = responder.handle(Time::ZERO, address, &mut hello, || 2) else {
        return Err("no answer".into());
    };
    let mut client = initiator.handle(Time::ZERO, &answer)?.ok_or("no session")?;
    let mut wire = Vec::new();
    client.sealer.seal(b"first", 5, &mut wire)?;
    let Reply::Open(mut listener, _) = responder.handle(Time::ZERO, address, &mut wire, || 0)
    else {
        return Err("not opened".into());
    };

    let text = vec![7; batch * bytes];
    let mut took = [Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        let (mut sealing, mut opening) = (0, 0);
        for _ in 0..DATAGRAMS / batch {
            let began = Instant::now();
            let segment = client.sealer.seal(&text, bytes, &mut wire)?;
            let sealed = Instant::now();
            let filled = listener.opener.open_batch(&mut wire, segment);
            opening += sealed.elapsed().as_nanos();
            sealing += (sealed - began).as_nanos();
            if filled.length != text.len() {
                return Err("not opened".into());
            }
        }
        took[0].push(sealing);
        took[1].push(opening);
    }
    let [seal, open] = took.map(|mut took| {
        took.sort_unstable();
        took[TURNS / 10] as f64 / (DATAGRAMS / batch * batch) as f64
    });
    #[expect(clippy::print_stdout, reason = "the result of the example")]
    {
        println!(
            "batches of {batch}, {bytes} bytes: seal {seal:.0} ns, open {open:.0} ns a datagram"
        );
    }
    Ok(())
}
