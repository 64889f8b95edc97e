//! Records the events and answers of a controller in a file, reads the file back and replays it.
//!
//! A record of a connection, from any driver, is a regression test of a controller: the replay must
//! give the same answers, bit by bit.
//!
//! ```text
//! cargo run --example replay -- reno.record
//! ```

#[expect(dead_code, reason = "its main function")]
mod driver;

use cwnd::record::{Record, Recorder, replay};
use cwnd::{Dur, MakeController, Spec};
use std::error::Error;
use std::fs;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("no file is given for the record")?;
    let settings = driver::settings();
    let reno = Spec::parse("reno")?;

    // A recorder is a controller: the driver does not change.
    let mut recorder = Recorder::new(reno.controller(&settings));
    driver::transfer(&mut recorder, Dur::from_millis(5_000));
    fs::write(&path, recorder.record().to_string())?;

    let record: Record = fs::read_to_string(&path)?.parse()?;
    println!("{} events", record.entries.len());
    // A new controller with the same settings gives the same answers.
    replay(reno.controller(&settings), &record)?;
    println!("{reno}: same answers");
    // A different one does not: the error is the first answer that differs.
    let gentle = Spec::parse("aimd(1, 1/4)")?;
    match replay(gentle.controller(&settings), &record) {
        Ok(()) => Err(format!("{gentle}: same answers").into()),
        Err(mismatch) => {
            println!("{gentle}: {mismatch}");
            Ok(())
        }
    }
}
