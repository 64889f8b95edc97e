//! The form that a controller has in the kernel: a law of `kernel/`, and its parameters in fixed point.

use super::Error;
use cwnd::laws::{AnyLaw, AnyRateLaw, Feedback};
use cwnd::{Law, MakeController, Settings, Spec};

/// A law of `kernel/` with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// The base name of its header and program.
    pub law: &'static str,
    /// The members of its `struct LAW_params`, in order.
    pub params: Vec<u64>,
}

/// Controllers of the registry that have a form, in its order.
pub const NAMES: [&str; 12] = [
    "aimd", "reno", "gaimd", "friendly", "binomial", "iiad", "sqrt", "simd", "aira", "aiad",
    "westwood", "daimd",
];

/// A number as a fixed-point one with so many bits of fraction, rounded to the nearest and saturated.
pub fn fixed(value: f64, bits: i32) -> u64 {
    (value * 2f64.powi(bits)).round() as u64
}

/// DAIMD's increase at a spare capacity of up to 10^`stage` bit/s, in packets of one byte a second.
fn gain(stage: i32, tau: f64, syn: f64) -> f64 {
    10f64.powf(f64::from(stage) - tau) * 1500.0 / syn
}

/// Stages of DAIMD's increase: 10^0..10^15 bit/s.
const STAGES: i32 = 16;

impl Form {
    /// The form of the controller that `spec` names.
    ///
    /// # Errors
    /// For a controller that has none, and for parameters that the kernel's form does not take.
    pub fn of(spec: &Spec) -> Result<Form, Error> {
        let value = |name: &str| spec.get(name).unwrap_or(0.0);
        let refuse = |why: String| Err(Error::NoForm(format!("{spec}: {why}")));
        if value("start") >= 1.0 {
            return refuse("slow start stays the kernel's, which has no hystart".into());
        }
        if value("pacing") != 0.0 {
            return refuse("in the kernel the system paces, not the law: leave out pacing".into());
        }
        let form = |law, params: &[u64]| Ok(Form { law, params: params.to_vec() });
        let law = match spec.law(&Settings::default()) {
            Some(Law::Window(law)) => law,
            Some(Law::Rate(AnyRateLaw::Daimd(law))) => {
                let (tau, syn) = (value("tau"), value("syn"));
                let each_report = match law.feedback() {
                    Feedback::Event => 0,
                    Feedback::Report => 1,
                    _ => return refuse("in the kernel feedback is event or report".into()),
                };
                let mut params = vec![
                    fixed(value("beta"), 32),
                    fixed(value("lambda"), 32),
                    fixed(syn * 1e6, 0),
                    fixed(value("capacity"), 0),
                    each_report,
                ];
                params.extend((0..STAGES).map(|stage| fixed(gain(stage, tau, syn), 24)));
                return form("daimd", &params);
            }
            _ => return refuse(allowed()),
        };
        match law {
            AnyLaw::Aimd(law) => {
                let (alpha, beta) = law.parameters();
                form("aimd", &[fixed(alpha, 40), fixed(beta, 32)])
            }
            AnyLaw::Binomial(law) => {
                let (k, l, alpha, beta) = law.parameters();
                for (name, power) in [("k", k), ("l", l)] {
                    if (2.0 * power).fract() != 0.0 {
                        let only = "in the kernel a power is a multiple of 1/2";
                        return refuse(format!("{name} is {power}: {only}"));
                    }
                }
                form("binomial", &[fixed(k, 1), fixed(l, 1), fixed(alpha, 40), fixed(beta, 32)])
            }
            AnyLaw::Simd(_) => {
                let beta = value("beta");
                let c = 3.0 * beta.sqrt() / ((1.0 - 2.0 * beta / 3.0) * 2f64.sqrt());
                form("simd", &[fixed(beta, 32), fixed(1.0 - beta, 32), fixed(c, 40)])
            }
            AnyLaw::Aira(_) => {
                let (bound, rounds) = (value("bound"), value("rounds").floor());
                if rounds != value("rounds") {
                    return refuse("in the kernel rounds is a whole number".into());
                }
                let switch = |name| value(name) as u64;
                form(
                    "aira",
                    &[
                        fixed(value("beta"), 32),
                        fixed(bound, 32),
                        fixed((1.0 - bound) / rounds, 48),
                        rounds as u64,
                        fixed(value("ratio"), 32),
                        switch("mail"),
                        switch("reset"),
                        switch("increase"),
                        switch("decrease"),
                        switch("timeout"),
                    ],
                )
            }
            // Westwood has no choice of its clock: it is the first.
            AnyLaw::Aiad(_) => form("aiad", &[fixed(value("tau") * 1e9, 0), value("rate") as u64]),
            _ => refuse(allowed()),
        }
    }
}

fn allowed() -> String {
    format!("has no form in the kernel; these have one: {}", NAMES.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(spec: &str) -> Result<Form, String> {
        Form::of(&Spec::parse(spec).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn every_controller_of_the_registry_has_a_form_or_is_refused() {
        for algorithm in cwnd::registry::algorithms() {
            let known = NAMES.contains(&algorithm.name);
            assert_eq!(Form::of(&Spec::new(algorithm)).is_ok(), known, "{}", algorithm.name);
        }
    }

    #[test]
    fn one_law_under_several_names() {
        let half = 1 << 31;
        assert_eq!(form("reno"), Ok(Form { law: "aimd", params: vec![1 << 40, half] }));
        assert_eq!(form("gaimd(1, 1/2)"), form("reno"));
        assert_eq!(form("friendly(1/2)"), form("reno"));
        assert_eq!(form("westwood"), form("aiad(rate=ack)"));
        assert_eq!(form("sqrt"), form("binomial(0.5, 0.5, 1, 2/3)"));
    }

    #[test]
    fn what_has_no_form_is_told() {
        let text = form("cubic").unwrap_err();
        assert!(text.starts_with("cubic: has no form in the kernel; these have one: aimd, reno"));
        assert_eq!(
            form("binomial(k=0.3)").unwrap_err(),
            "binomial(k=0.3): k is 0.3: in the kernel a power is a multiple of 1/2"
        );
        for feedback in ["packet", "syn"] {
            let spec = format!("daimd(feedback={feedback})");
            let expected = format!("{spec}: in the kernel feedback is event or report");
            assert_eq!(form(&spec), Err(expected));
        }
        assert_ne!(form("daimd"), form("daimd(feedback=report)"));
        assert!(form("simd(start=hystart)").unwrap_err().contains("slow start stays the kernel's"));
        assert!(form("simd(pacing=1.25)").unwrap_err().contains("leave out pacing"));
    }
}
