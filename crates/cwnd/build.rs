//! Makes Rust from the laws in `src/laws/*.law`: their types, their entries in the registry, and
//! the lists of their names.

use cwnd_law::{Domain, Kind, Law, Parameter, type_name};
use std::path::PathBuf;
use std::{env, fs};

fn main() {
    let (mut types, mut texts) = (String::new(), Vec::new());
    let (mut window, mut rate) = (Group::default(), Group::default());
    for (law, text) in read() {
        types += &module(&law, &text);
        texts.push(format!("({:?}, LazyLock::new(|| read({text:?})))", law.name()));
        let group = if law.kind() == Kind::Window { &mut window } else { &mut rate };
        group.types += &format!("{}, ", type_name(law.name()));
        group.entries += &entry(&law);
    }
    let (count, texts) = (texts.len(), texts.join(",\n"));
    let texts = format!("static TEXTS: [(&str, LazyLock<Law>); {count}] = [\n{texts}\n];\n");
    let lists = list("window", &window.types) + &list("rate", &rate.types);
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    for (file, text) in [
        ("types.rs", types),
        ("lists.rs", lists),
        ("texts.rs", texts),
        ("window.rs", window.entries),
        ("rate.rs", rate.entries),
    ] {
        fs::write(out.join(file), text).expect("a file of the build");
    }
}

/// The laws, with their texts.
fn read() -> Vec<(Law, String)> {
    println!("cargo::rerun-if-changed=src/laws");
    let files = fs::read_dir("src/laws").expect("a folder of laws");
    let mut files: Vec<PathBuf> =
        files.map(|entry| entry.expect("an entry of the folder").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "law"));
    files.sort();
    let law = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("the text of a law");
        let law = Law::parse(&text).unwrap_or_else(|error| {
            let (line, column) = error.position(&text);
            panic!("{}:{line}:{column}: {error}", path.display())
        });
        (law, text)
    };
    files.into_iter().map(law).collect()
}

/// The module of a law's type.
fn module(law: &Law, text: &str) -> String {
    let (name, items) = (law.name(), law.rust(&documentation(law, text)));
    format!("mod {name} {{\nuse super::*;\n{items}}}\npub use {name}::*;\n")
}

/// The laws of a kind: the names of their types, and their entries in the registry.
#[derive(Default)]
struct Group {
    types: String,
    entries: String,
}

/// The macro that makes the enum of all laws of a kind, with these.
fn list(kind: &str, types: &str) -> String {
    format!(
        "macro_rules! any_{kind}_law {{\n($(#[$doc:meta])* $any:ident {{ $($law:ident,)+ }}) => {{\n\
         any_law! {{ {kind} $(#[$doc])* $any {{ $($law,)+ {types} }} }}\n}};\n}}\n"
    )
}

fn documentation(law: &Law, text: &str) -> String {
    format!("**{}**. {}\n\n```text\n{text}```", law.title(), law.summary())
}

/// The constant of a law's entry in the registry.
fn entry(law: &Law) -> String {
    let variant = format!("crate::laws::{}", type_name(law.name()));
    let parameters = law.parameters();
    let given = parameters.iter().enumerate().map(|(place, parameter)| match &parameter.domain {
        Domain::Number { .. } => format!("v[{place}]"),
        Domain::Switch => format!("v[{place}] != 0.0"),
        Domain::Choice(words) => {
            let choices = format!("{variant}{}", type_name(&parameter.name));
            let words: Vec<_> =
                words.iter().map(|word| format!("{choices}::{}", type_name(word))).collect();
            format!("[{}][v[{place}] as usize]", words.join(", "))
        }
    });
    let seed = if law.is_random() { "seed" } else { "_" };
    let given = given.chain(law.is_random().then(|| seed.into()));
    let given = given.collect::<Vec<_>>().join(", ");
    let values = if parameters.is_empty() { "_" } else { "v" };
    let (build, machine) = match law.kind() {
        Kind::Window => {
            assert!(!law.is_random(), "the registry's window laws have no seed");
            (format!("Window(|{values}|"), format!("START, pacing({:?})", law.pacing()))
        }
        Kind::Rate => (format!("Rate(|{values}, {seed}|"), String::new()),
    };
    let described: String = parameters.iter().map(described).collect();
    format!(
        "pub(super) const {}: Algorithm = Algorithm {{\n\
         name: {:?}, title: {:?}, summary: {:?}, source: {:?},\n\
         equations: &{:?}, deviations: &{:?},\n\
         parameters: &[{described}{machine}],\n\
         build: Build::{build} {variant}::new({given}).into()),\n}};\n",
        law.name().to_ascii_uppercase(),
        law.name(),
        law.title(),
        law.summary(),
        law.sources().join("; "),
        law.equations(),
        law.deviations()
    )
}

/// A parameter of an entry.
fn described(parameter: &Parameter) -> String {
    let Parameter { name, symbol, meaning, default, domain, .. } = parameter;
    let domain = match domain {
        Domain::Number { min, max, min_excluded, max_excluded } => format!(
            "Number {{ default: {default:?}, range: Range {{ min: {min:?}, max: {max:?}, \
             min_excluded: {min_excluded}, max_excluded: {max_excluded} }} }}"
        ),
        Domain::Choice(words) => {
            format!("Choice {{ choices: &{words:?}, default: Some({default}) }}")
        }
        Domain::Switch => format!("Switch {{ default: {} }}", *default != 0.0),
    };
    format!(
        "Parameter {{ name: {name:?}, symbol: {symbol:?}, meaning: {meaning:?}, unit: {:?}, \
         domain: super::Domain::{domain} }},\n",
        parameter.unit()
    )
}
