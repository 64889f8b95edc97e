//! The sending side of a connection.

mod files;
mod replies;

use crate::channel::{
    Failure, GREETING_TIMEOUT, IdleTimer, PING_INTERVAL, Reader, Writer, exchange_greetings,
};
use crate::event::FileOutcome;
use crate::frame::{
    DAMAGED, Decision, Frame, LARGE_WINDOW, Offer, Plan, RANGES, WINDOW, require, violation,
};
use crate::frame::{What, What::*};
use crate::hash::{BLOCK, Tree, blocks};
use crate::names::printable;
use crate::report::{Activity, Meter};
use crate::select::Select;
use crate::source::{Opener, Source};
use crate::stream::Stream;
use replies::{Reply, ReplyQueue};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Timeout for a receiver's reason after the end of its connection.
const REASON_TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes per write; the progress is reported between writes.
const WRITE_SIZE: usize = 1 << 16;

/// Options of a sender.
#[derive(Clone, Debug)]
pub struct SendOptions {
    /// Include and exclude patterns.
    pub select: Select,
    /// Compare files by hashes, not by size and time.
    pub checksum: bool,
    /// Write nothing at the receiver.
    pub dry_run: bool,
    /// Number of further attempts if there is no connection, or it fails.
    pub retry: u32,
}

impl Default for SendOptions {
    fn default() -> Self {
        SendOptions { select: Select::default(), checksum: false, dry_run: false, retry: 5 }
    }
}

/// State of an entry, over all attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryState {
    Open,
    Arrived,
    Failed,
}

/// The entries to be sent and their states, which outlive a connection.
pub(crate) struct Task {
    pub source: Source,
    pub options: SendOptions,
    pub states: Vec<EntryState>,
    /// Standard input was read: another attempt cannot send it again.
    pub consumed: bool,
}

/// Kind of an offer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum OfferKind {
    #[default]
    Entry,
    /// A hard link to a file, with the number of the file's offer and the index of its entry.
    Link(u64, usize),
    /// The mode and time of a complete folder.
    Seal,
}

/// An offer without its last answer.
#[derive(Debug, Default)]
struct PendingOffer {
    index: usize,
    kind: OfferKind,
    large: bool,
    /// The receiver has answered that it waits for another sender.
    waiting: bool,
    /// The receiver has requested the values of the first blocks.
    claim_requested: bool,
    /// The receiver has requested the blocks from one on.
    send_requested: bool,
    /// Number of ranges, and of blocks, requested by WANT.
    requested: (u64, u64),
    /// END was sent.
    ended: bool,
    resumed: bool,
    moved: u64,
    /// Bytes counted as done.
    done: u64,
    /// The values of the first blocks, which were claimed.
    claimed: Tree,
    /// Bytes sent of a stream.
    length: u64,
}

/// Work for an offer: the answer to a request of the receiver.
#[derive(Clone, Copy, Debug)]
enum Work {
    Claim { number: u64, count: u64 },
    Send { number: u64, first: u64 },
    Again { number: u64, first: u64, count: u64 },
}

pub(crate) struct Sender<'t, 'm, 'o> {
    stream: Arc<dyn Stream>,
    writer: Writer,
    replies: ReplyQueue,
    meter: &'m mut Meter<'o>,
    task: &'t mut Task,
    opener: Opener,
    offered: u64,
    pending: HashMap<u64, PendingOffer>,
    large: usize,
    work: VecDeque<Work>,
    /// Offers are decided without effect: a survey or a dry run.
    decisions_only: bool,
    /// Numbers of the offers of files that have hard links, by entry.
    numbers: HashMap<usize, u64>,
    survey: Option<bool>,
    last_sent: Instant,
    buffer: Vec<u8>,
}

impl<'t, 'm, 'o> Sender<'t, 'm, 'o> {
    pub(crate) fn new(
        stream: Arc<dyn Stream>,
        meter: &'m mut Meter<'o>,
        task: &'t mut Task,
    ) -> Self {
        Sender {
            writer: Writer::new(Arc::clone(&stream)),
            stream,
            replies: ReplyQueue::default(),
            meter,
            task,
            opener: Opener::default(),
            offered: 0,
            pending: HashMap::new(),
            large: 0,
            work: VecDeque::new(),
            decisions_only: false,
            numbers: HashMap::new(),
            survey: None,
            last_sent: Instant::now(),
            buffer: Vec::new(),
        }
    }

    /// Sends all entries that have not arrived.
    pub(crate) fn run(mut self, attempt: u32) -> Result<(), Failure> {
        let mut reader = Reader::new(Arc::clone(&self.stream), IdleTimer::new());
        exchange_greetings(&mut self.writer, &mut reader, GREETING_TIMEOUT)?;
        self.meter.connected(&*self.stream, attempt);
        std::thread::scope(move |scope| {
            scope.spawn(self.replies.filler(reader));
            let result = self.send_all().map_err(|failure| self.find_reason(failure));
            // The reading thread ends with DONE, or with the stream and the queue.
            if result.is_err() {
                self.stream.abort();
            }
            drop(self);
            result
        })
    }

    /// Returns the receiver's reason for closing the connection, or sends it this side's reason.
    fn find_reason(&mut self, failure: Failure) -> Failure {
        match failure {
            Failure::Connection(error) => {
                let until = Instant::now() + REASON_TIMEOUT;
                loop {
                    match self.replies.next(until) {
                        Ok(Some(_)) => {}
                        Err(stopped @ (Failure::Stopped { .. } | Failure::Protocol(_))) => {
                            break stopped;
                        }
                        _ => break Failure::Connection(error),
                    }
                }
            }
            Failure::Protocol(error) => {
                let reason = error.to_string();
                self.writer.out.clear();
                self.writer.put(&Frame::Stop { again: false, reason: reason.as_bytes() });
                let _ = self.writer.flush();
                let _ = self.stream.close(Instant::now() + REASON_TIMEOUT);
                Failure::Protocol(error)
            }
            other => other,
        }
    }

    fn send_all(&mut self) -> Result<(), Failure> {
        let (files, bytes, space) = self.task.source.total();
        let SendOptions { dry_run, checksum, .. } = self.task.options;
        self.writer.put(&Frame::Plan(Plan { files, bytes, space, dry_run, checksum }));
        if self.wait_for_answer_to_plan()? {
            self.decisions_only = true;
            let sized = |index: &usize| self.task.source.entries[*index].what == File;
            let files: Vec<_> = (0..self.task.source.entries.len()).filter(sized).collect();
            self.complete_offers(files.into_iter().map(|index| (index, OfferKind::Entry)))?;
            self.writer.put(&Frame::Counted);
            self.wait_for_answer_to_plan()?;
        }
        self.decisions_only = dry_run;
        let entries = &self.task.source.entries;
        let is_link = |index: &usize| entries[*index].original.is_some();
        let (links, others): (Vec<_>, Vec<_>) = (0..entries.len()).partition(is_link);
        // A file with hard links is offered again, because this connection must know it.
        let open = |index: &usize| {
            let entry = &entries[*index];
            self.task.states[*index] == EntryState::Open || entry.linked || entry.what == Folder
        };
        let others: Vec<_> = others.into_iter().filter(open).collect();
        self.complete_offers(others.into_iter().map(|index| (index, OfferKind::Entry)))?;
        self.complete_links(links)?;
        if !dry_run {
            // Modes and times of folders are set last: creating entries changes the time, and the
            // mode may forbid it.
            let made = |index: &usize| {
                let folder = self.task.source.entries[*index].what == Folder;
                folder && self.task.states[*index] == EntryState::Arrived
            };
            let folders: Vec<_> = (0..self.task.states.len()).rev().filter(made).collect();
            self.complete_offers(folders.into_iter().map(|index| (index, OfferKind::Seal)))?;
        }
        self.writer.put(&Frame::Done);
        self.flush()?;
        loop {
            match self.next_reply()? {
                Reply::Done => return Ok(()),
                other => self.handle(other)?,
            }
        }
    }

    fn wait_for_answer_to_plan(&mut self) -> Result<bool, Failure> {
        self.flush()?;
        loop {
            if let Some(survey) = self.survey.take() {
                return Ok(survey);
            }
            let reply = self.next_reply()?;
            self.handle(reply)?;
        }
    }

    /// Offers hard links to files that have arrived. The other links are offered as files.
    fn complete_links(&mut self, links: Vec<usize>) -> Result<(), Failure> {
        let (mut again, mut offers) = (Vec::new(), Vec::new());
        let mut replaced: HashMap<usize, usize> = HashMap::new();
        for index in links {
            if self.task.states[index] != EntryState::Open {
                continue;
            }
            let Some(original) = self.task.source.entries[index].original else { continue };
            match self.numbers.get(&original).filter(|_| self.arrived(original)) {
                Some(number) => offers.push((index, OfferKind::Link(*number, original))),
                None if replaced.contains_key(&original) => again.push(index),
                None => {
                    // The original did not arrive: this link is offered as the file.
                    replaced.insert(original, index);
                    self.task.source.entries[index].original = None;
                    self.task.source.entries[index].linked = true;
                    offers.push((index, OfferKind::Entry));
                }
            }
        }
        self.complete_offers(offers.into_iter())?;
        if again.is_empty() {
            return Ok(());
        }
        for index in &again {
            let entry = &mut self.task.source.entries[*index];
            entry.original = entry.original.and_then(|original| replaced.get(&original)).copied();
        }
        self.complete_links(again)
    }

    fn arrived(&self, index: usize) -> bool {
        self.task.states[index] == EntryState::Arrived
            || (self.decisions_only && self.numbers.contains_key(&index))
    }

    /// Offers entries ahead of their data, until all of them have their last answer.
    fn complete_offers(
        &mut self,
        entries: impl Iterator<Item = (usize, OfferKind)>,
    ) -> Result<(), Failure> {
        let mut entries = entries.peekable();
        loop {
            while self.pending.len() < WINDOW
                && let Some(&(index, kind)) = entries.peek()
            {
                let large = kind == OfferKind::Entry && self.is_large(index);
                if large && self.large >= LARGE_WINDOW {
                    break;
                }
                entries.next();
                self.offer(index, kind, large);
                self.flush_batch()?;
            }
            self.take_replies()?;
            if let Some(work) = self.work.pop_front() {
                self.run_work(work)?;
            } else if !self.pending.is_empty() {
                self.flush()?;
                let reply = self.next_reply()?;
                self.handle(reply)?;
            } else if entries.peek().is_none() {
                return self.flush();
            }
        }
    }

    fn is_large(&self, index: usize) -> bool {
        let entry = &self.task.source.entries[index];
        entry.what == Stream || (entry.what == File && entry.size > BLOCK)
    }

    fn offer(&mut self, index: usize, kind: OfferKind, large: bool) {
        let number = self.offered;
        self.offered += 1;
        let path = self.task.source.path(index);
        let mut target = Vec::new();
        let entry = &self.task.source.entries[index];
        let what: What = match kind {
            OfferKind::Entry => entry.what,
            OfferKind::Seal => Seal,
            OfferKind::Link(original, of) => {
                target.extend(original.to_be_bytes());
                target.extend(self.task.source.path(of));
                Link
            }
        };
        let target = if what == Symlink { &entry.target[..] } else { &target };
        self.writer.put(&Frame::Offer(Offer {
            what,
            linked: entry.linked,
            mode: entry.mode,
            size: entry.size,
            space: entry.space,
            mtime: entry.mtime,
            path: &path,
            target,
        }));
        if entry.linked && kind == OfferKind::Entry {
            self.numbers.insert(index, number);
        }
        self.large += usize::from(large);
        self.pending.insert(number, PendingOffer { index, kind, large, ..Default::default() });
    }

    /// Writes the buffer, and reports the progress meanwhile.
    fn flush(&mut self) -> Result<(), Failure> {
        if self.writer.out.is_empty() {
            return Ok(());
        }
        let before = self.meter.enter(Activity::Writing);
        let mut done = 0;
        while done < self.writer.out.len() {
            let end = self.writer.out.len().min(done + WRITE_SIZE);
            self.writer.write(done..end)?;
            done = end;
            self.meter.show(&*self.stream);
        }
        self.writer.out.clear();
        self.last_sent = Instant::now();
        self.meter.enter(before);
        Ok(())
    }

    fn flush_batch(&mut self) -> Result<(), Failure> {
        if self.writer.is_batch() { self.flush() } else { Ok(()) }
    }

    /// Handles the received replies, without waiting.
    fn take_replies(&mut self) -> Result<(), Failure> {
        while let Some(reply) = self.replies.take()? {
            self.handle(reply)?;
        }
        Ok(())
    }

    /// Sends a PING if nothing was sent for [`PING_INTERVAL`].
    fn ping(&mut self) -> Result<(), Failure> {
        if self.last_sent.elapsed() >= PING_INTERVAL {
            self.writer.put(&Frame::Ping);
            self.flush()?;
        }
        Ok(())
    }

    /// Waits for a reply.
    fn next_reply(&mut self) -> Result<Reply, Failure> {
        let before = self.meter.enter(Activity::Waiting);
        loop {
            if let Some(reply) = self.replies.next(Instant::now() + Duration::from_millis(100))? {
                self.meter.enter(before);
                return Ok(reply);
            }
            self.meter.show(&*self.stream);
            self.ping()?;
        }
    }

    fn handle(&mut self, reply: Reply) -> Result<(), Failure> {
        match reply {
            Reply::Room(survey) => self.survey = Some(survey),
            Reply::Done => violation("DONE before that of the sender")?,
            Reply::Want { number, first, count } => {
                let Some(item) = self.pending.get(&number) else {
                    return Ok(violation("a request for data that were not offered")?);
                };
                let requested = (item.requested.0 + 1, item.requested.1.saturating_add(count));
                let size = self.task.source.entries[item.index].size;
                let end = first.checked_add(count);
                // Blocks of a stream cannot be read again, and other blocks were never offered.
                let has = end.is_some_and(|end| end <= blocks(size)) && self.is_file(item);
                let offered = has && (item.claim_requested || item.moved > 0);
                require(offered, "a request for blocks that were not offered")?;
                // Neither the sender's memory nor its disk is the receiver's to use up.
                let most = (RANGES as u64 + DAMAGED, blocks(size) + DAMAGED);
                let bounded = requested.0 <= most.0 && requested.1 <= most.1;
                require(bounded, "wishes for the same blocks again and again")?;
                if let Some(item) = self.pending.get_mut(&number) {
                    item.requested = requested;
                }
                self.work.push_back(Work::Again { number, first, count });
            }
            Reply::Answer { number, decision, first, reason } => {
                self.handle_answer(number, decision, first, &reason)?;
            }
        }
        Ok(())
    }

    fn is_file(&self, item: &PendingOffer) -> bool {
        item.kind == OfferKind::Entry && self.task.source.entries[item.index].what == File
    }

    fn handle_answer(
        &mut self,
        number: u64,
        decision: Decision,
        first: u64,
        reason: &[u8],
    ) -> Result<(), Failure> {
        let Some(item) = self.pending.get_mut(&number) else {
            // The offer was withdrawn while the answer was in flight.
            return Ok(require(number < self.offered, "an answer without an offer")?);
        };
        let entry = &self.task.source.entries[item.index];
        let sendable = item.kind == OfferKind::Entry && matches!(entry.what, File | Stream);
        match decision {
            Decision::Refused => self.failed(number, &printable(reason)),
            Decision::Present => self.present(number),
            _ if !sendable || item.send_requested => {
                violation("a request for an entry without data")?
            }
            Decision::Wait => {
                let again = std::mem::replace(&mut item.waiting, true);
                require(!again, "a second answer to wait")?;
                let path = self.task.source.path(item.index);
                self.meter.note(&path, &format!("waiting: {}", printable(reason)));
            }
            Decision::Claim => {
                let count = first;
                let fits = entry.what == File && (1..=blocks(entry.size)).contains(&count);
                require(fits && !item.claim_requested, "a second request for values")?;
                item.claim_requested = true;
                self.work.push_back(Work::Claim { number, count });
            }
            Decision::Send if self.decisions_only => self.would_send(number),
            Decision::Send => {
                let fits = first == 0 || entry.what == File && first <= blocks(entry.size);
                require(fits, "a request for data that were not offered")?;
                if !reason.is_empty() {
                    let path = self.task.source.path(item.index);
                    self.meter.note(&path, &printable(reason));
                }
                item.send_requested = true;
                self.work.push_back(Work::Send { number, first });
            }
        }
        Ok(())
    }

    fn remove_offer(&mut self, number: u64) -> Option<PendingOffer> {
        let item = self.pending.remove(&number)?;
        self.large -= usize::from(item.large);
        Some(item)
    }

    /// Records that an entry is complete at the receiver.
    fn present(&mut self, number: u64) {
        let Some(item) = self.remove_offer(number) else { return };
        let survey = self.decisions_only && !self.task.options.dry_run;
        let before = self.task.states[item.index];
        if survey || item.kind == OfferKind::Seal {
            return;
        }
        self.task.states[item.index] = EntryState::Arrived;
        let entry = &self.task.source.entries[item.index];
        if before == EntryState::Arrived || !matches!(entry.what, File | Stream) {
            return;
        }
        let size = if entry.what == Stream { item.length } else { entry.size };
        let outcome = match item {
            PendingOffer { kind: OfferKind::Link(..), .. } => FileOutcome::Sent,
            PendingOffer { resumed: true, .. } => FileOutcome::Resumed,
            PendingOffer { ended: true, .. } => FileOutcome::Sent,
            _ => FileOutcome::Present,
        };
        self.meter.progress.done_bytes += size - item.done.min(size);
        let path = self.task.source.path(item.index);
        self.meter.file(&path, outcome, size, item.moved);
    }

    /// Records that a dry run would send a file.
    fn would_send(&mut self, number: u64) {
        let Some(item) = self.remove_offer(number) else { return };
        if self.task.options.dry_run {
            let path = self.task.source.path(item.index);
            let size = self.task.source.entries[item.index].size;
            self.meter.file(&path, FileOutcome::Sent, size, 0);
        }
    }

    /// Records that an entry will not arrive.
    fn failed(&mut self, number: u64, reason: &str) {
        let Some(item) = self.remove_offer(number) else { return };
        self.meter.progress.done_bytes -= item.done;
        let survey = self.decisions_only && !self.task.options.dry_run;
        if survey || self.task.states[item.index] == EntryState::Failed {
            return;
        }
        self.task.states[item.index] = EntryState::Failed;
        let path = self.task.source.path(item.index);
        self.meter.error(Some(&path), reason);
    }

    /// Withdraws an offer with ABORT.
    fn withdraw(&mut self, number: u64, reason: &str) {
        self.writer.put(&Frame::Abort { number, reason: reason.as_bytes() });
        self.failed(number, reason);
    }
}
