from __future__ import annotations

import base64
import gzip
import json
import re
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise
from typing import ClassVar

import jinja2
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

import cwnd
from cwnd._runs.defaults import PANELS
from cwnd._show.chart_lines import deviation_ellipse, lines, step_rates, thin
from cwnd._show.report.compare import compare_page
from cwnd._show.report.page import MAX_POINTS, MIN_POINTS, PAGE_POINTS, points_of, render, run_data
from cwnd._show.report.run import run_page
from cwnd._tasks.agreement.outcome import Agreement
from cwnd._tasks.comparison.verdict import Figures, judge
from cwnd.errors import ArgumentError
from cwnd.stats import UNIT, estimate


class Reader(HTMLParser):
    """Notes what a page would load, and what stands in it."""

    VOID: ClassVar[set[str]] = {"meta", "br", "wbr", "link", "img", "input", "hr"}

    def __init__(self):
        super().__init__()
        self.loads, self.open, self.scripts, self.ids = [], [], {}, []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.loads += [attributes[a] for a in ("src", "href", "srcset") if a in attributes]
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if tag not in self.VOID:
            self.open.append((tag, attributes.get("id")))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        if self.open and self.open[-1][0] == "script":
            self.scripts[self.open[-1][1]] = data


def unpack(page: str) -> dict:
    """Read the data of a page's plots."""
    return json.loads(gzip.decompress(base64.b64decode(read(page).scripts["data"])))


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def pages(comparison, result):
    return {"compare": compare_page(comparison), "run": run_page(result)}


@pytest.mark.parametrize("kind", ["compare", "run"])
def test_pages_load_nothing(pages, kind):
    reader = read(pages[kind])
    assert reader.loads == []
    assert (
        "default-src &#39;none&#39;; script-src &#39;sha256-" in pages[kind].partition("<title>")[0]
    )
    assert "url(" not in re.sub(
        r'<script type="text/plain".*?</script>', "", pages[kind], flags=re.DOTALL
    )
    assert len(reader.ids) == len(set(reader.ids))


def test_each_line_of_a_page_is_identifiable(pages):
    for page in pages.values():
        for run in unpack(page)["runs"]:
            flows = run["flows"]
            assert len({flow["name"] for flow in flows}) == len(flows)
            assert len({(flow["color"], flow["dash"]) for flow in flows}) == len(flows)


def test_lines_of_twelve_controllers_differ():
    scenario = cwnd.Scenario.dumbbell(rate="10mbit", time="1s")
    for i in range(12):
        scenario.add_flow(f"aimd(beta=1/{i + 2})")
    (run,) = unpack(run_page(cwnd.run(scenario)))["runs"]
    assert len({(flow["color"], flow["dash"]) for flow in run["flows"]}) == 12


def test_all_controllers_are_drawn_with_many_flows():
    scenario = cwnd.Scenario.dumbbell(rate="10mbit", time="1s")
    scenario.add_flow("reno", count=30).add_flow("simd", count=3).add_flow("cubic", count=9)
    drawn = lines(cwnd.run(scenario).measured_flows, {})
    found = Counter(line.flow["controller"] for line in drawn)
    assert found == {"reno": 7, "simd": 3, "cubic": 6}


def test_lines_end_at_the_last_sample(pages, result):
    (run,) = unpack(pages["run"])["runs"]
    last = pytest.approx(result.time[-1])
    assert run["queue"][0][-1] == last
    for flow, drawn in zip(result.measured_flows, run["flows"], strict=True):
        assert drawn["window"][0][-1] == last
        assert drawn["window"][1][-1] == pytest.approx(flow["window"][-1], rel=1e-3)
        edges, rates = map(np.array, drawn["goodput"])
        assert edges[-1] == last
        arrived = np.sum(rates[:-1] * np.diff(edges)) / 8
        assert arrived == pytest.approx(flow["delivered_bytes"][-1], rel=1e-3)


def test_what_a_lossy_flow_sends_is_a_thin_line():
    document = """duration = "4s"
[dumbbell]
rate = "10mbit"
delay = "20ms"
[tcp]
window = 30
[[flow]]
controller = "cubic"
stop = "1s"
[[cbr]]
rate = "20mbit"
measured = true
start = "2s"
"""
    result = cwnd.run(cwnd.Scenario.from_toml(document))
    cubic, cbr = run_data(result, {})["flows"]
    assert cubic["sent"] is None
    assert max(cbr["goodput"][1]) <= 10e6
    assert max(cbr["sent"][1]) == pytest.approx(20e6, rel=0.01)
    (_, middle, _) = result.plot().axes
    *_, sent = middle.lines
    assert len(middle.lines) == 3
    assert max(sent.get_ydata()) == pytest.approx(20, rel=0.01)
    assert sent.get_linewidth() < middle.lines[1].get_linewidth()
    assert middle.get_title(loc="left") == "thin: sent"


def test_plotted_rates_do_not_exceed_that_of_the_link():
    # Slow start sends at twice the rate of the link, and half of the packets are dropped.
    document = """duration = "2s"
[dumbbell]
rate = "10mbit"
delay = "20ms"
queue = "10p"
[[flow]]
controller = "reno"
[tcp]
initial_window = 200
"""
    result = cwnd.run(cwnd.Scenario.from_toml(document))
    (flow,) = result.record["flows"]
    _, rates = step_rates(result.time, flow["sent_bytes"], result.scales[1])
    assert rates.max() > 10e6
    (drawn,) = run_data(result, {})["flows"]
    assert max(drawn["goodput"][1]) <= 10e6
    (_, middle, _) = result.plot().axes
    assert max(middle.lines[0].get_ydata()) <= 10


@pytest.mark.parametrize("runs", [1, 90, 10_000])
def test_a_page_with_many_runs_has_fewer_points_a_line(result, runs):
    points = points_of([result] * runs)
    assert MIN_POINTS <= points <= MAX_POINTS
    assert points == MIN_POINTS or points * runs * 9 <= PAGE_POINTS


@pytest.mark.parametrize("kind", ["compare", "run"])
def test_pages_are_of_reasonable_size(pages, kind):
    assert 1e6 < len(pages[kind]) < 4e6


def test_the_comparisons_page_shows_everything(pages, comparison):
    page = pages["compare"]
    assert page.index("Verdict") < page.index("<table")
    for verdict in comparison.verdicts:
        assert verdict.controller in page
    assert "cwnd compare simd" in page
    data = unpack(page)
    assert [(run["name"], run["mode"], run["seed"]) for run in data["runs"]] == [
        (row.controller, mode, seed)
        for mode in ("against", "alone")
        for row in comparison.rows_against
        for seed in "123"
    ]
    assert all(len(run["flows"]) == 4 for run in data["runs"])


def test_the_comparisons_page_and_plot_describe_the_network():
    """The page of a scenario file did not name the scenario, the loss and the replaced values."""
    pair = cwnd.compare(["simd"], time="2s", repeat=2, flows=2, loss="0.25%")
    assert "<dd>0.25 %<small>at the bottleneck</small>" in compare_page(pair)
    assert "0.25 % loss" in pair.plot().get_suptitle()
    link = {"from": "a", "to": "b", "delay": "10ms", "loss": 0.01}
    flow = {"from": "a", "to": "b", "controller": "simd", "count": 2}
    scenario = {"name": "far", "duration": "9s", "link": [link], "flow": [flow]}
    other = cwnd.compare(network=cwnd.Scenario(scenario), values={"duration": "3s"}, repeat=2)
    page, title = compare_page(other), other.plot().get_suptitle()
    assert "<h1>simd against reno on far</h1>" in page
    assert "<dd>infinite<small>at a-b</small>" in page
    assert "duration=3s" in page
    assert "The shaded warm-up" not in page
    assert "2 flows of far on a link of infinite rate" in title
    assert "duration=3s" in title.replace("\n", " ")


def test_goodput_against_delay_is_drawn_with_its_ellipse(comparison):
    points = unpack(compare_page(comparison))["trade_offs"]["points"]
    axes = next(a for a in comparison.plot().axes if a.get_title().startswith("each alone;"))
    ranges = unpack(compare_page(comparison))["trade_offs"]["ranges"]
    assert ranges == [pytest.approx(axes.get_xlim()), pytest.approx(axes.get_ylim())]
    assert axes.xaxis_inverted()
    low, high = axes.get_ylim()
    assert high - low > 0.1 * max(point["goodput"] for point in points)
    dots = [line for line in axes.get_lines() if line.get_marker() == "o"]
    assert [dot.get_label() for dot in dots] == [row.controller for row in comparison.rows_alone]
    for row, point, dot in zip(comparison.rows_alone, points, dots, strict=True):
        delay, goodput = (
            np.mean(row.values("queue_delay_p95_s")),
            np.mean(row.values("goodput_bps")),
        )
        assert point["delay"] == dot.get_xdata()[0] == pytest.approx(1e3 * delay)
        assert point["goodput"] == dot.get_ydata()[0] == pytest.approx(goodput / 1e6)
        assert np.max(point["outline"][0]) - point["delay"] == pytest.approx(
            1e3 * np.std(row.values("queue_delay_p95_s"), ddof=1), rel=0.01
        )


def test_two_seeds_have_a_line_for_an_ellipse_and_one_has_none():
    for repeat, drawn in ((1, 0), (2, 73)):
        few = cwnd.compare(["simd"], time="3s", repeat=repeat, flows=2)
        for point in unpack(compare_page(few))["trade_offs"]["points"]:
            assert [len(axis) for axis in point["outline"]] == [drawn, drawn]


def test_the_ellipse_has_a_mahalanobis_distance_of_1():
    x, y = np.random.default_rng(1).multivariate_normal([3, 7], [[4, 3], [3, 5]], 40).T
    off = np.array(deviation_ellipse(x, y)) - [[x.mean()], [y.mean()]]
    distance = np.einsum("ip,ij,jp->p", off, np.linalg.inv(np.cov(x, y)), off)
    np.testing.assert_allclose(distance, 1)
    np.testing.assert_allclose(
        deviation_ellipse(np.append(x, np.nan), np.append(y, 1)), deviation_ellipse(x, y)
    )


def test_the_runs_page_shows_its_flows(pages, result):
    data = unpack(pages["run"])
    assert len(data["runs"][0]["flows"]) == len(result.measured_flows)
    assert "Two of each" in pages["run"]


def test_names_cannot_break_out_of_a_page():
    scenario = cwnd.Scenario.dumbbell(rate="1mbit", time="2s").add_flow("reno")
    document = scenario.to_dict() | {"title": "</script><script>alert(1)</script>&"}
    page = run_page(cwnd.run(cwnd.Scenario(document)))
    assert "<script>alert" not in page
    read(page)


def test_a_name_that_a_template_misses_is_an_error():
    with pytest.raises(jinja2.UndefinedError, match="summary"):
        render("run.html", title="A run")


def test_many_flows_are_drawn_in_part():
    scenario = cwnd.Scenario.dumbbell(rate="10mbit", time="3s").add_flow("reno", count=40)
    data = unpack(run_page(cwnd.run(scenario)))
    assert len(data["runs"][0]["flows"]) == 16
    assert data["runs"][0]["note"] == "16 of 40 flows"


def test_thinning_keeps_the_extremes():
    time = np.arange(10_000.0)
    series = np.sin(time / 50) + 0.001 * time
    series[1234], series[8765] = 99.0, -99.0
    t, x = thin(time, series, most=200)
    assert t.size <= 200
    assert (x.max(), x.min()) == (99.0, -99.0)
    assert (t[0], t[-1]) == (0.0, 9999.0)
    assert np.all(np.diff(t) > 0)


def test_a_badge_is_not_stronger_than_its_sentence():
    """Two seeds with a share of 0.56 ± 1.07 had a green badge."""
    share = estimate([0.475, 0.644], UNIT)
    wide, sure = estimate([1.0, 1.6]), estimate([0.5, 0.5])
    verdict = judge("simd", "reno", Figures(share, wide, sure, sure, 0.1, {}))
    card = render("card.html", verdict=verdict, shades={"simd": "#123456"})
    assert re.findall(r'<li class="(\w+)">([^<]*)</li>', card) == [
        ("undecided", "fairness undecided"),
        ("undecided", "smoothness undecided"),
        ("good", "less queue"),
    ]
    assert "undecided between" in card.lower()


def test_reports_are_written(comparison, result, tmp_path):
    comparison.report(tmp_path / "a.html")
    result.report(str(tmp_path / "b.html"))
    assert (tmp_path / "a.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert (tmp_path / "b.html").exists()


def test_the_page_of_a_run_draws_token_rates_and_tabulates_applications(tmp_path):
    from cwnd._show.chart_lines import limit_of
    from cwnd._show.sheets import application_sheet, link_sheet

    text = (
        "duration = '10s'\n[dumbbell]\nrate = '20mbit'\ndelay = '10ms'\n"
        "shaper = { rate = '4mbit', burst = '20kb' }\n"
        "[[flow]]\ncontroller = 'cubic'\nname = 'player'\n"
        "source = { kind = 'video', rates = ['1mbit', '2mbit'] }\n"
        "[[flow]]\ncontroller = 'cubic'\nname = 'call'\nsource = { kind = 'media' }\n"
    )
    result = cwnd.run(cwnd.Scenario.from_toml(text))
    document = result.to_json()
    assert set(limit_of(result.bottleneck)) == {4e6}
    assert link_sheet(document).rows[0][1] == "20 Mbit/s, tokens 4 Mbit/s"
    sheet = application_sheet(document)
    assert [title for title, _, _ in sheet.heads] == [
        *("flow", "startup", "stalls", "stalled", "frames", "late", "bitrate"),
    ]
    player, call = sheet.rows
    figures = document["flows"][0]["application"]
    assert player[:2] == ["player", f"{figures['startup_s']:.2f}"]
    assert player[-1] == f"{figures['mean_bitrate_bps'] / 1e6:.2f}"
    assert call[1:4] == ["–", "–", "–"]
    result.report(tmp_path / "run.html")
    assert "Applications" in (tmp_path / "run.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("column", [False, True])
def test_no_text_of_a_plot_is_clipped(comparison, result, column):
    """Legends with the names of controllers with parameters were wider than the figure."""
    scenario = cwnd.Scenario.dumbbell(rate="10mbit", time="2s")
    for i in range(6):
        scenario.add_flow(f"aimd(alpha=0.31, beta=1/{i + 2})")
    many = cwnd.run(scenario)
    arrivals = {"load": 0.5, "sizes": {"kind": "pareto", "mean": "30kb", "shape": 1.2}}
    scenario = cwnd.Scenario.dumbbell(rate="10mbit", time="4s", warmup="1s")
    transfers = cwnd.run(scenario.add_flow("reno", arrivals=arrivals))
    agreement = Agreement("many", {"sim": [many], "linux": [many]})
    names = [f"aimd(alpha=0.31, beta=1/{i + 2})" for i in range(6)]
    pairs = cwnd.compare(names, time="2s", repeat=2, pairs=True)
    figures = [each.plot(column=column) for each in (comparison, result, many, agreement, pairs)]
    for figure in (*figures, transfers.plot_transfers(column=column)):
        if column:
            assert figure.get_figwidth() == 3.5
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        whole = figure.bbox.padded(1)
        texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
        assert len(texts) > 20
        # Matplotlib does not draw the labels of ticks outside the axes.
        hidden = {
            label
            for axes in figure.axes
            for axis in (axes.xaxis, axes.yaxis)
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())
            for label in (tick.label1, tick.label2)
            if not min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval())
        }
        for text in set(texts) - hidden:
            box = text.get_window_extent(canvas.get_renderer())
            assert whole.x0 <= box.x0, text.get_text()
            assert box.x1 <= whole.x1, text.get_text()


def test_labels_of_pairs_do_not_overlap():
    names = [f"aimd(alpha=0.31, beta=1/{i + 2})" for i in range(6)]
    pairs = cwnd.compare(names, time="2s", repeat=2, pairs=True)
    for column in (False, True):
        figure = pairs.plot(column=column, panel="shares")
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        (axes,) = figure.axes
        for axis in (axes.xaxis, axes.yaxis):
            boxes = [
                each.get_window_extent(canvas.get_renderer()) for each in axis.get_ticklabels()
            ]
            assert not any(one.overlaps(other) for one, other in pairwise(boxes)), column


def test_a_panel_of_a_comparison(comparison):
    """The matrix has the share of each pair that was compared; the panels together are the plot."""
    every = [axes.get_title() for axes in comparison.plot().axes]
    panels = [comparison.plot(panel=panel) for panel in PANELS]
    titles = [[axes.get_title() for axes in each.axes] for each in panels]
    assert [title for each in (*titles[:2], *titles[3:]) for title in each] == every
    (matrix,) = panels[2].axes
    names = [label.get_text() for label in matrix.get_yticklabels()]
    cells = {text.get_position()[::-1]: text.get_text() for text in matrix.texts}
    assert cells == {
        (names.index(row), names.index(column)): f"{share.mean:.2f}"
        for (row, column), share in comparison.share_of.items()
    }
    with pytest.raises(ArgumentError, match="panel: 'windos' is not one of verdicts, delay, "):
        comparison.plot(panel="windos")


@pytest.mark.parametrize("kind", ["pdf", "png", "svg"])
def test_equal_figures_are_equal_files(kind, result, tmp_path, monkeypatch):
    files = []
    for time in ("1000000000", "1500000000"):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", time)
        result.plot().savefig(tmp_path / f"{time}.{kind}")
        files.append((tmp_path / f"{time}.{kind}").read_bytes())
    assert files[0] == files[1]


def test_a_column_has_small_text(result):
    assert result.plot(column=True).axes[0].xaxis.label.get_size() == 7
    assert result.plot().axes[0].xaxis.label.get_size() == 10


def test_repeated_runs_in_python_and_their_page(command, tmp_path, two):
    file = tmp_path / "two.toml"
    file.write_text(two)
    page = tmp_path / "page.html"
    words = ["run", file, "--set", "duration=8s", "--repeat", "3", "--report", page, "--json"]
    done = command(*words)
    assert done.stderr == f"report: {page}\n"
    document = json.loads(done.stdout)
    repeated = cwnd.run_repeated(file, 3, values={"duration": "8s"})
    assert repeated.to_json() == document
    assert repr(repeated) == "<3 runs of 'two' on sim>"
    again = tmp_path / "again.html"
    repeated.report(again)
    text = page.read_text(encoding="utf-8")
    assert again.read_text(encoding="utf-8") == text
    data = unpack(text)
    assert [run["seed"] for run in data["runs"]] == ["1", "2", "3"]
    jain, flow = document["metrics"]["jain"], document["flows"][0]["goodput_bps"]
    low, high = jain["interval"]
    assert f"{jain['mean']:.3f} ({low:.3f}–{high:.3f})" in text
    low, high = (end / 1e6 for end in flow["interval"])
    assert f"{flow['mean'] / 1e6:.2f}<small>{low:.2f}–{high:.2f}</small>" in text
    assert '<select id="seed">' in text
    scenario = cwnd.Scenario.from_toml(two)
    assert cwnd.run_repeated(scenario, 1, 7).rerun == ""
    with pytest.raises(ArgumentError, match="repeat: 0 is not a whole number above 0"):
        cwnd.run_repeated(scenario, 0)
