//! The kind of a Python controller, recognised by its methods.

use cwnd::registry::Kind;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// A kind with its name, the members that only it has, and the members that it requires and may
/// have: the hooks.
struct Shape {
    kind: Kind,
    name: &'static str,
    title: &'static str,
    marks: &'static [&'static str],
    required: &'static [&'static str],
    optional: &'static [&'static str],
}

const SHAPES: [Shape; 3] = [
    Shape {
        kind: Kind::Window,
        name: "window",
        title: "window law",
        marks: &["grow"],
        required: &["grow", "cut"],
        optional: &[
            "adopt",
            "answers_mark",
            "grows_after_mark",
            "threshold",
            "enter",
            "round",
            "timeout_ends_round",
            "observe",
            "leave_slow_start",
            "reduced",
            "rescale",
            "uses_delivery_rate",
            "needs_ecn",
            "gauges",
        ],
    },
    Shape {
        kind: Kind::Rate,
        name: "rate",
        title: "rate law",
        marks: &["tick"],
        required: &["interval", "clock", "tick", "cut", "start"],
        optional: &[
            "observe",
            "delay_rises",
            "losses",
            "window",
            "starts_itself",
            "uses_capacity",
            "least",
            "rescale",
            "gauges",
        ],
    },
    Shape {
        kind: Kind::Whole,
        name: "whole",
        title: "whole controller",
        marks: &["on", "output"],
        required: &["on", "output"],
        optional: &["begin", "needs", "take_cut", "gauges"],
    },
];

/// Members that may be attributes as well as methods.
const ATTRIBUTES: [&str; 2] = ["interval", "clock"];

/// Returns `window`, `rate` or `whole`.
///
/// # Errors
/// `TypeError` if the object has the methods of no kind, of two kinds, or only some of one kind.
#[pyfunction]
pub(crate) fn controller_kind(controller: &Bound<'_, PyAny>) -> PyResult<&'static str> {
    Ok(shape(controller)?.name)
}

/// The name of a kind, its title, its required hooks and its optional ones.
type Hooks = (&'static str, &'static str, Vec<&'static str>, Vec<&'static str>);

/// Returns the hooks of each kind.
#[pyfunction]
pub(crate) fn controller_hooks() -> Vec<Hooks> {
    SHAPES.iter().map(|it| (it.name, it.title, it.required.into(), it.optional.into())).collect()
}

/// The kind of a controller.
///
/// # Errors
/// As [`controller_kind`].
pub(super) fn kind(controller: &Bound<'_, PyAny>) -> PyResult<Kind> {
    Ok(shape(controller)?.kind)
}

fn shape(controller: &Bound<'_, PyAny>) -> PyResult<&'static Shape> {
    let name = controller.get_type().name()?;
    let mut found: Option<(&Shape, &str)> = None;
    for shape in &SHAPES {
        let Some(mark) = first(controller, shape.marks, true)? else { continue };
        if let Some((other, known)) = found {
            return Err(PyTypeError::new_err(format!(
                "{name} is a {} by its method {known} and a {} by its method {mark}",
                other.title, shape.title
            )));
        }
        found = Some((shape, mark));
    }
    let Some((shape, _)) = found else {
        let kinds = SHAPES.map(|shape| format!("a {} has {}", shape.title, list(shape.required)));
        return Err(PyTypeError::new_err(format!(
            "{name} is not a controller: {}",
            kinds.join(", ")
        )));
    };
    if let Some(missing) = first(controller, shape.required, false)? {
        let what = if ATTRIBUTES.contains(&missing) { "attribute" } else { "method" };
        return Err(PyTypeError::new_err(format!(
            "{name} has no {what} {missing}: a {} has {}",
            shape.title,
            list(shape.required)
        )));
    }
    Ok(shape)
}

/// The first of `names` that the controller has, or has not.
fn first(
    controller: &Bound<'_, PyAny>,
    names: &'static [&'static str],
    present: bool,
) -> PyResult<Option<&'static str>> {
    for &name in names {
        let has = match controller.getattr_opt(name)? {
            Some(member) => ATTRIBUTES.contains(&name) || member.is_callable(),
            None => false,
        };
        if has == present {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

fn list(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}
