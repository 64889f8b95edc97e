//! Transfers of files, for `cwnd.transfer`.

use crate::custom::Failure;
use crate::udt::{Listener, SocketOptions};
use cwnd_transfer::event::Event;
use cwnd_transfer::select::Select;
use cwnd_transfer::send::{Control, SendOptions, send};
use cwnd_transfer::serve::{self, receive};
use cwnd_transfer::shared::ReceiveOptions;
use cwnd_transfer::stream::{Stream, is_timeout};
use cwnd_udt::secure::Credentials;
use cwnd_udt::{Config, UdtStream};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::collections::VecDeque;
use std::io;
use std::net::ToSocketAddrs;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Events that wait for Python, at most: the transfer waits then.
const EVENTS: usize = 10_000;
/// The time between two looks whether to stop.
const SLICE: Duration = Duration::from_millis(100);

#[derive(Default)]
struct Waiting {
    events: VecDeque<String>,
    over: bool,
}

/// Events on their way to Python.
#[derive(Default)]
struct Events {
    queue: Mutex<Waiting>,
    changed: Condvar,
}

impl Events {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, event: &Event, control: &Control) {
        let Ok(text) = serde_json::to_string(event) else { return };
        let mut queue = self.lock();
        while queue.events.len() >= EVENTS && !control.is_stopped() {
            let waited = self.changed.wait_timeout(queue, SLICE);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        queue.events.push_back(text);
        // Small events are handed over together: Python is woken when it looks.
        if queue.events.len() >= EVENTS / 2 {
            self.changed.notify_all();
        }
    }

    fn end(&self) {
        self.lock().over = true;
        self.changed.notify_all();
    }
}

/// A transfer in a thread of its own.
#[pyclass(frozen, module = "cwnd._native")]
pub(crate) struct Transfer {
    events: Arc<Events>,
    control: Arc<Control>,
    thread: Mutex<Option<JoinHandle<Result<(), String>>>>,
    /// Errors of controllers written in Python.
    failures: Vec<Arc<Failure>>,
}

impl Transfer {
    fn start(
        failures: Vec<Arc<Failure>>,
        work: impl FnOnce(&(dyn Fn(Event) + Send + Sync), &Control) -> Result<(), String>
        + Send
        + 'static,
    ) -> Self {
        let (events, control) = (Arc::<Events>::default(), Arc::<Control>::default());
        let thread = std::thread::spawn({
            let (events, control) = (Arc::clone(&events), Arc::clone(&control));
            move || {
                let observe = |event: Event| events.push(&event, &control);
                let result = work(&observe, &control);
                events.end();
                result
            }
        });
        Transfer { events, control, thread: Mutex::new(Some(thread)), failures }
    }
}

#[pymethods]
impl Transfer {
    /// Returns the events until now as a JSON array, after `timeout` seconds or at the end; `None`
    /// after the last one.
    ///
    /// # Errors
    /// Those of a controller written in Python.
    fn poll(&self, py: Python<'_>, timeout: f64) -> PyResult<Option<String>> {
        let deadline = Instant::now() + Duration::try_from_secs_f64(timeout).unwrap_or_default();
        let events = py.detach(|| {
            let mut queue = self.events.lock();
            loop {
                let left = deadline.saturating_duration_since(Instant::now());
                if queue.over || left.is_zero() || queue.events.len() >= EVENTS / 2 {
                    break;
                }
                let waited = self.events.changed.wait_timeout(queue, left);
                queue = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            if queue.events.is_empty() && queue.over {
                return None;
            }
            let events = std::mem::take(&mut queue.events);
            drop(queue);
            self.events.changed.notify_all();
            Some(format!("[{}]", Vec::from(events).join(",")))
        });
        self.failures.iter().try_for_each(|failure| failure.check())?;
        Ok(events)
    }

    /// Ends the transfer at once.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.control.stop());
    }

    /// Waits for the end. A failure that no event tells is an error.
    fn join(&self, py: Python<'_>) -> PyResult<()> {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return Ok(()) };
        let result = py.detach(|| thread.join());
        let result = result.unwrap_or_else(|_| Err("the transfer has failed unexpectedly".into()));
        result.map_err(PyOSError::new_err)
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.control.stop();
    }
}

/// Which files are sent, and how: a dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Sending {
    include: Vec<String>,
    exclude: Vec<String>,
    checksum: bool,
    dry_run: bool,
    retry: u32,
}

/// What a receiver takes: a dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Receiving {
    max_bytes: Option<u64>,
    max_files: Option<u64>,
    reserve: String,
    overwrite: bool,
    allow_dotfiles: bool,
    once: bool,
}

/// Connects to the first address that answers.
fn connect(
    host: &str,
    port: u16,
    config: &Config,
    control: &Control,
) -> io::Result<Arc<dyn Stream>> {
    let mut failed = io::Error::other("the name has no address");
    for peer in (host, port).to_socket_addrs()? {
        let stream = UdtStream::connecting(peer, config)?;
        loop {
            match stream.connected_until(Some(Instant::now() + SLICE)) {
                Ok(()) => return Ok(Arc::new(stream)),
                Err(_) if control.is_stopped() => return Err(io::ErrorKind::Interrupted.into()),
                Err(error) if is_timeout(&error) => {}
                Err(error) => {
                    failed = error;
                    break;
                }
            }
        }
    }
    Err(failed)
}

/// Sends files, folders and standard input.
#[pyfunction]
pub(crate) fn transfer_send(
    sources: Vec<PathBuf>,
    host: String,
    port: u16,
    socket: SocketOptions,
    options: Sending,
) -> PyResult<Transfer> {
    let failure = Arc::default();
    let config = socket.config(&failure)?;
    let Sending { include, exclude, checksum, dry_run, retry } = options;
    let select = Select::new(&include, &exclude).map_err(PyValueError::new_err)?;
    let options = SendOptions { select, checksum, dry_run, retry };
    Ok(Transfer::start(vec![failure], move |observe, control| {
        // Each attempt with a wrong code is a guess: only a sender that had the right one connects
        // again.
        let mut proved = !matches!(config.credentials, Some(Credentials::Code(_)));
        let mut connect = || match connect(&host, port, &config, control) {
            Err(error) if !proved => {
                Err(io::Error::new(io::ErrorKind::PermissionDenied, error.to_string()))
            }
            result => {
                proved |= result.is_ok();
                result
            }
        };
        send(&sources, options, &mut connect, observe, control).map(drop)
    }))
}

/// Receives from listeners into a folder.
#[pyfunction]
pub(crate) fn transfer_receive(
    listeners: Vec<PyRef<'_, Listener>>,
    out: PathBuf,
    options: Receiving,
) -> PyResult<Transfer> {
    let failures: Vec<_> = listeners.iter().map(|each| each.failure.clone()).collect();
    let listeners = listeners.iter().map(|each| each.open()).collect::<io::Result<Vec<_>>>()?;
    let options = ReceiveOptions {
        max_bytes: options.max_bytes,
        max_files: options.max_files,
        reserve: options.reserve.parse().map_err(PyValueError::new_err)?,
        overwrite: options.overwrite,
        allow_dotfiles: options.allow_dotfiles,
        once: options.once,
        ..ReceiveOptions::default()
    };
    Ok(Transfer::start(failures, move |observe, control| {
        let listeners: Vec<_> =
            listeners.iter().map(|listener| &**listener as &dyn serve::Listener).collect();
        let received = receive(&listeners, &out, options, observe, control);
        received.map_err(|error| error.to_string())
    }))
}
