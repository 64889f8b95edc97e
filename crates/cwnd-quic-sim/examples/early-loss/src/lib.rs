//! An application's transport configuration, and its test in simulated time.

use noq_proto::{Side, TransportConfig};

/// Returns the transport configuration of an end, with a congestion controller of cwnd.
///
/// # Errors
/// A controller that does not exist.
pub fn transport_config(_: Side, controller: &str) -> Result<TransportConfig, cwnd_quic::Error> {
    let mut config = TransportConfig::default();
    config.congestion_controller_factory(cwnd_quic::noq::factory(controller)?);
    Ok(config)
}

#[test]
fn early_loss_does_not_pin_the_window() -> Result<(), Box<dyn std::error::Error>> {
    for controller in ["cubic", "reno", "bbr3"] {
        let runs = cwnd_quic_sim::noq::Scenario::from_toml(include_str!("../early-loss.toml"))?
            .transport(|side| transport_config(side, controller).expect("a known controller"))
            .client(|stream| stream.write_all(10_000_000))
            .seeds(0..500)
            .run()?;
        runs.expect().map_err(|error| format!("{controller}: {error}"))?;
    }
    Ok(())
}
