"""Empty paths of flows: the reference of their slowdown."""

from __future__ import annotations

import math
import re
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cwnd.records import FlowRecord, JsonObject, LinkRecord, RunRecord

_NUMBERED = re.compile(r"(.+)-[1-9][0-9]*")


class Path(NamedTuple):
    """The empty path of a flow.

    Attributes
    ----------
    rate_bps
        The lowest rate on the way to the sink; infinite without one.
    rtt_s
        Propagation time to the sink and back.
    header
        Headers of a data packet in bytes.
    """

    rate_bps: float
    rtt_s: float
    header: int


def paths(document: Mapping[str, object], record: RunRecord) -> dict[str, Path]:
    """Return the empty path of each finite TCP or UDT flow of a run, by the flow's name.

    Parameters
    ----------
    document
        The scenario as plain data.
    record
        The record of its run, with the rates and delays of the links.
    """
    found = _Paths(document, record)
    made = {}
    for flow in record["flows"]:
        path = found.of_flow(flow)
        if path is not None:
            made[flow["name"]] = path
    return made


class _Block(NamedTuple):
    """Flows of a group between the same nodes: their number, the nodes, the headers in bytes."""

    size: int
    source: str
    sink: str
    header: int


class _Paths:
    """Routes of a scenario: those with the fewest links, of these the first (docs/scenario.md)."""

    def __init__(self, document: Mapping[str, object], record: RunRecord) -> None:
        self.document: JsonObject = dict(document)
        self.links = {link["name"]: link for link in record["links"]}
        self.leaving: dict[str, list[tuple[str, LinkRecord]]] = {}
        for name, source, sink in self._links():
            if name in self.links:
                self.leaving.setdefault(source, []).append((sink, self.links[name]))
        self.blocks: dict[str, list[_Block]] = {}
        for table in self.document.get("flow", []):
            for block in self._blocks(table):
                self.blocks.setdefault(group_name(table, "flow"), []).append(block)
        self.known: dict[_Block, Path] = {}
        self.routes: dict[tuple[str, str], list[LinkRecord] | None] = {}

    def of_flow(self, flow: FlowRecord) -> Path | None:
        """Return the path of a flow; None if it is not TCP's or UDT's."""
        name = flow["name"]
        match = _NUMBERED.fullmatch(name)
        blocks, number = self.blocks.get(name), 0
        if blocks is None and match is not None:
            blocks, number = self.blocks.get(match[1]), int(name[len(match[1]) + 1 :]) - 1
        if not blocks:
            return None
        block = blocks[0]
        # With one block the number does not matter: arrivals are not counted in the file.
        for block in blocks if len(blocks) > 1 else ():
            if number < block.size:
                break
            number -= block.size
        hosts = f"{name}.source-{block.source}" in self.links
        if not hosts and block in self.known:
            return self.known[block]
        there, back = self._route(block.source, block.sink), self._route(block.sink, block.source)
        if there is None or back is None:
            return None
        source, sink = f"{name}.source", f"{name}.sink"
        out = [f"{source}-{block.source}", f"{block.sink}-{sink}"]
        home = [f"{sink}-{block.sink}", f"{block.source}-{source}"]
        there = there + [self.links[each] for each in out if each in self.links]
        back = back + [self.links[each] for each in home if each in self.links]
        path = Path(
            min((link["rate_bps"] for link in there), default=math.inf),
            math.fsum(link["delay_s"] for link in (*there, *back)),
            block.header,
        )
        if not hosts:
            self.known[block] = path
        return path

    def _links(self) -> Iterator[tuple[str, str, str]]:
        """Yield name, beginning and end of each link but the access links, in order."""
        pairs: list[tuple[str, str, str | None, bool]] = []
        if "dumbbell" in self.document:
            pairs.append(("left", "right", None, True))
        routers = self.document.get("chain", {}).get("routers", 0)
        pairs += [(f"r{hop}", f"r{hop + 1}", None, True) for hop in range(1, routers)]
        for link in self.document.get("link", []):
            pairs.append((link["from"], link["to"], link.get("name"), link.get("duplex", True)))
        for source, sink, name, duplex in pairs:
            yield name or f"{source}-{sink}", source, sink
            if duplex:
                yield f"{name}-back" if name else f"{sink}-{source}", sink, source

    def _blocks(self, table: JsonObject) -> Iterator[_Block]:
        """Yield the flows of a group by the nodes that they connect."""
        routers = self.document.get("chain", {}).get("routers", 0)
        ends = ("left", "right") if "dumbbell" in self.document else ("r1", f"r{routers}")
        pairs = [(table.get("from", ends[0]), table.get("to", ends[1]))]
        if table.get("cross"):
            pairs = [(f"r{hop}", f"r{hop + 1}") for hop in range(1, routers)]
        for source, sink in pairs:
            if table.get("reverse"):
                source, sink = sink, source  # noqa: PLW2901
            yield _Block(table.get("count", 1), source, sink, self._header(table))

    def _header(self, table: JsonObject) -> int:
        """Return the headers of a group's data packets: docs/scenario.md has the defaults."""
        options = {**self.document.get("tcp", {}), **table.get("tcp", {})}
        if table.get("protocol") == "udt":
            options = table.get("tcp", {})
        older = options.get("conventions") == "ns2-2001"
        default = 44 if table.get("protocol") == "udt" else 0 if older else 40
        return int(options.get("header", default))

    def _route(self, source: str, sink: str) -> list[LinkRecord] | None:
        """Return the links of a route; None if there is none."""
        if (source, sink) not in self.routes:
            self.routes[source, sink] = self._search(source, sink)
        return self.routes[source, sink]

    def _search(self, source: str, sink: str) -> list[LinkRecord] | None:
        """Search breadth-first."""
        reached: dict[str, list[LinkRecord]] = {source: []}
        waiting = deque([source])
        while waiting:
            node = waiting.popleft()
            if node == sink:
                return reached[node]
            for end, link in self.leaving.get(node, ()):
                if end not in reached:
                    reached[end] = [*reached[node], link]
                    waiting.append(end)
        return None


def group_name(table: Mapping[str, object], kind: str) -> str:
    """Return the name of a group of flows: its own, or else the controller's or the table's.

    Parameters
    ----------
    table
        The group.
    kind
        The name of the table, such as ``flow``.

    Examples
    --------
    >>> group_name({"controller": "simd(beta=1/16)"}, "flow"), group_name({}, "cbr")
    ('simd', 'cbr')
    >>> group_name({"controller": "mine.py:Law(beta=1/8)"}, "flow")
    'Law'
    """
    controller = str(table.get("controller", kind))
    custom = re.search(r":([\w-]+)(?:\(|$)", controller)
    base = custom[1] if custom else controller.partition("(")[0].strip()
    return str(table.get("name") or base)
