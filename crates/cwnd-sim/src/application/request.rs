//! A server that answers the requests of one client.

use super::{Generator, Writer};
use crate::engine::schedule::NONE;
use crate::network::{Sizes, Times};

/// Answers a request; the client sends the next one some time after the end of the response.
#[derive(Clone)]
pub(super) struct Request {
    sizes: Sizes,
    think: Times,
    /// Arrival of the next request.
    next: u64,
}

impl Request {
    pub(super) fn new(sizes: Sizes, think: Times) -> Self {
        Request { sizes, think, next: NONE }
    }
}

impl Generator for Request {
    fn start(&mut self, writer: &mut Writer) {
        self.next = writer.now;
    }

    fn due(&self) -> u64 {
        self.next
    }

    fn wake(&mut self, writer: &mut Writer) {
        self.next = NONE;
        let bytes = self.sizes.draw(&mut writer.rng);
        writer.write_transfer(bytes);
    }

    fn completed(&mut self, writer: &mut Writer) {
        self.next = writer.now.saturating_add(writer.draw(&self.think));
    }

    fn stop(&mut self, _: &mut Writer) {
        self.next = NONE;
    }
}
