//! The receiving side of a connection.

mod blocks;
mod offers;

use crate::channel::{Failure, Reader, SILENCE, Writer, stopped, unexpected};
use crate::claims::{Holder, Shared, Slot};
use crate::event::Event;
use crate::folder::{Identity, Place, Refusal};
use crate::frame::{Decision, Frame, LARGE_WINDOW, Plan, WINDOW, violation};
use crate::names::printable;
use crate::part::Content;
use crate::ranges::Ranges;
use crate::report::{Activity, Meter};
use crate::stream::Stream;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time between two looks at what is not a frame: other senders, the deadline.
const TICK: Duration = Duration::from_millis(200);
/// The time in which a sender has to offer something.
const FIRST_OFFER: Duration = Duration::from_secs(60);
/// The time that an offer waits for another sender of the same file.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes that are written between two looks at the free disk space.
const SPACE_CHECK: u64 = 64 << 20;

/// An offer that waits for its last answer.
#[derive(Debug)]
struct Item {
    path: Vec<u8>,
    mode: u16,
    size: u64,
    space: u64,
    linked: bool,
    content: Content,
    state: State,
    /// It counts as an entry that is taken.
    counted: bool,
    /// Bytes that crossed the network.
    moved: u64,
}

#[derive(Debug)]
enum State {
    /// Another sender is sending it.
    Waiting { since: Instant, told: bool },
    /// The values of its blocks are compared.
    Claiming(Claiming),
    /// Its blocks arrive.
    Arriving(Arriving),
}

/// A comparison of what is there with the values of a sender's blocks.
#[derive(Debug)]
struct Claiming {
    base: Base,
    /// The block whose value comes next.
    next: u64,
    differing: Ranges,
}

/// What is compared.
#[derive(Debug)]
enum Base {
    /// A file of one block that has the name. It is opened when its value arrives: many may wait.
    Small,
    /// A file that has the name, and its identity.
    Final(OwnedFd, Identity),
    /// A part.
    Part(Arc<Slot>),
}

/// A file that arrives.
#[derive(Debug)]
struct Arriving {
    slot: Arc<Slot>,
    missing: Ranges,
    /// Blocks that arrived damaged.
    damaged: u64,
    /// The sender has sent everything.
    ended: Option<Ended>,
    /// Some of it was there.
    resumed: bool,
    /// Blocks of the part are replaced.
    in_place: bool,
    /// Bytes of a stream until now.
    length: u64,
}

impl Arriving {
    fn new(slot: Arc<Slot>, missing: Ranges) -> Self {
        let (resumed, in_place) = (false, false);
        Arriving { slot, missing, damaged: 0, ended: None, resumed, in_place, length: 0 }
    }
}

#[derive(Clone, Copy, Debug)]
struct Ended {
    size: u64,
    root: Option<[u8; 32]>,
}

impl Item {
    /// Whether it counts as large: it may keep a part open.
    fn is_large(&self) -> bool {
        self.content.size.is_none_or(|size| size > crate::hash::BLOCK)
    }
}

/// A receiver of one connection.
pub(crate) struct Receiver<'m, 'o> {
    shared: Arc<Shared>,
    stream: Arc<dyn Stream>,
    writer: Writer,
    meter: &'m mut Meter<'o>,
    place: Place,
    holder: Arc<Holder>,
    plan: Option<Plan>,
    /// Offers are only judged, to find out whether there is room.
    survey: bool,
    /// Bytes that the offers of the survey need.
    needed: u64,
    offered: u64,
    items: HashMap<u64, Item>,
    /// Items that are large, and small ones of which a part is open.
    large: usize,
    open: usize,
    /// Files that hard links may refer to and their sizes, by the number of their offer.
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
            place: Place::new(Arc::clone(&shared.folder)),
            shared,
            writer: Writer::new(Arc::clone(&stream)),
            stream,
            meter,
            holder: Holder::new(),
            plan: None,
            survey: false,
            needed: 0,
            offered: 0,
            items: HashMap::new(),
            large: 0,
            open: 0,
            originals: HashMap::new(),
            unchecked: 0,
            buffer: Vec::new(),
        }
    }

    /// Receives what the sender sends. Returns whether that was a transfer, and not only a trial.
    pub(crate) fn run(&mut self) -> Result<bool, Failure> {
        let mut reader = Reader::new(Arc::clone(&self.stream), Arc::clone(&self.holder.pulse));
        let greeted = self.writer.greet();
        reader.expect_greeting()?;
        greeted?;
        let peer = self.stream.peer().map_or_else(String::new, |peer| peer.to_string());
        let (transfer, identity) = (self.meter.transfer(), self.stream.identity());
        self.meter.emit(Event::Connected { transfer, peer, identity, attempt: 1 });
        let result = self.frames(&mut reader);
        if let Err(failure) = &result {
            self.tell(failure);
        }
        for item in std::mem::take(&mut self.items).into_values() {
            self.release(&item);
        }
        result.map(|()| !self.plan.is_some_and(|plan| plan.dry_run))
    }

    /// Tells the sender why no more is taken.
    fn tell(&mut self, failure: &Failure) {
        let (again, reason) = match failure {
            Failure::Protocol(error) => (false, error.to_string()),
            Failure::GivenUp { again, reason } => (*again, reason.clone()),
            _ => return,
        };
        self.writer.put(&Frame::Stop { again, reason: reason.as_bytes() });
        let _ = self.writer.flush();
    }

    fn frames(&mut self, reader: &mut Reader) -> Result<(), Failure> {
        let started = Instant::now();
        let address = self.stream.peer().map(|peer| peer.ip());
        let mut worked = started;
        loop {
            if self.holder.is_superseded() {
                return Err(superseded());
            }
            if !reader.has_frame() {
                self.answer_waiting()?;
                self.writer.flush()?;
                self.meter.show(&*self.stream);
                self.meter.enter(Activity::Waiting);
            }
            match reader.next(Instant::now() + TICK)? {
                Some(Frame::Done) => {
                    if self.plan.is_none() {
                        return Ok(violation("an end without a plan")?);
                    }
                    if !self.items.is_empty() {
                        return Ok(violation("an end with offers that are not settled")?);
                    }
                    self.writer.put(&Frame::Done);
                    return self.writer.flush();
                }
                Some(frame) => {
                    self.meter.enter(Activity::Disk);
                    let works = frame != Frame::Ping;
                    self.handle(frame)?;
                    if works {
                        worked = Instant::now();
                    }
                }
                None if self.holder.pulse.silence() > SILENCE => {
                    return Err(late(format!("nothing came for {} s", SILENCE.as_secs())));
                }
                None => {}
            }
            // A sender may be idle for as long as it wants, but not while others wait for its place.
            if worked.elapsed() > SILENCE && self.shared.is_place_wanted(address) {
                let idle = SILENCE.as_secs();
                return Err(late(format!("others wait, and nothing was sent for {idle} s")));
            }
            if self.offered == 0 && started.elapsed() > FIRST_OFFER {
                return Err(late(format!("nothing was offered for {} s", FIRST_OFFER.as_secs())));
            }
        }
    }

    fn handle(&mut self, frame: Frame<'_>) -> Result<(), Failure> {
        match frame {
            Frame::Plan(plan) => self.take_plan(plan),
            Frame::Offer(offer) if self.plan.is_some() => self.offer(&offer),
            Frame::Claim { number, first, values } => self.compare(number, first, values),
            Frame::Block(block) => self.block(&block),
            Frame::Hole { number, first, count } => self.hole(number, first, count),
            Frame::End { number, size, root } => self.end(number, Ended { size, root }),
            Frame::Abort { number, reason } => self.abort(number, reason),
            Frame::Counted if self.survey => self.survey_is_over(),
            Frame::Stop { again, reason } => Err(stopped(again, reason, "the sender")),
            Frame::Ping => Ok(()),
            other => Err(unexpected(other.kind(), "sender")),
        }
    }

    fn take_plan(&mut self, plan: Plan) -> Result<(), Failure> {
        if self.plan.replace(plan).is_some() {
            return Ok(violation("a second plan")?);
        }
        self.meter.progress.total_bytes = (plan.bytes > 0).then_some(plan.bytes);
        let Plan { files, bytes, .. } = plan;
        let transfer = self.meter.transfer();
        self.meter.emit(Event::Plan { transfer, files, bytes });
        // What is there already needs no room: the offers tell how much that is.
        self.survey = !plan.dry_run && plan.space > self.shared.room().0;
        self.writer.put(&Frame::Room { survey: self.survey });
        Ok(())
    }

    fn survey_is_over(&mut self) -> Result<(), Failure> {
        let (room, reserve) = self.shared.room();
        if self.needed > room {
            return Err(Failure::give_up(format!(
                "the receiver's disk has no room: {} are needed and {} are free beside a reserve of {}",
                amount(self.needed),
                amount(room),
                amount(reserve)
            )));
        }
        self.survey = false;
        self.writer.put(&Frame::Room { survey: false });
        Ok(())
    }

    /// Whether offers are only judged.
    fn is_trial(&self) -> bool {
        self.survey || self.plan.is_some_and(|plan| plan.dry_run)
    }

    fn checksum(&self) -> bool {
        self.plan.is_some_and(|plan| plan.checksum)
    }

    /// Looks from time to time whether the reserve of disk space is left.
    fn check_space(&mut self, written: u64) -> Result<(), Failure> {
        self.unchecked += written;
        if self.unchecked < SPACE_CHECK {
            return Ok(());
        }
        self.unchecked = 0;
        match self.shared.room() {
            (0, reserve) => Err(Failure::give_up(format!(
                "the receiver's disk is full but for the reserve of {}",
                amount(reserve)
            ))),
            _ => Ok(()),
        }
    }

    fn insert(&mut self, number: u64, item: Item) -> Result<(), Failure> {
        if self.items.len() >= WINDOW {
            return Ok(violation(format!("more than {WINDOW} offers at once"))?);
        }
        self.large += usize::from(item.is_large());
        if self.large > LARGE_WINDOW {
            self.release(&item);
            return Ok(violation(format!("more than {LARGE_WINDOW} offers of large files"))?);
        }
        self.items.insert(number, item);
        Ok(())
    }

    /// Takes an item out: its last answer follows.
    fn settle(&mut self, number: u64) -> Option<Item> {
        let item = self.items.remove(&number)?;
        self.large -= usize::from(item.is_large());
        if !item.is_large() && part_is_open(&item) {
            self.open -= 1;
        }
        self.release(&item);
        Some(item)
    }

    /// Lets other senders have the file of an item.
    fn release(&self, item: &Item) {
        if let State::Arriving(Arriving { slot, .. })
        | State::Claiming(Claiming { base: Base::Part(slot), .. }) = &item.state
        {
            self.shared.release(&item.path, slot);
            // A part that stays is found by the next attempt, which does not count it again.
            let stays = slot.with(|part| part.take().is_some_and(|part| part.is_kept()));
            if item.counted && stays == Some(false) {
                self.shared.give_entry_back();
            }
        }
    }

    fn answer(&mut self, number: u64, decision: Decision, first: u64, reason: &str) {
        self.writer.put(&Frame::Answer { number, decision, first, reason: reason.as_bytes() });
    }

    /// Refuses an offer: what has arrived of it can never be complete, and is removed.
    fn refuse(&mut self, number: u64, path: &[u8], why: &Refusal) -> Result<(), Failure> {
        if why.is_fatal() {
            return Err(Failure::give_up(format!("{why} at the receiver")));
        }
        let reason = why.to_string();
        if let Some(item) = self.items.get(&number) {
            discard(item);
        }
        self.settle(number);
        if !self.survey {
            self.meter.error(Some(path), &reason);
        }
        self.answer(number, Decision::Refused, 0, &reason);
        Ok(())
    }

    fn abort(&mut self, number: u64, reason: &[u8]) -> Result<(), Failure> {
        let Some(item) = self.items.get(&number) else { return self.settled_before(number) };
        discard(item);
        if let Some(item) = self.settle(number) {
            self.meter.error(Some(&item.path), &format!("not sent: {}", printable(reason)));
        }
        Ok(())
    }

    /// Frames about offers that were refused may be on their way; others were never offered.
    fn settled_before(&self, number: u64) -> Result<(), Failure> {
        if number < self.offered { Ok(()) } else { Ok(violation("a frame about no offer")?) }
    }
}

/// Removes what has arrived of an item.
fn discard(item: &Item) {
    if let State::Arriving(Arriving { slot, .. }) = &item.state {
        slot.with(|part| part.take().inspect(crate::part::Part::discard));
    }
}

fn part_is_open(item: &Item) -> bool {
    match &item.state {
        State::Arriving(arriving) => arriving.slot.with(|part| part.is_some()).unwrap_or(false),
        _ => false,
    }
}

/// Counts a file that is going to be written, of which `need` bytes are missing. A part that was there has
/// been counted.
fn take(shared: &Shared, item: &mut Item, need: u64) -> Result<(), Refusal> {
    shared.take_bytes(0, need)?;
    if !part_is_open(item) {
        shared.take_entry()?;
        item.counted = true;
    }
    Ok(())
}

fn superseded() -> Failure {
    Failure::give_up("another sender has taken over: nothing came from this one for a while")
}

fn late(reason: String) -> Failure {
    Failure::GivenUp { again: true, reason }
}

/// Formats a number of bytes.
fn amount(bytes: u64) -> String {
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let found = units.into_iter().find(|(factor, _)| bytes as f64 >= *factor);
    found.map_or_else(
        || format!("{bytes} B"),
        |(by, unit)| format!("{:.1} {unit}", bytes as f64 / by),
    )
}
