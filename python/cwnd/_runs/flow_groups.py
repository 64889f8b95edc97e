"""Groups of flows, and of short flows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from cwnd import _native

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cwnd._base.records import FlowRecord

MAX_MEMBERS = 10
"""Largest number of finite flows with one name that tables and plots show one by one."""


class FlowGroups(NamedTuple):
    """Flows of a run: those that are shown one by one, and groups of finite flows."""

    single: list[FlowRecord]
    groups: dict[str, list[FlowRecord]]
    """More than `MAX_MEMBERS` finite flows that have one name and one controller, by that name."""


def group_flows(flows: Sequence[FlowRecord]) -> FlowGroups:
    """Separate groups of finite flows, such as those of ``arrivals``, from other flows."""
    finite = groups_by_name([flow for flow in flows if flow["bytes"] is not None])
    groups = {name: found for name, found in finite.items() if len(found) > MAX_MEMBERS}
    inside = {flow["name"] for found in groups.values() for flow in found}
    return FlowGroups([flow for flow in flows if flow["name"] not in inside], groups)


class FlowKind(NamedTuple):
    """Flows whose rates can be compared: those that always have data, or others of one name."""

    label: str
    """Which flows of the run they are; empty for all."""
    flows: list[FlowRecord]


def flow_kinds(flows: Sequence[FlowRecord]) -> list[FlowKind]:
    """Separate flows that differ in kind, for Jain's index: first those that always have data.

    The others are finite flows and those of applications, by name. If there are several kinds, a
    kind has at least two flows.
    """
    endless = [flow["bytes"] is None and flow["transfers"] is None for flow in flows]
    kinds = _native.flow_kinds([flow["name"] for flow in flows], endless)
    return [
        FlowKind(
            "" if len(at) == len(flows) else _native.kind_label(name, len(at)),
            [flows[number] for number in at],
        )
        for name, at in kinds
    ]


def first_kind(flows: Sequence[FlowRecord]) -> list[FlowRecord]:
    """Return the flows that Jain's index is of: those of the first kind, or none."""
    kinds = flow_kinds(flows)
    return kinds[0].flows if kinds else []


def groups_by_name(flows: Iterable[FlowRecord]) -> dict[str, list[FlowRecord]]:
    """Group flows by their names without numbers; also by controller if names are ambiguous."""
    members: dict[tuple[str, str], list[FlowRecord]] = {}
    for flow in flows:
        key = name_of_group(flow["name"]), flow["controller"]
        members.setdefault(key, []).append(flow)
    names = Counter(name for name, _ in members)
    return {
        name if names[name] == 1 else f"{name}, {controller}": found
        for (name, controller), found in members.items()
    }


def name_of_group(flow: str) -> str:
    """Return the name of the group of a flow: its name without the number.

    Examples
    --------
    >>> name_of_group("web-12"), name_of_group("long")
    ('web', 'long')
    """
    return _native.flow_group(flow)
