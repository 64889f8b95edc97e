"""Retransmissions of CUBIC over UDT beside the kernel's CUBIC, through an emulated link.

    python bench/retransmissions.py [--runs 6] [--seconds 20]

100 Mb/s, 100 ms, a queue of one bandwidth-delay product and no random loss. In each run both send
for as long, each over a link of its own. Needs root, as `cwnd emulate` does, and iperf3.
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
# What a receiver has to be there before its sender starts.
START_S = 0.5
# The most retransmissions, as a multiple of the kernel's.
WANTED = 4 / 3


@dataclass(frozen=True)
class Outcome:
    """Retransmitted packets and the rate of a transfer."""

    again: int
    megabits: float


class Transfer:
    """A sender behind the emulated link and a receiver in front of it."""

    def __init__(self, receiver: list[object], sender: str, seed: int) -> None:
        cwnd = Path(sys.executable).parent / "cwnd"
        link = [cwnd, "emulate", *LINK, "--seed", seed, "--", "sh", "-c", sender]
        self.receiver = _start(receiver)
        time.sleep(START_S)
        self.sender = _start(link)

    def wait(self, patience: float) -> str:
        """Wait for the sender to end and return what it printed."""
        try:
            text, errors = self.sender.communicate(timeout=patience)
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
    """Print retransmissions and rates of both, and return the ratio of the medians."""
    outcomes: dict[str, list[Outcome]] = {"Linux, cubic": [], "cwnd, cubic over UDT": []}
    kernels, ours = outcomes.values()
    for seed in range(1, runs + 1):
        kernel, cwnd = _kernel(programs, seconds, seed), _cwnd(programs, seconds, seed)
        kernels.append(_of_kernel(kernel.wait(3 * seconds)))
        ours.append(_of_cwnd(cwnd.wait(3 * seconds)))
    medians = [statistics.median(run.again for run in of_one) for of_one in (kernels, ours)]
    rows = []
    for (name, of_one), median in zip(outcomes.items(), medians, strict=True):
        spread = f"{min(run.again for run in of_one)}..{max(run.again for run in of_one)}"
        rate = statistics.median(run.megabits for run in of_one)
        rows.append([name, f"{median:.0f}", spread, f"{rate:.0f}"])
    table(
        f"100 Mb/s, 100 ms, a queue of 1 BDP: medians of {runs} runs of {seconds} s",
        ("", "retransmissions", "least..most", "Mb/s"),
        rows,
    )
    ratio = medians[1] / medians[0] if medians[0] else float("inf")
    print(f"retransmissions, cwnd to Linux: {ratio:.2f} (wanted: at most {WANTED:.2f})")
    return ratio


def main() -> None:
    """Compare both and fail if cwnd retransmits too much."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--seconds", type=int, default=20)
    options = parser.parse_args()
    if shutil.which("iperf3") is None:
        parser.error("iperf3 is not installed")
    with tempfile.TemporaryDirectory() as folder:
        ratio = compare(Programs(Path(folder)), options.runs, options.seconds)
    sys.exit(0 if ratio <= WANTED else 1)


if __name__ == "__main__":
    main()
