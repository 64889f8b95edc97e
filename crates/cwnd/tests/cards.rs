//! The card at the head of each law's file, the registry and the documentation agree.

use cwnd::Spec;
use cwnd::registry::{Algorithm, Domain, Kind, Parameter, algorithms};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The card of a law: the documentation of its module.
struct Card {
    file: String,
    equations: Vec<String>,
    symbols: Vec<Symbol>,
    deviations: Vec<String>,
}

/// A row of a card's table.
struct Symbol {
    names: Vec<String>,
    unit: String,
    range: String,
    default: String,
}

impl Card {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let lines: Vec<_> = text.lines().map_while(|line| line.strip_prefix("//!")).collect();
        Card {
            file: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            equations: equations(&lines),
            symbols: lines.iter().filter_map(|line| Symbol::read(line)).collect(),
            deviations: deviations(&lines),
        }
    }

    fn symbol(&self, name: &str) -> &Symbol {
        let found = self.symbols.iter().find(|symbol| symbol.names.iter().any(|it| it == name));
        found.unwrap_or_else(|| panic!("{}: the table has no `{name}`", self.file))
    }
}

impl Symbol {
    /// Reads `| symbol | meaning | unit | range | default |`.
    fn read(line: &str) -> Option<Self> {
        let cells: Vec<_> = line.trim().strip_prefix('|')?.split('|').map(str::trim).collect();
        let [symbol, _, unit, range, default, ""] = cells[..] else {
            panic!("not five columns: {line}");
        };
        // Every second part of the text is between backticks.
        let names: Vec<_> = symbol.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        let [unit, range, default] = [unit, range, default].map(str::to_owned);
        (!names.is_empty()).then_some(Symbol { names, unit, range, default })
    }

    /// The default for `algorithm`: `1, gaimd: 0.31` is 0.31 for `gaimd` and 1 for all others.
    fn default_for(&self, algorithm: &str) -> &str {
        let mut defaults = self.default.split(", ");
        let all = defaults.next().unwrap_or_default();
        let own = defaults.filter_map(|own| own.split_once(": "));
        own.filter(|(name, _)| *name == algorithm).map(|(_, value)| value).last().unwrap_or(all)
    }
}

fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The lines of the text block, without the references to the source at their ends.
fn equations(lines: &[&str]) -> Vec<String> {
    let block = lines.iter().skip_while(|line| line.trim() != "```text").skip(1);
    let block = block.take_while(|line| line.trim() != "```");
    block
        .map(|line| match line.rsplit_once("  (") {
            Some((equation, reference)) if reference.ends_with(')') => joined(equation),
            _ => joined(line),
        })
        .collect()
}

/// The bullets under "Known deviations:".
fn deviations(lines: &[&str]) -> Vec<String> {
    let mut deviations: Vec<String> = Vec::new();
    let list = lines.iter().skip_while(|line| line.trim() != "Known deviations:").skip(2);
    for line in list.take_while(|line| !line.trim().is_empty()) {
        match (line.strip_prefix(" * "), deviations.last_mut()) {
            (Some(bullet), _) => deviations.push(joined(bullet)),
            (None, Some(last)) => *last = format!("{last} {}", joined(line)),
            (None, None) => panic!("no bullet: {line}"),
        }
    }
    deviations
}

fn laws() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/laws")
}

fn controllers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/controllers")
}

/// Every card with the controllers that run its law, or that it describes.
fn cards() -> Vec<(Card, Vec<&'static Algorithm>)> {
    let mut files: BTreeMap<PathBuf, Vec<_>> = BTreeMap::new();
    for algorithm in algorithms() {
        // The entry of a text is made from it.
        if laws().join(algorithm.name).with_extension("law").exists() {
            continue;
        }
        let directory = if algorithm.kind() == Kind::Whole { controllers() } else { laws() };
        files.entry(directory.join(algorithm.name)).or_default().push(algorithm);
    }
    let read = |file: PathBuf| Card::read(&file.with_extension("rs"));
    files.into_iter().map(|(file, algorithms)| (read(file), algorithms)).collect()
}

/// The lines of the entries in the card, and the lines of the card in an entry.
fn assert_same(card: &Card, lines: &[String], entries: &[(&str, &[&str])]) {
    for (name, entry) in entries {
        for line in *entry {
            assert!(
                lines.iter().any(|it| it == line),
                "{} does not say: {line} ({name})",
                card.file
            );
        }
    }
    for line in lines {
        let found = entries.iter().any(|(_, entry)| entry.contains(&line.as_str()));
        assert!(found, "no entry of {} says: {line}", card.file);
    }
}

#[test]
fn equations_agree() {
    for (card, algorithms) in cards() {
        let entries: Vec<_> = algorithms.iter().map(|it| (it.name, it.equations)).collect();
        assert!(!card.equations.is_empty(), "{}", card.file);
        assert_same(&card, &card.equations, &entries);
    }
}

#[test]
fn deviations_agree() {
    for (card, algorithms) in cards() {
        let entries: Vec<_> = algorithms.iter().map(|it| (it.name, it.deviations)).collect();
        assert_same(&card, &card.deviations, &entries);
    }
}

/// The allowed values as an error message of a spec states them.
fn allowed(algorithm: &Algorithm, parameter: &Parameter) -> String {
    let refused = Spec::parse(&format!("{}({}=?)", algorithm.name, parameter.name));
    let message = refused.expect_err("not a value").to_string();
    let (_, allowed) = message.split_once("\": it is ").expect("a message about the value");
    let allowed = allowed.strip_prefix("one of ").unwrap_or(allowed);
    allowed.strip_prefix("a number with ").unwrap_or(allowed).to_owned()
}

/// `symbol` has the unit, the range and the default of `parameter`.
fn assert_parameter(symbol: &Symbol, algorithm: &Algorithm, parameter: &Parameter) {
    let name = format!("{}({})", algorithm.name, parameter.name);
    assert_eq!(symbol.unit, parameter.unit, "{name}");
    assert_eq!(symbol.range, allowed(algorithm, parameter), "{name}");
    let default = symbol.default_for(algorithm.name);
    if parameter.default().is_none() {
        assert_eq!(default, "the driver's", "{name}");
        return;
    }
    let text = format!("{}({}={default})", algorithm.name, parameter.name);
    let stated = Spec::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(stated.get(parameter.name), parameter.default(), "{name}");
}

/// Whether the machine has `parameter`, not the law: the card of all laws describes it.
fn of_the_machine(algorithm: &Algorithm, parameter: &Parameter) -> bool {
    algorithm.kind() == Kind::Window && ["start", "pacing"].contains(&parameter.name)
}

#[test]
fn parameters_agree() {
    let machine = Card::read(&laws().join("mod.rs"));
    for (card, algorithms) in cards() {
        for algorithm in &algorithms {
            for parameter in algorithm.parameters {
                let card = if of_the_machine(algorithm, parameter) { &machine } else { &card };
                assert_parameter(card.symbol(parameter.name), algorithm, parameter);
            }
        }
        for symbol in card.symbols.iter().filter(|symbol| !symbol.default.is_empty()) {
            let declared = |name: &String| algorithms.iter().any(|it| it.parameter(name).is_some());
            assert!(symbol.names.iter().any(declared), "{}: {:?}", card.file, symbol.names);
        }
    }
}

/// A deviation is a sentence, and a choice has a word for its default.
#[test]
fn entries_are_complete() {
    for algorithm in algorithms() {
        for deviation in algorithm.deviations {
            assert!(deviation.ends_with('.'), "{}: {deviation}", algorithm.name);
        }
        for parameter in algorithm.parameters {
            if let Domain::Choice { choices, default } = parameter.domain {
                assert!(default.is_none_or(|at| at < choices.len()), "{}", algorithm.name);
            }
        }
    }
}

/// Each file of a law belongs to a controller.
#[test]
fn every_law_has_an_entry() {
    let known: Vec<_> = cards().into_iter().map(|(card, _)| card.file).collect();
    for entry in fs::read_dir(laws()).expect("the directory of the laws") {
        let file = entry.expect("a directory entry").file_name().to_string_lossy().into_owned();
        if file.ends_with(".rs")
            && !["mod.rs", "any.rs", "text.rs", "texts.rs"].contains(&file.as_str())
        {
            assert!(known.contains(&file), "{file} has no entry in the registry");
        }
    }
}

#[test]
fn the_readmes_name_every_controller() {
    let mut known: Vec<_> = algorithms().iter().map(|algorithm| algorithm.name).collect();
    known.sort_unstable();
    for readme in ["README.md", "../../README.md"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(readme);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let (_, list) = text.split_once("\nControllers").unwrap();
        let (list, _) = list.split_once('.').unwrap();
        let mut names: Vec<_> = list.split('`').skip(1).step_by(2).collect();
        names.sort_unstable();
        assert_eq!(names, known, "{readme}");
    }
}
