//! Contents of files: reads, hashes and sends them.

use super::{Sender, Work};
use crate::channel::Failure;
use crate::folder::describe;
use crate::frame::{EXTENTS, Frame, VALUES, What, begin_block, finish_block, require};
use crate::hash::{BLOCK, Tree, Value, block_len, block_value, blocks};
use crate::part::read_at;
use crate::report::Activity;
use crate::source::{CHANGED, check_unchanged};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// The next part of a file.
enum Next {
    /// Runs of data (offset, length) in the block.
    Data(Vec<(u64, u64)>),
    /// A run of blocks without data, by its length.
    Hole(u64),
}

impl Sender<'_, '_, '_> {
    pub(super) fn run_work(&mut self, work: Work) -> Result<(), Failure> {
        match work {
            Work::Claim { number, count } => self.claim(number, count),
            Work::Send { number, first } => self.send(number, first),
            Work::Again { number, first, count } => self.send_again(number, first, count),
        }
    }

    fn open(&mut self, number: u64) -> Option<(usize, OwnedFd)> {
        let index = self.pending.get(&number)?.index;
        let opened =
            self.meter.during(Activity::Disk, || self.opener.open(&self.task.source, index));
        match opened {
            Ok(fd) => Some((index, fd)),
            Err(reason) => {
                self.withdraw(number, &reason);
                None
            }
        }
    }

    /// Sends the values of the first `count` blocks of a file (CLAIM).
    fn claim(&mut self, number: u64, count: u64) -> Result<(), Failure> {
        let Some((index, fd)) = self.open(number) else { return Ok(()) };
        let size = self.task.source.entries[index].size;
        let (mut tree, mut values) = (Tree::default(), Vec::new());
        for block in 0..count {
            let value = match self.read_block(&fd, size, block) {
                Ok(Some(value)) => value,
                failed => {
                    self.withdraw(number, &failed.map_or_else(describe, |_| CHANGED.into()));
                    return Ok(());
                }
            };
            tree.push(value);
            values.extend(value);
            let unsent = values.len() / 32;
            if unsent == VALUES || block + 1 == count {
                let first = block + 1 - unsent as u64;
                self.writer.put(&Frame::Claim { number, first, values: &values });
                values.clear();
                self.flush()?;
            }
            // A slow disk must not look like an idle sender.
            self.ping()?;
            self.take_replies()?;
            if !self.pending.contains_key(&number) {
                return Ok(());
            }
            self.meter.show(&*self.stream);
        }
        if let Some(item) = self.pending.get_mut(&number) {
            item.claimed = tree;
        }
        Ok(())
    }

    /// Reads a block of a file and returns its value; `None` if the file has become shorter.
    fn read_block(&mut self, fd: &OwnedFd, size: u64, block: u64) -> Result<Option<Value>, Errno> {
        let buffer = &mut self.buffer;
        buffer.resize(block_len(size, block) as usize, 0);
        let read = self.meter.during(Activity::Disk, || read_at(fd, buffer, block * BLOCK))?;
        let complete = read == buffer.len();
        let value = || block_value(block, buffer);
        Ok(complete.then(|| self.meter.during(Activity::Processor, value)))
    }

    /// Sends the blocks of a file from `first` on, and its end.
    fn send(&mut self, number: u64, first: u64) -> Result<(), Failure> {
        let Some((index, fd)) = self.open(number) else { return Ok(()) };
        let entry = &self.task.source.entries[index];
        if entry.what == What::Stream {
            return self.send_stream(number, &fd);
        }
        let (size, sparse) = (entry.size, entry.space < entry.size);
        let Some(item) = self.pending.get_mut(&number) else { return Ok(()) };
        item.resumed = first > 0 || item.claim_requested;
        // Blocks that were requested by WANT are counted already.
        let kept = (first * BLOCK).min(size).saturating_sub(item.done);
        item.done += kept;
        self.meter.progress.done_bytes += kept;
        if size > BLOCK || self.meter.is_due() {
            self.meter.progress.name = crate::names::printable(&self.task.source.path(index));
        }
        let mut tree = std::mem::take(&mut item.claimed);
        let claimed = first == tree.blocks();
        require(claimed, "a request for blocks after others that were not claimed")?;
        let mut block = first;
        while block < blocks(size) {
            let next = if sparse { next_data(&fd, size, block) } else { Ok(whole(size, block)) };
            match next {
                Err(errno) => {
                    self.withdraw(number, &describe(errno));
                    return Ok(());
                }
                Ok(Next::Hole(count)) => {
                    self.writer.put(&Frame::Hole { number, first: block, count });
                    self.count(number, 0, ((block + count) * BLOCK).min(size) - block * BLOCK);
                    tree.push_holes(count);
                    block += count;
                }
                Ok(Next::Data(runs)) => {
                    let Some(value) = self.block(number, &fd, (size, block), &runs)? else {
                        return Ok(());
                    };
                    tree.push(value);
                    block += 1;
                }
            }
            if block < blocks(size) {
                self.flush_batch()?;
                self.take_replies()?;
                if !self.pending.contains_key(&number) {
                    return Ok(());
                }
            }
        }
        let entry = &self.task.source.entries[index];
        if let Err(reason) = self.meter.during(Activity::Disk, || check_unchanged(entry, &fd))
            && !self.is_still_there(&fd, size, if sparse { first } else { u64::MAX }, &tree)?
        {
            self.withdraw(number, &reason);
            return Ok(());
        }
        let Some(item) = self.pending.get_mut(&number) else { return Ok(()) };
        item.ended = true;
        self.writer.put(&Frame::End { number, size, root: tree.root() });
        self.flush_batch()?;
        self.meter.show(&*self.stream);
        Ok(())
    }

    /// Whether a file that has changed still begins with what was sent, as one that has only grown.
    /// Holes were sent from the block `sparse` on.
    fn is_still_there(
        &mut self,
        fd: &OwnedFd,
        size: u64,
        sparse: u64,
        sent: &Tree,
    ) -> Result<bool, Failure> {
        let mut tree = Tree::default();
        while tree.blocks() < blocks(size) {
            let block = tree.blocks();
            if block >= sparse
                && let Ok(Next::Hole(count)) = next_data(fd, size, block)
            {
                tree.push_holes(count);
                continue;
            }
            let Ok(Some(value)) = self.read_block(fd, size, block) else { return Ok(false) };
            tree.push(value);
            self.ping()?;
        }
        Ok(tree.is_equal(sent))
    }

    /// Sends blocks that the receiver requested by WANT.
    fn send_again(&mut self, number: u64, first: u64, count: u64) -> Result<(), Failure> {
        let Some((index, fd)) = self.open(number) else { return Ok(()) };
        let size = self.task.source.entries[index].size;
        for block in first..first + count {
            let Next::Data(runs) = whole(size, block) else { continue };
            if self.block(number, &fd, (size, block), &runs)?.is_none() {
                return Ok(());
            }
            self.flush_batch()?;
            self.take_replies()?;
            if !self.pending.contains_key(&number) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Reads a block into the next frame; `None` if the file has become shorter.
    fn block(
        &mut self,
        number: u64,
        fd: &OwnedFd,
        (size, block): (u64, u64),
        runs: &[(u64, u64)],
    ) -> Result<Option<Value>, Failure> {
        let out = &mut self.writer.out;
        let start = out.len();
        let at = begin_block(out, number, block);
        let length = block_len(size, block);
        let dense = runs.len() == 1 && runs[0] == (0, length);
        if !dense {
            for (offset, run) in runs {
                out.extend((*offset as u32).to_be_bytes());
                out.extend((*run as u32).to_be_bytes());
            }
        }
        let data = out.len();
        let read = self.meter.during(Activity::Disk, || {
            for (offset, run) in runs {
                let from = out.len();
                out.resize(from + *run as usize, 0);
                if read_at(fd, &mut out[from..], block * BLOCK + offset)? < *run as usize {
                    return Ok(false);
                }
            }
            Ok(true)
        });
        let problem: Result<bool, Errno> = read;
        if problem != Ok(true) {
            out.truncate(start);
            let reason = problem.map_or_else(describe, |_| CHANGED.into());
            self.withdraw(number, &reason);
            return Ok(None);
        }
        let buffer = &mut self.buffer;
        let value = self.meter.during(Activity::Processor, || {
            if dense {
                return block_value(block, &out[data..]);
            }
            buffer.clear();
            buffer.resize(length as usize, 0);
            let mut from = data;
            for (offset, run) in runs {
                let (offset, run) = (*offset as usize, *run as usize);
                buffer[offset..offset + run].copy_from_slice(&out[from..from + run]);
                from += run;
            }
            block_value(block, buffer)
        });
        let extents = if dense { 0 } else { runs.len() as u16 };
        finish_block(out, at, &value, length as u32, extents);
        let moved = (out.len() - data) as u64;
        self.count(number, moved, length);
        Ok(Some(value))
    }

    /// Counts bytes sent, and bytes done.
    fn count(&mut self, number: u64, moved: u64, done: u64) {
        self.meter.progress.moved_bytes += moved;
        let Some(item) = self.pending.get_mut(&number) else { return };
        item.moved += moved;
        let index = item.index;
        let entry = &self.task.source.entries[index];
        // Retransmitted blocks are counted once.
        let limit = if entry.what == What::Stream { u64::MAX } else { entry.size };
        let done = done.min(limit - item.done.min(limit));
        item.done += done;
        self.meter.progress.done_bytes += done;
    }

    /// Sends standard input until its end.
    fn send_stream(&mut self, number: u64, fd: &OwnedFd) -> Result<(), Failure> {
        self.meter.progress.name = "stdin".into();
        let mut data = std::mem::take(&mut self.buffer);
        let mut block = 0;
        loop {
            data.clear();
            let more = self.read_stream(number, fd, &mut data)?;
            if !self.pending.contains_key(&number) {
                return Ok(());
            }
            if !data.is_empty() {
                self.task.consumed = true;
                let at = begin_block(&mut self.writer.out, number, block);
                self.writer.out.extend(&data);
                let value = self.meter.during(Activity::Processor, || block_value(block, &data));
                finish_block(&mut self.writer.out, at, &value, data.len() as u32, 0);
                self.count(number, data.len() as u64, data.len() as u64);
                if let Some(item) = self.pending.get_mut(&number) {
                    item.length += data.len() as u64;
                }
                block += 1;
            }
            if !more {
                break;
            }
            self.flush()?;
        }
        let Some(item) = self.pending.get_mut(&number) else { return Ok(()) };
        item.ended = true;
        self.writer.put(&Frame::End { number, size: item.length, root: None });
        self.buffer = data;
        Ok(())
    }

    /// Reads a block of standard input, and handles replies meanwhile. Returns false at the end.
    fn read_stream(
        &mut self,
        number: u64,
        fd: &OwnedFd,
        data: &mut Vec<u8>,
    ) -> Result<bool, Failure> {
        while (data.len() as u64) < BLOCK && self.pending.contains_key(&number) {
            let mut waiting = [PollFd::new(fd, PollFlags::IN)];
            let tick = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
            let ready = self
                .meter
                .during(Activity::Waiting, || rustix::event::poll(&mut waiting, Some(&tick)));
            if ready == Ok(0) || ready == Err(Errno::INTR) {
                self.ping()?;
                self.meter.show(&*self.stream);
            } else {
                let from = data.len();
                data.resize(BLOCK as usize, 0);
                let read = rustix::io::read(fd, &mut data[from..]);
                data.truncate(from + *read.as_ref().unwrap_or(&0));
                match read {
                    Ok(0) => return Ok(false),
                    Ok(_) | Err(Errno::INTR | Errno::AGAIN) => {}
                    Err(errno) => {
                        self.withdraw(number, &describe(errno));
                        return Ok(false);
                    }
                }
            }
            self.take_replies()?;
        }
        Ok(true)
    }
}

/// Returns a block that is read completely.
fn whole(size: u64, block: u64) -> Next {
    Next::Data(vec![(0, block_len(size, block))])
}

/// Returns the runs of data of a block, or the number of blocks without data.
fn next_data(fd: &OwnedFd, size: u64, block: u64) -> Result<Next, Errno> {
    let start = block * BLOCK;
    let end = start + block_len(size, block);
    let find = |from: SeekFrom| match rustix::fs::seek(fd, from) {
        Ok(found) => Ok(found.min(size)),
        Err(Errno::NXIO) => Ok(size),
        Err(errno) => Err(errno),
    };
    let mut data = match find(SeekFrom::Data(start)) {
        // The file system does not report holes.
        Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(whole(size, block)),
        found => found?,
    };
    if data >= end {
        let last = if data >= size { blocks(size) } else { data / BLOCK };
        return Ok(Next::Hole(last - block));
    }
    let mut runs = Vec::new();
    while data < end {
        let hole = find(SeekFrom::Hole(data))?.clamp(data, end);
        // If a frame cannot hold more runs, the rest of the block is one run, including zeros.
        let hole = if runs.len() + 1 == EXTENTS || hole == data { end } else { hole };
        runs.push((data - start, hole - data));
        data = if hole < end { find(SeekFrom::Data(hole))? } else { end };
    }
    Ok(Next::Data(runs))
}
