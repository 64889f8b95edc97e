from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

import cwnd
from cwnd._base.progress import with_notebook_bar
from cwnd._runs.data_frames import Frame
from cwnd._show.notebook import MAX_ROWS
from cwnd._tasks.agreement.outcome import Agreement

pytestmark = pytest.mark.slow

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


@pytest.fixture(scope="module")
def objects(result, comparison, two):
    scenario = cwnd.Scenario.from_toml(two)
    runs = {on: [cwnd.run(scenario, seed=seed) for seed in (1, 2)] for on in ("sim", "udt")}
    return {
        "result": result,
        "comparison": comparison,
        "agreement": Agreement("Two of each", runs),
        "scenario": scenario,
        "algorithm": cwnd.algorithms()[0],
        "algorithms": cwnd.algorithms(),
    }


@pytest.mark.parametrize("kind", ["result", "comparison", "agreement", "scenario", "algorithm"])
def test_the_text_of_an_object_is_one_line(objects, kind):
    text = repr(objects[kind])
    assert text.startswith("<")
    assert len(text) < 120
    assert "\n" not in text


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("result", ["Two of each", "Jain", "simd-2", "Mbit/s", "window 100 %"]),
        ("comparison", ["against reno", "simd", "aimd(", "share", "undecided between"]),
        ("agreement", ["udt against sim", "udt: of 20 figures", "window,<wbr> p90", "agrees"]),
        ("scenario", ["Two of each", "0s..1s", "[dumbbell]"]),
        ("algorithm", ["AIMD(α, β)", "alpha", "Chiu and Jain", "above 0 to 1000"]),
        ("algorithms", [f"{len(cwnd.algorithms())} controllers", "TFRC", "westwood"]),
    ],
)
def test_a_notebook_shows_an_object_as_html(objects, kind, words):
    html = objects[kind]._repr_html_()
    assert not re.search(r"(src|href)=", html)
    assert len(html) < 30_000
    for word in words:
        assert word in html


def test_names_are_escaped_in_html():
    document = cwnd.Scenario.dumbbell(rate="1mbit", time="1s").add_flow("reno").to_dict()
    scenario = cwnd.Scenario(document | {"title": "<script>alert(1)</script>"})
    assert "<script" not in scenario._repr_html_()
    assert "<script" not in cwnd.run(scenario)._repr_html_()


def test_many_flows_are_listed_in_part():
    scenario = cwnd.Scenario.dumbbell(rate="1mbit", time="1s").add_flow("reno", count=30)
    html = cwnd.run(scenario)._repr_html_()
    assert f"And {30 - MAX_ROWS} more." in html
    assert "reno-12" in html
    assert "reno-13" not in html


def test_the_summary_of_a_run(result):
    summary = result.summary()
    assert summary.shape == (5, 10)
    assert list(summary.index) == list(result.flows.index)
    flow = result.flows.loc["simd-1"]
    assert summary.loc["simd-1", "goodput (Mbit/s)"] == pytest.approx(
        flow["goodput_bps"] / 1e6, abs=1e-4
    )
    assert summary.loc["simd-1", "lost (%)"] == pytest.approx(100 * flow["loss_rate"], abs=1e-4)


def test_the_summary_of_a_comparison(comparison):
    summary = comparison.summary()
    assert summary.shape == (3, 10)
    assert summary.loc["reno", "fairness"] == "reference"
    assert pd.isna(summary.loc["reno", "share"])
    for verdict in comparison.verdicts:
        assert summary.loc[verdict.controller, "smoothness"] == verdict.smoothness
        share = comparison.against.loc[verdict.controller, ("share", "mean")]
        assert summary.loc[verdict.controller, "share"] == pytest.approx(share, abs=1e-4)


def test_the_summaries_of_an_agreement_and_a_scenario(objects):
    summary = objects["agreement"].summary()
    assert list(summary.columns) == ["of", "sim", "udt", "udt and sim"]
    assert set(summary["of"]) == {"network", "reno", "simd"}
    assert list(objects["scenario"].summary()["controller"]) == ["reno", "simd", "reno"]


@pytest.mark.parametrize(
    ("frame", "shown", "hidden"),
    [
        (lambda objects: objects["result"].flows, "goodput_bps", "limited_window_s"),
        (lambda objects: objects["result"].links, "utilization", "departures"),
        (lambda objects: objects["comparison"].alone, "cov_10rtt", "cov_50rtt"),
        (lambda objects: objects["comparison"].against, "share", "limited_window"),
    ],
)
def test_frames_show_ten_columns_and_hold_all(objects, frame, shown, hidden):
    table = frame(objects)
    assert isinstance(table, Frame)
    for text in (str(table), table._repr_html_()):
        assert shown in text
        assert hidden not in text
        assert f"10 of {len(table.columns.get_level_values(0).unique())} " in text
    assert hidden in table.columns.get_level_values(0)
    head = table._repr_html_().partition("</tr>")[0]
    assert len(re.findall(r"<th>\w+</th>", head)) == 10
    plain = table[[hidden]]
    assert type(plain) is pd.DataFrame
    assert hidden in str(plain)


def test_intervals_are_shown_beside_means(comparison):
    share = comparison.against.loc["simd", "share"]
    text = f"{share['mean']:.4g} [{share['low']:.4g}, {share['high']:.4g}]"
    assert text in comparison.against._repr_html_()


def test_outside_notebooks_there_is_no_bar():
    told = []

    @with_notebook_bar
    def work(*, progress=None):
        told.append(progress)

    work()
    work(progress=print)
    assert told == [None, print]
    code = """
import sys, cwnd
cwnd.run(cwnd.Scenario.dumbbell(rate="1mbit", time="1s").add_flow("reno"))
print("IPython" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def execute(*sources: str) -> list:
    """Run cells in a kernel, and return their outputs."""
    notebook = new_notebook(cells=[new_code_cell(source) for source in sources])
    NotebookClient(notebook, timeout=100).execute()
    return [cell.outputs for cell in notebook.cells]


def test_a_bar_and_a_plot_in_a_notebook():
    _, bar, quiet, plot = execute(
        """
import cwnd, cwnd._base.progress
from IPython import display
shown = []
show = display.display
display.display = lambda data, **options: shown.append(data) or show(data, **options)
scenario = cwnd.Scenario.dumbbell(rate="20mbit", time="30s").add_flow("reno", count=4)
""",
        """
cwnd._base.progress.PATIENCE = cwnd._base.progress.INTERVAL = 0.0
result = cwnd.run(scenario)
print(shown)
""",
        """
cwnd._base.progress.PATIENCE = 60.0
result = cwnd.run(scenario)
""",
        "result.plot()",
    )
    # The bar was displayed, and is empty at the end.
    assert bar[0]["output_type"] == "display_data"
    assert bar[0]["data"] == {"text/plain": "", "text/html": ""}
    assert "<progress" in bar[1]["text"]
    assert "run: " in bar[1]["text"]
    assert quiet == []
    assert "image/png" in plot[0]["data"]


def test_the_tour():
    notebook = nbformat.read(NOTEBOOKS / "tour.ipynb", as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in cells)
    NotebookClient(notebook, timeout=100).execute()
    shown = [output["data"] for cell in cells for output in cell.outputs]
    assert sum("image/png" in data for data in shown) == 3
    # On a slow machine the bars of longer cells add to them.
    assert sum("text/html" in data for data in shown) >= 8
