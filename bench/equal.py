"""Whether two programs simulate the same bits.

    python bench/equal.py BASE [SCENARIO …]      BASE is a commit, or a program built from one

The program of BASE needs the option ``--digest``.
Runs every scenario file with its own conventions, with those of the RFCs and with Linux's; with and
without lookahead. Compares the digests of the complete records.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages import BUILD, ROOT, program

from cwnd._base import toml as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterator

CONVENTIONS = (None, "rfc", "linux")
MODES = ((), ("--every-event",))
# Seconds after which a run counts as not made.
LONGEST = 600


def build(base: str) -> str:
    """Return the program of a commit, built in a work tree of its own; or the program itself."""
    if Path(base).is_file():
        return base
    cache = ROOT / "target" / "equal"
    with tempfile.TemporaryDirectory() as folder:
        tree = str(Path(folder) / "base")
        git = ["git", "-C", str(ROOT), "worktree"]
        add = [*git, "add", "--quiet", "--detach", tree, base]
        if subprocess.run(add, capture_output=True, check=False).returncode:
            sys.exit(f"{base} is neither a commit nor a program")
        try:
            subprocess.run([*BUILD, "--target-dir", str(cache)], cwd=tree, check=True)
        finally:
            subprocess.run([*git, "remove", "--force", tree], check=True)
    return shutil.copy(cache / "release" / "cwnd-bench", cache / "base")


def variants(files: list[Path]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield a name, the scenario in JSON and the arguments of every run."""
    for file in files:
        scenario: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
        for conventions in CONVENTIONS:
            if conventions is not None:
                scenario = {
                    **scenario,
                    "tcp": {**scenario.get("tcp", {}), "conventions": conventions},
                }
            for mode in MODES:
                name = " ".join((file.stem, conventions or "own", *mode))
                yield name, json.dumps(scenario), mode


def digest(path: str, scenario: str, mode: tuple[str, ...]) -> str:
    """Return the digest of a run, or why there is none."""
    done = subprocess.run(
        [path, "--digest", *mode],
        input=scenario,
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    if done.returncode:
        return done.stderr.strip()
    return json.loads(done.stdout).get("digest", "the program has no --digest")


def main() -> None:
    """Compare, and fail if a run differs."""
    parser = argparse.ArgumentParser(description="Whether two programs simulate the same bits.")
    parser.add_argument("base", metavar="BASE", help="a commit, or a program built from one")
    parser.add_argument("scenarios", nargs="*", type=Path, help="by default all files")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    files = arguments.scenarios or sorted((ROOT / "scenarios").glob("*.toml"))
    programs = (build(arguments.base), program())
    runs = list(variants(files))
    with ThreadPoolExecutor(arguments.jobs) as pool:
        found = pool.map(lambda run: [digest(path, *run[1:]) for path in programs], runs)
        pairs = list(zip((name for name, *_ in runs), found, strict=True))
    different = [name for name, (before, after) in pairs if before != after]
    failed = sum(len(after) != len("0123456789abcdef") for _, (_, after) in pairs)
    print(f"{len(pairs) - len(different)} of {len(pairs)} runs are equal, {failed} of them not run")
    if different:
        sys.exit("\n".join(["These differ:", *different]))


if __name__ == "__main__":
    main()
