//! The bridge from Rust results to Python and NumPy, and nothing else: `cwnd._native`.

// It has no unit tests: pytest tests it. `cargo test --lib`, which takes no notice of `test =
// false`, compiles an empty crate.
#![cfg(not(test))]

mod conform;
mod custom;
#[cfg(target_os = "linux")]
mod emulate;
mod export;
mod fork;
mod law;
#[cfg(target_os = "linux")]
mod linux;
mod metrics;
mod model;
mod parallel;
#[cfg(all(unix, feature = "quic"))]
mod quic;
#[cfg(all(unix, not(feature = "quic")))]
#[path = "quic_absent.rs"]
mod quic;
#[cfg(target_os = "linux")]
mod real;
mod records;
mod registry;
mod scenario;
mod simulate;
#[cfg(unix)]
mod transfer;
#[cfg(unix)]
mod udt;

use pyo3::prelude::*;

/// The version of the native module.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// A hash of the sources of the crates in this module, and of the versions of their dependencies.
#[pyfunction]
fn sources() -> &'static str {
    env!("CWND_SOURCES")
}

/// The laws, the simulator and the scenario format, as Rust has them.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::{sources, version};
    #[pymodule_export]
    use crate::conform::{conform_recording, conform_scenario, recording_series};
    #[pymodule_export]
    use crate::custom::data::{
        Acked, Context, Conventions, Handshake, LossSample, Lost, Marked, Mtu,
        PersistentCongestion, RateSample, Recovered, Reduced, Report, Round, Settings, Tick,
        Timeout, Undo,
    };
    #[pymodule_export]
    use crate::custom::parts::{RoundCounter, WindowedMax, WindowedMin};
    #[pymodule_export]
    use crate::custom::{controller_hooks, controller_kind};
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::emulate::Bridge;
    #[pymodule_export]
    use crate::fork::Simulation;
    #[pymodule_export]
    use crate::law::{check_law, declare_law, format_law, hash_law};
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::linux::{
        KernelError, Trace, kernel_check, kernel_find, kernel_implemented, kernel_law, kernel_list,
        kernel_load, kernel_unload,
    };
    #[pymodule_export]
    use crate::metrics::{
        binned_rate, by_size, check_expectations, coefficient_of_variation, convergence_time,
        extreme, flow_group, flow_kinds, format_rate, format_time, format_value, friendliness,
        harm, ideal_completion_time, jain, jain_over_time, kind_label, link_rates, mean_of_finite,
        named_metrics, offered_rate, packet_rates, parse_quantity, queue_delay, rate, ratio,
        read_bound, read_expectations, read_limit, read_metric, responsiveness, run_figures,
        run_goodputs, run_jain, run_metrics, run_seconds, run_smoothness, run_total_goodput,
        run_transfers, slowdown, smoothness, spread, stability_index, time_scales, total,
    };
    #[pymodule_export]
    use crate::model::{
        converge, law_acks, law_cut, law_forgets, law_rounds, law_sawtooth, loss_chain, synchronous,
    };
    #[cfg(unix)]
    #[pymodule_export]
    use crate::quic::{quic_connect, quic_listen};
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::real::{check_real, run_real};
    #[pymodule_export]
    use crate::records::{catalogue, record_schema};
    #[pymodule_export]
    use crate::registry::{SpecError, algorithm, algorithms, canonical};
    #[pymodule_export]
    use crate::scenario::{
        ScenarioError, load, read_trace, resolve, scenario_groups, schema, validate,
    };
    #[pymodule_export]
    use crate::simulate::{check_simulated, simulate};
    #[cfg(unix)]
    #[pymodule_export]
    use crate::transfer::{Transfer, transfer_receive, transfer_send};
    #[cfg(unix)]
    #[pymodule_export]
    use crate::udt::{
        Listener, Stream, udt_check_code, udt_check_key, udt_check_network, udt_check_pair,
        udt_check_peer, udt_connect, udt_generate_code, udt_generate_key, udt_generate_pair,
        udt_listen, udt_parse_peers, udt_read_secret,
    };

    #[pymodule_export]
    const LARGEST_FILE: usize = crate::scenario::LARGEST_FILE;
    #[pymodule_export]
    const SCALES: [u32; 3] = cwnd_sim::metrics::SCALES;
}
