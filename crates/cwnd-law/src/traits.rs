//! The hooks and the methods of cwnd's traits of laws.

use crate::{Hook, Kind};
use std::collections::BTreeSet;
use std::vec::Vec;

/// Methods that are no hooks, and why.
const NO_HOOKS: &[(&str, &str)] = &[
    ("gauges", "they are the states"),
    ("uses_capacity", "its inputs say whether a law uses the capacity"),
    ("uses_delivery_rate", "its inputs say whether a law uses the delivery rate"),
];

#[test]
fn each_method_is_a_hook_or_has_a_reason() {
    let source = include_str!("../../cwnd/src/law.rs");
    for (method, _) in NO_HOOKS {
        assert!(source.contains(&std::format!("    fn {method}(")), "{method} is no method");
    }
    for (name, kind) in [("WindowLaw", Kind::Window), ("RateLaw", Kind::Rate)] {
        let (_, body) = source.split_once(&std::format!("\npub trait {name}")).expect(name);
        let (body, _) = body.split_once("\n}\n").expect(name);
        let methods = body.lines().filter_map(|line| line.strip_prefix("    fn "));
        let methods: BTreeSet<&str> =
            methods.filter_map(|line| line.split(['(', '<']).next()).collect();
        let of_kind = Hook::ALL.iter().filter(|hook| hook.kind() == kind);
        let hooks: BTreeSet<&str> = of_kind.map(|hook| hook.name()).collect();
        let others: BTreeSet<&str> = NO_HOOKS.iter().map(|(name, _)| *name).collect();
        let without: Vec<_> = (&methods - &hooks).difference(&others).copied().collect();
        assert!(without.is_empty(), "{name}: {without:?} are no hooks and have no reason");
        let gone: Vec<_> = hooks.difference(&methods).collect();
        assert!(gone.is_empty(), "{name}: {gone:?} are no methods");
        assert!(hooks.is_disjoint(&others), "{name}: a hook is in NO_HOOKS");
    }
}
