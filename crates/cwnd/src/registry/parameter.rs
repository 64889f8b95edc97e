//! The parameters of controllers and their domains.

/// A parameter of a controller.
#[derive(Debug)]
pub struct Parameter {
    /// The name in a spec.
    pub name: &'static str,
    /// The symbol in the paper.
    pub symbol: &'static str,
    /// The meaning.
    pub meaning: &'static str,
    /// The unit; empty for a pure number.
    pub unit: &'static str,
    /// The values allowed and the default.
    pub domain: Domain,
}

/// The values of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Domain {
    /// A number in a range.
    Number {
        /// The default.
        default: f64,
        /// The values allowed.
        range: Range,
    },
    /// On or off, held as 1 or 0.
    Switch {
        /// The default.
        default: bool,
    },
    /// One of several words, held as the word's position.
    Choice {
        /// The words.
        choices: &'static [&'static str],
        /// The position of the default; `None` leaves the choice to the driver's settings.
        default: Option<usize>,
    },
}

/// A range of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The lower bound.
    pub min: f64,
    /// The upper bound.
    pub max: f64,
    /// Whether `min` itself is excluded.
    pub min_excluded: bool,
    /// Whether `max` itself is excluded.
    pub max_excluded: bool,
}

impl Range {
    /// min <= value <= max.
    pub const fn closed(min: f64, max: f64) -> Self {
        Range { min, max, min_excluded: false, max_excluded: false }
    }

    /// min < value < max.
    pub const fn open(min: f64, max: f64) -> Self {
        Range { min, max, min_excluded: true, max_excluded: true }
    }

    /// min < value <= max.
    pub const fn above(min: f64, max: f64) -> Self {
        Range { min, max, min_excluded: true, max_excluded: false }
    }

    /// Whether `value` is in it; a NaN never is.
    pub fn contains(&self, value: f64) -> bool {
        let above = if self.min_excluded { value > self.min } else { value >= self.min };
        let below = if self.max_excluded { value < self.max } else { value <= self.max };
        above && below
    }
}

impl Parameter {
    /// The default, held as [`Domain`] says; `None` leaves the choice to the driver's settings.
    pub fn default(&self) -> Option<f64> {
        match self.domain {
            Domain::Number { default, .. } => Some(default),
            Domain::Switch { default } => Some(f64::from(u8::from(default))),
            Domain::Choice { default, .. } => default.map(|at| at as f64),
        }
    }

    /// Whether `value`, held as [`Domain`] says, is one of its values.
    pub fn allows(&self, value: f64) -> bool {
        match self.domain {
            Domain::Number { range, .. } => range.contains(value),
            Domain::Switch { .. } => value == 0.0 || value == 1.0,
            Domain::Choice { choices, .. } => {
                value >= 0.0 && value < choices.len() as f64 && value == libm::floor(value)
            }
        }
    }

    /// A number without a unit.
    pub const fn number(
        name: &'static str,
        symbol: &'static str,
        default: f64,
        range: Range,
    ) -> Self {
        let domain = Domain::Number { default, range };
        Parameter { name, symbol, meaning: "", unit: "", domain }
    }

    /// A number between 0 and 1, both excluded.
    pub(super) const fn fraction(name: &'static str, symbol: &'static str, default: f64) -> Self {
        Parameter::number(name, symbol, default, Range::open(0.0, 1.0))
    }

    /// A switch.
    pub const fn switch(name: &'static str, default: bool) -> Self {
        let domain = Domain::Switch { default };
        Parameter { name, symbol: name, meaning: "", unit: "", domain }
    }

    /// A choice of words.
    pub const fn choice(
        name: &'static str,
        choices: &'static [&'static str],
        default: Option<usize>,
    ) -> Self {
        let domain = Domain::Choice { choices, default };
        Parameter { name, symbol: name, meaning: "", unit: "", domain }
    }

    /// The parameter with this unit.
    #[must_use]
    pub const fn unit(self, unit: &'static str) -> Self {
        Parameter { unit, ..self }
    }

    /// The parameter with this meaning.
    #[must_use]
    pub const fn means(self, meaning: &'static str) -> Self {
        Parameter { meaning, ..self }
    }
}
