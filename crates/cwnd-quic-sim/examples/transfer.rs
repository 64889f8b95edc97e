//! Sends data over a simulated link: `transfer STACK CONTROLLER [MB]`.
//!
//! A controller is one of cwnd's, or `own:cubic`, `own:reno` and the like of the stack itself. The
//! link has 100 Mb/s and 40 ms, and loses one of 3000 packets. Under valgrind this counts the
//! instructions that a controller costs:
//!
//! ```text
//! valgrind --tool=callgrind target/release/examples/transfer noq cubic
//! ```

use cwnd_sim::scenario::Scenario;
use cwnd_sim::{Options, Simulation};
use std::error::Error;
use std::process::ExitCode;

fn run() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (stack, controller, rest) = match &arguments[..] {
        [stack, controller, rest @ ..] => (stack, controller, rest),
        _ => return Err("transfer noq|quinn CONTROLLER [MB]".into()),
    };
    let megabytes: u32 = rest.first().map_or(Ok(30), |number| number.parse())?;
    let text = format!(
        r#"
        duration = "600s"
        dumbbell = {{ rate = "100mbit", delay = "20ms", queue = "4bdp", loss = 0.000333 }}
        flow = [{{ protocol = "quic", stack = "{stack}", controller = "{controller}",
                   bytes = "{megabytes}mb" }}]
        "#
    );
    let network = Scenario::from_toml(&text, "transfer.toml")?.network(1)?;
    let options = Options { quic: Some(&cwnd_quic_sim::connect), ..Options::default() };
    let mut simulation = Simulation::new(&network, 1, &options)?;
    simulation.run();
    let records = simulation.finish();
    let flow = &records.flows[0];
    let rate = flow.bytes_delivered as f64 * 8e-6 / flow.completed;
    println!("{rate:.2} Mb/s, {} data packets sent, {} lost", flow.packets_sent, flow.packets_lost);
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("transfer: {problem}");
            ExitCode::from(2)
        }
    }
}
