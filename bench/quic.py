"""Rate and processor time of cwnd's controllers in noq and quinn, beside the stacks' own.

    python bench/quic.py [--rounds 5] [PROGRAM]

Each transfer moves a gigabyte over loopback, with TLS and both ends in one process: the example
`rate` of `crates/cwnd-quic-net`. Medians over rounds in which the controllers alternate.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess

from tables import table

STACKS = ("noq", "quinn")
CONTROLLERS = ("cubic", "reno")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("program", nargs="?", default="target/release/examples/rate")
    options = parser.parse_args()
    cases = [
        (stack, owner + name) for stack in STACKS for name in CONTROLLERS for owner in ("own:", "")
    ]
    measured: dict[tuple[str, str], list[tuple[float, float]]] = {case: [] for case in cases}
    for _ in range(options.rounds):
        for case in cases:
            measured[case].append(_transfer(options.program, *case))
    rows = []
    for stack in STACKS:
        for name in CONTROLLERS:
            (own_rate, own_time), (rate, time) = (
                [statistics.median(values) for values in zip(*measured[stack, spec], strict=True)]
                for spec in (f"own:{name}", name)
            )
            times = [f"{own_time:.2f} s", f"{time:.2f} s", f"{100 * (time / own_time - 1):+.1f} %"]
            rows.append([stack, name, *times, f"{own_rate:.2f}", f"{rate:.2f}"])
    heads = ["stack", "controller", "own: processor time", "cwnd's", "", "own: Gb/s", "cwnd's"]
    table(f"1 GB over loopback, medians of {options.rounds} rounds", heads, rows)


def _transfer(program: str, stack: str, controller: str) -> tuple[float, float]:
    """Return the rate in Gb/s and the processor time in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([program, stack, controller], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return float(done.stdout), busy


if __name__ == "__main__":
    main()
