"""The instructions of a packet, compared with the expected ones.

    python bench/instructions.py              compare with instructions.json
    python bench/instructions.py --write      write instructions.json
    python bench/instructions.py --profile reno-ns2     print a profile of the release build

Fewer instructions than expected are a failure too, so that every gain is recorded.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import callgrind
import networks
from networks import Scenario
from stages import program
from tables import table

WRITTEN = Path(__file__).with_name("instructions.json")
MARGIN = 0.03
# Code of another compiler differs by more than the changes to be detected.
MARGIN_ELSEWHERE = 0.25
# The build of the tests. An incremental one counts up to 4 % more or less.
BUILD = (
    *("-p", "cwnd-py", "--features", "cwnd-py/tests", "--bin", "cwnd-bench"),
    "--config=profile.dev.incremental=false",
)
# Rows of a profile.
ROWS = 16
RED = {"kind": "red", "limit": "3125p", "mean_packet": 1000}


def dumbbell(rate: str, seconds: float, **rest: object) -> Scenario:
    """Return a dumbbell with access links and the default sampling interval."""
    return {
        "name": "dumbbell",
        "duration": seconds,
        "dumbbell": {"rate": rate, "delay": "40ms"},
        "access": {"rate": "10gbit", "delay": "1ms..2ms"},
        **rest,
    }


def reno(conventions: str) -> Scenario:
    """Return eight SACK flows through one RED queue, as in ``networks.Dumbbell``."""
    network = dumbbell(
        "100mbit",
        8,
        tcp={"conventions": conventions, "packet": 1000, "window": 100_000},
        flow=[{"controller": "reno", "count": 8, "stagger": "100ms"}],
    )
    network["dumbbell"]["queue"] = RED
    return network


def eight(controller: str, queue: str) -> Scenario:
    """Return eight flows of a controller through a queue of this kind at 100 Mb/s."""
    network = dumbbell(
        "100mbit", 8, flow=[{"controller": controller, "count": 8, "stagger": "100ms"}]
    )
    network["dumbbell"]["queue"] = queue
    return network


def controlled(spec: str, conventions: str) -> Scenario:
    """Return two seconds of the network of ``bench/run.py controllers``."""
    return {**networks.controlled(spec, conventions), "duration": 2}


FAST = dumbbell("1gbit", 2, flow=[{"controller": "cubic", "count": 100, "start": "0s..0.5s"}])
CBR = dumbbell("100mbit", 10, cbr=[{"rate": "20mbit", "count": 4}])
UDT = dumbbell("100mbit", 10, flow=[{"controller": "udt"}])

CASES: dict[str, tuple[Scenario, list[str]]] = {
    "reno-ns2": (reno("ns2"), []),
    "reno-ns2-sampled-once": (networks.sampled(reno("ns2"), "20s"), []),
    "reno-ns2-recorded": (reno("ns2"), ["--record"]),
    "reno-rfc5681": (reno("rfc5681"), []),
    "reno-rfc": (reno("rfc"), []),
    "cubic-100": (FAST, []),
    "cubic-100-sampled-once": (networks.sampled(FAST, "2s"), []),
    "udt": (UDT, []),
    "cbr": (CBR, []),
    "droptail-8": (eight("reno", "droptail"), []),
    "fq-codel-8": (eight("reno", "fq_codel"), []),
    "bbr3-8": (eight("bbr3", "droptail"), []),
    "reno-linux": (controlled("reno", "linux"), []),
    "bbr3-linux": (controlled("bbr3", "linux"), []),
    "bbr-rfc": (controlled("bbr", "rfc"), []),
    "many-1000": (networks.long_flows(1000, 1), []),
    "short-flows": (networks.short_flows(10_000), []),
}


def measure() -> dict[str, float]:
    """Count the instructions of a packet in every case, on all cores."""
    path = program(*BUILD)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        counts = {
            name: pool.submit(callgrind.count, scenario, *arguments, path=path)
            for name, (scenario, arguments) in CASES.items()
        }
    return {name: round(count.result().per_packet, 1) for name, count in counts.items()}


def compare(measured: dict[str, float]) -> bool:
    """Print the measured counts and their changes; return whether all are within the margin."""
    written = json.loads(WRITTEN.read_text(encoding="utf-8"))
    here = callgrind.compiler()
    same = here == written["compiler"]
    margin = MARGIN if same else MARGIN_ELSEWHERE
    if not same:
        print(f"counted with {here}, expected for {written['compiler']}: {margin:.0%} are allowed")
    agreed: bool = measured.keys() == written["per_packet"].keys()
    if not agreed:
        print(f"the cases differ from those of {WRITTEN.name}")
    for name, count in measured.items():
        before = written["per_packet"].get(name, count)
        change = count / before - 1
        within = abs(change) <= margin
        agreed = agreed and within
        remark = "" if within else "  <-- differs"
        print(f"  {name:24} {count:9,.1f} instructions a packet {change:+7.1%}{remark}")
    return agreed


def profile(name: str) -> None:
    """Print the instructions of a case by file and by function."""
    scenario, arguments = CASES[name]
    counts = callgrind.count(scenario, *arguments, path=program())
    print(f"{name}: {counts.per_packet:,.0f} instructions a packet")
    parts = {"File": callgrind.files(counts), "Function": callgrind.functions(counts)}
    for title, spent in parts.items():
        rows = [
            [place, f"{instructions / counts.packets:.0f}", f"{instructions / counts.total:.1%}"]
            for place, instructions in spent.most_common(ROWS)
        ]
        table(title, ("", "instructions a packet", "share"), rows)


def main() -> None:
    """Count, and compare, write or print a profile."""
    parser = argparse.ArgumentParser(description="The instructions of a packet.")
    parser.add_argument("--write", action="store_true", help=f"write {WRITTEN.name}")
    parser.add_argument("--profile", choices=CASES, metavar="CASE", help="print a profile")
    arguments = parser.parse_args()
    reason = callgrind.missing()
    if not reason and platform.machine() != "x86_64":
        reason = f"the expected counts are for x86_64, and this is {platform.machine()}"
    if reason:
        print(f"instructions are not counted: {reason}")
        return
    if arguments.profile:
        profile(arguments.profile)
        return
    measured = measure()
    if arguments.write:
        document = {"compiler": callgrind.compiler(), "per_packet": measured}
        WRITTEN.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    elif not compare(measured):
        sys.exit(
            "If the change is intended, run make instructions and explain it in the commit message"
        )


if __name__ == "__main__":
    main()
