//! Flows that differ in kind, whose rates are not compared: `docs/metrics.md` defines the kinds.

use std::collections::HashMap;

/// The name of a flow without its number: that of its group.
pub fn group_of(name: &str) -> &str {
    let numbered =
        |number: &str| !number.starts_with('0') && number.bytes().all(|byte| byte.is_ascii_digit());
    match name.rsplit_once('-') {
        Some((base, number)) if !base.is_empty() && !number.is_empty() && numbered(number) => base,
        _ => name,
    }
}

/// Flows whose rates can be compared: those that always have data, or others of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowKind {
    /// The name of finite flows or applications; none for flows that always have data.
    pub name: Option<String>,
    /// Indices of its flows.
    pub flows: Vec<usize>,
}

impl FlowKind {
    /// The flows of the kind in words.
    pub fn label(name: Option<&str>, number: usize) -> String {
        match name {
            Some(name) => format!("of the {number} flows of {name}"),
            None => format!("of the {number} flows that always have data"),
        }
    }
}

/// Separates flows, each with its name and whether it always has data, by kind: first those that
/// always have data, then the others by name, in the order of the flows. If there are several
/// kinds, those of one flow are left out.
pub fn flow_kinds<'n>(flows: impl IntoIterator<Item = (&'n str, bool)>) -> Vec<FlowKind> {
    let mut kinds = vec![FlowKind { name: None, flows: Vec::new() }];
    let mut known = HashMap::new();
    for (index, (name, endless)) in flows.into_iter().enumerate() {
        let group = group_of(name);
        let at = match endless {
            true => 0,
            false => *known.entry(group).or_insert(kinds.len()),
        };
        if at == kinds.len() {
            kinds.push(FlowKind { name: Some(group.to_owned()), flows: Vec::new() });
        }
        kinds[at].flows.push(index);
    }
    kinds.retain(|kind| !kind.flows.is_empty());
    if kinds.len() > 1 {
        kinds.retain(|kind| kind.flows.len() > 1);
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_that_always_have_data_come_first_and_kinds_have_two_flows() {
        let found = |flows: &[(&str, bool)]| {
            let kinds = flow_kinds(flows.iter().copied());
            kinds.into_iter().map(|kind| (kind.name, kind.flows)).collect::<Vec<_>>()
        };
        let named = |name: &str| Some(name.to_owned());
        let (web, call) = (("web-1", false), ("call-1", false));
        let others =
            [web, ("reno", true), ("web-2", false), call, ("simd", true), ("call-2", false)];
        assert_eq!(
            found(&others),
            [(None, vec![1, 4]), (named("web"), vec![0, 2]), (named("call"), vec![3, 5])]
        );
        assert_eq!(found(&others[..3]), [(named("web"), vec![0, 2])]);
        assert_eq!(found(&[web]), [(named("web"), vec![0])]);
        assert_eq!(found(&[("reno", true)]), [(None, vec![0])]);
        assert_eq!(found(&[web, call]), []);
        assert_eq!(found(&[]), []);
    }
}
