//! Files of sizes.

use super::super::*;

const HEAD: &str =
    "duration = 9\n[dumbbell]\nrate = \"9mbit\"\ndelay = 0\n[[flow]]\ncontroller = \"reno\"\n";

fn read(name: &str) -> Result<(String, String), String> {
    let text = match name {
        "list" => "# bytes\n1000\n\n20000.4\n",
        "cdf" => "1000 1 0.25\n20000 2 1\n",
        "percent" => "1000 25\n20000 100\n",
        "word" => "1000\nmany\n",
        "mixed" => "1000\n2000 1\n",
        "empty" => "# nothing\n",
        "falls" => "1000 0.5\n900 1\n",
        _ => return Err(format!("dir/{name}: there is no such file")),
    };
    Ok((format!("dir/{name}"), text.into()))
}

fn arrivals(name: &str) -> String {
    format!("{HEAD}arrivals = {{ rate = 10, sizes = \"{name}\" }}\n")
}

fn sizes_of(scenario: &Scenario) -> &Sizes {
    &scenario.flow[0].arrivals.as_ref().unwrap().sizes
}

#[test]
fn sizes_are_read_from_files() {
    let list = SizesTable::List { bytes: vec![1000, 20000] };
    let cdf = SizesTable::Cdf { points: vec![(1000.0, 0.25), (20000.0, 1.0)] };
    for (name, expected) in [("list", &list), ("cdf", &cdf), ("percent", &cdf)] {
        let scenario = Scenario::from_toml_with(&arrivals(name), "x", &read).unwrap();
        assert_eq!(*sizes_of(&scenario), Sizes::Distribution(expected.clone()), "{name}");
        // The contents are part of the scenario.
        assert_eq!(Scenario::from_json(&scenario.to_json()).unwrap(), scenario);
    }
    let text = format!("{HEAD}source = {{ kind = \"request\", sizes = \"list\" }}\n");
    let scenario = Scenario::from_toml_with(&text, "x", &read).unwrap();
    let expected = Sizes::Distribution(list);
    assert!(
        matches!(&scenario.flow[0].source, Some(Application::Request { sizes, .. }) if *sizes == expected)
    );
}

#[test]
fn errors_of_files_of_sizes_name_the_line() {
    let at = "x:7: flow[0].arrivals.sizes";
    for (name, expected) in [
        (
            "10kbb",
            "\"10kbb\" is not an amount of data such as 100kb; dir/10kbb: there is no such file",
        ),
        ("word", "dir/word:2: `many` is neither a size nor a size and its cumulative probability"),
        (
            "mixed",
            "dir/mixed:2: `2000 1` is neither a size nor a size and its cumulative probability",
        ),
        ("empty", "dir/empty: there are no sizes"),
    ] {
        let error = Scenario::from_toml_with(&arrivals(name), "x", &read).unwrap_err().to_string();
        assert_eq!(error, format!("{at}: {expected}"));
    }
    let error = Scenario::from_toml_with(&arrivals("falls"), "x", &read).unwrap_err().to_string();
    assert!(error.starts_with(at), "{error}");
}
