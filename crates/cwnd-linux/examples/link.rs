//! A link for a command: RATE DELAY QUEUE COMMAND…, as a scenario writes them.
use cwnd_linux::emulate::{Emulation, Options};
use cwnd_sim::scenario::Scenario;
use std::process::Command;
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let text = format!(
        "duration=1\n[[link]]\nfrom=\"a\"\nto=\"b\"\nrate=\"{}\"\ndelay=\"{}\"\nqueue={}\n[[flow]]\ncontroller=\"reno\"\nfrom=\"a\"\nto=\"b\"\n",
        words[0], words[1], words[2]
    );
    let network = Scenario::from_toml(&text, "x")?.network(1)?;
    let emulation =
        Emulation::new(&network.links[0], &network.links[1], &Options { seed: 1, record: None })?;
    let mut command = Command::new(&words[3]);
    command.args(&words[4..]);
    let status = emulation.start(command)?.wait()?;
    let report = emulation.stop()?;
    for link in &report.links {
        eprintln!(
            "arr {} dep {} drops {} marks {} loss {} queue {:.2}",
            link.arrivals, link.departures, link.drops, link.marks, link.losses, link.mean_queue
        );
    }
    let l = &report.lateness;
    eprintln!(
        "late p50 {:.1} p90 {:.1} p99 {:.1} p999 {:.1} max {:.1} us, {} of {}; {:?}; {:?}",
        1e6 * l.quantile(0.5),
        1e6 * l.quantile(0.9),
        1e6 * l.quantile(0.99),
        1e6 * l.quantile(0.999),
        1e6 * l.worst(),
        l.late(),
        l.packets(),
        report.tool,
        report.limit()
    );
    std::process::exit(status.code().unwrap_or(1));
}
