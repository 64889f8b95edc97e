//! A log of the fate of each packet, in CSV. A separate thread writes it, because writing to a disk
//! may block.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use cwnd_sim::live::{Arrival, Ecn, Fate};

/// Entries passed to the writer at once.
const BATCH: usize = 4096;
const NANOS: u64 = 1_000_000_000;

/// The fate of a packet at a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Arrival in nanoseconds since time 0 of the links. Entries are in the order in which fates
    /// are decided.
    pub at: u64,
    pub link: u32,
    pub arrival: Arrival,
    pub fate: Fate,
}

/// A CSV file of entries, with times in seconds to the nanosecond.
#[derive(Debug)]
pub(super) struct PacketLog {
    batch: Vec<Entry>,
    sender: Sender<Vec<Entry>>,
    writer: JoinHandle<io::Result<()>>,
}

impl PacketLog {
    /// Writes the header, and starts the writer. `link_names` are the names of the links.
    pub(super) fn new(file: File, link_names: Vec<String>) -> io::Result<Self> {
        let mut out = BufWriter::new(file);
        writeln!(out, "time_s,link,bytes,ecn,dataless,fate,arrives_s")?;
        let (sender, receiver) = channel::<Vec<Entry>>();
        let write = move || {
            for entry in receiver.into_iter().flatten() {
                write_line(&mut out, &link_names, &entry)?;
            }
            out.flush()
        };
        let writer = thread::Builder::new().name("cwnd-packet-log".into()).spawn(write)?;
        Ok(PacketLog { batch: Vec::with_capacity(BATCH), sender, writer })
    }

    pub(super) fn add(&mut self, entry: Entry) {
        self.batch.push(entry);
        if self.batch.len() == BATCH {
            self.send_batch();
        }
    }

    fn send_batch(&mut self) {
        // If the writer has ended, `finish` returns its error.
        let _ = self.sender.send(std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH)));
    }

    /// Writes the remaining entries, and waits for the writer.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.send_batch();
        drop(self.sender);
        self.writer
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the writer of the packet log panicked")))
    }
}

fn write_line(out: &mut impl Write, link_names: &[String], entry: &Entry) -> io::Result<()> {
    let Entry { at, link, arrival, fate } = entry;
    let name = &link_names[*link as usize];
    let (ecn, dataless) = (u8::from(arrival.ecn != Ecn::NotEct), u8::from(arrival.dataless));
    let size = arrival.size;
    write!(out, "{}.{:09},{name},{size},{ecn},{dataless},", at / NANOS, at % NANOS)?;
    match fate {
        Fate::Dropped => writeln!(out, "dropped,"),
        Fate::Lost => writeln!(out, "lost,"),
        Fate::Passes { arrives, marked } => {
            let (fate_name, at) = (if *marked { "marked" } else { "passed" }, arrives.as_nanos());
            writeln!(out, "{fate_name},{}.{:09}", at / NANOS, at % NANOS)
        }
    }
}
