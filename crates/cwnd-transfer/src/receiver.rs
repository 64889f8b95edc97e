//! The receiving side of a connection.

mod blocks;
mod offers;

use crate::channel::{Failure, Reader, Writer, exchange_greetings, stopped, unexpected};
use crate::event::Event;
use crate::folder::{FolderView, Identity, Refusal};
use crate::frame::{Decision, Frame, LARGE_WINDOW, Plan, ProtocolError, require, violation};
use crate::names::printable;
use crate::part::Content;
use crate::ranges::Ranges;
use crate::report::{Activity, Meter};
use crate::shared::{FileLock, LockOwner, Shared, counted_address};
use crate::stream::Stream;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Interval at which other senders and timeouts are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Timeout of the first offer.
const FIRST_OFFER_TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes written between two checks of the free disk space.
const SPACE_CHECK: u64 = 64 << 20;

/// An offer without its last answer.
#[derive(Debug)]
struct PendingOffer {
    number: u64,
    path: Vec<u8>,
    mode: u16,
    size: u64,
    space: u64,
    linked: bool,
    content: Content,
    state: State,
    /// Whether it is counted as a new entry.
    counted: bool,
    /// Bytes that crossed the network.
    moved: u64,
}

#[derive(Debug)]
enum State {
    /// Another connection receives the file.
    Waiting { since: Instant, reported: bool },
    /// The sender's values are compared with existing data.
    Comparing(Comparing),
    /// Blocks are received.
    Arriving(Arriving),
}

/// Comparison of existing data with the sender's values.
#[derive(Debug)]
struct Comparing {
    existing: ExistingData,
    /// The next block to compare, and the number of blocks that are compared.
    next: u64,
    count: u64,
    differing: Ranges,
}

/// The existing data.
#[derive(Debug)]
enum ExistingData {
    /// The file of that name, of one block. It is opened when its value arrives, because many may
    /// wait.
    Small,
    /// The file of that name, and its identity.
    Final(OwnedFd, Identity),
    /// The partial file.
    Part(Arc<FileLock>),
}

/// A file being received.
#[derive(Debug)]
struct Arriving {
    lock: Arc<FileLock>,
    missing: Ranges,
    /// Number of damaged blocks.
    damaged: u64,
    /// The content of END, when it has arrived.
    ended: Option<Ended>,
    /// Whether existing data are used.
    resumed: bool,
    /// Number of blocks of an existing partial file that are kept or replaced.
    in_place: u64,
    /// Bytes received.
    length: u64,
}

impl Arriving {
    fn new(lock: Arc<FileLock>, missing: Ranges) -> Self {
        let (resumed, in_place) = (false, 0);
        Arriving { lock, missing, damaged: 0, ended: None, resumed, in_place, length: 0 }
    }
}

#[derive(Clone, Copy, Debug)]
struct Ended {
    size: u64,
    root: Option<[u8; 32]>,
}

impl PendingOffer {
    /// Whether it is large: it may keep a partial file open.
    fn is_large(&self) -> bool {
        self.content.size.is_none_or(|size| size > crate::hash::BLOCK)
    }
}

/// What a frame means for its offer.
enum Step {
    Pending,
    /// The last answer of the offer.
    Last(Decision),
}

/// Why the processing of a frame stops.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
enum Stop {
    Refused(#[from] Refusal),
    Failed(#[from] Failure),
}

impl From<ProtocolError> for Stop {
    fn from(error: ProtocolError) -> Self {
        Stop::Failed(error.into())
    }
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Refused(why) => fatal(&why),
            Stop::Failed(failure) => failure,
        }
    }
}

/// The receiving side of one connection.
pub(crate) struct Receiver<'m, 'o> {
    shared: Arc<Shared>,
    stream: Arc<dyn Stream>,
    writer: Writer,
    meter: &'m mut Meter<'o>,
    view: FolderView,
    owner: Arc<LockOwner>,
    plan: Option<Plan>,
    /// Whether the sender's offers are a survey: decisions have no effect, to find the required
    /// disk space.
    survey: bool,
    /// Bytes required by the offers of the survey.
    needed: u64,
    offered: u64,
    pending: HashMap<u64, PendingOffer>,
    /// Number of large pending offers, and of small ones with an open partial file.
    large: usize,
    open: usize,
    /// Files that hard links may refer to, with their sizes, by the number of their offer.
    originals: HashMap<u64, (Identity, u64)>,
    unchecked: u64,
    buffer: Vec<u8>,
}

impl<'m, 'o> Receiver<'m, 'o> {
    pub(crate) fn new(
        shared: Arc<Shared>,
        stream: Arc<dyn Stream>,
        meter: &'m mut Meter<'o>,
    ) -> Self {
        Receiver {
            view: FolderView::new(Arc::clone(&shared.folder)),
            shared,
            writer: Writer::new(Arc::clone(&stream)),
            stream,
            meter,
            owner: LockOwner::new(),
            plan: None,
            survey: false,
            needed: 0,
            offered: 0,
            pending: HashMap::new(),
            large: 0,
            open: 0,
            originals: HashMap::new(),
            unchecked: 0,
            buffer: Vec::new(),
        }
    }

    /// Receives a transfer. Returns false for a dry run.
    pub(crate) fn run(&mut self) -> Result<bool, Failure> {
        let mut reader = Reader::new(Arc::clone(&self.stream), Arc::clone(&self.owner.idle_timer));
        let timeout = self.shared.options.timeouts.greeting;
        exchange_greetings(&mut self.writer, &mut reader, timeout)?;
        self.meter.connected(&*self.stream, 1);
        let result = self.receive_frames(&mut reader);
        if let Err(failure) = &result {
            self.send_stop(failure);
        }
        for item in std::mem::take(&mut self.pending).into_values() {
            self.release(&item);
        }
        result.map(|()| !self.plan.is_some_and(|plan| plan.dry_run))
    }

    /// Sends STOP with the reason of a failure of this side.
    fn send_stop(&mut self, failure: &Failure) {
        let (again, reason) = match failure {
            Failure::Protocol(error) => (false, error.to_string()),
            Failure::GivenUp { again, reason } => (*again, reason.clone()),
            _ => return,
        };
        self.writer.put(&Frame::Stop { again, reason: reason.as_bytes() });
        let _ = self.writer.flush();
    }

    fn receive_frames(&mut self, reader: &mut Reader) -> Result<(), Failure> {
        let started = Instant::now();
        let address = counted_address(&*self.stream);
        let timeout = self.shared.options.timeouts.idle;
        let mut last_work = started;
        loop {
            if self.owner.is_superseded() {
                return Err(superseded());
            }
            if !reader.has_frame() {
                self.judge_waiting()?;
                self.writer.flush()?;
                self.meter.show(&*self.stream);
                self.meter.enter(Activity::Waiting);
            }
            match reader.next(Instant::now() + POLL_INTERVAL)? {
                Some(Frame::Done) => {
                    require(self.plan.is_some(), "DONE before PLAN")?;
                    require(self.pending.is_empty(), "DONE before the last answers")?;
                    self.writer.put(&Frame::Done);
                    return self.writer.flush();
                }
                Some(frame) => {
                    self.meter.enter(Activity::Disk);
                    let is_work = frame != Frame::Ping;
                    self.handle(frame)?;
                    if is_work {
                        last_work = Instant::now();
                    }
                }
                None if self.owner.idle_timer.idle() > timeout => {
                    return Err(timed_out("nothing was received", timeout));
                }
                None => {}
            }
            // A sender may be idle as long as no other sender needs its place.
            if last_work.elapsed() > timeout && self.shared.take_rejection(address) {
                let what = "other senders wait, and this one sent nothing";
                return Err(timed_out(what, timeout));
            }
            if self.offered == 0 && started.elapsed() > FIRST_OFFER_TIMEOUT {
                return Err(timed_out("nothing was offered", FIRST_OFFER_TIMEOUT));
            }
        }
    }

    fn handle(&mut self, frame: Frame<'_>) -> Result<(), Failure> {
        match frame {
            Frame::Plan(plan) => self.receive_plan(plan),
            Frame::Offer(offer) if self.plan.is_some() => self.offer(&offer),
            Frame::Claim { number, first, values } => {
                self.update(number, |this, item| this.compare(item, first, values))
            }
            Frame::Block(block) => self.update(block.number, |this, item| this.block(item, &block)),
            Frame::Hole { number, first, count } => {
                self.update(number, |this, item| this.hole(item, first, count))
            }
            Frame::End { number, size, root } => {
                self.update(number, |this, item| this.end(item, Ended { size, root }))
            }
            Frame::Abort { number, reason } => self.abort(number, reason),
            Frame::Counted if self.survey => self.end_survey(),
            Frame::Stop { again, reason } => Err(stopped(again, reason, "the sender")),
            Frame::Ping => Ok(()),
            other => Err(unexpected(other.kind(), "sender")),
        }
    }

    fn receive_plan(&mut self, plan: Plan) -> Result<(), Failure> {
        require(self.plan.replace(plan).is_none(), "a second PLAN")?;
        self.meter.progress.total_bytes = (plan.bytes > 0).then_some(plan.bytes);
        let Plan { files, bytes, .. } = plan;
        let transfer = self.meter.transfer();
        self.meter.emit(Event::Plan { transfer, files, bytes });
        // Existing data need no space: the survey finds how much is required.
        self.survey = !plan.dry_run && plan.space > self.shared.free_space().0;
        self.writer.put(&Frame::Room { survey: self.survey });
        Ok(())
    }

    fn end_survey(&mut self) -> Result<(), Failure> {
        let (free, reserve) = self.shared.free_space();
        if self.needed > free {
            return Err(Failure::give_up(format!(
                "not enough disk space at the receiver: {} required, {} free in addition to the reserve of {}",
                format_bytes(self.needed),
                format_bytes(free),
                format_bytes(reserve)
            )));
        }
        self.survey = false;
        self.writer.put(&Frame::Room { survey: false });
        Ok(())
    }

    /// Whether decisions have no effect: a survey or a dry run.
    fn decisions_only(&self) -> bool {
        self.survey || self.plan.is_some_and(|plan| plan.dry_run)
    }

    fn checksum(&self) -> bool {
        self.plan.is_some_and(|plan| plan.checksum)
    }

    /// Checks regularly that the reserve of disk space remains.
    fn check_space(&mut self, written: u64) -> Result<(), Failure> {
        self.unchecked += written;
        if self.unchecked < SPACE_CHECK {
            return Ok(());
        }
        self.unchecked = 0;
        match self.shared.free_space() {
            (0, reserve) => Err(Failure::give_up(format!(
                "only the reserve of {} is left on the receiver's disk",
                format_bytes(reserve)
            ))),
            _ => Ok(()),
        }
    }

    fn insert(&mut self, number: u64, item: PendingOffer) -> Result<(), Failure> {
        self.large += usize::from(item.is_large());
        if self.large > LARGE_WINDOW {
            self.release(&item);
            return Ok(violation(format!(
                "more than {LARGE_WINDOW} pending offers of large files"
            ))?);
        }
        self.pending.insert(number, item);
        Ok(())
    }

    /// Processes a frame about a pending offer. A refusal ends the offer, and a failure the
    /// connection.
    fn update(
        &mut self,
        number: u64,
        process: impl FnOnce(&mut Self, &mut PendingOffer) -> Result<Step, Stop>,
    ) -> Result<(), Failure> {
        let Some(mut item) = self.pending.remove(&number) else {
            return self.check_offered(number);
        };
        match process(self, &mut item) {
            Ok(Step::Last(decision)) => {
                self.close(&item);
                self.answer(number, decision, 0, "");
                Ok(())
            }
            Err(Stop::Refused(why)) if !why.is_fatal() => {
                discard(&item);
                self.close(&item);
                self.refuse(number, &item.path, &why)
            }
            other => {
                self.pending.insert(number, item);
                other?;
                Ok(())
            }
        }
    }

    /// Ends an offer that is not pending any more, before its last answer.
    fn close(&mut self, item: &PendingOffer) {
        self.large -= usize::from(item.is_large());
        if !item.is_large() && part_is_open(item) {
            self.open -= 1;
        }
        self.release(item);
    }

    /// Unlocks the file of an offer.
    fn release(&self, item: &PendingOffer) {
        if let State::Arriving(Arriving { lock, .. })
        | State::Comparing(Comparing { existing: ExistingData::Part(lock), .. }) = &item.state
        {
            self.shared.unlock_file(&item.path, lock);
            // A partial file that is kept is not counted again by the next attempt.
            let stays = lock.with(|part| part.take().is_some_and(|part| part.is_kept()));
            if item.counted && stays == Some(false) {
                self.shared.uncount_entry();
            }
        }
    }

    fn answer(&mut self, number: u64, decision: Decision, first: u64, reason: &str) {
        self.writer.put(&Frame::Answer { number, decision, first, reason: reason.as_bytes() });
    }

    /// Refuses an offer that is not pending.
    fn refuse(&mut self, number: u64, path: &[u8], why: &Refusal) -> Result<(), Failure> {
        if why.is_fatal() {
            return Err(fatal(why));
        }
        let reason = why.to_string();
        if !self.survey {
            self.meter.error(Some(path), &reason);
        }
        self.answer(number, Decision::Refused, 0, &reason);
        Ok(())
    }

    fn abort(&mut self, number: u64, reason: &[u8]) -> Result<(), Failure> {
        let Some(item) = self.pending.remove(&number) else {
            return self.check_offered(number);
        };
        // What was received is compared with the next offer.
        self.close(&item);
        self.meter.error(Some(&item.path), &format!("not sent: {}", printable(reason)));
        Ok(())
    }

    /// Accepts frames about refused offers, which may be in flight, but not about offers that were
    /// never made.
    fn check_offered(&self, number: u64) -> Result<(), Failure> {
        Ok(require(number < self.offered, "a frame about an unknown offer")?)
    }
}

fn fatal(why: &Refusal) -> Failure {
    Failure::give_up(format!("{why} at the receiver"))
}

/// Removes the partial file of an offer, which cannot be completed.
fn discard(item: &PendingOffer) {
    if let State::Arriving(Arriving { lock, .. }) = &item.state {
        lock.with(|part| part.take().inspect(crate::part::Part::discard));
    }
}

fn part_is_open(item: &PendingOffer) -> bool {
    match &item.state {
        State::Arriving(arriving) => arriving.lock.with(|part| part.is_some()).unwrap_or(false),
        _ => false,
    }
}

/// Counts a file to be written, of which `need` bytes are missing. An existing partial file is
/// already counted.
fn count_file(shared: &Shared, item: &mut PendingOffer, need: u64) -> Result<(), Refusal> {
    shared.count_bytes(0, need)?;
    if !part_is_open(item) {
        shared.count_entry()?;
        item.counted = true;
    }
    Ok(())
}

fn superseded() -> Failure {
    Failure::give_up("another sender has taken over, because this one was idle")
}

fn timed_out(what: &str, time: Duration) -> Failure {
    Failure::GivenUp { again: true, reason: format!("{what} for {} s", time.as_secs()) }
}

/// Formats a number of bytes.
fn format_bytes(bytes: u64) -> String {
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let found = units.into_iter().find(|(factor, _)| bytes as f64 >= *factor);
    found.map_or_else(
        || format!("{bytes} B"),
        |(by, unit)| format!("{:.1} {unit}", bytes as f64 / by),
    )
}
