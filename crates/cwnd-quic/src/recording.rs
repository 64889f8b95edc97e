//! Records of connections.

use cwnd::Settings;
use cwnd::record::{Entry, Record};
use std::sync::{Arc, Mutex, PoisonError};

/// The record of a controller under a stack: of one connection, or of one path of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Recording {
    /// The settings from which the controller was made.
    pub settings: Settings,
    /// Its events and answers.
    pub record: Record,
}

/// The records of all connections of a factory, in the order in which their controllers were made.
///
/// They grow by about 200 bytes for each event, and are kept until all clones of this are
/// dropped.
#[derive(Clone, Debug, Default)]
pub struct Recordings(Arc<Mutex<Vec<Arc<Mutex<Recording>>>>>);

impl Recordings {
    /// No records.
    pub fn new() -> Self {
        Recordings::default()
    }

    /// The records so far.
    pub fn to_vec(&self) -> Vec<Recording> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|each| each.lock().unwrap_or_else(PoisonError::into_inner).clone()).collect()
    }

    /// Begins the record of a controller.
    pub(crate) fn begin(&self, settings: &Settings) -> Recorder {
        let recording = Recording { settings: *settings, record: Record::default() };
        self.add(recording)
    }

    fn add(&self, recording: Recording) -> Recorder {
        let own = Arc::new(Mutex::new(recording));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&own));
        Recorder { own, all: self.clone() }
    }
}

/// Writes one record.
#[derive(Debug)]
pub(crate) struct Recorder {
    own: Arc<Mutex<Recording>>,
    all: Recordings,
}

impl Recorder {
    pub(crate) fn push(&self, entry: Entry) {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.record.entries.push(entry);
    }
}

impl Clone for Recorder {
    /// The record of a controller that goes on from this one: it begins with a copy.
    fn clone(&self) -> Self {
        let copy = self.own.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.all.add(copy)
    }
}
