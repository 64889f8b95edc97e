//! Kernel implementations of controllers: the code of a law that is a text, or a program of `kernel/`
//! with its parameters, in fixed point.

use super::Error;
use super::code::encode_law;
use cwnd::Spec;
use cwnd::registry::{Algorithm, algorithms};
use cwnd_law::{Hook, Kind, Law};

/// A program of `kernel/` with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Implementation {
    /// The base name of the program and its object: the controller, or the kind of a law that is a
    /// text.
    pub law: &'static str,
    /// The members of `struct LAW_params`, in order; of a text, `struct law` in 64-bit words.
    pub params: Vec<u64>,
    /// Whether connections that use it ask for ECN.
    pub needs_ecn: bool,
}

/// Values that a controller may need, because its own defaults have no kernel implementation.
const NEEDED: [&str; 2] = ["", "(pacing=0)"];

/// Returns the controllers with a kernel implementation, in the order of the registry, with the
/// parameters that they need.
pub fn implemented() -> Vec<String> {
    let with_needed = |algorithm: &Algorithm| {
        let specs = NEEDED.map(|values| Spec::parse(&format!("{}{values}", algorithm.name)));
        let found = specs.into_iter().flatten().find(|spec| matches!(find(spec), Ok(Some(_))));
        found.map(|spec| spec.to_string())
    };
    algorithms().iter().filter_map(with_needed).collect()
}

/// Whether a controller has a kernel implementation, at least with some parameters.
pub fn is_implemented(algorithm: &'static Algorithm) -> bool {
    !matches!(find(&Spec::new(algorithm)), Ok(None))
}

/// Converts to fixed point with `bits` fractional bits, rounding to nearest, saturating.
fn fixed(value: f64, bits: i32) -> u64 {
    (value * 2f64.powi(bits)).round() as u64
}

/// The smallest `c` of CUBIC: with it the window reaches its maximum before the clock of the
/// program ends.
const MIN_C: f64 = 0.01;

impl Implementation {
    /// Returns the kernel implementation of the controller `spec`.
    ///
    /// # Errors
    /// The controller, or one of its parameters, has no kernel implementation.
    pub fn of(spec: &Spec) -> Result<Implementation, Error> {
        let none = || {
            let others = implemented().join(", ");
            format!("has no kernel implementation; these have one: {others}")
        };
        let found = find(spec).and_then(|found| found.ok_or_else(none));
        found.map_err(|why| Error::NoImplementation(format!("{spec}: {why}")))
    }

    /// The implementation of a law with the values of its parameters, or why there is none.
    pub(super) fn of_law(law: &Law, values: &[f64]) -> Result<Implementation, String> {
        let needs_ecn = law.instance(values).ask(Hook::NeedsEcn, |_| None) == Some(1.0);
        let program = match law.kind() {
            Kind::Window => "window_law",
            Kind::Rate => "rate_law",
        };
        Ok(Implementation { law: program, params: encode_law(law, values)?, needs_ecn })
    }
}

/// The kernel implementation of a controller, if it has one; an error says which of its parameters
/// the implementation does not have.
fn find(spec: &Spec) -> Result<Option<Implementation>, String> {
    let value = |name: &str| spec.get(name).unwrap_or(0.0);
    if let Some(law) = spec.algorithm().law() {
        check_machine(spec)?;
        let values = law.parameters().iter().map(|it| spec.get(&it.name).unwrap_or(it.default));
        return Implementation::of_law(law, &values.collect::<Vec<_>>()).map(Some);
    }
    let (program, params) = match spec.name() {
        "cubic" => {
            let (c, kept) = (value("c"), value("kept"));
            if c < MIN_C {
                return Err(format!(
                    "c is {c}: in the kernel implementation it is at least {MIN_C}"
                ));
            }
            let alpha = 3.0 * (1.0 - kept) / (1.0 + kept);
            let params = vec![
                fixed(c, 40),
                fixed(kept, 32),
                fixed((1.0 + kept) / 2.0, 32),
                fixed(alpha, 40),
                value("fast") as u64,
            ];
            ("cubic", params)
        }
        "bbr3" => ("bbr3", vec![value("aging") as u64]),
        _ => return Ok(None),
    };
    check_machine(spec)?;
    Ok(Some(Implementation { law: program, params, needs_ecn: false }))
}

/// Checks that slow start and pacing are the kernel's.
fn check_machine(spec: &Spec) -> Result<(), String> {
    let value = |name: &str| spec.get(name).unwrap_or(0.0);
    if value("start") >= 1.0 {
        return Err("slow start is the kernel's, without HyStart++: leave out start".into());
    }
    if value("pacing") != 0.0 {
        return Err("the kernel paces, not the law: pacing is 0".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn implementation(spec: &str) -> Result<Implementation, String> {
        Implementation::of(&Spec::parse(spec).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn laws_that_are_texts_are_interpreted() {
        let implemented = implemented();
        let name = |spec: &String| Spec::parse(spec).unwrap().name();
        for algorithm in algorithms().iter().filter(|algorithm| algorithm.law().is_some()) {
            let spec = implemented.iter().find(|spec| name(spec) == algorithm.name);
            let law = implementation(spec.expect(algorithm.name)).unwrap().law;
            assert!(["window_law", "rate_law"].contains(&law), "{}", algorithm.name);
        }
        assert!(implemented.contains(&"prague(pacing=0)".into()));
        let programs: Vec<_> = algorithms()
            .iter()
            .filter(|algorithm| algorithm.law().is_none() && is_implemented(algorithm))
            .map(|algorithm| algorithm.name)
            .collect();
        assert_eq!(programs, ["cubic", "bbr3"]);
        for name in implemented {
            assert!(implementation(&name).is_ok(), "{name}");
        }
    }

    #[test]
    fn parameters_are_in_the_code() {
        assert_ne!(implementation("aimd(0.31, 1/8)"), implementation("aimd"));
        assert_ne!(implementation("gaimd(threshold=kept)"), implementation("gaimd"));
        assert_ne!(implementation("binomial(k=0.3)"), implementation("binomial"));
        assert_ne!(implementation("daimd"), implementation("daimd(feedback=report)"));
        let needs_ecn = |spec| implementation(spec).unwrap().needs_ecn;
        assert_eq!(["dctcp", "reno"].map(needs_ecn), [true, false]);
    }

    #[test]
    fn unsupported_specs_are_explained() {
        let text = implementation("copa").unwrap_err();
        assert!(text.starts_with("copa: has no kernel implementation; these have one: aimd, reno"));
        for (spec, why) in [
            ("cubic(c=0.005)", "c is 0.005: in the kernel implementation it is at least 0.01"),
            (
                "simd(start=hystart)",
                "slow start is the kernel's, without HyStart++: leave out start",
            ),
            ("simd(pacing=1.25)", "the kernel paces, not the law: pacing is 0"),
            ("prague", "the kernel paces, not the law: pacing is 0"),
        ] {
            assert_eq!(implementation(spec), Err(format!("{spec}: {why}")));
        }
    }
}
