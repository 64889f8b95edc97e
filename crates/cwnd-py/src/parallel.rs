//! Pieces of work on all cores, without the GIL.

use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

/// Time between two looks at signals and progress.
const PATIENCE: Duration = Duration::from_millis(50);

/// Runs the work of a thread with one state of Python's for all calls into Python: otherwise each
/// call makes a state, and maps memory for it.
pub(crate) fn keeping_state<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    Python::attach(|py| py.detach(work))
}

/// Calls `work` for 0 to `count` on `threads` threads, or on all cores for 0 threads. Passes what it
/// returns to `take`, and meanwhile looks at signals and calls `take` without a result. After an
/// error of `take` or a signal, and at the end, `stop` makes work that goes on end early, with
/// `None`. Returns what the threads end with.
pub(crate) fn each<T: Send>(
    py: Python<'_>,
    (count, threads): (usize, usize),
    work: impl Fn(usize) -> Option<T> + Sync,
    stop: impl FnOnce(),
    mut take: impl FnMut(Option<(usize, T)>) -> PyResult<()>,
) -> PyResult<thread::Result<()>> {
    let available = thread::available_parallelism().map_or(1, usize::from);
    let threads = if threads == 0 { available } else { threads }.min(count);
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        // Workers wait rather than heap up results when Python is the slower one.
        let (sender, receiver) = mpsc::sync_channel(threads);
        let (work, next) = (&work, &next);
        let run = move |sender: &mpsc::SyncSender<_>| {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(result) = (at < count).then(|| work(at)).flatten() else { return };
                // Without a receiver nobody waits for more.
                if sender.send((at, result)).is_err() {
                    return;
                }
            }
        };
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let sender = sender.clone();
                scope.spawn(move || keeping_state(|| run(&sender)))
            })
            .collect();
        drop(sender);
        let receiver = Mutex::new(receiver);
        let outcome = loop {
            let message = py.detach(|| {
                let receiver = receiver.lock().unwrap_or_else(PoisonError::into_inner);
                receiver.recv_timeout(PATIENCE)
            });
            let over = matches!(message, Err(mpsc::RecvTimeoutError::Disconnected));
            let taken = py.check_signals().and_then(|()| take(message.ok()));
            if over || taken.is_err() {
                break taken;
            }
        };
        stop();
        drop(receiver);
        let join = |ends: thread::Result<()>, worker: ScopedJoinHandle<'_, _>| {
            let end = worker.join();
            ends.and(end)
        };
        let ends = py.detach(|| workers.into_iter().fold(Ok(()), join));
        outcome.map(|()| ends)
    })
}

/// The results of `work` for 0 to `count`, in order.
pub(crate) fn map<T: Send>(
    py: Python<'_>,
    count: usize,
    work: impl Fn(usize) -> T + Sync,
) -> PyResult<Vec<T>> {
    let stopped = AtomicBool::new(false);
    let work = |at| (!stopped.load(Ordering::Relaxed)).then(|| work(at));
    let stop = || stopped.store(true, Ordering::Relaxed);
    let mut results = Vec::with_capacity(count);
    let ends = each(py, (count, 0), work, stop, |result| {
        results.extend(result);
        Ok(())
    })?;
    if let Err(panic) = ends {
        std::panic::resume_unwind(panic);
    }
    results.sort_unstable_by_key(|(at, _)| *at);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}
