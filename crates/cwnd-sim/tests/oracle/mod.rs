//! Comparison of the simulator with recorded results of ns-2.35.
//!
//! The JSON files in this folder have the parameters and results of ns-2. Each module writes the
//! same experiment as a scenario, runs it, and returns a [`Row`] with both results and the allowed
//! difference. `docs/validation.md` explains the differences. This writes all results to
//! `validation/ns2.csv`:
//!
//! ```sh
//! cargo test -p cwnd-sim --test all oracle::report -- --ignored --nocapture
//! ```
//!
//! `ORACLE=micro` prints one table; `ORACLE_SEEDS=30` sets the number of seeds.

mod aira;
pub(crate) mod compare;
mod deterministic;
mod random_loss;
mod red;
mod unchecked;

use compare::{Row, check};

#[test]
fn deterministic_cases() {
    check(&deterministic::rows());
}

#[test]
fn retransmissions_of_aira_table_1() {
    check(&aira::table_1(10));
}

#[test]
fn throughput_under_random_loss() {
    check(&random_loss::rows(random_loss::Seeds::Few));
}

#[test]
fn loss_and_mark_rates_of_red() {
    check(&red::rows(red::Cases::Some));
}

/// Writes `validation/ns2.csv` in some minutes, or prints the tables that `ORACLE` selects.
#[test]
#[ignore = "writes data for the documentation"]
fn report() {
    type Table = (&'static str, fn() -> Vec<Row>);
    let tables: [Table; 8] = [
        ("micro", deterministic::rows),
        ("aira_table1", || aira::table_1(10)),
        ("simd_randloss", || random_loss::rows(random_loss::Seeds::Many)),
        ("simd_compat", || red::rows(red::Cases::All)),
        ("aira_tables34", || aira::tables_3_and_4(10)),
        ("gaimd_formula", unchecked::gaimd),
        ("simd_converge", unchecked::converge),
        ("daimd_table5", unchecked::daimd),
    ];
    compare::report("ORACLE", ["ns2.csv", "ns-2"], tables);
}
