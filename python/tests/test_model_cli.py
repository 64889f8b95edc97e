from __future__ import annotations

import importlib
import inspect
import json
import re
import subprocess
import sys
import typing

import numpy as np
import pytest

import cwnd
from cwnd._show.plots import plot_model, plot_phase_plane
from cwnd.errors import ArgumentError
from cwnd.model.catalog import ENTRIES, Range, find_model, models
from cwnd.model.quantities import find_doc
from cwnd.model.throughput import pftk

NETWORK = ("--rtt", "100ms", "--rto", "400ms")


def one_line(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """A user's mistake: one line, exit status 2, nothing on standard output."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("cwnd: ")
    assert done.stderr.count("\n") == 1
    for word in words:
        assert word in done.stderr


def test_the_list(command):
    done = command("model")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(ENTRIES)
    assert any(line.startswith("pftk ") and "Padhye" in line for line in lines)


def test_the_list_as_json(command, check_json):
    document = json.loads(command("model", "--json").stdout)
    names = {name for each in models() for name in each.units}
    check_json(document, "`cwnd model --json`", data=names)
    found = {model["name"]: model for model in document["models"]}
    assert found["pftk"]["units"] == {"value": "packets/s"}
    assert found["aiad-equilibrium"]["units"]["rtt"] == "s"
    assert [p["name"] for p in found["pftk"]["parameters"]][:3] == ["p", "rtt", "rto"]
    assert [p["kind"] for p in found["daimd-stage-end"]["parameters"]] == ["whole", "rate"]


@pytest.mark.parametrize("model", models(), ids=lambda model: model.name)
def test_every_model_tells_all_about_itself(model):
    assert model.summary.endswith(".")
    told = f"{model.summary} {model.facts}"
    own = model.name in ("loss-for-rate", "friendliness-ratio")
    assert own or re.search(
        r"Eq\. |section |Table |Fig\. |Lemma |\d{4}|AIAD|square-root law|ppendix|figure |paper's",
        told,
    )
    assert all(parameter.text for parameter in model.parameters.values())
    # The documentation of the function has the same texts.
    entries = {
        name: text
        for names, text in re.findall(
            r"^(\w.*) : .*\n((?: {4}.*\n?)+)", model.function.__doc__, re.MULTILINE
        )
        for name in names.split(", ")
    }
    for name in inspect.signature(model.function).parameters:
        assert entries[name].strip()
        if name in model.parameters:
            text = " ".join(entries[name].split()).replace("``", "")
            assert text == model.parameters[name].text


@pytest.mark.parametrize("model", models(), ids=lambda model: model.name)
def test_units_of_times_and_rates(model):
    kinds = {"s": ("time", "40ms", 0.04), "bit/s": ("rate", "7mbit", 7e6)}
    for parameter in model.parameters.values():
        kind, given, expected = kinds.get(parameter.doc.unit, ("", "", 0.0))
        if kind:
            assert parameter.kind == kind
            assert parameter.read(given) == pytest.approx(expected)
        else:
            assert parameter.kind not in ("time", "rate")


@pytest.mark.parametrize("name", sorted(set(cwnd.model.__all__) - {"catalog"}))
def test_public_parameters_are_described(name):
    module = importlib.import_module(f"cwnd.model.{name}")
    own = [
        v
        for n, v in vars(module).items()
        if getattr(v, "__module__", "") == module.__name__ and n[0] != "_"
    ]
    described = 0
    for found in filter(callable, own):
        if inspect.isclass(found) or inspect.isfunction(found):
            hints = typing.get_type_hints(found, include_extras=True)
            hints.pop("return", None)
            assert all(find_doc(hint)[1].what for hint in hints.values()), found
            described += len(hints)
    assert described > 5


def test_names_are_different():
    assert len({model.name for model in models()}) == len(ENTRIES)


def test_a_value(command):
    done = command("model", "pftk", "--p", "0.01", *NETWORK)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{pftk(0.01, 0.1, 0.4):.6g} packets/s\n"


def test_a_value_as_json(command, check_json):
    document = json.loads(command("model", "pftk", "--p", "1/100", *NETWORK, "--json").stdout)
    check_json(document, "`cwnd model NAME --json`", data={"value", *document["parameters"]})
    assert document["model"] == "pftk"
    assert document["units"] == {"value": "packets/s"}
    assert document["parameters"]["rtt"] == 0.1
    assert document["parameters"]["max_window"] is None
    assert document["result"] == {"value": pftk(0.01, 0.1, 0.4)}


def test_fields(command):
    done = command("model", "aiad-lemma1", "--b", "0", "--c", "-1.5")
    assert done.stdout.splitlines() == [
        "first: 1",
        "second: 1.5",
        "third: 0.0707963",
        "stable: yes",
    ]


def test_a_range_gives_a_table(command):
    done = command("model", "pftk", "--p", "0.001..0.2", *NETWORK)
    assert done.returncode == 0, done.stderr
    head, *rows = done.stdout.splitlines()
    assert head.split() == ["p", "value", "(packets/s)"]
    table = np.array([row.split() for row in rows], dtype=float)
    assert table[[0, -1], 0].tolist() == [0.001, 0.2]
    # A wide range is logarithmic.
    assert np.allclose(np.diff(np.log(table[:, 0])), np.log(200) / (len(table) - 1), rtol=1e-3)
    assert np.allclose(table[:, 1], pftk(table[:, 0], 0.1, 0.4), rtol=1e-4)


def test_a_range_as_json(command, check_json):
    done = command("model", "aira-mail", "--rounds", "0..10", "--json")
    document = json.loads(done.stdout)
    check_json(document, "the same with a range or a table", data={"value", "rounds"})
    assert document["over"] == "rounds"
    assert [row["rounds"] for row in document["rows"]] == list(range(11))
    assert document["rows"][10]["value"] == pytest.approx(0.91)


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_curve(command, tmp_path, suffix):
    plot = tmp_path / f"curve.{suffix}"
    done = command("model", "gaimd", "--p", "0.001..0.2", *NETWORK, "--plot", plot)
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"plot: {plot}\n"
    assert plot.stat().st_size > 2000


def test_a_list_gives_a_curve_for_each_value(command, tmp_path, check_json):
    plot = tmp_path / "curves.svg"
    network = ("--rtt", "10ms,1s", "--rto", "400ms")
    done = command("model", "pftk", "--p", "0.001..0.2", *network, "--json", "--plot", plot)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    data = {"value", "p", "rtt", *document["parameters"]}
    check_json(document, "the same with several curves", data=data, absent={"results", "result"})
    assert (document["over"], document["by"]) == ("p", "rtt")
    assert [row["rtt"] for row in document["rows"]] == [0.01] * 21 + [1.0] * 21
    for row in document["rows"]:
        assert row["value"] == pytest.approx(pftk(row["p"], row["rtt"], 0.4))
    assert plot.exists()


def test_a_list_alone_gives_a_table(command):
    done = command("model", "stationary-figures", "--spec", "reno,aimd(1, 1/2)", "--p", "0.01")
    head, *rows = done.stdout.splitlines()
    assert head.split()[:3] == ["spec", "mean", "(packets)"]
    (reno, *of_reno), (aimd, _, *of_aimd) = (row.split() for row in rows)
    assert (reno, aimd) == ("reno", "aimd(1,")
    assert of_reno == of_aimd


def test_series_of_a_list(command, tmp_path, check_json):
    plot = tmp_path / "rates.svg"
    arguments = ("daimd-trajectory", "--intervals", "5", "--capacity-bps", "100mbit,1gbit")
    document = json.loads(command("model", *arguments, "--json", "--plot", plot).stdout)
    data = {"value", "capacity_bps", *document["parameters"]}
    check_json(document, "the same with several curves", data=data, absent={"over", "rows"})
    assert document["by"] == "capacity_bps"
    low, high = (result["result"]["value"] for result in document["results"])
    assert np.allclose(10 * np.array(low), high)
    assert plot.exists()
    lines = command("model", *arguments).stdout.splitlines()
    assert lines[0] == "capacity_bps = 100 Mbit/s"
    assert lines[8] == "capacity_bps = 1 Gbit/s"


def test_a_parameter_and_a_field_of_one_name(command):
    network = ("--count", "20", "--capacity", "5000", "--low", "40", "--high", "120")
    law = ("fluid-red-equilibrium", "--spec", "reno", "--rtt", "50ms..60ms")
    rows = json.loads(command("model", *law, *network, "--json").stdout)["rows"]
    assert (rows[0]["rtt"], rows[-1]["rtt"]) == (0.05, 0.06)
    for row in rows:
        waiting = row["queue"] / 5000
        assert row["rtt_result"] == pytest.approx(row["rtt"] + waiting)
    head = command("model", *law, *network).stdout.splitlines()[0]
    assert "rtt (s)" in head
    assert "rtt_result (s)" in head


def test_a_plot_says_what_it_shows():
    model = find_model("pftk")
    p = np.array([0.01, 0.1])
    curves = [
        (f"rtt = {rtt}", {"p": p, **model.sweep({"rtt": rtt, "rto": 0.4}, "p", p)})
        for rtt in (0.1, 0.2)
    ]
    figure = plot_model(model, curves, "rto = 400 ms")
    (axes,) = figure.axes
    assert figure.get_suptitle().startswith("Rate of TCP with timeouts")
    assert figure.get_suptitle().endswith("rto = 400 ms")
    assert axes.get_xlabel() == "p: probability of a loss event"
    assert axes.get_ylabel() == "pftk (packets/s)"
    assert [text.get_text() for text in figure.legends[0].texts] == ["rtt = 0.1", "rtt = 0.2"]


@pytest.mark.parametrize("model", models(), ids=lambda model: model.name)
def test_axes_of_plots_are_named(model):
    for parameter in model.parameters.values():
        assert parameter.axis.startswith(parameter.name)
        assert len(parameter.axis) < 100


def test_a_series(command, tmp_path):
    plot = tmp_path / "rounds.svg"
    arguments = (
        "aira-one-flow",
        "--rounds",
        "100",
        "--rate",
        "125",
        "--rtt",
        "40ms",
        "--queue",
        "15",
    )
    done = command("model", *arguments, "--plot", plot)
    assert done.returncode == 0, done.stderr
    assert "of 100 rows" in done.stdout
    assert plot.exists()
    document = json.loads(command("model", *arguments, "--json").stdout)
    assert len(document["result"]["seconds"]) == 100


def test_names_of_formulas_and_their_parameters(command):
    pair = ("--first", "gaimd", "--second", "pftk", "--alpha", "0.3125", "--beta", "1/8")
    done = command("model", "friendliness-ratio", "--p", "0.01", *NETWORK, *pair)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == pytest.approx(1.225, abs=1e-3)


def test_laws_of_the_registry(command):
    points = ("--w1", "10", "--w2", "30", "--capacity", "100", "--epsilon", "1", "--per", "round")
    done = command("model", "synchronous-convergence", "--specs", "reno", *points)
    expected = ["t1: 30 RTT", "delta: 20 packets", "t2: 100 RTT", "epochs: 5"]
    assert done.stdout.splitlines() == expected
    one_line(command("model", "synchronous-convergence", "--specs", "rno", *points), "rno")


def test_two_windows_are_drawn_in_their_plane(command, tmp_path):
    words = ("--spec", "reno,simd", "--w1", "10", "--w2", "60", "--rounds", "60", "--per", "round")
    plot = tmp_path / "plane.svg"
    done = command(
        "model", "synchronous-phase-plane", *words, "--capacity", "100", "--plot", plot, "--json"
    )
    assert done.returncode == 0, done.stderr
    reno, simd = json.loads(done.stdout)["results"]
    assert reno["result"]["w1"][:2] == [10, 11]
    assert plot.exists()
    model = find_model("synchronous-phase-plane")
    paths = [(each["spec"], each["result"], 100.0) for each in (reno, simd)]
    (axes,) = plot_phase_plane(model, paths).axes
    efficiency, fairness, *drawn = axes.get_lines()
    assert efficiency.get_xydata().tolist() == [[0, 100], [100, 0]]
    assert len(set(map(tuple, fairness.get_xydata().T.tolist()))) == 1
    for (_, columns, _), line in zip(paths, drawn[::3], strict=True):
        assert line.get_xdata().tolist() == columns["w1"]
        assert line.get_ydata().tolist() == columns["w2"]


def test_help_has_the_facts(command):
    done = command("model", "simd-eq8", "--help")
    assert done.returncode == 0
    for words in ("SIMD, Eq. 8", "Rate (packets/s)", "--max-window", "128 in the paper"):
        assert words in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("pfkt",), ("'pfkt'", "pftk")),
        (("nothing-like-it",), ("there is no 'nothing-like-it'", "lists all models")),
        (("pftk", "--p", "0.1"), ("--rtt",)),
        (("pftk", "--p", "2", *NETWORK), ("--p", "at most 1")),
        (("pftk", "--p", "often", *NETWORK), ("--p", "'often'")),
        (("pftk", "--p", "0.1", "--rtt", "1x", "--rto", "1s"), ("--rtt", "'1x'")),
        (("pftk", "--p", "0.1", "--rtt", "1", "--rto", "1s"), ("--rtt: a time needs a unit",)),
        (("pftk", "--p", "0.1..0.2", "--rtt", "1ms..1s", "--rto", "1s"), ("--p and --rtt",)),
        (("pftk", "--p", "0.1,0.2", "--rtt", "1ms,1s", "--rto", "1s"), ("--p and --rtt", "lists")),
        (("pftk", "--p", "0.1,0.1", *NETWORK), ("--p", "repeated")),
        (("pftk", "--p", "0.1,", *NETWORK), ("--p", "''")),
        (("pftk", "--p", "0.2..0.1", *NETWORK), ("--p", "A less than B")),
        (("pftk", "--p", "0..0.1", *NETWORK), ("--p", "above 0")),
        (("pftk", "--p", "0.1", *NETWORK, "--plot", "x.png"), ("--plot needs a range",)),
        (("pftk", "--p", "0.1..1", *NETWORK, "--plot", "x.txt"), ("--plot", "x.txt")),
        (("pftk", "--p", "0.1", *NETWORK, "--max-window", "0"), ("--max-window",)),
        (("aira-mail", "--rounds", "1.5"), ("--rounds", "whole")),
        (("aira-mail", "--rounds", "1.2..1.8"), ("--rounds", "whole")),
        (("daimd-trajectory", "--intervals", "5..9", "--capacity-bps", "1gbit"), ("series",)),
        (("loss-for-rate", "--rate", "1", "--formula", "cubic"), ("--formula", "'cubic'")),
        (("loss-for-rate", "--rate", "1", "--formula", "pftk"), ("--rtt", "needs it")),
        (("--json", "pftk"), ("--json must follow pftk",)),
    ],
)
def test_mistakes(command, arguments, words):
    one_line(command("model", *arguments), *words)


def test_near_names():
    with pytest.raises(ArgumentError, match="aira-mail"):
        find_model("mail")
    assert find_model("simd_eq8").name == "simd-eq8"


def test_ranges():
    assert not Range(0.1, 0.5).logarithmic
    assert Range(0.1, 1.0).logarithmic
    assert not Range(-5.0, 5.0).logarithmic
    assert Range(1.0, 1000.0).points(4).tolist() == pytest.approx([1, 10, 100, 1000])
    assert Range(1.0, 1000.0).points(4, whole=True).tolist() == [1, 10, 100, 1000]
    assert Range(0.5, 3.5).points(21, whole=True).tolist() == [1, 2, 3]


def test_the_command_line_starts_without_numpy():
    code = "import sys, cwnd._cli; sys.exit(any(m in sys.modules for m in ('numpy', 'scipy')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
