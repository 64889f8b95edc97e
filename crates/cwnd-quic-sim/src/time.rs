//! The clock of the stacks: one base, and the simulated time.

use cwnd::Time;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Stacks may subtract any duration of a run from a time.
const BEFORE: Duration = Duration::from_secs(86_400);

static BASE: LazyLock<Instant> = LazyLock::new(|| Instant::now() + BEFORE);

/// Returns the stack's time at `now`.
pub(crate) fn instant(now: Time) -> Instant {
    *BASE + Duration::from_nanos(now.as_nanos())
}

/// Returns the simulated time at `instant`.
pub(crate) fn time(instant: Instant) -> Time {
    let nanos = instant.saturating_duration_since(*BASE).as_nanos();
    Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
