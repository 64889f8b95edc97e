//! Controllers by name: [`Spec`] parses `simd(beta=1/16)`, [`algorithms`] lists the names and their
//! parameters.

mod card;
mod error;
#[cfg(feature = "files")]
mod file;
mod parameter;
mod parse;
mod rate;
mod spec;
mod whole;
mod window;

pub use cwnd_law::distance;
pub use error::SpecError;
#[cfg(feature = "files")]
pub use file::{declare, declared_name};
pub use parameter::{Domain, Parameter, Range};
pub use spec::Spec;

use crate::controller::{Controller, Settings};
use crate::laws::{AnyLaw, AnyRateLaw};
use alloc::boxed::Box;

/// The kind of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A law for the window, clocked by acknowledgements, in [`Windowed`](crate::Windowed).
    Window,
    /// A law for the sending rate with a control interval, in [`Paced`](crate::Paced).
    Rate,
    /// A whole controller, which implements [`Controller`] itself.
    Whole,
}

/// A controller that a [`Spec`] can name.
#[derive(Debug)]
pub struct Algorithm {
    /// The name in a spec.
    pub name: &'static str,
    /// The full name.
    pub title: &'static str,
    /// A summary in one sentence.
    pub summary: &'static str,
    /// The paper or specification that defines it.
    pub source: &'static str,
    /// The rules, one plain-text line each.
    pub equations: &'static [&'static str],
    /// The deviations from the source, and the choices that it leaves open.
    pub deviations: &'static [&'static str],
    /// The parameters, in the order of positional arguments.
    pub parameters: &'static [Parameter],
    /// Makes it.
    pub build: Build,
}

/// Makes a controller from the values of its parameters, in declared order and held as [`Domain`]
/// says.
#[derive(Clone, Copy, Debug)]
pub enum Build {
    /// A window law.
    Window(fn(&[f64]) -> AnyLaw),
    /// A rate law, from the values and the seed of its own randomness.
    Rate(fn(&[f64], u64) -> AnyRateLaw),
    /// A whole controller.
    Whole(fn(&[f64], &Settings) -> Box<dyn Controller>),
    /// A law of a file, of either kind.
    #[cfg(feature = "files")]
    File(&'static cwnd_law::Law),
}

impl Algorithm {
    /// The kind of controller.
    pub const fn kind(&self) -> Kind {
        match self.build {
            Build::Window(_) => Kind::Window,
            Build::Rate(_) => Kind::Rate,
            Build::Whole(_) => Kind::Whole,
            #[cfg(feature = "files")]
            Build::File(law) => match law.kind() {
                cwnd_law::Kind::Window => Kind::Window,
                cwnd_law::Kind::Rate => Kind::Rate,
            },
        }
    }

    /// The law, if a text describes it.
    #[cfg(feature = "files")]
    pub fn law(&self) -> Option<&'static cwnd_law::Law> {
        match self.build {
            Build::File(law) => Some(law),
            _ => file::law(self.name),
        }
    }

    /// The position and declaration of the parameter `name`.
    pub fn parameter(&self, name: &str) -> Option<(usize, &'static Parameter)> {
        self.parameters
            .iter()
            .enumerate()
            .find(|(_, parameter)| parameter.name.eq_ignore_ascii_case(name))
    }
}

/// Every controller, in the order in which they are listed.
pub fn algorithms() -> &'static [Algorithm] {
    ALGORITHMS
}

/// The controller called `name`, whatever the case of its letters; a law that was declared by
/// exactly this name.
pub fn find(name: &str) -> Option<&'static Algorithm> {
    let own = ALGORITHMS.iter().find(|algorithm| algorithm.name.eq_ignore_ascii_case(name));
    #[cfg(feature = "files")]
    let own = own.or_else(|| file::find(name));
    own
}

/// All controllers. A new one is a text in `laws/` and a name here, or in Rust a file in `laws/` or
/// `controllers/`, an entry in `window.rs`, `rate.rs` or `whole.rs`, and a name here: `cwnd
/// new-controller` writes these.
static ALGORITHMS: &[Algorithm] = &[
    window::AIMD,
    window::RENO,
    window::GAIMD,
    window::FRIENDLY,
    window::BINOMIAL,
    window::IIAD,
    window::SQRT,
    window::SIMD,
    window::AIRA,
    window::AIAD,
    window::WESTWOOD,
    window::SCALABLE,
    window::HIGHSPEED,
    window::BIC,
    window::CUBIC,
    window::VEGAS,
    window::DCTCP,
    window::PRAGUE,
    rate::DAIMD,
    rate::UDT,
    rate::TFRC,
    whole::BBR,
    whole::BBR3,
    whole::COPA,
    whole::C4,
    whole::LEDBAT,
];
