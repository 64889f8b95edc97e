"""Every page that cwnd writes, in headless Chromium."""

from __future__ import annotations

import itertools
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from functools import cache
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pandas as pd
import pyarrow as pa
import pytest
import tomli_w

import cwnd
import cwnd._runs.real_time
from cwnd import _native
from cwnd._papers.report import write_report
from cwnd._papers.runner import reproduce
from cwnd._runs.fork import fork_run
from cwnd._show.report.evaluate import cards_page
from cwnd._sweeps.manifest import add_part

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]

# Chromium reads commands from descriptor 3 and writes answers to descriptor 4.
LAUNCHER = """
import os, sys
os.dup2(int(sys.argv[1]), 103), os.dup2(int(sys.argv[2]), 104)
os.dup2(103, 3), os.dup2(104, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """Headless Chromium, driven by its DevTools protocol over two pipes."""

    def __init__(self, profile: Path) -> None:
        read, self._send = os.pipe()
        self._receive, write = os.pipe()
        options = ["--headless=new", "--no-sandbox", "--remote-debugging-pipe"]
        options += ["--enable-unsafe-swiftshader", f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-ISc", LAUNCHER, str(read), str(write), CHROMIUM, *options],
            pass_fds=(read, write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(read)
        os.close(write)
        self._numbers, self._rest = itertools.count(1), b""
        self._session: str | None = None
        self.events: list[dict] = []

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._send)
        os.close(self._receive)

    def open(self, address: str, downloads: Path | None = None) -> None:
        """Load a page in a new tab of its own, and permit downloads to a folder."""
        self._session = None
        if downloads is not None:
            where = {"behavior": "allow", "downloadPath": str(downloads)}
            self.call("Browser.setDownloadBehavior", **where)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self.events.clear()
        for domain in ("Log", "Network", "Page", "Runtime"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=address)
        self.wait_until("document.readyState === 'complete'")

    def call(self, method: str, **parameters):
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        message |= {} if self._session is None else {"sessionId": self._session}
        os.write(self._send, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != number:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def _read(self) -> dict:
        while b"\0" not in self._rest:
            assert select.select([self._receive], [], [], 60)[0], "Chromium does not answer"
            more = os.read(self._receive, 1 << 20)
            assert more, "Chromium ended"
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\0")
        return json.loads(line)

    def evaluate(self, script: str):
        found = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait_until(self, condition: str) -> None:
        end = time.monotonic() + 30
        while not self.evaluate(condition):
            assert time.monotonic() < end, condition
            time.sleep(0.05)

    def complaints(self) -> list:
        """Return what the console says: violations of the policy, warnings and exceptions."""
        told = {"Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"}
        return [
            event["params"]
            for event in self.events
            # The driver of WebGL tells of slow operations.
            if event["method"] in told
            and event["params"].get("entry", {}).get("source") != "rendering"
        ]

    def requested(self) -> list[str]:
        """Return the addresses that the page requested."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event["method"] == "Network.requestWillBeSent"
        ]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    made = Browser(tmp_path_factory.mktemp("profile"))
    yield made
    made.close()


class Handler(SimpleHTTPRequestHandler):
    """Serves the pages, and counts the requests."""

    def do_GET(self) -> None:
        if self.path == "/favicon.ico":
            self.send_response(204)
            self.end_headers()
            return
        self.server.asked.append(self.path)
        super().do_GET()

    def log_message(self, *_) -> None:
        pass


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("pages")
    made = ThreadingHTTPServer(
        ("127.0.0.1", 0), lambda *of: Handler(*of, directory=home), bind_and_activate=True
    )
    made.home, made.asked = home, []
    Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture(scope="module")
def evil(server):
    """Text that loads an address if a page, or Plotly, takes it for HTML."""
    where = f"http://127.0.0.1:{server.server_port}"
    return (
        f'<span style="cursor:url({where}/a);background:url({where}/b)">x</span>'
        f'<img src={where}/c onerror="fetch(`{where}/d`)">'
        f'</script><script>fetch("{where}/e")</script><a href="{where}/f">&amp;</a>'
    )


def make_sweep(home, evil):
    """Make the data set of a stranger."""
    values, other, controllers = [f"red{evil}", "droptail"], ["20ms", f"b{evil}"], ["reno", evil]
    rows = [
        (point, *places, controller, seed, None, seed / 4, 1e6 * seed, 0.5)
        for point, places in enumerate(itertools.product(values, other))
        for controller in controllers
        for seed in (1, 2, 3)
    ]
    names = ["point", f"queue{evil}", "rtt", "controller", "seed", "error"]
    frame = pd.DataFrame(rows, columns=[*names, "jain", "goodput_bps", "wall_s"])
    frame["tcp_conventions"] = "linux"
    frame.loc[0, "error"] = evil
    home.mkdir()
    add_part(home, 1, "0" * 16, {"runs": pa.Table.from_pandas(frame)}, {})
    plan = {"base": {"time": "10s"}, "axes": {f"queue{evil}": values, "rtt": other}}
    (home / "plan.toml").write_text(tomli_w.dumps(plan | {"controllers": ["reno"], "x": evil}))
    return home


LAW = """law own "own EVIL"
source "a paper EVIL"
deviation "one EVIL"
parameter kept = 1/2 in (0, 1) "part of the window EVIL"
state cuts = 0 "reductions EVIL"

on grow:
    return w + acked / w

on cut:
    cuts = cuts + 1
    return kept * w if w > 4 and cuts < 1000 else w / 2
"""


def law_of(path, evil):
    """Write a law whose texts are a stranger's, and return its name."""
    file = path.with_suffix(".law")
    file.write_text(LAW.replace("EVIL", evil.replace('"', "'")), encoding="utf-8")
    return str(file)


def scenario_of(evil, controller="reno"):
    flow = {"controller": controller}
    flows = [flow | {"name": "pair", "count": 2}, flow | {"name": "other"}]
    flows.append(flow | {"name": "short", "arrivals": {"rate": 5, "sizes": "20kb"}})
    dumbbell = {"rate": "5mbit", "delay": "10ms"}
    document = {"name": "few", "title": f"title{evil}", "duration": "4s", "warmup": "1s"}
    return cwnd.Scenario(document | {"dumbbell": dumbbell, "flow": flows})


def spoil(results, evil):
    """Put text into names, which scenarios do not permit."""
    for result in results:
        for each in (*result.record["flows"], *result.record["links"]):
            each["name"] += evil


def write_run(path, evil):
    result = cwnd.run(scenario_of(evil, law_of(path, evil)))
    spoil([result], evil)
    result.report(path)


def write_fork(path, evil):
    law = law_of(path, evil)
    fork = fork_run(scenario_of(evil, law), "2s", {"dumbbell.rate": "2mbit"})
    fork.values = {f"dumbbell.rate{evil}": "2mbit"}
    spoil([fork.unchanged, fork.changed], evil)
    fork.report(path)


def write_compare(path, evil):
    comparison = cwnd.compare([law_of(path, evil)], network=scenario_of(evil), repeat=2)
    spoil(comparison.results, evil)
    comparison.report(path)


def write_agree(path, evil):
    def run_real(scenario, seed, on, progress):
        (record,) = _native.simulate([(scenario, seed)])
        return {"record": record | {"notes": [f"note{evil}"]}, "limit": None}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_native, "run_real", run_real)
        patch.setattr(_native, "check_real", lambda *_: None)
        patch.setattr(cwnd._runs.real_time, "emulates", lambda: None)
        agreement = cwnd.agree(scenario_of(evil, law_of(path, evil)), on=["sim", "linux"], repeat=2)
    spoil(agreement.runs, evil)
    agreement.report(path)


def write_sweep(path, evil):
    cwnd.Sweep(make_sweep(path.with_suffix(".data"), evil)).report(path)


def card_of(path, evil):
    """Evaluate a controller, and put text into all that a card takes from elsewhere."""
    (made,) = cwnd.evaluate(
        [law_of(path, evil)], test="bursts", quick=True, out=path.with_suffix(".runs")
    )
    results = tuple(
        replace(one, cells=tuple(replace(c, label=evil, failures=(evil,)) for c in one.cells))
        for one in made.results
    )
    found = replace(weakness(), controller=evil, files=(Path(f"{evil}.toml"),))
    return replace(made, controller=evil, specification=evil, results=results, found=found)


def write_card(path, evil):
    card_of(path, evil).report(path)


def write_cards(path, evil):
    card = card_of(path, evil)
    path.write_text(cards_page([card, card], [f"{evil}.html", "card.html"]), encoding="utf-8")


@cache
def weakness():
    """Search in a small space; it has one finding."""
    bounds = {"rate": {"from": "1mbit", "to": "4mbit"}, "loss": {"from": 0.03, "to": 0.06}}
    return cwnd.search("reno", against="bbr", bounds={"axes": bounds}, budget="80runs", findings=1)


def write_search(path, evil):
    """Put text into all that a page of a search takes from elsewhere."""
    found = weakness()
    [finding] = found.findings
    replace(found, against=evil, findings=(replace(finding, errors=(evil,)),)).report(path)


def write_reproduction(path, evil):
    """Write the page from stored results of a stranger."""
    document = reproduce(["simd"], exhibit="fig-3", quick=True, out=path.with_suffix(""))
    for exhibit in document["papers"][0]["exhibits"]:
        exhibit["title"] += evil
        exhibit["scenario"] |= {"toml": evil, "varied": evil, "inferred": [evil]}
        for each in (*exhibit["claims"], *exhibit["figures"], *exhibit["tables"]):
            each["text" if "text" in each else "title"] += evil
    write_report(document, path.with_suffix(""), quick=True)
    path.with_suffix("").joinpath("index.html").rename(path)
    shutil.copytree(path.with_suffix("") / "figures", path.parent / "figures")


PAGES = {
    "run": write_run,
    "fork": write_fork,
    "compare": write_compare,
    "agree": write_agree,
    "sweep": write_sweep,
    "card": write_card,
    "cards": write_cards,
    "search": write_search,
    "reproduce": write_reproduction,
}


DRAWN = """[...document.querySelectorAll(".plot")].every(
    (plot) => !plot.classList.contains("loading") && plot.querySelector(".main-svg"))"""

# Move the pointer over every panel. Each plot ignores moves that follow another within 50 ms.
HOVER = """Promise.all([...document.querySelectorAll(".plot")].map(async (plot) => {
    for (const panel of plot.querySelectorAll(".nsewdrag")) {
        const { left, top, width, height } = panel.getBoundingClientRect();
        for (const part of [0.1, 0.5, 0.9]) {
            const [clientX, clientY] = [left + part * width, top + part * height];
            panel.dispatchEvent(new MouseEvent("mousemove", { bubbles: true, clientX, clientY }));
            await new Promise((done) => setTimeout(done, 60));
        }
    }
})).then(() => {})"""

# Choose everything that can be chosen.
CHOOSE = """for (const select of document.querySelectorAll("select")) {
    for (const option of select.options) {
        select.value = option.value;
        select.dispatchEvent(new Event("change"));
    }
}
for (const button of document.querySelectorAll(".switch button, .sorts")) button.click();"""


def check(browser, server, page, address):
    """Check that a page said nothing on the console, and requested only itself and its figures."""
    browser.evaluate("new Promise((done) => setTimeout(done, 300))")
    assert browser.complaints() == []
    own = {f"/{page.name}", *(f"/figures/{file.name}" for file in page.parent.glob("figures/*"))}
    assert set(server.asked) <= own
    home = address.removesuffix(page.name)
    foreign = [url for url in browser.requested() if not url.startswith((home, "blob:", "data:"))]
    assert foreign == []


@pytest.mark.parametrize("name", [*PAGES, "reproduce by http"])
def test_a_page_works_and_loads_nothing_for_a_stranger(name, server, evil, browser):
    kind, _, by_http = name.partition(" ")
    page = server.home / f"{kind}.html"
    if not page.exists():
        PAGES[kind](page, evil)
    address = f"http://127.0.0.1:{server.server_port}/{page.name}" if by_http else page.as_uri()
    server.asked.clear()
    browser.open(address)
    browser.wait_until(DRAWN)
    for script in (HOVER, CHOOSE, HOVER):
        browser.evaluate(script)
    browser.evaluate("for (const image of document.images) image.loading = 'eager'")
    browser.wait_until("[...document.images].every((image) => image.naturalWidth > 0)")
    check(browser, server, page, address)
    if kind in ("run", "fork", "compare", "agree", "card"):
        parts = "[...document.querySelector('.law mfrac').children]"
        places = browser.evaluate(f"{parts}.map((one) => one.getBoundingClientRect().top)")
        assert places[0] + 5 < places[1]
        assert "<span style" in browser.evaluate("document.querySelector('.law dl').textContent")
    # The text is shown as it is, also by Plotly.
    place = ".plot" if browser.evaluate("document.querySelector('.plot') !== null") else "body"
    texts = f"[...document.querySelectorAll('{place}')].map((one) => one.textContent).join('')"
    assert "<span style" in browser.evaluate(texts)


WIDE = """[...document.querySelectorAll("h1, h2, p, dl, input, select, button, .plot")]
    .filter((one) => one.closest(".scroll") === null)
    .filter((one) => one.getBoundingClientRect().right > innerWidth - 8)
    .map((one) => one.outerHTML.slice(0, 100))"""


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_phone(name, server, browser, tmp_path):
    page = tmp_path / f"{name}.html"
    PAGES[name](page, "-x")
    browser.open("about:blank")
    size = {"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.call("Emulation.setDeviceMetricsOverride", **size)
    browser.call("Page.navigate", url=page.as_uri())
    browser.wait_until("document.readyState === 'complete' && location.protocol === 'file:'")
    browser.wait_until(DRAWN)
    assert browser.evaluate(WIDE) == []


def test_plots_are_saved(server, browser, tmp_path):
    write_run(page := server.home / "saved.html", "<b>")
    server.asked.clear()
    browser.open(page.as_uri(), downloads=tmp_path)
    browser.wait_until(DRAWN)
    buttons = "[...document.querySelectorAll('#run + .tools button')]"
    browser.evaluate(f"for (const button of {buttons}) button.click()")
    end = time.monotonic() + 30
    while {file.suffix for file in tmp_path.iterdir()} != {".png", ".csv"}:
        assert time.monotonic() < end, list(tmp_path.iterdir())
        time.sleep(0.05)
    check(browser, server, page, page.as_uri())


def test_many_points_are_drawn_with_webgl(server, browser):
    rows = [(n, n / 2000, "reno", 1, None, n / 2000, 0.5) for n in range(2000)]
    names = ["latin_point", "flow[0].load", "controller", "seed", "error", "jain", "wall_s"]
    home = server.home / "many"
    home.mkdir()
    frame = pd.DataFrame(rows, columns=names).assign(tcp_conventions="linux")
    add_part(home, 1, "0" * 16, {"runs": pa.Table.from_pandas(frame)}, {})
    axes = {"flow[0].load": {"from": 0, "to": 1}}
    plan = {"base": "x.toml", "axes": axes, "latin": {"points": 2000}, "controllers": ["reno"]}
    (home / "plan.toml").write_text(tomli_w.dumps(plan))
    cwnd.Sweep(home).report(page := server.home / "many.html")
    server.asked.clear()
    browser.open(page.as_uri())
    browser.wait_until(DRAWN)
    browser.wait_until("document.querySelector('.gl-canvas') !== null")
    check(browser, server, page, page.as_uri())
