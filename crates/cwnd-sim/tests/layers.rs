//! The imports of the workspace's sources. Names are resolved through re-exports to the files that
//! define them; the code of tests does not count. Only text is read: methods, globs and names that
//! macros define are not followed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The layers of this crate, the lowest first. A part imports only from lower layers.
const LAYERS: [&[&str]; 13] = [
    &["cast", "fast_path", "record", "rng"],
    &["check", "clock", "packet"],
    &["units"],
    &["discipline"],
    &["network"],
    &["engine", "scenario"],
    &["driver", "live", "metrics", "segment_size"],
    &["endpoint"],
    &["application", "samples", "tcp"],
    &["datagrams"],
    &["options", "paced", "traffic", "udt"],
    &["flows"],
    &["pcap", "qlog", "simulation"],
];

/// The maximum number of files that import each other in a circle.
const MAX_CIRCLE: usize = 5;

/// Words that may precede the name of an item.
const KEYWORDS: [&str; 14] = [
    "pub",
    "crate",
    "super",
    "in",
    "const",
    "unsafe",
    "fn",
    "struct",
    "enum",
    "trait",
    "type",
    "static",
    "mod",
    "macro_rules",
];

/// A source file.
#[derive(Default)]
struct Module {
    /// Names of the items at the top level.
    items: BTreeSet<String>,
    /// Names bound by `use`, with their paths in this crate.
    imports: BTreeMap<String, String>,
    /// The paths that the code uses, in imports and inline.
    paths: Vec<String>,
}

impl Module {
    fn parse(source: &str) -> Self {
        let (mut module, mut code, mut leaves) = (Self::default(), String::new(), Vec::new());
        for statement in without_tests(source).split_inclusive(';') {
            let (head, tree) = statement.rsplit_once("use ").unwrap_or((statement, ""));
            let visibility = head.rsplit('\n').next().unwrap_or_default().trim();
            if tree.ends_with(';') && (visibility.is_empty() || visibility.starts_with("pub")) {
                code += head;
                let paths = expand("", tree.trim_end_matches(';'));
                leaves.extend(paths.into_iter().map(|path| (!visibility.is_empty(), path)));
            } else {
                code += statement;
            }
        }
        for line in code.lines().filter(|line| line.starts_with(char::is_alphabetic)) {
            let name = words(line).find(|word| !KEYWORDS.contains(word));
            module.items.extend(name.map(str::to_string));
        }
        let used: BTreeSet<_> = words(&code).collect();
        for (public, leaf) in &leaves {
            let last = leaf.rsplit("::").next().unwrap_or_default();
            let (path, name) = leaf.split_once(" as ").unwrap_or((leaf, last));
            // A re-export is an import if the file itself uses the name.
            if !public || used.contains(name) {
                module.paths.push(path.to_string());
            }
            let first = path.split("::").next().unwrap_or_default();
            let is_local = path.contains("::") && module.items.contains(first);
            if is_local || ["crate", "self", "super"].contains(&first) {
                module.imports.insert(name.to_string(), path.to_string());
            }
        }
        let inline = code.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
        let inline = inline.filter(|path| path.contains("::"));
        module.paths.extend(inline.map(|path| path.trim_matches(':').to_string()));
        module
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

/// Removes comments, and items under `#[cfg(test)]`: they end at their own indentation.
fn without_tests(source: &str) -> String {
    let mut code = String::new();
    let mut lines = source.lines().map(|line| line.split("//").next().unwrap_or_default());
    while let Some(line) = lines.next() {
        let (indent, attribute) = line.split_at(line.len() - line.trim_start().len());
        if attribute.starts_with("#[cfg(test") || attribute.starts_with("#[cfg(all(test") {
            lines.find(|line| {
                let item = line.strip_prefix(indent).unwrap_or_default();
                item == "}" || item.ends_with(';') && !item.starts_with(' ')
            });
        } else {
            code.extend([line, "\n"]);
        }
    }
    code
}

/// Returns the paths in the tree of a `use`.
fn expand(prefix: &str, tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((head, branches)) = tree.split_once('{') else {
        let path = format!("{prefix}{tree}");
        let path = path.trim_end_matches("::self").trim_end_matches("::*");
        return if tree.is_empty() { Vec::new() } else { vec![path.to_string()] };
    };
    let mut depth = 0;
    let branches = branches.strip_suffix('}').unwrap_or(branches).split(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    branches.flat_map(|branch| expand(&format!("{prefix}{head}"), branch)).collect()
}

/// The modules of a crate by their paths.
type Modules = BTreeMap<String, Module>;

fn read(directory: &Path, parent: &str, modules: &mut Modules) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let is_root = ["lib", "main", "mod"].contains(&name);
        let module = if is_root { parent.to_string() } else { format!("{parent}::{name}") };
        if path.is_dir() && name != "tests" {
            read(&path, &module, modules);
        } else if path.extension().is_some_and(|extension| extension == "rs") && name != "tests" {
            modules.insert(module, Module::parse(&fs::read_to_string(&path).unwrap()));
        }
    }
}

/// Returns the module that defines the item at `path` as written in `module`; `None` if `path` is
/// a module or belongs to another crate.
fn definer<'a>(modules: &'a Modules, mut module: &'a str, path: &str) -> Option<&'a str> {
    let mut segments = path.split("::");
    let mut is_relative = true;
    while let Some(segment) = segments.next() {
        let child = modules.get_key_value(&format!("{module}::{segment}"));
        module = match (segment, child) {
            ("crate", _) => "crate",
            ("self", _) => module,
            ("super", _) => module.rsplit_once("::")?.0,
            (_, Some((child, _))) => child,
            _ => {
                // The parent of a file that several modules have is not known.
                let Module { items, imports, .. } = modules.get(module)?;
                let Some(import) = imports.get(segment) else {
                    return (!is_relative || items.contains(segment)).then_some(module);
                };
                let rest = segments.map(|segment| format!("::{segment}"));
                return definer(modules, module, &(import.clone() + &rest.collect::<String>()));
            }
        };
        is_relative = false;
    }
    None
}

/// Returns the imports of a crate: each module with those whose items it uses.
fn imports(modules: &Modules) -> BTreeMap<&str, BTreeSet<&str>> {
    let imports = modules.iter().map(|(from, module)| {
        let paths = module.paths.iter();
        let definers = paths.filter_map(|path| definer(modules, from, path));
        (from.as_str(), definers.filter(|to| to != from).collect())
    });
    imports.collect()
}

/// Returns the sets of modules that reach each other.
fn circles<'a>(imports: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<Vec<&'a str>> {
    let mut reached = imports.clone();
    for middle in imports.keys() {
        let onward = reached[middle].clone();
        for from in reached.values_mut().filter(|from| from.contains(middle)) {
            from.extend(&onward);
        }
    }
    let circle = |(module, to): (_, &BTreeSet<&'a str>)| {
        to.iter().copied().filter(|to| reached[to].contains(module)).collect()
    };
    reached.iter().map(circle).filter(|circle: &Vec<_>| !circle.is_empty()).collect()
}

#[test]
fn parts_import_from_lower_layers_only() {
    let layer = |module: &str| {
        let part = module.split("::").nth(1)?;
        let layer = LAYERS.iter().position(|layer| layer.contains(&part));
        Some((layer.unwrap_or_else(|| panic!("LAYERS has no part {part}")), part.to_string()))
    };
    let mut modules = Modules::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "crate", &mut modules);
    let mut upward = Vec::new();
    for (from, to) in imports(&modules) {
        let Some((own, part)) = layer(from) else { continue };
        let is_upward = |to: &str| layer(to).is_none_or(|(at, of)| of != part && at >= own);
        upward
            .extend(to.into_iter().filter(|to| is_upward(to)).map(|to| format!("{from} -> {to}")));
    }
    assert!(upward.is_empty(), "imports that do not point to a lower layer: {upward:#?}");
}

#[test]
fn circles_are_small_and_have_reasons() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let reasons = fs::read_to_string(root.join("docs/architecture.md")).unwrap();
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        let path = entry.unwrap().path();
        let mut modules = Modules::new();
        read(&path.join("src"), "crate", &mut modules);
        for circle in circles(&imports(&modules)) {
            let names: Vec<_> = circle.iter().map(|module| module.replace("crate::", "")).collect();
            let row =
                format!("| `{}` | `{}` |", path.file_name().unwrap().display(), names.join("`, `"));
            assert!(circle.len() <= MAX_CIRCLE, "a circle of {} files: {row}", circle.len());
            assert!(reasons.contains(&row), "docs/architecture.md gives no reason for {row}");
        }
    }
}
