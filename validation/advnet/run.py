"""Run AdvNet's published networks, and compare the capacity that a controller lost with Linux's.

    .venv/bin/python validation/advnet/run.py CHECKOUT    # of github.com/Dariwala/AdvNet, 10 s

`patterns/bbr_2` and `patterns/vegas_2` have a network a line, as seven integers, and the part of
the capacity that Linux's TCP lost there, measured with mahimahi. A network has two phases, each
with a rate (in 500 kbit/s), a delay (in ms, each way) and a duration (in 50 ms), and a queue (in
100 packets): see `single_cc/convert.py` and `utils/generate_*_trace.py` there. A network with
several measurements counts with their median. Both directions have the same trace.

mahimahi begins the trace of each direction with a process of its own, and the time between them is
not recorded. It decides whether an acknowledgement finds the next opportunity of the way back, and
is simulated from 0 to 5 ms.
"""

from __future__ import annotations

import ast
import csv
import statistics
import sys
from pathlib import Path

import numpy as np

import cwnd

HERE = Path(__file__).parent
CONTROLLERS = {"bbr_2": "bbr", "vegas_2": str(HERE / "vegas-linux.law")}
OFFSETS_MS = range(6)
PACKET, DELIVERED = 1500, 1504
"""Bytes that AdvNet counts for an opportunity, and that mahimahi logs for a packet."""

Network = tuple[int, ...]


def read_networks(file: Path) -> dict[Network, list[float]]:
    """Return the measured losses of capacity by network."""
    found: dict[Network, list[float]] = {}
    for line in file.read_text("utf-8").splitlines():
        network, end, loss = line.partition("]")
        found.setdefault(tuple(ast.literal_eval(network + end)), []).append(float(loss))
    return found


def opportunities(network: Network) -> list[int]:
    """Return the times in ms at which a packet of 1500 bytes may leave."""
    times, begin = [], 0.0
    for rate, duration in zip(network[:2], network[4:6], strict=True):
        end, step = begin + 50 * duration, 12 * 1000 / (500 * rate)
        while begin + step <= end:
            begin += step
            times.append(round(begin))
        begin = end
    return times


def lost_capacity(network: Network, controller: str, offset: int) -> float:
    """Return the part of the capacity that a flow does not use.

    Parameters
    ----------
    network
        AdvNet's seven integers.
    controller
        The controller of the flow.
    offset
        Milliseconds by which the trace of the acknowledgements begins later.
    """
    times = opportunities(network)
    last = times[-1]
    # The trace repeats, so that its end is before its beginning.
    back = sorted((time + offset - 1) % last + 1 for time in times)
    back[-1] = last
    delays = [network[2]] * (5 * network[4]) + [network[3]] * (5 * network[5])
    duration = 50 * sum(network[4:6])
    scenario = cwnd.Scenario(
        {
            "name": "advnet",
            "duration": f"{duration}ms",
            "tcp": {"conventions": "linux"},
            "dumbbell": {
                "trace": {"rate": times, "delay": delays},
                "queue": f"{100 * network[6]}p",
                # An unlimited queue, as mahimahi's by default.
                "back": {"trace": {"rate": back, "delay": delays}, "queue": "100000p"},
            },
            "flow": [{"controller": controller}],
        }
    )
    (forward, _) = cwnd.run(scenario).record["links"]
    rounds, rest = divmod(duration, last)
    capacity = PACKET * (rounds * len(times) + sum(time <= rest for time in times))
    return 1 - DELIVERED * forward["departures"] / capacity


def main(checkout: Path) -> None:
    """Compare both sets of networks; write `results.csv` beside this file."""
    rows = []
    for name, controller in CONTROLLERS.items():
        networks = read_networks(checkout / "patterns" / name)
        measured = np.array([statistics.median(each) for each in networks.values()])
        runs = np.array(
            [[lost_capacity(each, controller, ms) for each in networks] for ms in OFFSETS_MS]
        )
        cases = {f"{ms} ms": runs[ms] for ms in OFFSETS_MS} | {"mean": runs.mean(axis=0)}
        for offset, simulated in cases.items():
            difference = np.abs(simulated - measured)
            figures = {
                "correlation": np.corrcoef(simulated, measured)[0, 1],
                "mean difference": difference.mean(),
                "largest difference": difference.max(),
                "networks off by more than 0.2": np.sum(difference > 0.2),
            }
            rows.append(
                {"patterns": name, "networks": len(networks), "offset": offset}
                | {key: f"{value:.4g}" for key, value in figures.items()}
            )
            print(*rows[-1].values(), sep="\t")
        outside = np.abs(np.clip(measured, runs.min(axis=0), runs.max(axis=0)) - measured)
        print(f"{name}: {np.sum(outside <= 0.1)} within 0.1 of the simulated range, all within")
        print(f"  {outside.max():.2f}; the networks with the largest difference from the mean:")
        difference = np.abs(cases["mean"] - measured)
        for place in np.argsort(-difference)[:8]:
            shown = " ".join(f"{loss:.2f}" for loss in runs[:, place])
            network = list(networks)[place]
            print(f"  {list(network)}: measured {measured[place]:.2f}, simulated {shown}")
    with (HERE / "results.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    if len(sys.argv) != 2 or not (Path(sys.argv[1]) / "patterns").is_dir():
        sys.exit("usage: validation/advnet/run.py CHECKOUT, a folder with AdvNet's patterns")
    main(Path(sys.argv[1]))
