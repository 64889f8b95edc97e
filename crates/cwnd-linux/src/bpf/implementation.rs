//! Kernel implementations of controllers: a program of `kernel/` with its parameters, in fixed point,
//! or the code of a law in a file.

use super::Error;
use super::code::encode_law;
use cwnd::laws::{AnyLaw, AnyRateLaw, Feedback};
use cwnd::{Law, MakeController, Settings, Spec};
use cwnd_law::{Hook, Kind};

/// A program of `kernel/` with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Implementation {
    /// The base name of the program and its object: the law, or the kind of law in a file.
    pub law: &'static str,
    /// The members of `struct LAW_params`, in order; of a law in a file, `struct law` in 64-bit
    /// words.
    pub params: Vec<u64>,
    /// Whether connections that use it ask for ECN.
    pub needs_ecn: bool,
}

/// Controllers with a kernel implementation, in the order of the registry, with the parameters that
/// they need.
pub const IMPLEMENTED: [&str; 14] = [
    "aimd",
    "reno",
    "gaimd",
    "friendly",
    "binomial",
    "iiad",
    "sqrt",
    "simd",
    "aira",
    "aiad",
    "westwood",
    "cubic",
    "daimd(delay=off)",
    "bbr3",
];

/// Whether a controller has a kernel implementation in fixed point, at least with some parameters.
pub fn is_implemented(name: &str) -> bool {
    IMPLEMENTED.iter().any(|spec| spec.split('(').next() == Some(name))
}

/// Converts to fixed point with `bits` fractional bits, rounding to nearest, saturating.
pub fn fixed(value: f64, bits: i32) -> u64 {
    (value * 2f64.powi(bits)).round() as u64
}

/// DAIMD's increase at a spare capacity of up to 10^`stage` bit/s, in packets per second for
/// packets of one byte.
fn gain(stage: i32, tau: f64, syn: f64) -> f64 {
    10f64.powf(f64::from(stage) - tau) * 1500.0 / syn
}

/// The smallest `c` of CUBIC: with it the window reaches its maximum before the clock of the
/// program ends.
const MIN_C: f64 = 0.01;
const HALVES: &str = "in the kernel implementation a power is a multiple of 1/2";
const FEEDBACKS: &str = "the kernel implementation has feedback=event and feedback=report only";
/// Stages of DAIMD's increase: 10^0 to 10^15 bit/s.
const STAGES: i32 = 16;

impl Implementation {
    /// Returns the kernel implementation of the controller `spec`.
    ///
    /// # Errors
    /// The controller, or one of its parameters, has no kernel implementation.
    pub fn of(spec: &Spec) -> Result<Implementation, Error> {
        let value = |name: &str| spec.get(name).unwrap_or(0.0);
        let unsupported = |why: &str| Err(Error::NoImplementation(format!("{spec}: {why}")));
        if value("start") >= 1.0 {
            return unsupported("slow start is the kernel's, without HyStart++: leave out start");
        }
        if value("pacing") != 0.0 {
            return unsupported("the kernel paces, not the law: leave out pacing");
        }
        let fixed_point = |law, params| Ok(Implementation { law, params, needs_ecn: false });
        if spec.name() == "bbr3" {
            return fixed_point("bbr3", vec![value("aging") as u64]);
        }
        if let Some(text) = spec.algorithm().law()
            && !is_implemented(spec.name())
        {
            let parameters = text.parameters().iter();
            let values = parameters.map(|it| spec.get(&it.name).unwrap_or(it.default));
            let values: Vec<_> = values.collect();
            return Implementation::of_law(text, &values).or_else(|why| unsupported(&why));
        }
        for (parameter, only) in
            [("threshold", "half"), ("peak", "last"), ("filter", "interval"), ("delay", "off")]
        {
            if value(parameter) != 0.0 {
                return unsupported(&format!(
                    "the kernel implementation has {parameter}={only} only"
                ));
            }
        }
        let law = match spec.law(&Settings::default()) {
            Some(Law::Window(law)) => law,
            Some(Law::Rate(AnyRateLaw::Daimd(law))) => {
                let (tau, syn) = (value("tau"), value("syn"));
                let each_report = match law.feedback() {
                    Feedback::Event => 0,
                    Feedback::Report => 1,
                    _ => return unsupported(FEEDBACKS),
                };
                let mut params = vec![
                    fixed(value("beta"), 32),
                    fixed(value("lambda"), 32),
                    fixed(syn * 1e6, 0),
                    fixed(value("capacity"), 0),
                    each_report,
                ];
                params.extend((0..STAGES).map(|stage| fixed(gain(stage, tau, syn), 24)));
                return fixed_point("daimd", params);
            }
            _ => return unsupported(&list_implemented()),
        };
        let (law, params) = match law {
            AnyLaw::Aimd(law) => {
                let (alpha, beta) = law.parameters();
                ("aimd", vec![fixed(alpha, 40), fixed(beta, 32)])
            }
            AnyLaw::Binomial(law) => {
                let (k, l, alpha, beta) = law.parameters();
                for (name, power) in [("k", k), ("l", l)] {
                    if (2.0 * power).fract() != 0.0 {
                        return unsupported(&format!("{name} is {power}: {HALVES}"));
                    }
                }
                ("binomial", vec![fixed(k, 1), fixed(l, 1), fixed(alpha, 40), fixed(beta, 32)])
            }
            AnyLaw::Simd(_) => {
                let beta = value("beta");
                let c = 3.0 * beta.sqrt() / ((1.0 - 2.0 * beta / 3.0) * 2f64.sqrt());
                let reset = u64::from(value("reset") == 0.0);
                ("simd", vec![fixed(beta, 32), fixed(1.0 - beta, 32), fixed(c, 40), reset])
            }
            AnyLaw::Aira(_) => {
                let (bound, rounds) = (value("bound"), value("rounds").floor());
                if rounds != value("rounds") {
                    return unsupported("in the kernel implementation rounds is a whole number");
                }
                let flag = |name| value(name) as u64;
                let mut params = vec![
                    fixed(value("beta"), 32),
                    fixed(bound, 32),
                    fixed((1.0 - bound) / rounds, 48),
                    rounds as u64,
                    fixed(value("ratio"), 32),
                ];
                params.extend(["mail", "reset", "increase", "decrease", "timeout"].map(flag));
                ("aira", params)
            }
            AnyLaw::Cubic(_) => {
                let (c, kept) = (value("c"), value("kept"));
                if c < MIN_C {
                    return unsupported(&format!(
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
            // Westwood has no `rate`: 0 is the clock of acknowledgements.
            AnyLaw::Aiad(_) => ("aiad", vec![fixed(value("tau") * 1e9, 0), value("rate") as u64]),
            _ => return unsupported(&list_implemented()),
        };
        fixed_point(law, params)
    }

    /// The implementation of a law in a file with the values of its parameters, or why there is
    /// none.
    pub(super) fn of_law(law: &cwnd_law::Law, values: &[f64]) -> Result<Implementation, String> {
        let needs_ecn = law.instance(values).ask(Hook::NeedsEcn, |_| None) == Some(1.0);
        let program = match law.kind() {
            Kind::Window => "window_law",
            Kind::Rate => "rate_law",
        };
        Ok(Implementation { law: program, params: encode_law(law, values)?, needs_ecn })
    }
}

fn list_implemented() -> String {
    format!("has no kernel implementation; these have one: {}", IMPLEMENTED.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn implementation(spec: &str) -> Result<Implementation, String> {
        Implementation::of(&Spec::parse(spec).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn exactly_the_listed_controllers_are_implemented() {
        for algorithm in cwnd::registry::algorithms() {
            let listed: Vec<_> = IMPLEMENTED
                .into_iter()
                .filter(|spec| Spec::parse(spec).unwrap().name() == algorithm.name)
                .collect();
            assert!(listed.iter().all(|spec| implementation(spec).is_ok()), "{}", algorithm.name);
            let by_default = Implementation::of(&Spec::new(algorithm)).is_ok();
            assert_eq!(by_default, listed == [algorithm.name], "{}", algorithm.name);
            assert_eq!(is_implemented(algorithm.name), !listed.is_empty(), "{}", algorithm.name);
        }
    }

    #[test]
    fn names_of_one_law_are_equal() {
        let half = 1 << 31;
        assert_eq!(
            implementation("reno"),
            Ok(Implementation { law: "aimd", params: vec![1 << 40, half], needs_ecn: false })
        );
        assert_eq!(implementation("gaimd(1, 1/2)"), implementation("reno"));
        assert_eq!(implementation("friendly(1/2)"), implementation("reno"));
        assert_eq!(implementation("westwood"), implementation("aiad(rate=ack)"));
        assert_eq!(implementation("sqrt"), implementation("binomial(0.5, 0.5, 1, 2/3)"));
    }

    #[test]
    fn unsupported_specs_are_explained() {
        let text = implementation("vegas").unwrap_err();
        assert!(
            text.starts_with("vegas: has no kernel implementation; these have one: aimd, reno")
        );
        for (spec, why) in [
            (
                "binomial(k=0.3)",
                "k is 0.3: in the kernel implementation a power is a multiple of 1/2",
            ),
            ("cubic(c=0.005)", "c is 0.005: in the kernel implementation it is at least 0.01"),
            ("daimd(feedback=packet, delay=off)", FEEDBACKS),
            ("daimd(feedback=syn, delay=off)", FEEDBACKS),
            ("gaimd(threshold=kept)", "the kernel implementation has threshold=half only"),
            ("aira(peak=mean)", "the kernel implementation has peak=last only"),
            ("aiad(filter=fixed)", "the kernel implementation has filter=interval only"),
            ("daimd", "the kernel implementation has delay=off only"),
            (
                "simd(start=hystart)",
                "slow start is the kernel's, without HyStart++: leave out start",
            ),
            ("simd(pacing=1.25)", "the kernel paces, not the law: leave out pacing"),
        ] {
            assert_eq!(implementation(spec), Err(format!("{spec}: {why}")));
        }
        assert_ne!(
            implementation("daimd(delay=off)"),
            implementation("daimd(feedback=report, delay=off)")
        );
    }
}
