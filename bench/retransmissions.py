"""Retransmissions of CUBIC over UDT compared with the kernel's CUBIC, over an emulated link.

    python bench/retransmissions.py [--runs 6] [--seconds 20]

100 Mb/s, 100 ms, a queue of one bandwidth-delay product and no random loss. In each run both send
for the same time, each over its own link. Needs root and iperf3.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tables import table
from udt import MissingError, Programs, free_port

RATE_MBIT = 100
LINK = ["--rate", f"{RATE_MBIT}mbit", "--delay", "50ms", "--queue", "1bdp"]
# Time from the start of a receiver to that of its sender.
START_S = 0.5
# Upper bound on the retransmissions, relative to the kernel's.
BOUND = 4 / 3


@dataclass(frozen=True)
class Outcome:
    """Retransmitted packets and the rate of a transfer."""

    retransmissions: int
    megabits: float


class Transfer:
    """A sender behind the emulated link and a receiver outside."""

    def __init__(self, receiver: list[object], sender: str, seed: int) -> None:
        cwnd = Path(sys.executable).parent / "cwnd"
        link = [cwnd, "emulate", *LINK, "--seed", seed, "--", "sh", "-c", sender]
        self.receiver = _start(receiver)
        time.sleep(START_S)
        self.sender = _start(link)

    def wait(self, timeout: float) -> str:
        """Wait for the sender to end; return its output."""
        try:
            text, errors = self.sender.communicate(timeout=timeout)
        finally:
            for process in (self.sender, self.receiver):
                process.kill()
                process.wait()
        if self.sender.returncode != 0:
            raise MissingError(f"the emulated link failed: {errors.strip()}")
        return text


def _start(command: list[object]) -> subprocess.Popen[str]:
    words = [str(word) for word in command]
    pipe = subprocess.PIPE
    return subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True)


def _kernel(programs: Programs, seconds: int, seed: int) -> Transfer:
    port = free_port()
    sender = f"{programs.iperf3} -c $CWND_PEER -p {port} -C cubic -t {seconds} -J"
    return Transfer([programs.iperf3, "-s", "-1", "-p", port], sender, seed)


def _cwnd(programs: Programs, seconds: int, seed: int) -> Transfer:
    port = free_port()
    megabytes = RATE_MBIT * seconds // 8
    sender = f"{programs.cwnd} send $CWND_PEER:{port} {megabytes} cubic"
    return Transfer([programs.cwnd, "recv", f"0.0.0.0:{port}"], sender, seed)


def _of_kernel(text: str) -> Outcome:
    end = json.loads(text)["end"]
    megabits = end["sum_received"]["bits_per_second"] / 1e6
    return Outcome(end["sum_sent"]["retransmits"], megabits)


def _of_cwnd(text: str) -> Outcome:
    match = re.search(r"send ([\d.]+) Gb/s.* (\d+) again", text)
    if match is None:
        raise RuntimeError(f"no retransmissions in {text!r}")
    return Outcome(int(match[2]), 1e3 * float(match[1]))


def compare(programs: Programs, runs: int, seconds: int) -> float:
    """Print retransmissions and rates of both; return the ratio of the medians."""
    outcomes: dict[str, list[Outcome]] = {"Linux, cubic": [], "cwnd, cubic over UDT": []}
    of_kernel, of_cwnd = outcomes.values()
    for seed in range(1, runs + 1):
        kernel, cwnd = _kernel(programs, seconds, seed), _cwnd(programs, seconds, seed)
        of_kernel.append(_of_kernel(kernel.wait(3 * seconds)))
        of_cwnd.append(_of_cwnd(cwnd.wait(3 * seconds)))
    medians = [
        statistics.median(run.retransmissions for run in of_one) for of_one in (of_kernel, of_cwnd)
    ]
    rows = []
    for (name, of_one), median in zip(outcomes.items(), medians, strict=True):
        counts = [run.retransmissions for run in of_one]
        spread = f"{min(counts)}..{max(counts)}"
        rate = statistics.median(run.megabits for run in of_one)
        rows.append([name, f"{median:.0f}", spread, f"{rate:.0f}"])
    table(
        f"100 Mb/s, 100 ms, a queue of 1 BDP: medians of {runs} runs of {seconds} s",
        ("", "retransmissions", "min..max", "Mb/s"),
        rows,
    )
    ratio = medians[1] / medians[0] if medians[0] else float("inf")
    print(f"retransmissions, cwnd to Linux: {ratio:.2f} (allowed: at most {BOUND:.2f})")
    return ratio


def main() -> None:
    """Compare both, and fail if cwnd exceeds the bound."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--seconds", type=int, default=20)
    options = parser.parse_args()
    if shutil.which("iperf3") is None:
        parser.error("iperf3 is not installed")
    with tempfile.TemporaryDirectory() as folder:
        ratio = compare(Programs(Path(folder)), options.runs, options.seconds)
    sys.exit(0 if ratio <= BOUND else 1)


if __name__ == "__main__":
    main()
