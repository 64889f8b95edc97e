//! A controller whose answer does not change.

use cwnd::{AnyController, Controller, Event, MakeController, Output, Settings, Time};
use std::fmt;

#[derive(Clone, Debug)]
pub(crate) struct Fixed(pub(crate) Output);

impl Controller for Fixed {
    fn on(&mut self, _now: Time, _event: &Event) {}

    fn output(&self) -> Output {
        self.0
    }
}

impl fmt::Display for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("fixed")
    }
}

impl MakeController for Fixed {
    fn controller(&self, _settings: &Settings) -> AnyController {
        AnyController::whole(self.clone())
    }
}
