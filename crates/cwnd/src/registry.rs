//! One name for a controller everywhere: [`Spec`] reads `simd(beta=1/16)`, and [`algorithms`] says
//! what names and parameters there are.

mod controller;
mod error;
mod parameter;
mod parse;
mod rate;
mod spec;
mod window;

pub use controller::{AnyController, Law, MakeLaw};
pub use error::SpecError;
pub use parameter::{Domain, Parameter, Range};
pub use spec::Spec;

use crate::laws::{AnyLaw, AnyRateLaw};

/// Which machine runs a law.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A window clocked by acknowledgements: [`crate::Windowed`].
    Window,
    /// A paced rate with a control interval: [`crate::Paced`].
    Rate,
}

/// A controller that a [`Spec`] can name.
#[derive(Debug)]
pub struct Algorithm {
    /// Its name in a spec.
    pub name: &'static str,
    /// Its full name.
    pub title: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// The paper or specification that defines it.
    pub source: &'static str,
    /// Its rules, one plain-text line each.
    pub equations: &'static [&'static str],
    /// Where it differs from its source, and what the source leaves open.
    pub deviations: &'static [&'static str],
    /// Its parameters, in the order of positional arguments.
    pub parameters: &'static [Parameter],
    build: Build,
}

/// Makes the law from the values of its parameters, in their declared order.
#[derive(Clone, Copy, Debug)]
enum Build {
    Window(fn(&[f64]) -> AnyLaw),
    /// With the seed of the law's own randomness.
    Rate(fn(&[f64], u64) -> AnyRateLaw),
}

impl Algorithm {
    /// Which machine runs it.
    pub const fn kind(&self) -> Kind {
        match self.build {
            Build::Window(_) => Kind::Window,
            Build::Rate(_) => Kind::Rate,
        }
    }

    /// The position and declaration of the parameter `name`.
    pub fn parameter(&self, name: &str) -> Option<(usize, &'static Parameter)> {
        self.parameters.iter().enumerate().find(|(_, parameter)| parameter.name == name)
    }
}

/// Every controller, in the order in which they are listed.
pub fn algorithms() -> &'static [Algorithm] {
    ALGORITHMS
}

/// The controller called `name`.
pub fn find(name: &str) -> Option<&'static Algorithm> {
    ALGORITHMS.iter().find(|algorithm| algorithm.name == name)
}

/// The one list of all names. A new controller is a law in `laws/`, its entry in `window.rs` or
/// `rate.rs`, and its name here: `cwnd new-controller` writes them.
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
    rate::DAIMD,
    rate::UDT,
    rate::TFRC,
];
