"""Run the dumbbell in ns-3 for every case and seed, and write one JSON file for each group.

    make ns3                                               # all, half an hour of one core
    python3 validation/ns3/run.py target/ns3/dumbbell pie  # the groups named

A file has a list of cases: the parameters, which are the options of `dumbbell.cc`, and the results
of each seed.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SEEDS = range(1, 11)
RESULTS = Path(__file__).parent / "results"

Parameters = dict[str, Any]

# 20 to 80 ms: flows of equal round-trip time lock in phase behind FQ-CoDel.
LOW = {"rate": 10e6, "duration": 40, "warmup": 10}
SPREAD = {"rtt_min": 0.020, "rtt_max": 0.075}
# Networks in which CUBIC's window follows the cubic function: ns-3's TcpCubic has no Reno-friendly
# region.
CUBIC_2 = {"law": "cubic", "flows": 2, "rate": 50e6, "rtt_min": 0.080, "rtt_max": 0.090}
# The flows that overshoot in slow start reach their old window together, seconds later.
CUBIC_8 = {"law": "cubic", "flows": 8, "rate": 40e6, "rtt_min": 0.150, "rtt_max": 0.165}
CUBIC_8_TIMES = {"duration": 100, "warmup": 40}
LONG = {"law": "cubic", "queue": "droptail", "rate": 10e6, "duration": 120, "warmup": 20}

# A data centre: marks above 20 packets, and room for any queue that remains.
STEP = {"law": "dctcp", "queue": "step", "ecn": True, "threshold": 20, "limit": 1000}
NEAR = {"rate": 100e6, "rtt_min": 0.002, "rtt_max": 0.004, "duration": 15, "warmup": 5}
FAR = {"rate": 50e6, "rtt_min": 0.020, "rtt_max": 0.030, "duration": 40, "warmup": 20}
# One flow, and a queue with room for slow start: after many losses in one window, ns-3's TcpBbr
# remains at a fraction of the rate.
BBR = {"law": "bbr", "queue": "droptail", **LOW, "rtt_min": 0.040, "rtt_max": 0.060}
# The networks of laws in files. Windows are above 15 packets, below which Illinois is Reno.
LAW = {"queue": "droptail", "rtt_min": 0.095, "rtt_max": 0.095, "duration": 100, "warmup": 20}


def law(name: str) -> dict[str, Parameters]:
    """Return the cases of the law in `laws/NAME.law`."""
    cases = {
        "droptail-1": {"flows": 1, "rate": 10e6, "limit": 83},
        "droptail-1-50mbit": {"flows": 1, "rate": 50e6, "limit": 208},
        "droptail-4": {"flows": 4, "rate": 40e6, "limit": 300, "rtt_min": 0.080, "rtt_max": 0.100},
        "codel-2": {"flows": 2, "rate": 50e6, "limit": 1000, "queue": "codel"},
        "loss-0.1%": {"flows": 1, "rate": 10e6, "limit": 1000, "loss": 0.001},
        "loss-0.3%": {"flows": 1, "rate": 20e6, "limit": 1000, "loss": 0.003, "rtt_min": 0.050},
    }
    return {case: {"law": name, **LAW, **parameters} for case, parameters in cases.items()}


def discipline(queue: str, limit: int, duration: int) -> dict[str, Parameters]:
    """Return the cases of one queue discipline, whose fast networks run for `duration` seconds."""
    fast = {"duration": duration, "warmup": 10}
    ecn = {"ecn": True}
    if queue == "pie":
        # With de-randomisation ns-3 marks every packet after some time: it resets the sum of
        # probabilities at drops, but not at marks.
        ecn["derandomize"] = False
    cases = {
        "reno-2-10mbit": {"flows": 2, **LOW, "rtt_min": 0.040, "rtt_max": 0.060},
        "reno-8-10mbit": {"flows": 8, **LOW, **SPREAD},
        "reno-2-cbr-10mbit": {"flows": 2, **LOW, "rtt_min": 0.040, "rtt_max": 0.060, "cbr": 3e6},
        "reno-2-ecn-10mbit": {"flows": 2, **LOW, "rtt_min": 0.040, "rtt_max": 0.060, **ecn},
        "reno-8-50mbit": {"flows": 8, **LOW, **SPREAD, "rate": 50e6, **fast},
        "cubic-2-50mbit": {**CUBIC_2, **fast},
        "cubic-8-40mbit": {**CUBIC_8, **CUBIC_8_TIMES},
    }
    return {
        name: {"queue": queue, "limit": limit, **parameters} for name, parameters in cases.items()
    }


def recovery(name: str) -> dict[str, Parameters]:
    """Return the cases of one kind of loss recovery: DropTail of one BDP, and random loss."""
    common = {"recovery": name, "queue": "droptail", **LOW, "rtt_min": 0.040, "rtt_max": 0.060}
    cases = {
        "droptail-1": {"flows": 1, "limit": 35},
        "droptail-4": {"flows": 4, "limit": 45},
        "loss-0.2%": {"flows": 1, "limit": 1000, "loss": 0.002},
        "loss-1%": {"flows": 1, "limit": 1000, "loss": 0.01},
        "loss-3%": {"flows": 1, "limit": 1000, "loss": 0.03},
    }
    return {case: {**common, **parameters} for case, parameters in cases.items()}


GROUPS: dict[str, dict[str, Parameters]] = {
    "codel": discipline("codel", 1000, 40),
    "fq_codel": discipline("fq_codel", 10240, 25),
    "pie": discipline("pie", 1000, 25),
    "sack": recovery("sack"),
    "prr": recovery("prr"),
    "cubic": {
        "droptail-1": {"flows": 1, **LONG, "rtt_min": 0.200, "rtt_max": 0.200, "limit": 168},
        "droptail-2": {"flows": 2, **LONG, "rtt_min": 0.180, "rtt_max": 0.200, "limit": 160},
        "loss-0.1%": {
            "flows": 1,
            **LONG,
            "rtt_min": 0.200,
            "rtt_max": 0.200,
            "limit": 1000,
            "loss": 0.001,
        },
        "loss-0.02%": {
            "flows": 1,
            **LONG,
            "rtt_min": 0.200,
            "rtt_max": 0.200,
            "limit": 1000,
            "loss": 0.0002,
        },
    },
    "illinois": law("illinois"),
    "hybla": law("hybla"),
    "dctcp": {
        "near-2": {"flows": 2, **STEP, **NEAR},
        "near-8": {"flows": 8, **STEP, **NEAR},
        "far-2": {"flows": 2, **STEP, **FAR},
        "far-8": {"flows": 8, **STEP, **FAR},
    },
    "bbr": {
        "droptail-1": {"flows": 1, **BBR, "limit": 90},
        "droptail-1-50mbit": {"flows": 1, **BBR, "rate": 50e6, "limit": 450},
        "droptail-1-150ms": {"flows": 1, **BBR, "rtt_min": 0.150, "rtt_max": 0.150, "limit": 270},
        "loss-0.02%": {"flows": 1, **BBR, "limit": 1000, "loss": 0.0002},
        "loss-0.1%": {"flows": 1, **BBR, "limit": 1000, "loss": 0.001},
    },
}


def run(program: Path, parameters: Parameters, seed: int) -> dict[str, object]:
    """Run one case with one seed."""
    words = [
        f"--{key}={int(value) if isinstance(value, bool) else value}"
        for key, value in parameters.items()
    ]
    result = subprocess.run(
        [program, f"--seed={seed}", *words], check=True, capture_output=True, text=True
    )
    values: dict[str, object] = json.loads(result.stdout)
    return values


def main(program: str, *groups: str) -> None:
    """Write the results of the groups, or of all."""
    RESULTS.mkdir(exist_ok=True)
    for group in groups or GROUPS:
        cases = []
        for name, parameters in GROUPS[group].items():
            began = time.monotonic()
            runs = [json.dumps(run(Path(program), parameters, seed)) for seed in SEEDS]
            print(f"{group}: {name}, {time.monotonic() - began:.0f} s", flush=True)
            head = (
                f'{{"name": {json.dumps(name)}, "params": {json.dumps(parameters)}, "runs": [\n  '
            )
            cases.append(head + ",\n  ".join(runs) + "]}")
            text = ",\n".join(cases)
            (RESULTS / f"{group}.json").write_text(f'{{"cases": [\n{text}\n]}}\n')


if __name__ == "__main__":
    main(*sys.argv[1:])
