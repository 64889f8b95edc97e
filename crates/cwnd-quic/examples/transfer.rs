//! Sends data over a connection in memory, in simulated time: `transfer STACK CONTROLLER [MB]`.
//!
//! A controller is one of cwnd's, or `own:cubic`, `own:reno` or `own:bbr` of the stack itself. The
//! link has 100 Mb/s and 40 ms, and drops each 3000th packet. Under valgrind this counts the
//! instructions that a controller costs:
//!
//! ```text
//! valgrind --tool=callgrind target/release/examples/transfer noq cubic
//! ```

#[path = "../tests/support/mod.rs"]
mod support;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::link::{Link, Outcome, PASS};

type Failure = Box<dyn std::error::Error>;

macro_rules! transfer {
    ($stack:ident, $proto:ident, $bbr:ident, $factory:ident, $controller:expr, $bytes:expr) => {{
        let mut transport = $proto::TransportConfig::default();
        match $controller {
            "own:cubic" => {
                let own = $proto::congestion::CubicConfig::default();
                transport.congestion_controller_factory(Arc::new(own))
            }
            "own:reno" => {
                let own = $proto::congestion::NewRenoConfig::default();
                transport.congestion_controller_factory(Arc::new(own))
            }
            "own:bbr" => {
                let own = $proto::congestion::$bbr::default();
                transport.congestion_controller_factory(Arc::new(own))
            }
            controller => {
                transport.congestion_controller_factory(cwnd_quic::$stack::$factory(controller)?)
            }
        };
        let start = Instant::now();
        let mut client = support::$stack::Host::client(start, $bytes, transport);
        let mut server = support::$stack::Host::server($proto::TransportConfig::default());
        let outcome =
            link().run(start, [&mut client, &mut server], $bytes, Duration::from_secs(600));
        (outcome, client.counts())
    }};
}

fn link() -> Link {
    let fate = |number: u64, _, _: &mut _| PASS.filter(|_| !number.is_multiple_of(3000));
    Link { rate: 12.5e6, queue: 2e6, ..Link::new(fate) }
}

fn run() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = "transfer noq|quinn CONTROLLER [MB]";
    let [stack, controller, rest @ ..] = &arguments[..] else { return Err(usage.into()) };
    let megabytes: u64 = rest.first().map_or(Ok(30), |number| number.parse())?;
    let (bytes, controller) = (megabytes * 1_000_000, controller.as_str());
    let (outcome, (sent, lost)) = match stack.as_str() {
        "noq" => transfer!(noq, noq_proto, Bbr3Config, factory, controller, bytes),
        "quinn" => {
            transfer!(quinn, quinn_proto, BbrConfig, factory_even_if_paced, controller, bytes)
        }
        _ => return Err(usage.into()),
    };
    let Outcome { time, received, closed } = outcome;
    let rate = received as f64 * 8e-6 / time.as_secs_f64();
    println!("{rate:.2} Mb/s, {sent} datagrams, {lost} packets lost{}", closed.unwrap_or_default());
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
