//! What can go wrong, in one line each.

use std::io;

/// Why something about the kernel's controllers did not work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The controller has no form in the kernel.
    #[error("{0}")]
    NoForm(String),
    /// A name that a controller of the kernel cannot have.
    #[error("{0}")]
    Name(String),
    /// Nothing is loaded under the name or specification.
    #[error("{0}")]
    NotLoaded(String),
    /// The kernel, or the user, may not do this.
    #[error("{0}")]
    Missing(String),
    /// An object of the package is damaged, or of another kernel's making.
    #[error("the program of {law}: {problem}")]
    Object {
        /// The law.
        law: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// The kernel refused something.
    #[error("{doing}: {source}")]
    Kernel {
        /// What was tried.
        doing: String,
        /// The kernel's answer.
        source: io::Error,
    },
}

#[cfg(target_os = "linux")]
impl Error {
    /// The kernel's answer to what was tried.
    pub(super) fn kernel(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let doing = doing.into();
        move |source| Error::Kernel { doing, source }
    }

    /// libbpf's answer to what was tried: its cause is the kernel's.
    pub(super) fn bpf(doing: impl Into<String>) -> impl FnOnce(&libbpf_rs::Error) -> Error {
        let doing = doing.into();
        move |error| {
            let kind = match error.kind() {
                libbpf_rs::ErrorKind::PermissionDenied => io::ErrorKind::PermissionDenied,
                libbpf_rs::ErrorKind::NotFound => io::ErrorKind::NotFound,
                _ => io::ErrorKind::Other,
            };
            let mut cause: &dyn std::error::Error = error;
            while let Some(deeper) = cause.source() {
                cause = deeper;
            }
            Error::Kernel { doing, source: io::Error::new(kind, cause.to_string()) }
        }
    }
}
