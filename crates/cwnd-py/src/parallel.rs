//! Many small pieces of work on all cores, without the GIL.

use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Time between two looks at signals.
const PATIENCE: Duration = Duration::from_millis(50);

/// Runs the work of a thread with one state of Python's for all calls into Python: otherwise each
/// call makes a state, and maps memory for it.
pub(crate) fn keeping_state<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    Python::attach(|py| py.detach(work))
}

/// The results of `work` for 0 to `count`, in order.
pub(crate) fn map<T: Send>(
    py: Python<'_>,
    count: usize,
    work: impl Fn(usize) -> T + Sync,
) -> PyResult<Vec<T>> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(count);
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let take = || {
        let mut done = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                break;
            }
            done.push((at, work(at)));
        }
        done
    };
    let mut results = py.detach(|| {
        thread::scope(|scope| {
            let (sender, finished) = mpsc::channel::<()>();
            let workers: Vec<_> = (0..threads)
                .map(|_| {
                    let (take, sender) = (&take, sender.clone());
                    scope.spawn(move || {
                        let done = keeping_state(take);
                        drop(sender);
                        done
                    })
                })
                .collect();
            drop(sender);
            // Nothing is ever sent: the channel closes when the last worker is done.
            while finished.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
                if let Err(error) = Python::attach(|py| py.check_signals()) {
                    stop.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
            let mut results = Vec::with_capacity(count);
            for worker in workers {
                match worker.join() {
                    Ok(done) => results.extend(done),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            Ok(results)
        })
    })?;
    results.sort_unstable_by_key(|(at, _)| *at);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}
