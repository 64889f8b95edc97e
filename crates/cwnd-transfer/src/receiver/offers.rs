//! Decisions of a receiver on offers.

use super::{
    Arriving, Comparing, ExistingData, PendingOffer, Receiver, State, Stop, count_file, superseded,
};
use crate::channel::Failure;
use crate::event::FileOutcome;
use crate::folder::{FolderView, Identity, Refusal, file_type, identity, last, open_file, refusal};
use crate::frame::{Decision, Offer, WINDOW, What, violation};
use crate::hash::{BLOCK, blocks};
use crate::names::{check_target, check_top, split_path};
use crate::part::{BUSY, Content, Part, is_content};
use crate::ranges::Ranges;
use crate::shared::{FileLock, LockResult};
use rustix::fs::{FileType, Stat};
use std::sync::Arc;
use std::time::Instant;

/// Maximum size of a file: that of common file systems of Linux.
const MAX_SIZE: u64 = 16 << 40;
/// Maximum number of files that hard links may refer to.
const ORIGINALS: usize = 1 << 16;

/// Decision on the offer of a file.
enum Verdict {
    Present(Identity),
    /// The missing blocks are requested, from a first one on.
    Arrive(Arriving, u64),
    /// The values of a number of blocks are requested.
    Compare(ExistingData, u64),
    Wait,
}

impl Receiver<'_, '_> {
    pub(super) fn offer(&mut self, offer: &Offer<'_>) -> Result<(), Failure> {
        let number = self.offered;
        self.offered += 1;
        if self.pending.len() >= WINDOW {
            return Ok(violation(format!("more than {WINDOW} pending offers"))?);
        }
        let allow_dotfiles = self.shared.options.allow_dotfiles;
        let names = split_path(offer.path).and_then(|names| {
            if !allow_dotfiles {
                check_top(&names)?;
            }
            Ok(names)
        });
        let names = match names {
            Ok(names) => names,
            Err(reason) => return self.refuse(number, offer.path, &refusal(reason)),
        };
        let result = match offer.what {
            What::File | What::Stream => return self.offer_file(number, offer),
            What::Folder => self.offer_folder(&names, offer),
            What::Seal => self.view.seal(&names, offer.mode, offer.mtime),
            What::Symlink => self.offer_symlink(&names, offer),
            What::Link => self.offer_link(&names, offer),
        };
        match result {
            Ok(()) => self.answer(number, Decision::Present, 0, ""),
            Err(why) => self.refuse(number, offer.path, &why)?,
        }
        self.check_space(1 << 12)
    }

    fn offer_folder(&mut self, names: &[&[u8]], offer: &Offer<'_>) -> Result<(), Refusal> {
        match self.view.status(names)?.map(|status| file_type(&status)) {
            Some(FileType::Directory) => Ok(()),
            None if self.decisions_only() => Ok(()),
            None => {
                self.make_entry(true, |view, _| view.create_folder(names, offer.mode)).map(|_| ())
            }
            Some(_) => Err(refusal("a file or link has the name of a folder")),
        }
    }

    fn offer_symlink(&mut self, names: &[&[u8]], offer: &Offer<'_>) -> Result<(), Refusal> {
        check_target(names, offer.target).map_err(refusal)?;
        if self.decisions_only() {
            return Ok(());
        }
        let is_new = self.view.status(names)?.is_none();
        let (target, mtime) = (offer.target, offer.mtime);
        self.make_entry(is_new, |view, overwrite| view.symlink(names, target, mtime, overwrite))
            .map(|_| ())
    }

    /// Creates a folder or link, and counts it if it is new. `work` returns whether it has created
    /// an entry.
    fn make_entry(
        &mut self,
        is_new: bool,
        work: impl FnOnce(&mut FolderView, bool) -> Result<bool, Refusal>,
    ) -> Result<bool, Refusal> {
        if is_new {
            self.shared.count_entry()?;
        }
        let created = work(&mut self.view, self.shared.options.overwrite);
        if is_new && created != Ok(true) {
            self.shared.uncount_entry();
        }
        created
    }

    fn offer_link(&mut self, names: &[&[u8]], offer: &Offer<'_>) -> Result<(), Refusal> {
        let Some((number, target)) = offer.target.split_first_chunk() else {
            return Err(refusal("a hard link without a target"));
        };
        let target = split_path(target).map_err(refusal)?;
        if self.decisions_only() {
            return Ok(());
        }
        let content = Content { size: Some(offer.size), mtime: offer.mtime };
        let existing = self.view.status(names)?;
        let original = self.originals.get(&u64::from_be_bytes(*number)).copied();
        let (created, size) = match (existing, original) {
            (Some(status), _) if self.is_present(&status, &content) => (false, offer.size),
            (existing, Some((original, size))) => {
                let link = |view: &mut FolderView, overwrite| {
                    view.link(names, &target, original, overwrite)
                };
                (self.make_entry(existing.is_none(), link)?, size)
            }
            (_, None) => return Err(refusal("the target of the hard link has not arrived")),
        };
        let outcome = if created { FileOutcome::Sent } else { FileOutcome::Present };
        self.meter.file(offer.path, outcome, size, 0);
        self.meter.progress.done_bytes += size;
        Ok(())
    }

    /// Whether an existing file counts as the offered one by its size and time.
    fn is_present(&self, status: &Stat, content: &Content) -> bool {
        file_type(status) == FileType::RegularFile
            && is_content(status, content)
            && !self.checksum()
    }

    fn offer_file(&mut self, number: u64, offer: &Offer<'_>) -> Result<(), Failure> {
        let size = (offer.what == What::File).then_some(offer.size);
        let item = PendingOffer {
            number,
            path: offer.path.into(),
            mode: offer.mode,
            size: offer.size,
            space: offer.space,
            linked: offer.linked,
            content: Content { size, mtime: offer.mtime },
            state: State::Waiting { since: Instant::now(), reported: false },
            counted: false,
            moved: 0,
        };
        self.judge(item)
    }

    /// Decides on the offer of a file, and answers.
    fn judge(&mut self, mut item: PendingOffer) -> Result<(), Failure> {
        let number = item.number;
        let verdict = match self.judge_file(&item) {
            Ok(verdict) => verdict,
            Err(why) => return self.refuse(number, &item.path, &why),
        };
        match verdict {
            Verdict::Present(file_identity) => {
                self.present(&item, file_identity);
                self.answer(number, Decision::Present, 0, "");
                return Ok(());
            }
            Verdict::Arrive(arriving, first) => {
                let need = item.space.saturating_sub(first * BLOCK);
                if self.decisions_only() {
                    self.needed = self.needed.saturating_add(need);
                    self.answer(number, Decision::Send, first, "");
                    return Ok(());
                }
                item.state = State::Arriving(arriving);
                if let Err(why) = count_file(&self.shared, &mut item, need) {
                    self.release(&item);
                    return self.refuse(number, &item.path, &why);
                }
                self.answer(number, Decision::Send, first, "");
            }
            Verdict::Compare(existing, count) => {
                let differing = Ranges::default();
                item.state = State::Comparing(Comparing { existing, next: 0, count, differing });
                self.answer(number, Decision::Claim, count, "");
            }
            Verdict::Wait => {
                if let State::Waiting { since, reported } = &mut item.state {
                    if since.elapsed() > self.shared.options.timeouts.wait {
                        return self.refuse(number, &item.path, &refusal(BUSY));
                    }
                    if !std::mem::replace(reported, true) {
                        self.answer(number, Decision::Wait, 0, BUSY);
                    }
                }
            }
        }
        self.insert(number, item)
    }

    /// Reports a file that is already complete, unless the offer after the survey does.
    pub(super) fn present(&mut self, item: &PendingOffer, file_identity: Identity) {
        self.remember(item, file_identity);
        if !self.survey {
            self.meter.progress.done_bytes += item.size;
            self.meter.file(&item.path, FileOutcome::Present, item.size, 0);
        }
    }

    /// Records a file that hard links may refer to.
    pub(super) fn remember(&mut self, item: &PendingOffer, file_identity: Identity) {
        if item.linked && self.originals.len() < ORIGINALS {
            self.originals.insert(item.number, (file_identity, item.size));
        }
    }

    fn judge_file(&mut self, item: &PendingOffer) -> Result<Verdict, Refusal> {
        if item.size > MAX_SIZE {
            return Err(refusal("a file of more than 16 TiB"));
        }
        let names = split_path(&item.path).map_err(refusal)?;
        let overwrite = self.shared.options.overwrite;
        let existing = self.view.status(&names)?;
        if let Some(status) = &existing {
            match file_type(status) {
                FileType::RegularFile => {}
                FileType::Directory => return Err(refusal("a folder has its name")),
                _ => return Err(refusal("a symbolic link or a device has its name")),
            }
            if self.is_present(status, &item.content) {
                return Ok(Verdict::Present(identity(status)));
            }
            let same_size = item.content.size == Some(status.st_size as u64);
            if same_size && item.size == 0 {
                return Ok(Verdict::Present(identity(status)));
            }
            if !same_size && !overwrite {
                return Err(refusal("a different file exists"));
            }
        }
        let large = item.is_large();
        let count = item.content.size.map_or(u64::MAX, blocks);
        let comparable = existing.is_some_and(|status| {
            let same_size = item.content.size == Some(status.st_size as u64);
            // Empty files have no values.
            same_size || (self.checksum() && item.content.size.is_some_and(|size| size > 0))
        });
        if !large && comparable {
            return Ok(Verdict::Compare(ExistingData::Small, count));
        }
        if self.decisions_only() && comparable {
            return Ok(Verdict::Compare(open_existing(&mut self.view, &names)?, count));
        }
        let all = Ranges::of(0..count);
        if self.decisions_only() || !large {
            // What a partial file holds is not compared yet.
            let first = if large { self.kept_blocks(&names, item.content) } else { 0 };
            let lock = FileLock::new(Arc::clone(&self.owner), item.content);
            return Ok(Verdict::Arrive(Arriving::new(lock, all), first));
        }
        // A partial file is newer than an existing file that it is to replace.
        if comparable && (!overwrite || !self.has_part(&names)) {
            return Ok(Verdict::Compare(open_existing(&mut self.view, &names)?, count));
        }
        let lock = match self.shared.lock_file(&item.path, item.content, &self.owner) {
            LockResult::Acquired(lock) => lock,
            LockResult::Busy { same: true } => return Ok(Verdict::Wait),
            LockResult::Busy { same: false } => return Err(refusal(BUSY)),
        };
        match self.resume(&names, item.content, &lock) {
            Ok(0) => Ok(Verdict::Arrive(Arriving::new(lock, all), 0)),
            Ok(count) => Ok(Verdict::Compare(ExistingData::Part(lock), count)),
            Err(why) => {
                self.shared.unlock_file(&item.path, &lock);
                Err(why)
            }
        }
    }

    fn open_part(&mut self, names: &[&[u8]], content: Content) -> Result<Option<Part>, Refusal> {
        let parent = self.view.parent(names)?;
        Part::open(parent, last(names), content, None, self.stream.identity().as_deref())
    }

    fn has_part(&mut self, names: &[&[u8]]) -> bool {
        let Ok(parent) = self.view.parent(names) else { return false };
        let part = crate::names::part_name(last(names));
        crate::folder::lstat(&parent, &part).is_ok_and(|status| status.is_some())
    }

    /// Returns the number of blocks that a partial file may hold, without changes.
    fn kept_blocks(&mut self, names: &[&[u8]], content: Content) -> u64 {
        let part = self.open_part(names, content);
        part.ok().flatten().map_or(0, |part| part.blocks())
    }

    /// Opens the partial file, if it exists. Returns the number of blocks to be compared.
    fn resume(
        &mut self,
        names: &[&[u8]],
        content: Content,
        lock: &FileLock,
    ) -> Result<u64, Refusal> {
        let Some(mut part) = self.open_part(names, content)? else { return Ok(0) };
        let count = part.blocks();
        part.keep(count)?;
        lock.with(|owned| *owned = Some(part));
        Ok(count)
    }

    /// Decides again on the offers that wait for another sender.
    pub(super) fn judge_waiting(&mut self) -> Result<(), Failure> {
        let waiting = |item: &PendingOffer| matches!(item.state, State::Waiting { .. });
        let numbers: Vec<_> = self
            .pending
            .iter()
            .filter(|(_, item)| waiting(item))
            .map(|(number, _)| *number)
            .collect();
        for number in numbers {
            if let Some(item) = self.pending.remove(&number) {
                self.close(&item);
                self.judge(item)?;
            }
        }
        Ok(())
    }

    /// Runs `work` on the partial file of an offer, unless another connection has taken over.
    pub(super) fn with_part<T>(
        lock: &FileLock,
        work: impl FnOnce(&mut Option<Part>) -> Result<T, Refusal>,
    ) -> Result<T, Stop> {
        Ok(lock.with(work).ok_or_else(superseded)??)
    }
}

/// Opens the existing file of that name.
pub(super) fn open_existing(
    view: &mut FolderView,
    names: &[&[u8]],
) -> Result<ExistingData, Refusal> {
    let parent = view.parent(names)?;
    let (fd, status) = open_file(&parent, last(names))?;
    Ok(ExistingData::Final(fd, identity(&status)))
}
