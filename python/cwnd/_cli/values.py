"""Option types of several commands."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cwnd._runs.conventions import NAMES, read_conventions
from cwnd._runs.packaged import packaged
from cwnd.perf.protocol import MAX_BURST
from cwnd.units import parse_rate, parse_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from click.shell_completion import CompletionItem

    from cwnd._runs.packaged import Folder
    from cwnd._runs.repetition import Repeat

    _ParamType = click.ParamType[object]
else:
    _ParamType = click.ParamType


class _Text(_ParamType):
    """A text with a parser; a ValueError of the parser is a usage error."""

    def __init__(
        self,
        name: str,
        parse: Callable[[str], object] = str,
        names: Callable[[], Iterable[str]] = tuple,
        *,
        separator: str = "",
    ) -> None:
        self.name = name
        self._separator = separator
        self._parse = parse
        self._names = names

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> object:
        """Parse the text; return values that are parsed already."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as problem:
            self.fail(str(problem), param, ctx)

    def shell_complete(
        self, _: click.Context, __: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete one of the names of the type, or the last one in a list with separators."""
        from click.shell_completion import CompletionItem

        end = incomplete.rfind(self._separator) + 1 if self._separator else 0
        before, begin = incomplete[:end], incomplete[end:]
        return [CompletionItem(before + name) for name in self._names() if name.startswith(begin)]


class _File(_ParamType):
    """The path of a file, or the name of a packaged one."""

    def __init__(self, folder: Folder) -> None:
        self.name = "file"
        self._folder = folder

    def shell_complete(
        self, _: click.Context, __: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete the name of a packaged file, or of a file."""
        return complete_files([each.name for each in packaged(self._folder)], incomplete, ".toml")


class _Controller(_Text):
    """A controller: a name, a law in a file or a Python file."""

    def shell_complete(
        self, _: click.Context, __: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete the name of a controller or of a file."""
        return complete_files(self._names(), incomplete, ".law", ".py")


def complete_files(names: Iterable[str], incomplete: str, *suffixes: str) -> list[CompletionItem]:
    """Complete one of some names or of the files here that end so; without any, a path."""
    from click.shell_completion import CompletionItem

    here = sorted(str(path) for path in Path().iterdir() if path.suffix in suffixes)
    every = [*names, *here]
    found = [CompletionItem(name) for name in every if name.startswith(incomplete)]
    return found or [CompletionItem(incomplete, type="file")]


JUMBO = 9000
"""The MTU of ``auto``: the largest one that is probed."""

MIN_MTU, MAX_MTU = 576, 65535


def _parse_mtu(text: str) -> int:
    if text == "auto":
        return JUMBO
    if text.isascii() and text.isdecimal() and MIN_MTU <= int(text) <= MAX_MTU:
        return int(text)
    allowed = f"a number of bytes from {MIN_MTU} to {MAX_MTU}"
    raise ValueError(f"{text!r} is neither auto nor {allowed}")


def _parse_controller(text: str) -> str:
    from cwnd.controller import read_controller

    return read_controller(text)[0]


def _controllers() -> list[str]:
    from cwnd._native import algorithms
    from cwnd.controller import installed_controllers

    return [*(each["name"] for each in algorithms()), *installed_controllers()]


def _check_rate(text: str) -> str:
    """Check a rate, which functions in Python take as text."""
    parse_rate(text)
    return text


def _papers() -> Iterable[str]:
    from cwnd._papers.exhibit import PAPERS

    return PAPERS


def _exhibits() -> Iterable[str]:
    from cwnd._papers.exhibit import PAPERS, exhibits

    return dict.fromkeys(each.id for paper in PAPERS for each in exhibits(paper))


def _suites() -> Iterable[str]:
    from cwnd._experiments.experiment import SUITES

    return (*SUITES, "all")


def _score_suites() -> Iterable[str]:
    from cwnd._tasks.score.suite import suite_names

    return suite_names()


def _metrics() -> Iterable[str]:
    from cwnd._native import named_metrics

    return named_metrics()


def _objectives() -> Iterable[str]:
    from cwnd._search.objective import OBJECTIVES

    return tuple(OBJECTIVES)


def _tests() -> Iterable[str]:
    from cwnd._experiments.experiment import experiments

    return (test.id for each in experiments() for test in each.tests)


def _backends() -> Iterable[str]:
    from cwnd._runs.real_time import BACKENDS

    return BACKENDS


def _kernel_controllers() -> Iterable[str]:
    from cwnd.kernel import implemented

    return implemented()


def _documents() -> Iterable[str]:
    from cwnd._cli.documents import schema_names

    return schema_names()


def _queues() -> Iterable[str]:
    from cwnd._runs.scenario_keys import queue_kinds

    return (*queue_kinds(), "red-ecn")


def _paths() -> Iterable[str]:
    from cwnd._runs.scenario_keys import scenario_paths

    return (f"{path}=" for path in scenario_paths())


def _link_keys() -> Iterable[str]:
    from cwnd._runs.scenario_keys import link_keys

    return (f"{key}=" for key in link_keys())


def _parse_shard(text: str) -> tuple[int, int]:
    """Parse a share of a sweep."""
    match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise ValueError(f"{text!r} is not a share such as 1/8 or 8/8")
    return int(match[1]), int(match[2])


def _parse_repeat(text: str) -> Repeat:
    """Parse a number of repeats, or auto."""
    if text == "auto":
        return "auto"
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is neither auto nor a number") from None


def _parse_network(text: str) -> str:
    """Parse a network such as 192.0.2.0/24, or a single address."""
    try:
        return str(ipaddress.ip_network(text))
    except ValueError:
        pass
    try:
        wanted = ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ValueError(
            f"{text!r} is not a network such as 192.0.2.0/24 or 2001:db8::/32"
        ) from None
    raise ValueError(f"{text!r} has bits set after the prefix: write {wanted}")


def _parse_share(text: str) -> str:
    """Parse a share of a disk such as 5%, or a size."""
    number = text.strip().removesuffix("%")
    if number != text.strip():
        try:
            if 0 <= float(number) < 100:
                return text.strip()
        except ValueError:
            pass
        raise ValueError(f"{text!r} is not a share such as 5%")
    if text.strip() != "0":
        parse_size(text)
    return text.strip()


_SUFFIXED = re.compile(r"([0-9]*\.?[0-9]+)([kmgt]?)", re.IGNORECASE)


def _scale(text: str, base: float) -> float | None:
    """Parse a number with one of iperf3's suffixes; None for other text."""
    match = _SUFFIXED.fullmatch(text.strip())
    if match is None:
        return None
    return float(match[1]) * base ** (" kmgt".index(match[2].lower()) if match[2] else 0)


def parse_bitrate(text: str) -> tuple[float, int]:
    """Parse iperf3's RATE[KMGT][/BURST], or tc's notation, as bit/s and the blocks of a burst.

    Suffixes are powers of 1000, and 0 is unlimited; ValueError if the text has neither form.

    Examples
    --------
    >>> parse_bitrate("50M"), parse_bitrate("1.5mbit"), parse_bitrate("10K/4"), parse_bitrate("0")
    ((50000000.0, 1), (1500000.0, 1), (10000.0, 4), (0.0, 1))
    """
    rate, slash, burst = text.partition("/")
    if slash and not (burst.isascii() and burst.isdecimal() and 1 <= int(burst) <= MAX_BURST):
        raise ValueError(f"{text!r}: BURST must be a number of blocks from 1 to {MAX_BURST}")
    bps = _scale(rate, 1e3)
    return parse_rate(rate) if bps is None else bps, int(burst or 1)


def parse_count(text: str) -> int:
    """Parse iperf3's BYTES[KMGT], with suffixes in powers of 1024, or a size with a unit.

    Examples
    --------
    >>> parse_count("10M"), parse_count("10MB"), parse_count("10MiB")
    (10485760, 10000000, 10485760)
    """
    count = _scale(text, 1024.0)
    if count is None:
        return parse_size(text)
    if count < 1:
        raise ValueError(f"{text!r} is less than a byte")
    return round(count)


SHARE_OF_RUNS = _Text("shard", _parse_shard)
"""A share of a sweep, such as ``3/8``."""

REPEAT = _Text("repeats", _parse_repeat, lambda: ["auto"])
TCP_CONVENTIONS = _Text("conventions", read_conventions, lambda: NAMES)
RATE = _Text("rate", _check_rate)
SIZE = _Text("size", parse_size)
SHARE = _Text("share", _parse_share)
MTU = _Text("mtu", _parse_mtu, lambda: ["auto"])
NETWORK = _Text("network", _parse_network)
CONTROLLER = _Controller("controller", _parse_controller, _controllers)
SCENARIO_FILE = _File("scenarios")
PLAN_FILE = _File("plans")
PAPER = _Text("paper", names=_papers)
DOCUMENT = _Text("document", names=_documents)
EXHIBIT = _Text("id", names=_exhibits)
SUITE = _Text("suite", names=_suites)
SCORE_SUITE = _Text("suite", names=_score_suites)
TEST = _Text("test", names=_tests)
OBJECTIVE = _Text("objective", names=_objectives)
BACKEND = _Text("backend", names=_backends)
BACKENDS = _Text("backends", names=_backends, separator=",")
QUEUE = _Text("queue", names=_queues)
SPEC = _Controller("controller", names=_controllers)
"""As `CONTROLLER`, which the command parses."""
KERNEL_CONTROLLER = _Text("controller", names=_kernel_controllers)
ASSIGNMENT = _Text("assignment", names=_paths)
LINK_ASSIGNMENT = _Text("assignment", names=_link_keys)
METRIC = _Text("metric", names=_metrics)
BITRATE = _Text("bitrate", parse_bitrate)
COUNT = _Text("bytes", parse_count)
