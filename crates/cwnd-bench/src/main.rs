//! What one simulation costs, stage by stage: seconds and memory, for `bench/run.py`; and a
//! function of its own around the run, for callgrind to count in (`bench/instructions.py`).
//!
//! A scenario in JSON comes in on standard input, a line of JSON goes out. `--record` records the
//! controllers' events, `--tap` looks at each packet that crosses the first link, `--pcap`
//! writes it to the file that follows. `--every-event` runs without lookahead. `--digest` adds a
//! digest of the complete records, for `bench/equal.py`.

#![forbid(unsafe_code)]

use cwnd_sim::network::Network;
use cwnd_sim::scenario::Scenario;
use cwnd_sim::{Options, PcapWriter, Simulation};
use serde_json::{Map, Value, json};
use std::error::Error;
use std::fmt::{self, Write};
use std::fs::{self, File};
use std::hint::black_box;
use std::io::{self, BufWriter};
use std::sync::Arc;
use std::time::Instant;

/// The stages so far, and where the one that runs began.
struct Stages {
    done: Map<String, Value>,
    began: Instant,
    resident: Option<i64>,
}

impl Stages {
    fn new() -> Self {
        Stages { done: Map::new(), began: Instant::now(), resident: memory("VmRSS:") }
    }

    /// Ends a stage: its seconds, and the bytes of memory by which the process has grown.
    fn end(&mut self, name: &str) {
        let seconds = self.began.elapsed().as_secs_f64();
        let resident = memory("VmRSS:");
        let grown = resident.zip(self.resident).map(|(now, before)| now - before);
        self.done.insert(name.to_owned(), json!({ "seconds": seconds, "bytes": grown }));
        (self.began, self.resident) = (Instant::now(), resident);
    }
}

/// One of Linux's counts of this process's memory, in bytes.
fn memory(name: &str) -> Option<i64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: i64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(1024 * kibibytes)
}

/// Callgrind counts in here.
#[inline(never)]
fn run(simulation: &mut Simulation) {
    simulation.run();
}

/// FNV-1a of what is written.
struct Digest(u64);

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = text
            .bytes()
            .fold(self.0, |digest, byte| (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Ok(())
    }
}

/// Looks at what crosses the first link, as the arguments say.
fn watch(
    simulation: &mut Simulation,
    network: &Network,
    arguments: &[String],
) -> Result<(), Box<dyn Error>> {
    if let Some(at) = arguments.iter().position(|argument| argument == "--pcap") {
        let path = arguments.get(at + 1).ok_or("--pcap needs a file")?;
        let mut writer = PcapWriter::new(BufWriter::new(File::create(path)?), network)?;
        simulation.tap(0, move |seen| {
            if let Err(error) = writer.write(seen) {
                eprintln!("cwnd-bench: {error}");
            }
        });
    } else if arguments.iter().any(|argument| argument == "--tap") {
        simulation.tap(0, |seen| {
            black_box(seen);
        });
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let text = io::read_to_string(io::stdin())?;
    let mut stages = Stages::new();
    let scenario = Scenario::from_json(&text)?;
    stages.end("scenario");
    let network = Arc::new(scenario.network(scenario.seed)?);
    stages.end("network");
    let has = |option| arguments.iter().any(|argument| argument == option);
    let options = Options {
        record_events: has("--record"),
        lookahead: !has("--every-event"),
        #[cfg(not(target_family = "wasm"))]
        quic: Some(&cwnd_quic_sim::connect),
        ..Options::default()
    };
    let mut simulation = Simulation::new(network.clone(), scenario.seed, &options)?;
    watch(&mut simulation, &network, &arguments)?;
    stages.end("create");
    run(&mut simulation);
    stages.end("run");
    let records = simulation.finish();
    stages.end("finish");
    let mut digest = Digest(0xcbf2_9ce4_8422_2325);
    if has("--digest") {
        write!(digest, "{records:?}")?;
    }
    let line = json!({
        "digest": format!("{:016x}", digest.0),
        "flows": network.flows.len(),
        "packets": records.packets,
        "events": records.events,
        "stages": stages.done,
        "peak_bytes": memory("VmHWM:"),
    });
    println!("{line}");
    Ok(())
}
