"""Improve a law by random mutations of its constants, with `cwnd.score` as the judge.

    python examples/score/mutate.py crates/cwnd/src/laws/simd.law best.law --seconds 300

Only the training networks of the suite choose. The held-out ones are scored at the end, once for
the first law and once for the best one.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import time
from pathlib import Path

import cwnd

NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:/\d+)?(?![\w.])")
"""A number without a unit, or a fraction such as 1/16."""

DEFAULT = re.compile(r"parameter [^=]*=")
"""What precedes the default of a parameter."""


def constants(law: str) -> list[tuple[int, int]]:
    """Return where the defaults of parameters and the numbers of hooks are in a text."""
    found = []
    begin = 0
    for line in law.splitlines(keepends=True):
        code = line.partition("#")[0]
        if default := DEFAULT.match(code):
            number = NUMBER.search(code, default.end())
            matches = [] if number is None else [number]
        else:
            matches = list(NUMBER.finditer(code)) if line.startswith(" ") else []
        found += [(begin + match.start(), begin + match.end()) for match in matches]
        begin += len(line)
    return found


def mutate(law: str, draw: random.Random) -> str:
    """Return a text in which some constants are multiplied by random factors."""
    places = constants(law)
    number = min(draw.choice((1, 1, 2)), len(places))
    for start, end in sorted(draw.sample(places, number), reverse=True):
        above, _, below = law[start:end].partition("/")
        value = float(above) / float(below or 1) * math.exp(draw.gauss(0, 0.4))
        law = f"{law[:start]}{value:.4g}{law[end:]}"
    return law


def main() -> None:
    """Mutate the best law so far until the time is over."""
    parser = argparse.ArgumentParser()
    parser.add_argument("law", type=Path)
    parser.add_argument("best", type=Path, help="file for the best law")
    parser.add_argument("--suite", default="default")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.best.suffix != ".law":
        parser.error(f"{options.best}: the name of a law ends in .law")
    draw = random.Random(options.seed)
    try:
        first = best = options.law.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        parser.error(str(problem))
    if not constants(first):
        parser.error(f"{options.law}: no constants to change")
    options.best.write_text(best, "utf-8")
    value = cwnd.score(options.best, options.suite, seed=options.seed).combined_score
    print(f"first: {value:.4f}")
    end, tried = time.monotonic() + options.seconds, 0
    while time.monotonic() < end:
        law = mutate(best, draw)
        options.best.write_text(law, "utf-8")
        found = cwnd.score(options.best, options.suite, seed=options.seed)
        tried += 1
        if found.combined_score > value:
            best, value = law, found.combined_score
            print(f"candidate {tried}: {value:.4f}", flush=True)
    for name, law in (("first", first), ("best", best)):
        options.best.write_text(law, "utf-8")
        metrics = cwnd.score(
            options.best, options.suite, seed=options.seed, stage="held-out"
        ).metrics
        print(name, *(f"{key} {number:.4f}" for key, number in metrics.items()), sep=", ")
    print(f"{tried} candidates")


if __name__ == "__main__":
    main()
