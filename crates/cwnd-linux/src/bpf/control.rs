//! The control map of a loaded controller: metadata, and the time until which it writes events.

use super::Error;
use libbpf_rs::{MapCore, MapFlags, MapHandle};

/// `TCP_CA_NAME_MAX`, including the terminating zero.
pub(super) const NAME_MAX: usize = 16;
/// Bytes of a specification, including the terminating zero.
pub(super) const SPEC_MAX: usize = 128;

/// `struct control` of `kernel/trace.h`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Control {
    /// Events are written until this time, in nanoseconds of CLOCK_MONOTONIC.
    pub until: u64,
    /// Events lost because the ring buffer was full.
    pub missed: u64,
    /// The specification of the controller.
    pub spec: String,
    /// The default controller that this one replaced; empty if it was not made the default.
    pub previous: String,
}

impl Control {
    const SIZE: usize = 16 + SPEC_MAX + NAME_MAX;

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = [self.until.to_ne_bytes(), self.missed.to_ne_bytes()].concat();
        for (text, size) in [(&self.spec, SPEC_MAX), (&self.previous, NAME_MAX)] {
            bytes.extend(text.bytes().chain(std::iter::repeat(0)).take(size));
        }
        bytes
    }

    fn from_bytes(bytes: &[u8; Self::SIZE]) -> Self {
        let text = |at: usize, size: usize| {
            let text = bytes[at..at + size].split(|&byte| byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(text).into_owned()
        };
        let u64_at =
            |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
        Control {
            until: u64_at(0),
            missed: u64_at(8),
            spec: text(16, SPEC_MAX),
            previous: text(16 + SPEC_MAX, NAME_MAX),
        }
    }

    /// Reads the map.
    pub(super) fn read(map: &MapHandle) -> Result<Self, Error> {
        let mut bytes = [0; Self::SIZE];
        map.lookup_into(&[0; 4], &mut bytes, MapFlags::ANY)
            .map_err(Error::bpf("cannot read a control map"))?;
        Ok(Self::from_bytes(&bytes))
    }

    /// Writes the map.
    pub(super) fn write(&self, map: &MapHandle) -> Result<(), Error> {
        map.update(&[0; 4], &self.to_bytes(), MapFlags::ANY)
            .map_err(Error::bpf("cannot write a control map"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_has_the_kernel_layout() {
        let control = Control {
            until: 7,
            missed: 9,
            spec: "simd(beta=1/16)".into(),
            previous: "cubic".into(),
        };
        let bytes = control.to_bytes();
        assert_eq!(Control::from_bytes(&bytes.try_into().unwrap()), control);
    }
}
