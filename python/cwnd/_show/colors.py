"""Colors of controllers, the same in every plot."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

REFERENCE = "#828b98"
"""Grey of the reference."""

PALETTE = (
    "#2f6fdb",
    "#e0702c",
    "#1a9e77",
    "#c2549d",
    "#c79a12",
    "#3fa9d6",
    "#8a63d2",
    "#b5483f",
    "#6f8f2f",
    "#50607a",
)
"""Ten distinguishable colors."""


def colors(controllers: Iterable[str], reference: str | None = None) -> dict[str, str]:
    """Assign each controller a color such as ``#2f6fdb``: grey for the reference, else one of ten.

    Examples
    --------
    >>> colors(["reno", "simd"], reference="reno")
    {'reno': '#828b98', 'simd': '#2f6fdb'}
    """
    shades: dict[str, str] = {}
    for name in dict.fromkeys(controllers):
        count = len(shades) - (reference in shades)
        shades[name] = REFERENCE if name == reference else PALETTE[count % len(PALETTE)]
    return shades


DASHES = ("solid", "dash", "dot", "dashdot")
"""Line styles by their names in Plotly."""


def strokes(color: str, count: int) -> list[tuple[str, str]]:
    """Return up to 16 distinguishable line styles of one color: four shades of it, then `DASHES`.

    Examples
    --------
    >>> strokes("#808080", 3)
    [('#464646', 'solid'), ('#808080', 'solid'), ('#b9b9b9', 'solid')]
    >>> strokes("#808080", 6)[3:]
    [('#b9b9b9', 'solid'), ('#464646', 'dash'), ('#6d6d6d', 'dash')]
    """
    hues = shades(color, min(count, len(DASHES)))
    return [(hues[i % len(hues)], DASHES[i // len(hues)]) for i in range(count)]


def shades(color: str, count: int) -> list[str]:
    """Make lighter and darker versions of a color, for flows of one controller.

    Examples
    --------
    >>> shades("#808080", 3)
    ['#464646', '#808080', '#b9b9b9']
    """
    channels = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
    if count < 2:
        return [color] * count
    made = []
    for i in range(count):
        depth = 0.9 * i / (count - 1) - 0.45
        goal = 255 if depth > 0 else 0
        made.append("#" + "".join(f"{round(c + (goal - c) * abs(depth)):02x}" for c in channels))
    return made
