//! What was judged, packet by packet, as a table in a file: written by a thread of its own, for a disk
//! may take its time.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use cwnd_sim::queue::{Arrival, Fate};

/// Entries that are handed over at once.
const BATCH: usize = 4096;
const NANOS: u64 = 1_000_000_000;

/// A packet at a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Nanoseconds since the start.
    pub at: u64,
    pub link: u32,
    pub arrival: Arrival,
    pub fate: Fate,
}

/// A file of entries: CSV with times in seconds to the nanosecond.
#[derive(Debug)]
pub(super) struct Journal {
    batch: Vec<Entry>,
    to: Sender<Vec<Entry>>,
    writer: JoinHandle<io::Result<()>>,
}

impl Journal {
    /// A journal of links with these names.
    ///
    /// # Errors
    /// When the file cannot be written to.
    pub(super) fn new(file: File, names: Vec<String>) -> io::Result<Self> {
        let mut out = BufWriter::new(file);
        writeln!(out, "time_s,link,bytes,ecn,dataless,fate,arrives_s")?;
        let (to, from) = channel::<Vec<Entry>>();
        let write = move || {
            for entry in from.into_iter().flatten() {
                line(&mut out, &names, &entry)?;
            }
            out.flush()
        };
        let writer = thread::Builder::new().name("cwnd-journal".into()).spawn(write)?;
        Ok(Journal { batch: Vec::with_capacity(BATCH), to, writer })
    }

    pub(super) fn add(&mut self, entry: Entry) {
        self.batch.push(entry);
        if self.batch.len() == BATCH {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        // A writer that has gone says why at the end.
        let _ = self.to.send(std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH)));
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.hand_over();
        drop(self.to);
        self.writer.join().unwrap_or_else(|_| Err(io::Error::other("the record's writer failed")))
    }
}

fn line(out: &mut impl Write, names: &[String], entry: &Entry) -> io::Result<()> {
    let Entry { at, link, arrival, fate } = entry;
    let name = &names[*link as usize];
    let (ecn, dataless) = (u8::from(arrival.capable), u8::from(arrival.dataless));
    let size = arrival.size;
    write!(out, "{}.{:09},{name},{size},{ecn},{dataless},", at / NANOS, at % NANOS)?;
    match fate {
        Fate::Dropped => writeln!(out, "dropped,"),
        Fate::Lost => writeln!(out, "lost,"),
        Fate::Passes { arrives, marked } => {
            let (word, at) = (if *marked { "marked" } else { "passed" }, arrives.as_nanos());
            writeln!(out, "{word},{}.{:09}", at / NANOS, at % NANOS)
        }
    }
}
