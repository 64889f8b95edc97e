//! A controller by name with its parameters: `simd(beta=1/16)`.

use super::{Algorithm, Build, Domain, Parameter, SpecError, parse};
use crate::any::{AnyController, MakeController};
use crate::controller::Settings;
#[cfg(feature = "files")]
use crate::law::{RateLaw, WindowLaw};
#[cfg(feature = "files")]
use crate::laws::text::File;
use crate::machine::SlowStart;
#[cfg(feature = "files")]
use alloc::boxed::Box;
use core::fmt;
use core::str::FromStr;

/// More than any controller has.
pub(super) const MAX_PARAMETERS: usize = 12;

/// A controller by name with the values of its parameters.
///
/// Its [`Display`](fmt::Display) is canonical: the parameters that differ from their defaults, in
/// declared order. It parses back to an equal spec.
///
/// ```
/// use cwnd::Spec;
///
/// let spec = Spec::parse(" aimd( 0.31, beta = 1/8 ) ")?;
/// assert_eq!(spec.to_string(), "aimd(alpha=0.31, beta=1/8)");
/// assert_eq!(spec.get("beta"), Some(0.125));
/// # Ok::<(), cwnd::SpecError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Spec {
    algorithm: &'static Algorithm,
    /// Held as [`Domain`] says; NaN, which no parameter allows, where the driver's settings decide
    /// and past the algorithm's parameters.
    values: [f64; MAX_PARAMETERS],
}

impl Spec {
    /// The controller with the defaults of all parameters.
    pub fn new(algorithm: &'static Algorithm) -> Self {
        let mut values = [f64::NAN; MAX_PARAMETERS];
        for (value, parameter) in values.iter_mut().zip(algorithm.parameters) {
            *value = parameter.default().unwrap_or(f64::NAN);
        }
        Spec { algorithm, values }
    }

    /// Reads a spec: a name, and in parentheses values in declared order and `parameter=value`
    /// pairs. Numbers are decimals, fractions (`1/16`) or have an exponent (`1e-3`). Times and
    /// rates have a unit (`10ms`, `1gbit`, `5/s`), except for 0; switches are on or off.
    ///
    /// # Errors
    /// Says in one line what was wrong and what is allowed.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        parse::spec(text)
    }

    /// The controller.
    pub fn algorithm(&self) -> &'static Algorithm {
        self.algorithm
    }

    /// The controller's name.
    pub fn name(&self) -> &'static str {
        self.algorithm.name
    }

    /// The value of `parameter`: a number in the parameter's unit, 0 or 1 for a switch, the
    /// position of a choice. `None` for a choice that is left to the driver's settings, and for a
    /// parameter that the controller does not have.
    pub fn get(&self, parameter: &str) -> Option<f64> {
        self.algorithm.parameter(parameter).and_then(|(at, _)| self.value(at))
    }

    /// The same spec with another value, held as [`get`](Self::get) returns it.
    ///
    /// # Errors
    /// For a parameter that the controller does not have, or a value that it does not allow.
    pub fn with(mut self, parameter: &str, value: f64) -> Result<Self, SpecError> {
        let algorithm = self.algorithm;
        let Some((at, declared)) = algorithm.parameter(parameter) else {
            return Err(SpecError::unknown_parameter(algorithm, parameter));
        };
        if !declared.allows(value) {
            return Err(SpecError::outside(algorithm, declared, value));
        }
        self.set(at, value);
        Ok(self)
    }

    pub(super) fn set(&mut self, at: usize, value: f64) {
        self.values[at] = value;
    }

    fn value(&self, at: usize) -> Option<f64> {
        Some(self.values[at]).filter(|value| !value.is_nan())
    }

    /// The settings of the machine that the spec gives (`start`, `pacing`), over those of the
    /// driver.
    fn settings(&self, settings: &Settings) -> Settings {
        let mut settings = *settings;
        match self.get("start") {
            Some(0.0) => settings.slow_start = SlowStart::Standard,
            Some(1.0) => settings.slow_start = SlowStart::HyStart,
            Some(2.0) => settings.slow_start = SlowStart::HyStartTrain,
            Some(3.0) => settings.slow_start = SlowStart::HyStartLinux,
            _ => {}
        }
        if let Some(factor) = self.get("pacing").filter(|&factor| factor > 0.0) {
            settings.pacing = Some(factor);
        }
        if self.get("start").is_some()
            && let Some(limit) = settings.slow_start.limit(settings.pacing.is_some())
        {
            settings.slow_start_limit = settings.slow_start_limit.max(limit);
        }
        settings
    }
}

impl MakeController for Spec {
    fn controller(&self, settings: &Settings) -> AnyController {
        let values = &self.values;
        match self.algorithm.build {
            Build::Window(build) => AnyController::window(build(values), &self.settings(settings)),
            Build::Rate(build) => AnyController::rate(build(values, settings.seed), settings),
            Build::Whole(build) => AnyController::Whole(build(values, settings)),
            #[cfg(feature = "files")]
            Build::File(law) => {
                let instance = law.instance(values).seeded(settings.seed);
                match law.kind() {
                    cwnd_law::Kind::Window => {
                        let law: Box<dyn WindowLaw> = Box::new(File(instance));
                        AnyController::window(law, &self.settings(settings))
                    }
                    cwnd_law::Kind::Rate => {
                        let law: Box<dyn RateLaw> = Box::new(File(instance));
                        AnyController::rate(law, settings)
                    }
                }
            }
        }
    }
}

impl PartialEq for Spec {
    fn eq(&self, other: &Self) -> bool {
        let equal = |at| self.value(at) == other.value(at);
        self.name() == other.name() && (0..MAX_PARAMETERS).all(equal)
    }
}

impl FromStr for Spec {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        Spec::parse(text)
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        let mut separator = "(";
        for (at, parameter) in self.algorithm.parameters.iter().enumerate() {
            if let Some(value) = self.value(at)
                && Some(value) != parameter.default()
            {
                write!(f, "{separator}{}={}", parameter.name, Shown { parameter, value })?;
                separator = ", ";
            }
        }
        f.write_str(if separator == "(" { "" } else { ")" })
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spec({self})")
    }
}

/// A value as a spec writes it.
pub(super) struct Shown {
    pub(super) parameter: &'static Parameter,
    pub(super) value: f64,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parameter.domain {
            Domain::Switch { .. } => f.write_str(if self.value == 0.0 { "off" } else { "on" }),
            Domain::Choice { choices, .. } => {
                f.write_str(choices.get(self.value as usize).copied().unwrap_or("unset"))
            }
            Domain::Number { .. } => {
                let (value, suffix) = with_unit(self.value, self.parameter.unit);
                write!(f, "{}{suffix}", Number(value))
            }
        }
    }
}

/// The value in the largest unit that leaves it exact, and that unit's suffix.
fn with_unit(value: f64, unit: &str) -> (f64, &'static str) {
    match unit {
        "s" => (value, "s"),
        "/s" => (value, "/s"),
        "bit/s" => [(1e9, "gbit"), (1e6, "mbit"), (1e3, "kbit")]
            .into_iter()
            .find(|(scale, _)| value >= *scale && value % scale == 0.0)
            .map_or((value, "bit"), |(scale, suffix)| (value / scale, suffix)),
        _ => (value, ""),
    }
}

/// The shortest decimal that reads back to the same number, or a fraction where that is shorter and
/// just as exact: `0.31`, `1/16`.
struct Number(f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0;
        if value == libm::floor(value) && value.abs() < 1e15 {
            return write!(f, "{value}");
        }
        // Decimals of up to three digits are as short as a fraction.
        let thousandth = value * 1000.0 == libm::floor(value * 1000.0);
        let short = value * 100.0 == libm::floor(value * 100.0);
        for d in [3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 11.0, 12.0, 16.0, 32.0, 64.0, 128.0, 256.0] {
            let n = libm::floor(value * d + 0.5);
            if !short && (d <= 16.0 || !thousandth) && n > 0.0 && n <= 1000.0 && n / d == value {
                return write!(f, "{n}/{d}");
            }
        }
        write!(f, "{value:?}")
    }
}
