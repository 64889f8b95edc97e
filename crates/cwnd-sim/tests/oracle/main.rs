//! The simulator held against recorded results of ns-2.35.
//!
//! The JSON files beside this one hold what ns-2 measured, and with which parameters. Each module
//! writes the same experiment as a scenario, runs it, and puts both numbers in a [`Row`] with the
//! difference that is allowed. `docs/validation.md` shows the tables and explains what is left:
//!
//! ```sh
//! cargo test -p cwnd-sim --test oracle -- --ignored --nocapture report
//! ```
//!
//! `ORACLE=micro` prints one table, `ORACLE_SEEDS=30` takes other numbers of seeds.

mod aira;
mod compare;
mod micro;
mod more;
mod random_loss;
mod red;

use compare::{Row, check, print};

#[test]
fn deterministic_cases() {
    check(&micro::rows());
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

/// Prints every table of `docs/validation.md`: some minutes.
#[test]
#[ignore = "prints tables for the documentation"]
fn report() {
    type Table = (&'static str, fn() -> Vec<Row>);
    let tables: [Table; 8] = [
        ("micro", micro::rows),
        ("aira_table1", || aira::table_1(10)),
        ("simd_randloss", || random_loss::rows(random_loss::Seeds::Many)),
        ("simd_compat", || red::rows(red::Cases::All)),
        ("aira_tables34", || aira::tables_3_and_4(10)),
        ("gaimd_formula", more::gaimd),
        ("simd_converge", more::converge),
        ("daimd_table5", more::daimd),
    ];
    let wanted = std::env::var("ORACLE").unwrap_or_default();
    for (name, rows) in tables {
        if name.contains(&wanted) {
            println!("\n## {name}\n");
            print(&rows());
        }
    }
}
