"""Goodput of each controller over emulated links, compared with the kernel's TCP.

    python bench/paths.py [--seconds 10] [--rounds 1] [--rate 20mbit] [--rtt 100ms] [--loss 1%]
                          [--kernel NAME] [SPEC ...]

Each cell is one `cwnd perf` through `cwnd emulate`, with a DropTail queue of one bandwidth-delay
product and random loss in each direction: the goodput in Mb/s over the whole test including
slow start, the median of the rounds, in which all controllers take turns. The best of cwnd's
controllers is in bold. The kernel's CUBIC and BBR use the same paths with iperf3; with several
rounds, a second table has the ratios of cwnd's controllers to those of the same name in the kernel.
The whole table takes about 25 minutes. Needs root. Without iperf3, or without a controller in the
kernel, its columns are omitted with a message.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tables import table

import cwnd.stats

if TYPE_CHECKING:
    from collections.abc import Iterator

PORT = 9119
START_S = 1.0
PATIENCE_S = 30.0
SPECS = (
    *("bbr3", "udt", "cubic", "reno", "simd", "scalable", "highspeed", "vegas", "tfrc", "daimd"),
)
KERNELS = ("cubic", "bbr")
RATES = ("20mbit", "100mbit")
RTTS = ("20ms", "100ms")
LOSSES = ("0%", "0.1%", "1%")
CWND = (sys.executable, "-m", "cwnd")


@dataclass(frozen=True)
class Case:
    """A link, in both directions."""

    rate: str
    rtt: str
    loss: str

    def __str__(self) -> str:
        rate, rtt = self.rate.replace("mbit", " Mb/s"), self.rtt.replace("ms", " ms")
        return f"{rate}, {rtt}, {self.loss.replace('%', ' %')}"

    def options(self, seed: int) -> list[str]:
        """Return the options of `cwnd emulate`."""
        delay = float(self.rtt.removesuffix("ms")) / 2
        loss = float(self.loss.removesuffix("%")) / 100
        return [
            f"--rate={self.rate}",
            f"--delay={delay:g}ms",
            "--queue=1bdp",
            f"--loss={loss:g}",
            f"--seed={seed}",
        ]


@contextmanager
def serving(command: list[str]) -> Iterator[None]:
    """Run a server during the tests."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        time.sleep(START_S)
        try:
            if server.poll() is not None:
                sys.exit(f"{' '.join(command)}: the server has ended")
            yield
        finally:
            server.terminate()


def behind(case: Case, seed: int, client: str, seconds: int) -> float:
    """Run a client behind the link; return its goodput in Mb/s, or NaN if the test failed."""
    command = [*CWND, "emulate", *case.options(seed), "--", "sh", "-c", f"exec {client}"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds + PATIENCE_S, check=False
        )
        document = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        return float("nan")
    if "end" not in document or "sum_received" not in document["end"]:
        print(f"{case}: {client}: {document.get('error')}", file=sys.stderr)
        return float("nan")
    return float(document["end"]["sum_received"]["bits_per_second"]) / 1e6


def rows(
    cases: list[Case], clients: dict[str, str], options: argparse.Namespace
) -> Iterator[dict[str, list[float]]]:
    """Measure all clients on each path, in turn in each round."""
    for case in cases:
        row: dict[str, list[float]] = {name: [] for name in clients}
        for seed in range(1, 1 + options.rounds):
            for name, client in clients.items():
                row[name].append(behind(case, seed, client, options.seconds))
                print(f"{case}: {name}: {row[name][-1]:.1f} Mb/s", file=sys.stderr, flush=True)
        yield row


def kernels(names: list[str]) -> list[str]:
    """Return the available controllers of the kernel; print a message for each other one."""
    if shutil.which("iperf3") is None:
        print("iperf3 is not installed: the kernel's TCP is omitted")
        return []
    path = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    known = path.read_text().split()
    for name in names:
        if name not in known:
            print(f"the kernel has no {name}, which is omitted")
    return [name for name in names if name in known]


def cells(measured: dict[str, list[float]], count: int) -> list[str]:
    """Format the medians of a row, with the best of the first `count` values in bold."""
    row = [statistics.median(values) for values in measured.values()]
    best = max((value for value in row[:count] if value == value), default=0.0)  # noqa: PLR0124
    return [
        f"**{value:.1f}**" if index < count and value == best else f"{value:.1f}"
        for index, value in enumerate(row)
    ]


def ratios(row: dict[str, list[float]], names: list[str]) -> Iterator[str]:
    """Format the ratios of controllers to those of the kernel, with 95 % intervals."""
    for name in names:
        found = cwnd.stats.estimate_ratio(row[name], row[f"kernel {name}"])
        yield f"{found.mean:.3f} [{found.low:.3f}, {found.high:.3f}]"


def main() -> None:
    """Measure the paths and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("specs", nargs="*", metavar="SPEC", default=SPECS)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--rate", action="append", help=f"of {', '.join(RATES)}; repeatable")
    parser.add_argument("--rtt", action="append", help=f"of {', '.join(RTTS)}; repeatable")
    parser.add_argument(
        "--loss", action="append", help=f"of {', '.join(LOSSES).replace('%', '%%')}; repeatable"
    )
    parser.add_argument(
        "--kernel", action="append", help=f"by default {', '.join(KERNELS)}; or none"
    )
    options = parser.parse_args()
    chosen = [options.rate or RATES, options.rtt or RTTS, options.loss or LOSSES]
    cases = [Case(*words) for words in itertools.product(*chosen)]
    kernel_names = kernels([name for name in options.kernel or KERNELS if name != "none"])
    common = f"$CWND_PEER --time {options.seconds}"
    perf = f"{' '.join(CWND)} perf"
    clients = {spec: f"{perf} -c {common} -p {PORT} -i 0 -J -C '{spec}'" for spec in options.specs}
    clients |= {
        f"kernel {name}": f"iperf3 -c {common} -p {PORT + 1} -J -C {name}" for name in kernel_names
    }
    print(f"Linux {platform.release()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    with serving([*CWND, "perf", "-s", "-p", str(PORT)]):
        if kernel_names:
            with serving(["iperf3", "-s", "-p", str(PORT + 1)]):
                measured = list(rows(cases, clients, options))
        else:
            measured = list(rows(cases, clients, options))
    lines = [
        [str(case), *cells(row, len(options.specs))]
        for case, row in zip(cases, measured, strict=True)
    ]
    title = f"Goodput in Mb/s over {options.seconds} s, queue of one BDP"
    table(title, ("rate, RTT, loss", *clients), lines)
    both = [name for name in options.specs if name in kernel_names]
    if both and options.rounds > 1:
        lines = [[str(case), *ratios(row, both)] for case, row in zip(cases, measured, strict=True)]
        title = f"Goodput, divided by the kernel's, {options.rounds} rounds, with 95 % intervals"
        table(title, ("rate, RTT, loss", *both), lines)


if __name__ == "__main__":
    main()
