//! Data packets per second of processor time, of one flow and of eight: `cargo bench -p
//! cwnd-quic-sim`.

use cwnd_sim::scenario::Scenario;
use cwnd_sim::{Options, Simulation};
use std::error::Error;
use std::fs;

const RUNS: usize = 5;

/// Returns the processor time of this thread in seconds, as Linux counts it.
fn processor_time() -> Result<f64, Box<dyn Error>> {
    let counts = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos: f64 = counts.split(' ').next().unwrap_or_default().parse()?;
    Ok(nanos / 1e9)
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("thousands of data packets per second of processor time: median of {RUNS} runs");
    for stack in ["noq", "quinn"] {
        for controller in ["own:cubic", "cubic", "own:reno", "bbr3"] {
            let mut speeds = Vec::new();
            for flows in [1, 8] {
                let text = format!(
                    r#"
                    duration = "10s"
                    dumbbell = {{ rate = "200mbit", delay = "20ms", queue = "200p" }}
                    flow = [{{ protocol = "quic", stack = "{stack}", controller = "{controller}",
                               count = {flows}, stagger = "100ms",
                               quic = {{ receive_window = "8mb" }} }}]
                    "#
                );
                let network = Scenario::from_toml(&text, "speed.toml")?.network(1)?;
                let mut each = Vec::new();
                for _ in 0..RUNS {
                    let quic = Some(&cwnd_quic_sim::connect as _);
                    let options = Options { quic, ..Options::default() };
                    let began = processor_time()?;
                    let mut simulation = Simulation::new(&network, 1, &options)?;
                    simulation.run();
                    let packets = simulation.finish().packets as f64;
                    each.push(packets / 1e3 / (processor_time()? - began));
                }
                each.sort_by(f64::total_cmp);
                speeds.push(each[RUNS / 2]);
            }
            println!(
                "{stack:5} {controller:9} one flow {:4.0}, eight {:4.0}",
                speeds[0], speeds[1]
            );
        }
    }
    Ok(())
}
