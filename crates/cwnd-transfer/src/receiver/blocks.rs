//! Received blocks, and comparison of the sender's values with existing data.

use super::offers::open_existing;
use super::{
    Arriving, Comparing, Ended, ExistingData, PendingOffer, Receiver, State, Step, Stop, count_file,
};
use crate::event::FileOutcome;
use crate::folder::{Identity, Refusal, file_type, identity, last, refusal};
use crate::frame::{Block, DAMAGED, Decision, Frame, RANGES, VALUES, require, violation};
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
    pub(super) fn block(
        &mut self,
        item: &mut PendingOffer,
        block: &Block<'_>,
    ) -> Result<Step, Stop> {
        self.meter.progress.moved_bytes += block.data.len() as u64;
        item.moved += block.data.len() as u64;
        let State::Arriving(arriving) = &mut item.state else {
            return Ok(violation("a BLOCK that was not requested")?);
        };
        let length = u64::from(block.length);
        let expected = match item.content.size {
            Some(size) => block_len(size, block.index) == length,
            // Blocks of a stream are in order, and only the last one may be short.
            None => block.index.checked_mul(BLOCK) == Some(arriving.length),
        };
        require(expected, "a BLOCK outside the file")?;
        if !arriving.missing.contains(block.index) {
            return Ok(Step::Pending);
        }
        let replaces = block.index < arriving.in_place;
        require(!replaces || block.is_dense(), "a sparse BLOCK where blocks are replaced")?;
        self.shared.count_bytes(block.data.len() as u64, 0)?;
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
            self.damaged(item, block)?;
            return Ok(Step::Pending);
        }
        Self::with_part(self.open(item)?, |part| {
            let part = part.as_mut().ok_or_else(|| refusal(BUSY))?;
            for (at, run) in block.runs() {
                part.write(run, block.index * BLOCK + at as u64)?;
            }
            part.verified(block.index, &block.value)
        })?;
        self.check_space(block.data.len() as u64)?;
        self.meter.progress.done_bytes += length;
        self.received(item, block.index, 1, length)
    }

    /// Requests a damaged block again.
    fn damaged(&mut self, item: &mut PendingOffer, block: &Block<'_>) -> Result<(), Refusal> {
        if item.content.size.is_none() {
            return Err(refusal("a block arrived damaged, and a stream cannot be retransmitted"));
        }
        if let State::Arriving(arriving) = &mut item.state {
            arriving.damaged += 1;
            if arriving.damaged > DAMAGED {
                return Err(refusal(format!("more than {DAMAGED} blocks arrived damaged")));
            }
        }
        let Block { number, index, .. } = *block;
        self.meter.note(&item.path, &format!("block {index} arrived damaged and is retransmitted"));
        self.writer.put(&Frame::Want { number, first: index, count: 1 });
        Ok(())
    }

    /// Opens the partial file of an offer, unless it is open.
    fn open<'i>(&mut self, item: &'i PendingOffer) -> Result<&'i FileLock, Stop> {
        let State::Arriving(Arriving { lock, .. }) = &item.state else {
            return Err(refusal(BUSY).into());
        };
        if Self::with_part(lock, |part| Ok(part.is_some()))? {
            return Ok(lock);
        }
        require(item.is_large() || self.open < MAX_OPEN, "data of too many files at once")?;
        self.meter.progress.name = printable(&item.path);
        let mode = self.view.folder.permissions(item.mode);
        let identity = self.stream.identity();
        let names = split_path(&item.path).map_err(refusal)?;
        let parent = self.view.parent(&names)?;
        let part = Part::open(parent, last(&names), item.content, Some(mode), identity.as_deref())?;
        let mut part = part.ok_or_else(|| refusal(BUSY))?;
        if item.is_large() || !part.is_new() {
            part.keep(0)?;
        }
        Self::with_part(lock, |owned| {
            *owned = Some(part);
            Ok(())
        })?;
        self.open += usize::from(!item.is_large());
        Ok(lock)
    }

    /// Processes a HOLE: blocks without data. Their values remain unknown, because they are not
    /// hashed.
    pub(super) fn hole(
        &mut self,
        item: &mut PendingOffer,
        first: u64,
        count: u64,
    ) -> Result<Step, Stop> {
        let State::Arriving(arriving) = &item.state else {
            return Ok(violation("a HOLE that was not requested")?);
        };
        let (Some(size), Some(end)) = (item.content.size, first.checked_add(count)) else {
            return Ok(violation("a HOLE in a stream")?);
        };
        require(end <= blocks(size), "a HOLE outside the file")?;
        // Data received before would remain in place of the hole.
        let wanted = first >= arriving.in_place && arriving.missing.covers(first..end);
        require(wanted, "a HOLE that was not requested")?;
        self.open(item)?;
        let length = (end * BLOCK).min(size) - first * BLOCK;
        self.meter.progress.done_bytes += length;
        self.received(item, first, count, length)
    }

    fn received(
        &mut self,
        item: &mut PendingOffer,
        first: u64,
        count: u64,
        length: u64,
    ) -> Result<Step, Stop> {
        if let State::Arriving(arriving) = &mut item.state {
            arriving.missing.remove(first..first + count);
            // Blocks arrive in order, except for damaged ones: the set stays small.
            let in_order = arriving.missing.count() <= RANGES + DAMAGED as usize + 1;
            require(in_order, "blocks out of order")?;
            arriving.length += length;
        }
        self.complete(item)
    }

    /// Processes an END.
    pub(super) fn end(&mut self, item: &mut PendingOffer, ended: Ended) -> Result<Step, Stop> {
        let State::Arriving(arriving) = &mut item.state else {
            return Ok(violation("an END that was not requested")?);
        };
        let expected = item.content.size.unwrap_or(arriving.length);
        let fits = ended.size == expected && arriving.ended.replace(ended).is_none();
        require(fits, "an END that differs from the offer")?;
        if item.content.size.is_none() {
            arriving.missing = Ranges::default();
            item.size = arriving.length;
        }
        self.complete(item)
    }

    /// Renames a file to its final name when it is complete.
    fn complete(&mut self, item: &PendingOffer) -> Result<Step, Stop> {
        let State::Arriving(arriving) = &item.state else { return Ok(Step::Pending) };
        let Some(ended) = arriving.ended.filter(|_| arriving.missing.is_empty()) else {
            return Ok(Step::Pending);
        };
        let lock = self.open(item)?;
        let (folder, overwrite) = (&self.shared.folder, self.shared.options.overwrite);
        let renamed = Self::with_part(lock, |part| {
            let part = part.as_mut().ok_or_else(|| refusal(BUSY))?;
            if part.root() != ended.root {
                return Err(refusal("its hash differs from the sender's"));
            }
            part.complete(folder, ended.size, item.mode, overwrite)
        });
        match renamed {
            Ok(found) => {
                self.remember(item, found);
                let resumed = arriving.resumed;
                let outcome = if resumed { FileOutcome::Resumed } else { FileOutcome::Sent };
                self.meter.file(&item.path, outcome, item.size, item.moved);
            }
            Err(Stop::Refused(why)) => {
                let found = self.completed_by_other(item).ok_or(why)?;
                super::discard(item);
                self.present(item, found);
            }
            Err(stop) => return Err(stop),
        }
        Ok(Step::Last(Decision::Present))
    }

    /// Returns the identity of the file if another connection has completed it meanwhile.
    fn completed_by_other(&mut self, item: &PendingOffer) -> Option<Identity> {
        let names = split_path(&item.path).ok()?;
        let status = self.view.status(&names).ok()??;
        let same =
            file_type(&status) == FileType::RegularFile && is_content(&status, &item.content);
        same.then(|| identity(&status))
    }

    /// Processes a CLAIM: compares the values with existing data.
    pub(super) fn compare(
        &mut self,
        item: &mut PendingOffer,
        first: u64,
        values: &[u8],
    ) -> Result<Step, Stop> {
        let State::Comparing(comparing) = &mut item.state else {
            return Ok(violation("a CLAIM that was not requested")?);
        };
        if matches!(comparing.existing, ExistingData::Small) {
            let names = split_path(&item.path).map_err(refusal)?;
            comparing.existing = open_existing(&mut self.view, &names)?;
        }
        let values = values.as_chunks::<32>().0;
        let follows = values.len() <= VALUES && first == comparing.next;
        let fits = follows && values.len() as u64 <= comparing.count - first;
        require(fits, "a CLAIM outside the file")?;
        let (size, buffer) = (item.size, &mut self.buffer);
        self.meter.during(Activity::Processor, || {
            values.iter().try_for_each(|value| comparing.compare(size, value, buffer))
        })?;
        // Hashing takes time, in which the sender is not idle.
        self.owner.idle_timer.touch();
        let overwrite = self.shared.options.overwrite;
        let is_final = matches!(comparing.existing, ExistingData::Final(..));
        if is_final && !overwrite && !comparing.differing.is_empty() {
            return Err(refusal("a different file exists").into());
        }
        if comparing.next < comparing.count {
            return Ok(Step::Pending);
        }
        self.compared(item)
    }

    /// Requests the blocks that differ, when all are compared.
    fn compared(&mut self, item: &mut PendingOffer) -> Result<Step, Stop> {
        let waiting = State::Waiting { since: Instant::now(), reported: true };
        let State::Comparing(Comparing { existing, differing, count, .. }) =
            std::mem::replace(&mut item.state, waiting)
        else {
            return Ok(Step::Pending);
        };
        let (number, size) = (item.number, item.size);
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
                self.present(item, *found);
                return Ok(Step::Last(Decision::Present));
            }
            _ if self.decisions_only() => {
                self.needed = self.needed.saturating_add(wanted);
                return Ok(Step::Last(Decision::Send));
            }
            _ if small => FileLock::new(Arc::clone(&self.owner), item.content),
            _ => match self.shared.lock_file(&item.path, item.content, &self.owner) {
                LockResult::Acquired(lock) => lock,
                LockResult::Busy { .. } => return Err(refusal(BUSY).into()),
            },
        };
        let in_place = if matches!(existing, ExistingData::Part(_)) { count } else { 0 };
        item.state =
            State::Arriving(Arriving { resumed: true, in_place, ..Arriving::new(lock, missing) });
        let need = wanted.min(item.space);
        count_file(&self.shared, item, need)?;
        if !small {
            let lock = self.open(item)?;
            self.keep_equal(lock, size, &existing, &differing)?;
        }
        for range in differing.iter() {
            let length = range.end - range.start;
            self.writer.put(&Frame::Want { number, first: range.start, count: length });
        }
        self.meter.progress.done_bytes += size - wanted;
        self.answer(number, Decision::Send, count, "");
        Ok(Step::Pending)
    }

    /// Copies the equal blocks of an existing file to the partial file, and records their values.
    fn keep_equal(
        &mut self,
        lock: &FileLock,
        size: u64,
        existing: &ExistingData,
        differing: &Ranges,
    ) -> Result<(), Stop> {
        // The values of a partial file's blocks were recorded when they were compared.
        let ExistingData::Final(fd, _) = existing else { return Ok(()) };
        for index in (0..blocks(size)).filter(|&index| !differing.contains(index)) {
            self.owner.idle_timer.touch();
            let buffer = &mut self.buffer;
            buffer.resize(block_len(size, index) as usize, 0);
            let written = Self::with_part(lock, |part| {
                let part = part.as_mut().ok_or_else(|| refusal(BUSY))?;
                read_at(fd, buffer, index * BLOCK)?;
                // Zeros stay a hole.
                let data = buffer.iter().any(|byte| *byte != 0);
                if data {
                    self.shared.count_bytes(buffer.len() as u64, 0)?;
                    part.write(buffer, index * BLOCK)?;
                }
                part.verified(index, &block_value(index, buffer))?;
                Ok(if data { buffer.len() as u64 } else { 0 })
            })?;
            self.check_space(written)?;
        }
        Ok(())
    }
}

impl Comparing {
    /// Compares the next block with a value.
    fn compare(&mut self, size: u64, value: &Value, buffer: &mut Vec<u8>) -> Result<(), Stop> {
        let index = self.next;
        buffer.resize(block_len(size, index) as usize, 0);
        let read = match &self.existing {
            ExistingData::Small => 0,
            ExistingData::Final(fd, _) => {
                read_at(fd, buffer, index * BLOCK).map_err(Refusal::from)?
            }
            ExistingData::Part(lock) => Receiver::with_part(lock, |part| match part {
                Some(part) => Ok(read_at(part.file(), buffer, index * BLOCK)?),
                None => Ok(0),
            })?,
        };
        if read != buffer.len() || block_value(index, buffer) != *value {
            self.differing.push(index);
        } else if let ExistingData::Part(lock) = &self.existing {
            Receiver::with_part(lock, |part| match part {
                Some(part) => part.verified(index, value),
                None => Ok(()),
            })?;
        }
        self.next += 1;
        Ok(())
    }
}
