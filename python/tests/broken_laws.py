"""Deliberately broken controllers, which an evaluation has to recognise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cwnd.controller import ControllerHooks, WindowHooks
from cwnd.events import Acked, Event, Lost, Marked, PersistentCongestion, Tick, Timeout, Undo

if TYPE_CHECKING:
    from cwnd.events import Context


class Sound(WindowHooks):
    """AIMD with the increase and the reduction of TCP (RFC 5681)."""

    def grow(self, w: float, acked: float, _: Context) -> float:
        return w + acked / w

    def cut(self, w: float, _: str, __: Context) -> float:
        return w / 2


class IgnoresMarks(Sound):
    """Reduces the window at a loss, but not at a congestion mark."""

    def cut(self, w: float, why: str, cx: Context) -> float:
        return w if why == "mark" else super().cut(w, why, cx)

    def threshold(self, cut: float, why: str) -> float | None:
        return cut if why == "mark" else None


class NeverBacksOff(ControllerHooks):
    """Adds a packet to the window in each round-trip time, whatever is lost."""

    def __init__(self) -> None:
        self._window = 10.0

    def on(self, _: float, event: Event) -> None:
        if isinstance(event, Acked):
            self._window += event.packets / self._window

    def output(self) -> tuple[float, float | None, float | None]:
        return self._window, None, None


class StopsAtTimeout(ControllerHooks):
    """Halves the window at a loss, and keeps one of a packet after a timeout."""

    def __init__(self) -> None:
        self._window = 10.0
        self._stopped = False
        self._recovery = 0.0

    def on(self, now: float, event: Event) -> None:
        if isinstance(event, Timeout | PersistentCongestion):
            self._stopped = True
        elif isinstance(event, Lost) and now >= self._recovery:
            self._window = max(self._window / 2, 2.0)
            self._recovery = now + 0.1
        elif isinstance(event, Acked):
            self._window += event.packets / self._window

    def output(self) -> tuple[float, float | None, float | None]:
        return (1.0 if self._stopped else self._window), None, None


class Bursts(ControllerHooks):
    """Slow start and AIMD of TCP, but sends the packets of a round-trip time in one burst."""

    def __init__(self) -> None:
        self._window = 10.0
        self._threshold = math.inf
        self._before = (self._window, self._threshold)
        self._reduced = -math.inf
        self._rtt = 0.1
        self._release = 0.0
        self._in_flight = 0
        self._open = True

    def on(self, now: float, event: Event) -> None:
        if isinstance(event, Acked):
            self._acknowledge(event)
        elif isinstance(event, Lost | Marked):
            if event.sent_at > self._reduced:
                self._reduce(now)
        elif isinstance(event, Timeout | PersistentCongestion):
            self._reduce(now)
            self._window = 1.0
        elif isinstance(event, Undo):
            self._window, self._threshold = self._before
        self._open = isinstance(event, Tick) or self._in_flight == 0
        if self._open:
            self._release = now + self._rtt

    def _acknowledge(self, event: Acked) -> None:
        self._in_flight = event.in_flight
        if event.rtt is not None:
            self._rtt += (event.rtt - self._rtt) / 8
        if event.sent_at > self._reduced and event.limit == "window":
            slow = self._window < self._threshold
            self._window += event.packets if slow else event.packets / self._window

    def _reduce(self, now: float) -> None:
        self._before = self._window, self._threshold
        self._threshold = self._window = max(self._window / 2, 2.0)
        self._reduced = now

    def output(self) -> tuple[float, float | None, float | None]:
        window = self._window if self._open else min(self._window, self._in_flight)
        return max(window, 1.0), None, self._release
