//! Answers of laws in files that the machines bound.

use alloc::vec::Vec;
use core::cell::RefCell;
use core::ptr;
use cwnd_law::{Hook, Law};

std::thread_local! {
    /// The first such answer of each law in the run of this thread; nothing outside of a run.
    static FIRST: RefCell<Option<Vec<OddAnswer>>> = const { RefCell::new(None) };
}

/// An answer that is no window or rate: not a number, negative or infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OddAnswer {
    /// The law, to which [`registry::declared_name`](crate::registry::declared_name) has a name.
    pub law: &'static Law,
    /// The hook that answered.
    pub hook: Hook,
    /// Its answer: packets, or packets per second.
    pub answer: f64,
    /// Seconds since the clock's origin.
    pub at: f64,
}

/// Begins a run on this thread: [`odd_answers`] returns what its laws in files answer from now on.
pub fn watch_answers() {
    FIRST.set(Some(Vec::new()));
}

/// Ends the run on this thread: the first odd answer of each law since [`watch_answers`].
pub fn odd_answers() -> Vec<OddAnswer> {
    FIRST.take().unwrap_or_default()
}

/// Keeps an odd answer, if it is the first one of its law in a run. `at` is in nanoseconds.
#[cold]
pub(crate) fn keep(law: &'static Law, hook: Hook, answer: f64, at: Option<f64>) {
    FIRST.with_borrow_mut(|first| {
        if let Some(first) = first
            && first.iter().all(|known| !ptr::eq(known.law, law))
        {
            first.push(OddAnswer { law, hook, answer, at: at.unwrap_or(0.0) / 1e9 });
        }
    });
}
