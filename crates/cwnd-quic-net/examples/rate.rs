//! Prints the rate of a transfer over loopback in Gb/s: `rate [STACK [CONTROLLER [MEGABYTES]]]`.

use cwnd_quic_net::{Controllers, Identity, Job, Receiver, Sender};
use cwnd_sim::network::{Traffic, own_name};
use cwnd_sim::scenario::Scenario;
use std::error::Error;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{env, thread};

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = env::args().skip(1).collect();
    let word = |index: usize, default| given.get(index).map_or(default, String::as_str);
    let (stack, controller) = (word(0, "noq"), word(1, "cubic"));
    let bytes = word(2, "1000").parse::<u64>()? * 1_000_000;
    // The network is not used.
    let text = format!(
        "duration = \"1s\"\n[dumbbell]\nrate = \"1gbit\"\ndelay = \"1ms\"\nqueue = \"1bdp\"\n\
         [[flow]]\nprotocol = \"quic\"\nstack = \"{stack}\"\ncontroller = \"{controller}\"\n\
         bytes = \"{bytes}\"\n"
    );
    let network = Scenario::from_toml(&text, "arguments")?.network(1)?;
    let Traffic::Quic(quic) = &*network.flows[0].traffic else { return Err("no flow".into()) };
    let controllers = match own_name(controller) {
        Some(_) => None,
        None => Some(Controllers::try_from(controller)?),
    };
    let identity = Identity::generate()?;
    let [source, sink] = [UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?];
    let peer = sink.local_addr()?;
    let (receiver, sender, done) =
        (Arc::new(Receiver::default()), Sender::default(), AtomicBool::new(false));
    let stopped = || done.load(Ordering::Relaxed);
    let job = Job { quic, controllers, identity: &identity, peer, stop: None };
    let (begin, mut reason) = (Instant::now(), None);
    thread::scope(|scope| {
        let ends = [
            scope.spawn(|| receiver.run(sink, quic, &identity, stopped)),
            scope.spawn(|| sender.run(source, job, stopped)),
        ];
        while sender.acknowledged().is_none() && !ends.iter().any(|end| end.is_finished()) {
            if let Some((_, why)) = sender.closed() {
                reason = Some(why.clone());
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
        done.store(true, Ordering::Relaxed);
        ends.into_iter().try_for_each(|end| end.join().expect("an end does not panic"))
    })?;
    if let Some(why) = reason {
        return Err(why.into());
    }
    let seconds = sender.acknowledged().ok_or("not complete")?.duration_since(begin).as_secs_f64();
    println!("{:.2}", bytes as f64 * 8e-9 / seconds);
    Ok(())
}
