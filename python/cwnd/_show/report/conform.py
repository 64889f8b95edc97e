"""Page of a recorded connection, with the views of qvis's congestion graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from cwnd._show.colors import PALETTE, REFERENCE
from cwnd._show.report.page import MAX_POINTS, render
from cwnd._tasks.conform import outcome_text, replay_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd._base.records import JsonObject
    from cwnd._tasks.conform import Connection, Recording, Replay

    Line: TypeAlias = tuple[str, str, Sequence[float | None]]
    """Name, color and values of a line."""


def recording_page(connection: Connection, recording: Recording, replay: Replay | None) -> str:
    """Create the HTML page of a recording that was checked."""
    rtts = [None if rtt is None else 1e3 * rtt for rtt in recording["rtt_s"]]
    windows: list[Line] = [
        ("in flight", REFERENCE, recording["in_flight"]),
        ("window", PALETTE[4], recording["window"]),
    ]
    if replay is not None and recording["replayed"] is not None:
        windows.append((f"window of {replay['controller']}", PALETTE[5], recording["replayed"]))
    panels: list[tuple[str, list[Line]]] = [
        (
            "data, packets",
            [
                ("sent", PALETTE[0], recording["sent"]),
                ("acknowledged", PALETTE[2], recording["acked"]),
                ("lost", PALETTE[1], recording["lost"]),
            ],
        ),
        ("window, packets", windows),
        ("round-trip time, ms", [("round-trip time", PALETTE[3], rtts)]),
    ]
    time = np.array(recording["time_s"])
    kept = _kept(time)
    return render(
        "conform.html",
        title=connection["name"],
        summary=[
            ("Rules", connection["law"], f"over {connection['protocol']}"),
            ("Events", f"{len(time)}", f"in {time[-1] - time[0]:.1f} s"),
        ],
        replay=None if replay is None else replay_text(replay),
        findings=[(each["rule"], outcome_text(each)) for each in connection["findings"]],
        data={
            "time": [float(f"{at:.7g}") for at in time[kept]],
            "panels": [
                {"title": title, "lines": [_line(line, kept) for line in lines]}
                for title, lines in panels
            ],
        },
    )


def _kept(time: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[int]:
    """Return the positions of at most `MAX_POINTS` events: the last ones of equal intervals."""
    slots = np.floor((time - time[0]) / max(time[-1] - time[0], 1e-9) * (MAX_POINTS - 1))
    return [*np.flatnonzero(np.diff(slots)).tolist(), len(time) - 1]


def _line(line: Line, kept: list[int]) -> JsonObject:
    """Return the data of a line."""
    name, color, values = line
    points = [values[n] for n in kept]
    return {
        "name": name,
        "color": color,
        "values": [None if value is None else float(f"{value:.6g}") for value in points],
    }
