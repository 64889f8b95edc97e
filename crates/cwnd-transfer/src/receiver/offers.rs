//! What a receiver makes of offers.

use super::{Arriving, Base, Claiming, Item, PATIENCE, Receiver, State, superseded, take};
use crate::channel::Failure;
use crate::claims::{Claim, Slot};
use crate::event::FileOutcome;
use crate::folder::{Identity, Place, Refusal, file_type, identity, last, open_file, refusal};
use crate::frame::{Decision, Offer, WINDOW, What, violation};
use crate::hash::{BLOCK, blocks};
use crate::names::{check_target, split_path};
use crate::part::{BUSY, Content, Part, is_content};
use crate::ranges::Ranges;
use rustix::fs::{FileType, Stat};
use std::sync::Arc;
use std::time::Instant;

/// The largest file: what Linux's file systems hold as a rule.
const LARGEST: u64 = 16 << 40;
/// Files that hard links may refer to, at most.
const ORIGINALS: usize = 1 << 16;

/// What a file's offer leads to.
enum Judged {
    Present(Identity),
    /// Blocks are wanted, with a note why those that are there are not used.
    Arrive(Arriving, u64, Option<String>),
    Compare(Base),
    Wait,
}

impl Receiver<'_, '_> {
    pub(super) fn offer(&mut self, offer: &Offer<'_>) -> Result<(), Failure> {
        let number = self.offered;
        self.offered += 1;
        if self.items.len() >= WINDOW {
            return Ok(violation(format!("more than {WINDOW} offers at once"))?);
        }
        let names = match split_path(offer.path) {
            Ok(names) => names,
            Err(reason) => return self.refuse(number, offer.path, &refusal(reason)),
        };
        let done = match offer.what {
            What::File | What::Stream => return self.offer_file(number, offer),
            What::Folder => self.offer_folder(&names, offer),
            What::Seal => self.place.seal(&names, offer.mode, offer.mtime),
            What::Symlink => self.offer_symlink(&names, offer),
            What::Link => self.offer_link(&names, offer),
        };
        match done {
            Ok(()) => self.answer(number, Decision::Present, 0, ""),
            Err(why) => self.refuse(number, offer.path, &why)?,
        }
        self.check_space(1 << 12)
    }

    fn offer_folder(&mut self, names: &[&[u8]], offer: &Offer<'_>) -> Result<(), Refusal> {
        match self.place.status(names)?.map(|status| file_type(&status)) {
            Some(FileType::Directory) => Ok(()),
            None if self.is_trial() => Ok(()),
            None => self.make_entry(true, |place, _| place.make(names, offer.mode)).map(|_| ()),
            Some(_) => Err(refusal("a file or a link stands where a folder is needed")),
        }
    }

    fn offer_symlink(&mut self, names: &[&[u8]], offer: &Offer<'_>) -> Result<(), Refusal> {
        check_target(names, offer.target).map_err(refusal)?;
        if self.is_trial() {
            return Ok(());
        }
        let is_new = self.place.status(names)?.is_none();
        let (target, mtime) = (offer.target, offer.mtime);
        self.make_entry(is_new, |place, overwrite| place.symlink(names, target, mtime, overwrite))
            .map(|_| ())
    }

    /// Makes a folder or link, and counts it if it is new. `work` returns whether it has made something.
    fn make_entry(
        &mut self,
        is_new: bool,
        work: impl FnOnce(&mut Place, bool) -> Result<bool, Refusal>,
    ) -> Result<bool, Refusal> {
        if is_new {
            self.shared.take_entry()?;
        }
        let made = work(&mut self.place, self.shared.options.overwrite);
        if is_new && made != Ok(true) {
            self.shared.give_entry_back();
        }
        made
    }

    fn offer_link(&mut self, names: &[&[u8]], offer: &Offer<'_>) -> Result<(), Refusal> {
        let Some((number, target)) = offer.target.split_first_chunk() else {
            return Err(refusal("a hard link without a target"));
        };
        let target = split_path(target).map_err(refusal)?;
        if self.is_trial() {
            return Ok(());
        }
        let content = Content { size: Some(offer.size), mtime: offer.mtime };
        let there = self.place.status(names)?;
        let original = self.originals.get(&u64::from_be_bytes(*number)).copied();
        let (made, size) = match (there, original) {
            (Some(status), _) if self.is_present(&status, &content) => (false, offer.size),
            (there, Some((original, size))) => {
                let link =
                    |place: &mut Place, overwrite| place.link(names, &target, original, overwrite);
                (self.make_entry(there.is_none(), link)?, size)
            }
            (_, None) => return Err(refusal("the file that it is a hard link to has not arrived")),
        };
        let outcome = if made { FileOutcome::Sent } else { FileOutcome::Present };
        self.meter.file(offer.path, outcome, size, 0);
        self.meter.progress.done_bytes += size;
        Ok(())
    }

    /// Whether a file that is there counts as the offered one by its size and time.
    fn is_present(&self, status: &Stat, content: &Content) -> bool {
        file_type(status) == FileType::RegularFile
            && is_content(status, content)
            && !self.checksum()
    }

    fn offer_file(&mut self, number: u64, offer: &Offer<'_>) -> Result<(), Failure> {
        let size = (offer.what == What::File).then_some(offer.size);
        let item = Item {
            path: offer.path.into(),
            mode: offer.mode,
            size: offer.size,
            space: offer.space,
            linked: offer.linked,
            content: Content { size, mtime: offer.mtime },
            state: State::Waiting { since: Instant::now(), told: false },
            counted: false,
            moved: 0,
        };
        self.judge(number, item)
    }

    /// Judges an offer of a file, and answers.
    fn judge(&mut self, number: u64, mut item: Item) -> Result<(), Failure> {
        let judged = match self.judge_file(&item) {
            Ok(judged) => judged,
            Err(why) => return self.refuse(number, &item.path, &why),
        };
        match judged {
            Judged::Present(found) => {
                self.present(number, &item, found);
                return Ok(());
            }
            Judged::Arrive(arriving, first, note) => {
                let need = item.space.saturating_sub(first * BLOCK);
                if self.is_trial() {
                    self.needed = self.needed.saturating_add(need);
                    self.answer(number, Decision::Send, first, "");
                    return Ok(());
                }
                item.state = State::Arriving(arriving);
                if let Err(why) = take(&self.shared, &mut item, need) {
                    self.release(&item);
                    return self.refuse(number, &item.path, &why);
                }
                if let Some(note) = &note {
                    self.meter.note(&item.path, note);
                }
                self.meter.progress.done_bytes += (first * BLOCK).min(item.size);
                self.answer(number, Decision::Send, first, note.as_deref().unwrap_or_default());
            }
            Judged::Compare(base) => {
                let claiming = Claiming { base, next: 0, differing: Ranges::default() };
                item.state = State::Claiming(claiming);
                self.answer(number, Decision::Claim, 0, "");
            }
            Judged::Wait => {
                if let State::Waiting { since, told } = &mut item.state {
                    if since.elapsed() > PATIENCE {
                        return self.refuse(number, &item.path, &refusal(BUSY));
                    }
                    if !std::mem::replace(told, true) {
                        self.answer(number, Decision::Wait, 0, BUSY);
                    }
                }
            }
        }
        self.insert(number, item)
    }

    /// Reports a file that was there, and answers.
    pub(super) fn present(&mut self, number: u64, item: &Item, found: Identity) {
        self.remember(number, item.linked, found, item.size);
        if self.survey {
            // The offer that has an effect follows, and is reported.
            self.answer(number, Decision::Present, 0, "");
            return;
        }
        self.meter.progress.done_bytes += item.size;
        self.meter.file(&item.path, FileOutcome::Present, item.size, 0);
        self.answer(number, Decision::Present, 0, "");
    }

    /// Remembers a file that hard links may refer to.
    pub(super) fn remember(&mut self, number: u64, linked: bool, found: Identity, size: u64) {
        if linked && self.originals.len() < ORIGINALS {
            self.originals.insert(number, (found, size));
        }
    }

    fn judge_file(&mut self, item: &Item) -> Result<Judged, Refusal> {
        if item.size > LARGEST {
            return Err(refusal("a file of more than 16 TiB"));
        }
        let names = split_path(&item.path).map_err(refusal)?;
        let overwrite = self.shared.options.overwrite;
        let there = self.place.status(&names)?;
        if let Some(status) = &there {
            match file_type(status) {
                FileType::RegularFile => {}
                FileType::Directory => return Err(refusal("a folder has its name")),
                _ => return Err(refusal("a symbolic link or a device has its name")),
            }
            if self.is_present(status, &item.content) {
                return Ok(Judged::Present(identity(status)));
            }
            let same_size = item.content.size == Some(status.st_size as u64);
            if same_size && item.size == 0 {
                return Ok(Judged::Present(identity(status)));
            }
            if !same_size && !overwrite {
                return Err(refusal("a different file is there"));
            }
        }
        let large = item.is_large();
        let count = item.content.size.map_or(u64::MAX, blocks);
        let new = |slot, first: u64| {
            let arriving = Arriving::new(slot, Ranges::of(first..count));
            Arriving { resumed: first > 0, ..arriving }
        };
        let comparable = there.is_some_and(|status| {
            let same_size = item.content.size == Some(status.st_size as u64);
            // An empty file has no values.
            same_size || (self.checksum() && item.content.size.is_some_and(|size| size > 0))
        });
        if !large && comparable {
            return Ok(Judged::Compare(Base::Small));
        }
        if self.is_trial() && comparable {
            return Ok(Judged::Compare(open_base(&mut self.place, &names)?));
        }
        if self.is_trial() || !large {
            let first = if large { self.resumable(&names, item.content) } else { 0 };
            let slot = Slot::new(Arc::clone(&self.holder), item.content);
            return Ok(Judged::Arrive(new(slot, first), first, None));
        }
        // A part is younger than a file of that name that it is to replace.
        if comparable && (!overwrite || !self.has_part(&names)) {
            return Ok(Judged::Compare(open_base(&mut self.place, &names)?));
        }
        let slot = match self.shared.claim(&item.path, item.content, &self.holder) {
            Claim::Taken(slot) => slot,
            Claim::Held { same: true } => return Ok(Judged::Wait),
            Claim::Held { same: false } => return Err(refusal(BUSY)),
        };
        let resumed = self.resume(&names, item.content, &slot);
        match resumed {
            Ok(Resumed::Blocks(first, note)) => Ok(Judged::Arrive(new(slot, first), first, note)),
            Ok(Resumed::Compare) => Ok(Judged::Compare(Base::Part(slot))),
            Err(why) => {
                self.shared.release(&item.path, &slot);
                Err(why)
            }
        }
    }

    fn open_part(&mut self, names: &[&[u8]], content: Content) -> Result<Option<Part>, Refusal> {
        let parent = self.place.parent(names)?;
        Part::open(parent, last(names), content, None)
    }

    fn has_part(&mut self, names: &[&[u8]]) -> bool {
        let Ok(parent) = self.place.parent(names) else { return false };
        let part = crate::names::part_name(last(names));
        crate::folder::look(&parent, &part).is_ok_and(|status| status.is_some())
    }

    /// Returns how many blocks are there, without a change.
    fn resumable(&mut self, names: &[&[u8]], content: Content) -> u64 {
        let part = self.open_part(names, content);
        part.ok().flatten().and_then(|mut part| part.resume().ok()).unwrap_or(0)
    }

    /// Opens a part if there is one, and keeps its verified blocks.
    fn resume(
        &mut self,
        names: &[&[u8]],
        content: Content,
        slot: &Slot,
    ) -> Result<Resumed, Refusal> {
        let Some(mut part) = self.open_part(names, content)? else {
            return Ok(Resumed::Blocks(0, None));
        };
        if self.checksum() && content.size.is_some() {
            part.start_sidecar(0)?;
            slot.with(|held| *held = Some(part));
            return Ok(Resumed::Compare);
        }
        let (first, note) = match part.resume() {
            Ok(first) => (first, None),
            Err(reason) => (0, Some(format!("begun anew: {reason}"))),
        };
        part.keep(first)?;
        slot.with(|held| *held = Some(part));
        Ok(Resumed::Blocks(first, note))
    }

    /// Looks again at the offers that wait for another sender.
    pub(super) fn answer_waiting(&mut self) -> Result<(), Failure> {
        let waiting = |item: &Item| matches!(item.state, State::Waiting { .. });
        let numbers: Vec<_> = self
            .items
            .iter()
            .filter(|(_, item)| waiting(item))
            .map(|(number, _)| *number)
            .collect();
        for number in numbers {
            if let Some(item) = self.settle(number) {
                self.judge(number, item)?;
            }
        }
        Ok(())
    }

    /// The part of an item that this connection still holds.
    pub(super) fn with_part<T>(
        slot: &Slot,
        work: impl FnOnce(&mut Option<Part>) -> T,
    ) -> Result<T, Failure> {
        slot.with(work).ok_or_else(superseded)
    }
}

/// Opens the file that has the name.
pub(super) fn open_base(place: &mut Place, names: &[&[u8]]) -> Result<Base, Refusal> {
    let parent = place.parent(names)?;
    let (fd, status) = open_file(&parent, last(names))?;
    Ok(Base::Final(fd, identity(&status)))
}

/// What is there of a file.
enum Resumed {
    Blocks(u64, Option<String>),
    Compare,
}
