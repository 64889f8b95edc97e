//! Received blocks, and comparison of the sender's values with existing data.

use super::offers::open_existing;
use super::{Arriving, Comparing, Ended, ExistingData, PendingOffer, Receiver, State, count_file};
use crate::channel::Failure;
use crate::event::FileOutcome;
use crate::folder::{Identity, Refusal, file_type, identity, last, refusal};
use crate::frame::{Block, DAMAGED, Decision, Frame, RANGES, VALUES, violation};
use crate::hash::{BLOCK, Value, block_len, block_value, blocks};
use crate::names::{printable, split_path};
use crate::part::{BUSY, Part, is_content, read_at};
use crate::ranges::Ranges;
use crate::report::Activity;
use crate::shared::{FileLock, LockResult};
use rustix::fs::FileType;
use std::sync::Arc;
use std::time::Instant;

/// Maximum number of small files with an open partial file.
const MAX_OPEN: usize = 8;

impl Receiver<'_, '_> {
    /// Processes a BLOCK.
    pub(super) fn block(&mut self, block: &Block<'_>) -> Result<(), Failure> {
        let number = block.number;
        self.meter.progress.moved_bytes += block.data.len() as u64;
        let Some(item) = self.pending.get_mut(&number) else { return self.check_offered(number) };
        item.moved += block.data.len() as u64;
        let size = item.content.size;
        let State::Arriving(arriving) = &mut item.state else {
            return Ok(violation("a BLOCK that was not requested")?);
        };
        let length = u64::from(block.length);
        let expected = match size {
            Some(size) => block_len(size, block.index) == length,
            // Blocks of a stream are in order, and only the last one may be short.
            None => block.index.checked_mul(BLOCK) == Some(arriving.length),
        };
        if !expected {
            return Ok(violation("a BLOCK outside the file")?);
        }
        if !arriving.missing.contains(block.index) {
            return Ok(());
        }
        if block.index < arriving.in_place && !block.is_dense() {
            return Ok(violation("a sparse BLOCK where blocks are replaced")?);
        }
        if let Err(refused) = self.shared.count_bytes(block.data.len() as u64, 0) {
            let path = item.path.clone();
            return self.refuse(number, &path, &refused);
        }
        let buffer = &mut self.buffer;
        let value = self.meter.during(Activity::Processor, || {
            if block.is_dense() {
                return block_value(block.index, block.data);
            }
            buffer.clear();
            buffer.resize(length as usize, 0);
            for (at, run) in block.runs() {
                buffer[at..at + run.len()].copy_from_slice(run);
            }
            block_value(block.index, buffer)
        });
        if value != block.value {
            return self.damaged(number, block.index);
        }
        if let Err(refused) = self.write(number, block)? {
            let path = self.pending.get(&number).map_or_else(Vec::new, |item| item.path.clone());
            return self.refuse(number, &path, &refused);
        }
        self.check_space(block.data.len() as u64)?;
        self.meter.progress.done_bytes += length;
        self.received(number, block.index, 1, length)
    }

    /// Requests a damaged block again.
    fn damaged(&mut self, number: u64, index: u64) -> Result<(), Failure> {
        let Some(item) = self.pending.get_mut(&number) else { return Ok(()) };
        let State::Arriving(arriving) = &mut item.state else { return Ok(()) };
        arriving.damaged += 1;
        let path = item.path.clone();
        if item.content.size.is_none() {
            let refused = "a block arrived damaged, and a stream cannot be retransmitted";
            return self.refuse(number, &path, &refusal(refused));
        }
        if arriving.damaged > DAMAGED {
            let refused = format!("more than {DAMAGED} blocks arrived damaged");
            return self.refuse(number, &path, &refusal(refused));
        }
        self.meter.note(&path, &format!("block {index} arrived damaged and is retransmitted"));
        self.writer.put(&Frame::Want { number, first: index, count: 1 });
        Ok(())
    }

    /// Opens the partial file of an offer, unless it is open.
    fn open(&mut self, number: u64) -> Result<Result<(), Refusal>, Failure> {
        let Some(item) = self.pending.get(&number) else { return Ok(Ok(())) };
        let State::Arriving(Arriving { lock, .. }) = &item.state else { return Ok(Ok(())) };
        if Self::with_part(lock, |part| part.is_some())? {
            return Ok(Ok(()));
        }
        if !item.is_large() {
            if self.open >= MAX_OPEN {
                return Ok(violation("data of too many files at once")?);
            }
            self.open += 1;
        }
        self.meter.progress.name = printable(&item.path);
        let mode = self.view.folder.permissions(item.mode);
        let identity_of_sender = self.stream.identity();
        let view = &mut self.view;
        let opened = (|| {
            let names = split_path(&item.path).map_err(refusal)?;
            let parent = view.parent(&names)?;
            let identity = identity_of_sender.as_deref();
            let part = Part::open(parent, last(&names), item.content, Some(mode), identity)?;
            let mut part = part.ok_or_else(|| refusal(BUSY))?;
            if item.is_large() || !part.is_new() {
                part.keep(0)?;
            }
            Ok(part)
        })();
        match opened {
            Ok(part) => {
                Self::with_part(lock, |owned| *owned = Some(part))?;
                Ok(Ok(()))
            }
            Err(refused) => {
                if !item.is_large() {
                    self.open -= 1;
                }
                Ok(Err(refused))
            }
        }
    }

    fn write(&mut self, number: u64, block: &Block<'_>) -> Result<Result<(), Refusal>, Failure> {
        if let Err(refused) = self.open(number)? {
            return Ok(Err(refused));
        }
        let Some(PendingOffer { state: State::Arriving(arriving), .. }) = self.pending.get(&number)
        else {
            return Ok(Ok(()));
        };
        Self::with_part(&arriving.lock, |part| {
            let part = part.as_mut().ok_or_else(|| refusal(BUSY))?;
            for (at, run) in block.runs() {
                part.write(run, block.index * BLOCK + at as u64)?;
            }
            part.verified(block.index, &block.value)
        })
    }

    /// Processes a HOLE: blocks without data. Their values remain unknown, because they are not hashed.
    pub(super) fn hole(&mut self, number: u64, first: u64, count: u64) -> Result<(), Failure> {
        let Some(item) = self.pending.get(&number) else { return self.check_offered(number) };
        let State::Arriving(arriving) = &item.state else {
            return Ok(violation("a HOLE that was not requested")?);
        };
        let (Some(size), Some(end)) = (item.content.size, first.checked_add(count)) else {
            return Ok(violation("a HOLE in a stream")?);
        };
        if end > blocks(size) {
            return Ok(violation("a HOLE outside the file")?);
        }
        // Data received before would remain in place of the hole.
        if first < arriving.in_place || !arriving.missing.covers(first..end) {
            return Ok(violation("a HOLE that was not requested")?);
        }
        let path = item.path.clone();
        if let Err(refused) = self.open(number)? {
            return self.refuse(number, &path, &refused);
        }
        let length = (end * BLOCK).min(size) - first * BLOCK;
        self.meter.progress.done_bytes += length;
        self.received(number, first, count, length)
    }

    fn received(
        &mut self,
        number: u64,
        first: u64,
        count: u64,
        length: u64,
    ) -> Result<(), Failure> {
        let Some(item) = self.pending.get_mut(&number) else { return Ok(()) };
        let State::Arriving(arriving) = &mut item.state else { return Ok(()) };
        arriving.missing.remove(first..first + count);
        // Blocks arrive in order, except for damaged ones: the set stays small.
        if arriving.missing.count() > RANGES + DAMAGED as usize + 1 {
            return Ok(violation("blocks out of order")?);
        }
        arriving.length += length;
        self.complete(number)
    }

    /// Processes an END.
    pub(super) fn end(&mut self, number: u64, ended: Ended) -> Result<(), Failure> {
        let Some(item) = self.pending.get_mut(&number) else { return self.check_offered(number) };
        let State::Arriving(arriving) = &mut item.state else {
            return Ok(violation("an END that was not requested")?);
        };
        let expected = item.content.size.unwrap_or(arriving.length);
        if ended.size != expected || arriving.ended.replace(ended).is_some() {
            return Ok(violation("an END that differs from the offer")?);
        }
        if item.content.size.is_none() {
            arriving.missing = Ranges::default();
            item.size = arriving.length;
        }
        self.complete(number)
    }

    /// Renames a file to its final name when it is complete.
    fn complete(&mut self, number: u64) -> Result<(), Failure> {
        let Some(item) = self.pending.get(&number) else { return Ok(()) };
        let State::Arriving(arriving) = &item.state else { return Ok(()) };
        let Some(ended) = arriving.ended.filter(|_| arriving.missing.is_empty()) else {
            return Ok(());
        };
        let (path, resumed, linked) = (item.path.clone(), arriving.resumed, item.linked);
        if let Err(refused) = self.open(number)? {
            return self.refuse(number, &path, &refused);
        }
        match self.rename(number, ended)? {
            Ok(found) => {
                let Some(item) = self.remove_offer(number) else { return Ok(()) };
                self.remember(number, linked, found, item.size);
                let outcome = if resumed { FileOutcome::Resumed } else { FileOutcome::Sent };
                self.meter.file(&path, outcome, item.size, item.moved);
                self.answer(number, Decision::Present, 0, "");
                Ok(())
            }
            Err(refused) => match self.completed_by_other(number) {
                Some(found) => {
                    if let Some(item) = self.pending.get(&number) {
                        super::discard(item);
                    }
                    let Some(item) = self.remove_offer(number) else { return Ok(()) };
                    self.present(number, &item, found);
                    Ok(())
                }
                None => self.refuse(number, &path, &refused),
            },
        }
    }

    fn rename(&mut self, number: u64, ended: Ended) -> Result<Result<Identity, Refusal>, Failure> {
        let Some(item) = self.pending.get(&number) else { return Ok(Err(refusal(BUSY))) };
        let State::Arriving(arriving) = &item.state else { return Ok(Err(refusal(BUSY))) };
        let (folder, overwrite) = (&self.shared.folder, self.shared.options.overwrite);
        Self::with_part(&arriving.lock, |part| {
            let part = part.as_mut().ok_or_else(|| refusal(BUSY))?;
            if part.root() != ended.root {
                return Err(refusal("its hash differs from the sender's"));
            }
            part.complete(folder, ended.size, item.mode, overwrite)
        })
    }

    /// Returns the identity of the file if another connection has completed it meanwhile.
    fn completed_by_other(&mut self, number: u64) -> Option<Identity> {
        let item = self.pending.get(&number)?;
        let names = split_path(&item.path).ok()?;
        let status = self.view.status(&names).ok()??;
        let same =
            file_type(&status) == FileType::RegularFile && is_content(&status, &item.content);
        same.then(|| identity(&status))
    }

    /// Processes a CLAIM: compares the values with existing data.
    pub(super) fn compare(
        &mut self,
        number: u64,
        first: u64,
        values: &[u8],
    ) -> Result<(), Failure> {
        let Some(item) = self.pending.get_mut(&number) else { return self.check_offered(number) };
        let (size, path) = (item.size, item.path.clone());
        let State::Comparing(comparing) = &mut item.state else {
            return Ok(violation("a CLAIM that was not requested")?);
        };
        if matches!(comparing.existing, ExistingData::Small) {
            let names = split_path(&path).map_err(refusal);
            match names.and_then(|names| open_existing(&mut self.view, &names)) {
                Ok(existing) => comparing.existing = existing,
                Err(refused) => return self.refuse(number, &path, &refused),
            }
        }
        let values = values.as_chunks::<32>().0;
        let fits = values.len() <= VALUES && first == comparing.next;
        if !fits || values.len() as u64 > comparing.count - first {
            return Ok(violation("a CLAIM outside the file")?);
        }
        let buffer = &mut self.buffer;
        let compared: Option<Result<(), Refusal>> = self.meter.during(Activity::Processor, || {
            values.iter().map(|value| comparing.compare(size, value, buffer)).collect()
        });
        match compared {
            Some(Ok(())) => {}
            Some(Err(refused)) => return self.refuse(number, &path, &refused),
            None => return Err(super::superseded()),
        }
        // Hashing takes time, in which the sender is not idle.
        self.owner.idle_timer.touch();
        let overwrite = self.shared.options.overwrite;
        let is_final = matches!(comparing.existing, ExistingData::Final(..));
        if is_final && !overwrite && !comparing.differing.is_empty() {
            return self.refuse(number, &path, &refusal("a different file exists"));
        }
        if comparing.next < comparing.count {
            return Ok(());
        }
        self.compared(number)
    }

    /// Requests the blocks that differ, when all are compared.
    fn compared(&mut self, number: u64) -> Result<(), Failure> {
        let decisions_only = self.decisions_only();
        let Some(item) = self.pending.get_mut(&number) else { return Ok(()) };
        let (path, size, content) = (item.path.clone(), item.size, item.content);
        let waiting = State::Waiting { since: Instant::now(), reported: true };
        let State::Comparing(Comparing { existing, differing, count, .. }) =
            std::mem::replace(&mut item.state, waiting)
        else {
            return Ok(());
        };
        let same_size = match &existing {
            ExistingData::Final(fd, _) => {
                rustix::fs::fstat(fd).is_ok_and(|s| s.st_size as u64 == size)
            }
            ExistingData::Small | ExistingData::Part(_) => true,
        };
        let same = differing.is_empty() && same_size;
        // A file of one block is sent completely: its partial file is opened when it arrives.
        let small = size <= BLOCK;
        let differing = if small && !same { Ranges::of(0..blocks(size)) } else { differing };
        let mut missing = differing.clone();
        missing.append(count..blocks(size));
        let wanted: u64 = missing.iter().map(|range| (range.end - range.start) * BLOCK).sum();
        let wanted = wanted.min(size);
        let lock = match &existing {
            ExistingData::Part(lock) => Arc::clone(lock),
            ExistingData::Final(_, found) if same => {
                let Some(item) = self.remove_offer(number) else { return Ok(()) };
                self.present(number, &item, *found);
                return Ok(());
            }
            _ if decisions_only => {
                self.remove_offer(number);
                self.needed = self.needed.saturating_add(wanted);
                self.answer(number, Decision::Send, 0, "");
                return Ok(());
            }
            _ if small => FileLock::new(Arc::clone(&self.owner), content),
            _ => match self.shared.lock_file(&path, content, &self.owner) {
                LockResult::Acquired(lock) => lock,
                LockResult::Busy { .. } => return self.refuse(number, &path, &refusal(BUSY)),
            },
        };
        let in_place = if matches!(existing, ExistingData::Part(_)) { count } else { 0 };
        item.state =
            State::Arriving(Arriving { resumed: true, in_place, ..Arriving::new(lock, missing) });
        let counted = count_file(&self.shared, item, wanted.min(item.space));
        let ready = match counted {
            Ok(()) if small => Ok(()),
            Ok(()) => match self.open(number)? {
                Ok(()) => self.keep_equal(number, existing, &differing)?,
                refused => refused,
            },
            refused => refused,
        };
        if let Err(refused) = ready {
            return self.refuse(number, &path, &refused);
        }
        for range in differing.iter() {
            let length = range.end - range.start;
            self.writer.put(&Frame::Want { number, first: range.start, count: length });
        }
        self.meter.progress.done_bytes += size - wanted;
        self.answer(number, Decision::Send, count, "");
        Ok(())
    }

    /// Copies the equal blocks of an existing file to the partial file, and records their values.
    fn keep_equal(
        &mut self,
        number: u64,
        existing: ExistingData,
        differing: &Ranges,
    ) -> Result<Result<(), Refusal>, Failure> {
        // The values of a partial file's blocks were recorded when they were compared.
        let ExistingData::Final(fd, _) = &existing else { return Ok(Ok(())) };
        let Some(item) = self.pending.get(&number) else { return Ok(Ok(())) };
        let State::Arriving(arriving) = &item.state else { return Ok(Ok(())) };
        let (size, lock) = (item.size, Arc::clone(&arriving.lock));
        let mut buffer = std::mem::take(&mut self.buffer);
        for index in (0..blocks(size)).filter(|&index| !differing.contains(index)) {
            self.owner.idle_timer.touch();
            buffer.resize(block_len(size, index) as usize, 0);
            let copied = Self::with_part(&lock, |part| {
                let part = part.as_mut().ok_or_else(|| refusal(BUSY))?;
                read_at(fd, &mut buffer, index * BLOCK)?;
                // Zeros stay a hole.
                let data = buffer.iter().any(|byte| *byte != 0);
                if data {
                    self.shared.count_bytes(buffer.len() as u64, 0)?;
                    part.write(&buffer, index * BLOCK)?;
                }
                part.verified(index, &block_value(index, &buffer))?;
                Ok(if data { buffer.len() as u64 } else { 0 })
            })?;
            match copied {
                Ok(written) => self.check_space(written)?,
                Err(refused) => return Ok(Err(refused)),
            }
        }
        self.buffer = buffer;
        Ok(Ok(()))
    }
}

impl Comparing {
    /// Compares the next block with a value; `None` if another connection has taken over.
    fn compare(
        &mut self,
        size: u64,
        value: &Value,
        buffer: &mut Vec<u8>,
    ) -> Option<Result<(), Refusal>> {
        let index = self.next;
        buffer.resize(block_len(size, index) as usize, 0);
        let read = match &self.existing {
            ExistingData::Small => Ok(0),
            ExistingData::Final(fd, _) => read_at(fd, buffer, index * BLOCK),
            ExistingData::Part(lock) => lock.with(|part| match part {
                Some(part) => read_at(part.file(), buffer, index * BLOCK),
                None => Ok(0),
            })?,
        };
        let same = match read {
            Ok(count) => count == buffer.len() && block_value(index, buffer) == *value,
            Err(errno) => return Some(Err(errno.into())),
        };
        if same && let ExistingData::Part(lock) = &self.existing {
            let recorded = lock.with(|part| match part {
                Some(part) => part.verified(index, value),
                None => Ok(()),
            })?;
            if recorded.is_err() {
                return Some(recorded);
            }
        }
        if !same {
            self.differing.push(index);
        }
        self.next += 1;
        Some(Ok(()))
    }
}
