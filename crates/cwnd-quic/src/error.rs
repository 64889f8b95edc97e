//! Why a controller cannot be used.

use cwnd::SpecError;
use std::convert::Infallible;
use std::fmt;
use std::io;
use thiserror::Error;

/// Why a factory cannot be made. The message is one line.
#[derive(Error)]
#[non_exhaustive]
pub enum Error {
    /// The specification is faulty.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The file of a law cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// What the system says.
        source: io::Error,
    },
    /// The text of a law is faulty.
    #[error("{name}: {fault}")]
    Law {
        /// The name of the law, or its file.
        name: String,
        /// The first fault, with its line and column.
        fault: String,
    },
    /// The controller sets a pacing rate, which the stack ignores.
    #[error(
        "{controller} sets a pacing rate, which {stack} ignores: it would send bursts \
         (factory_even_if_paced accepts it)"
    )]
    Paced {
        /// The controller.
        controller: String,
        /// The stack.
        stack: &'static str,
    },
}

/// `unwrap` and a `main` that returns an error show it by `Debug`.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Infallible> for Error {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}
