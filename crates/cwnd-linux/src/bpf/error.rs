//! Errors. Each message is one line.

use std::io;

/// An error of the kernel's controllers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The controller, or one of its parameters, has no kernel implementation.
    #[error("{0}")]
    NoImplementation(String),
    /// An invalid or used controller name.
    #[error("{0}")]
    Name(String),
    /// No loaded controller has the name or specification.
    #[error("{0}")]
    NotLoaded(String),
    /// Another trace receives the events of the controller.
    #[error("{0}")]
    Traced(String),
    /// The kernel lacks a feature, or the user a capability.
    #[error("{0}")]
    Missing(String),
    /// A BPF object of this package is damaged, or the kernel's verifier rejects it.
    #[error("BPF object {law}: {problem}")]
    Object {
        /// The law.
        law: &'static str,
        /// The problem.
        problem: String,
    },
    /// An operation failed.
    #[error("{operation}: {source}")]
    Kernel {
        /// The operation.
        operation: String,
        /// Its error.
        source: io::Error,
    },
}

#[cfg(target_os = "linux")]
impl Error {
    /// Adds the operation to a kernel error.
    pub(super) fn kernel(operation: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let operation = operation.into();
        move |source| Error::Kernel { operation, source }
    }

    /// Adds the operation to a libbpf error, whose innermost cause is the kernel's error.
    pub(super) fn bpf(operation: impl Into<String>) -> impl FnOnce(libbpf_rs::Error) -> Error {
        let operation = operation.into();
        move |error| {
            let kind = match error.kind() {
                libbpf_rs::ErrorKind::PermissionDenied => io::ErrorKind::PermissionDenied,
                libbpf_rs::ErrorKind::NotFound => io::ErrorKind::NotFound,
                _ => io::ErrorKind::Other,
            };
            let mut cause: &dyn std::error::Error = &error;
            while let Some(next) = cause.source() {
                cause = next;
            }
            Error::Kernel { operation, source: io::Error::new(kind, cause.to_string()) }
        }
    }
}
