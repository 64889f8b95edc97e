"""Draw a Matplotlib figure into a PNG and an SVG at once."""

# ruff: noqa: ANN401, FBT002, N803 (signatures are Matplotlib's, most of whose types are not told)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.backends.backend_svg import RendererSVG
from matplotlib.image import imsave
from matplotlib.transforms import Affine2D, TransformedBbox, TransformedPath

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

Pixels: Any = RendererAgg
Points: Any = RendererSVG

DPI = 150
"""Pixels of the PNG per inch."""

_POINTS = 72
"""Points per inch: the unit of an SVG."""


def save(figure: Figure, base: Path) -> None:
    """Write a figure as PNG and SVG.

    Most of the time that Matplotlib takes goes into where things are: finding that once for both
    files takes little more than half as long as two calls of ``savefig``.

    Parameters
    ----------
    figure
        What to write.
    base
        Where, without the ending.
    """
    figure.dpi = DPI
    width, height = figure.get_size_inches()
    pixels = Pixels(width * DPI, height * DPI, DPI)
    # A fixed salt and no date: the same figure is the same file.
    with (
        mpl.rc_context({"svg.hashsalt": "cwnd"}),
        base.with_suffix(".svg").open("w", encoding="utf-8") as file,
    ):
        points = Points(
            width * _POINTS, height * _POINTS, file, image_dpi=DPI, metadata={"Date": None}
        )
        figure.draw(_Both(pixels, points))
        points.finalize()
    imsave(
        base.with_suffix(".png"),
        np.asarray(pixels.buffer_rgba()),
        dpi=DPI,
        pil_kwargs={"compress_level": 4},
    )


class _Both(RendererBase):
    """Gives what is drawn to two renderers; places are pixels, as the first one counts them.

    Widths of lines, dashes and sizes of letters are points to both.
    """

    def __init__(self, pixels: Any, points: Any) -> None:
        super().__init__()
        self._pixels, self._points = pixels, points
        self._shrink = Affine2D().scale(_POINTS / DPI)
        self.dpi, self.width, self.height = pixels.dpi, pixels.width, pixels.height

    def get_canvas_width_height(self) -> tuple[float, float]:
        size: tuple[float, float] = self._pixels.get_canvas_width_height()
        return size

    def points_to_pixels(self, points: Any) -> Any:
        return self._pixels.points_to_pixels(points)

    def get_text_width_height_descent(self, s: Any, prop: Any, ismath: Any) -> Any:
        return self._pixels.get_text_width_height_descent(s, prop, ismath)

    def open_group(self, s: str, gid: str | None = None) -> None:
        self._points.open_group(s, gid)

    def close_group(self, s: str) -> None:
        self._points.close_group(s)

    def draw_path(
        self,
        gc: Any,
        path: Any,
        transform: Any,
        rgbFace: Any = None,
    ) -> None:
        self._pixels.draw_path(gc, path, transform, rgbFace)
        self._points.draw_path(self._shrunk(gc), path, transform + self._shrink, rgbFace)

    def draw_markers(
        self,
        gc: Any,
        marker_path: Any,
        marker_trans: Any,
        path: Any,
        trans: Any,
        rgbFace: Any = None,
    ) -> None:
        self._pixels.draw_markers(gc, marker_path, marker_trans, path, trans, rgbFace)
        places = marker_trans + self._shrink, path, trans + self._shrink
        self._points.draw_markers(self._shrunk(gc), marker_path, *places, rgbFace)

    def draw_path_collection(
        self,
        gc: Any,
        master_transform: Any,
        paths: Any,
        all_transforms: Any,
        offsets: Any,
        offset_trans: Any,
        *style: Any,
        **more: Any,
    ) -> None:
        self._pixels.draw_path_collection(
            gc, master_transform, paths, all_transforms, offsets, offset_trans, *style, **more
        )
        self._points.draw_path_collection(
            self._shrunk(gc),
            (master_transform + self._shrink).frozen(),
            paths,
            all_transforms,
            offsets,
            (offset_trans + self._shrink).frozen(),
            *style,
            **more,
        )

    def draw_quad_mesh(self, gc: Any, *mesh: Any) -> None:
        # As a picture in the SVG too: of paths there would be one a cell.
        alone = Pixels(self.width, self.height, self.dpi)
        for pixels in (self._pixels, alone):
            pixels.draw_quad_mesh(gc, *mesh)
        picture = np.asarray(alone.buffer_rgba())
        inked = picture[..., 3] > 0
        rows, columns = np.flatnonzero(inked.any(axis=1)), np.flatnonzero(inked.any(axis=0))
        if rows.size:
            x, y = self._shrink.transform((columns[0], picture.shape[0] - 1 - rows[-1]))
            inside = picture[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
            self._points.draw_image(self._points.new_gc(), x, y, inside[::-1])

    def draw_text(
        self,
        gc: Any,
        x: float,
        y: float,
        s: str,
        prop: Any,
        angle: float,
        ismath: Any = False,
        mtext: Any = None,
    ) -> None:
        self._pixels.draw_text(gc, x, y, s, prop, angle, ismath, mtext)
        place = self._shrink.transform((x, y))
        self._points.draw_text(self._shrunk(gc), *place, s, prop, angle, ismath, mtext)

    def _shrunk(self, gc: Any) -> Any:
        """Give a context whose clipping is in points."""
        box = gc.get_clip_rectangle()
        path, transform = gc.get_clip_path()
        if box is None and path is None:
            return gc
        shrunk = self._points.new_gc()
        shrunk.copy_properties(gc)
        shrunk.set_clip_rectangle(None if box is None else TransformedBbox(box, self._shrink))
        if path is not None:
            shrunk.set_clip_path(TransformedPath(path, transform + self._shrink))
        return shrunk
