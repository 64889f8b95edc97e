"""Recorded links: files of rates over time in the formats of several tools.

A trace is a list of segments with constant rates. Scenarios have the format of mahimahi, in which
a line is the time of an opportunity to deliver 1504 bytes.
"""

from __future__ import annotations

import csv
import io
import json
import math
import operator
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cwnd import _native
from cwnd._base.printable import printable
from cwnd._runs.defaults import TRACE_FORMATS
from cwnd.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import numpy.typing as npt

    from cwnd._base.records import JsonObject

OPPORTUNITY_BITS = 8 * 1504
"""What an opportunity of mahimahi delivers."""

MAX_LINES = 10_000_000
"""Largest number of lines of a trace, as in scenarios."""

DELAY_INTERVAL_S = 0.01
"""Time between the delays of a scenario's trace by default."""

_MOST_DIGITS = 10
"""Largest number of digits of a time in milliseconds."""

_LONGEST_S, _FASTEST_BPS, _LONGEST_DELAY_S = 1e6, 1e13, 7200.0
"""Largest duration of a trace, rate and delay; the last two are a scenario's."""

_ROUNDING = 1e-8
"""Relative difference of a trace's duration and that of a file of rounded times."""

_AGREEMENT_S = 2e-6
"""Largest distance of a segment from the end before: times and durations are rounded to 1 us."""

_SLACK = 1e-6
"""Milliseconds and packets that are rounding errors of sums."""


class LinkTrace(NamedTuple):
    """Segments of a recorded link, one item each."""

    durations_s: npt.NDArray[np.float64]
    rates_bps: npt.NDArray[np.float64]
    delays_s: npt.NDArray[np.float64] | None
    """One-way delays, if the file has some."""

    @property
    def ends_s(self) -> npt.NDArray[np.float64]:
        """The ends of the segments."""
        return np.cumsum(self.durations_s)

    def summary(self) -> JsonObject:
        """Return the duration, the rates, the longest outage and the delays.

        The smallest and the largest rate are those of equal windows of about 1 s, which cover the
        trace, so that the mean lies between them.
        """
        ends = self.ends_s
        duration = float(ends[-1])
        bits = np.concatenate([[0.0], np.cumsum(self.durations_s * self.rates_bps)])
        windows = max(1, round(duration))
        edges = np.linspace(0.0, duration, windows + 1)
        sums = np.interp(edges, np.concatenate([[0.0], ends]), bits)
        # Rounding errors of sums may leave the range of what is averaged.
        rates = np.clip(
            np.diff(sums) / (duration / windows), self.rates_bps.min(), self.rates_bps.max()
        )
        # Segments without capacity have the number of the segments with capacity before them.
        number, idle = np.cumsum(self.rates_bps > 0), self.durations_s * (self.rates_bps == 0)
        outages = np.bincount(number, idle)
        summary: JsonObject = {
            "duration_s": duration,
            "mean_rate_bps": float(np.clip(bits[-1] / duration, rates.min(), rates.max())),
            "min_rate_bps": float(rates.min()),
            "max_rate_bps": float(rates.max()),
            "longest_outage_s": float(outages.max()),
            "min_delay_s": None,
            "mean_delay_s": None,
            "max_delay_s": None,
        }
        if self.delays_s is not None:
            least, most = self.delays_s.min(), self.delays_s.max()
            mean = np.average(self.delays_s, weights=self.durations_s)
            summary |= {
                "min_delay_s": float(least),
                "mean_delay_s": float(np.clip(mean, least, most)),
                "max_delay_s": float(most),
            }
        return summary


def read_link_trace(
    path: str, form: str | None = None, interval_s: float | None = None
) -> tuple[LinkTrace, str]:
    """Read a file in a format of `FORMATS`, by default the one that its first line has.

    ``interval_s`` is the duration of each line of a CSV without times. Returns the trace and its
    format. The ArgumentError of a file that is not in the format names the file and the line.
    """
    try:
        text = _native.read_trace(path).replace("\r\n", "\n").replace("\r", "\n").rstrip()
    except ValueError as mistake:
        raise ArgumentError("file", str(mistake)) from None
    if text.count("\n") >= MAX_LINES:
        raise ArgumentError("file", f"{path}: more than {MAX_LINES} lines")
    form = _recognise(text) if form is None else form
    try:
        segments = np.fromiter(_read_segments(text, form, interval_s), _SEGMENT)
    except _Mistake as mistake:
        line = "" if mistake.line is None else f"{mistake.line}:"
        raise ArgumentError("file", f"{path}:{line} {mistake}") from None
    except RecursionError:
        raise ArgumentError("file", f"{path}: nested too deeply") from None
    except csv.Error as mistake:
        raise ArgumentError("file", f"{path}: not CSV: {mistake}") from None
    durations, rates, delays = (segments[name].copy() for name in _Segment._fields)
    has_delays = not np.isnan(delays[0])
    for largest, limit, problem in (
        (sum(durations.tolist()), _LONGEST_S * (1 + _ROUNDING), "a trace lasts at most 10^6 s"),
        (rates.max(), _FASTEST_BPS, "a rate is at most 10 Tbit/s"),
        (delays.max() if has_delays else 0, _LONGEST_DELAY_S, "a delay is at most 2 h"),
    ):
        if largest > limit:
            raise ArgumentError("file", f"{path}: {problem}")
    if not rates.any():
        raise ArgumentError("file", f"{path}: a trace has at least one rate above 0")
    return LinkTrace(durations, rates, delays if has_delays else None), form


def write_link_trace(trace: LinkTrace, form: str) -> str:
    """Return a trace as the text of a file in a format of `FORMATS`."""
    text = FORMATS[form].write(trace)
    if text.count("\n") > MAX_LINES or len(text) > _native.LARGEST_FILE:
        most = f"a file has at most {MAX_LINES} lines and {_native.LARGEST_FILE >> 20} MiB"
        raise ArgumentError("file", f"{most}, this one would have more: write a part of it")
    return text


def write_delays(trace: LinkTrace) -> str:
    """Return the delays of a trace in whole milliseconds, one for each 10 ms."""
    delays, ends = trace.delays_s, trace.ends_s
    if delays is None:
        raise ArgumentError("file", "the trace has no delays for --delays")
    number = max(1, math.ceil(ends[-1] / DELAY_INTERVAL_S - _SLACK))
    if number > MAX_LINES:
        most = f"a trace has at most {MAX_LINES} delays, one for each 10 ms"
        raise ArgumentError("file", f"{most}; this one has {number}: write a part of it")
    at = np.searchsorted(ends, np.arange(number) * DELAY_INTERVAL_S + _SLACK / 1e3)
    return _lines(np.rint(delays[np.minimum(at, len(ends) - 1)] * 1e3).astype(int))


class _Mistake(Exception):  # noqa: N818
    """A mistake in a file, with the number of its line if it has one."""

    def __init__(self, line: int | None, problem: str) -> None:
        super().__init__(problem)
        self.line = line


class _Segment(NamedTuple):
    duration_s: float
    rate_bps: float
    delay_s: float = math.nan


_SEGMENT = np.dtype([(name, np.float64) for name in _Segment._fields])


class _Format(NamedTuple):
    """How a format is read and written."""

    read: Callable[[str, float | None], Iterator[_Segment]]
    write: Callable[[LinkTrace], str]


def _read_segments(text: str, form: str, interval_s: float | None) -> Iterator[_Segment]:
    if interval_s is not None and form != "csv":
        raise _Mistake(None, f"the format {form} has times: leave out --interval")
    return FORMATS[form].read(text, interval_s)


def _recognise(text: str) -> str:
    """Return the format of a file by its first line with text."""
    first = text.lstrip()[:1]
    line = text.lstrip().partition("\n")[0]
    if first and first in "[{":
        return "netem-trace"
    if "," in line or first.isalpha():
        return "csv"
    return "pensieve" if len(line.split()) > 1 else "mahimahi"


def _number(line: int | None, value: str | float, what: str) -> float:
    """Return a number of at least 0."""
    try:
        number = float(value)
    except (OverflowError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise _Mistake(line, f"`{_shorten(value)}` is not {what}: a number of at least 0")
    return number


def _json_number(value: object, what: str) -> float:
    """Return a number of at least 0 of a JSON document, where text and `true` are none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _Mistake(None, f"`{_shorten(value)}` is not {what}: a number of at least 0")
    return _number(None, value, what)


def _shorten(value: object) -> str:
    """Return the beginning of a wrong value on one line."""
    text = printable(value.strip()) if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 40 else text[:40] + "…"


def _lines(numbers: npt.NDArray[Any]) -> str:
    return "".join(f"{number}\n" for number in numbers.tolist())


def _decimal(number: float) -> str:
    """Format a number with at most nine decimals, or nine digits if it is small."""
    if 0 < number < 1e-3:
        return f"{number:.9g}"
    return f"{number:.9f}".rstrip("0").rstrip(".")


def _read_mahimahi(text: str, _: float | None) -> Iterator[_Segment]:
    """Read times of opportunities; those at one time are of the millisecond that ends then."""
    times = np.fromiter(_read_times(text), np.int64)
    if not times.any():
        raise _Mistake(None, "a trace has at least one time, and its last one is above 0")
    distinct, counts = np.unique(np.maximum(times, 1), return_counts=True)
    before = 0
    for time, count in zip(distinct.tolist(), counts.tolist(), strict=True):
        if time - 1 > before:
            yield _Segment((time - 1 - before) / 1e3, 0.0)
        yield _Segment(1e-3, count * OPPORTUNITY_BITS * 1e3)
        before = time


def _read_times(text: str) -> Iterator[int]:
    before = 0
    for line, item in enumerate(io.StringIO(text), 1):
        digits = item.strip()
        if not (digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS):
            problem = f"`{_shorten(item)}` is not a whole number of milliseconds"
            raise _Mistake(line, f"{problem}; a file of rates has a header, such as rate_bps")
        at = int(digits)
        if at < before:
            raise _Mistake(line, "times do not decrease")
        before = at
        yield at


def _write_mahimahi(trace: LinkTrace) -> str:
    """Write the times at which the next opportunity is complete; the last one is the end."""
    ends, bits = trace.ends_s, np.cumsum(trace.durations_s * trace.rates_bps)
    number = math.floor(bits[-1] / OPPORTUNITY_BITS + _SLACK)
    if number > MAX_LINES:
        most = f"a trace has at most {MAX_LINES} opportunities"
        raise ArgumentError("file", f"{most}, this one has {number}: write a part of it")
    complete = np.arange(1, number + 1) * OPPORTUNITY_BITS
    at = np.searchsorted(bits, complete - _SLACK * OPPORTUNITY_BITS)
    times_s = ends[at] - (bits[at] - complete) / trace.rates_bps[at]
    times = np.ceil(times_s * 1e3 - _SLACK).astype(int)
    end = max(1, round(float(ends[-1]) * 1e3))
    times = np.minimum(times, end)
    if not times.size or times[-1] < end:
        times = np.append(times, end)
    return _lines(times)


def _read_pensieve(text: str, _: float | None) -> Iterator[_Segment]:
    """Read times in seconds, and rates since the line before in Mbit/s."""
    before: float | None = None
    line = 0
    for line, item in enumerate(io.StringIO(text), 1):
        columns = item.split()
        if len(columns) != 2:
            raise _Mistake(
                line, f"`{_shorten(item)}` is not a time in seconds and a rate in Mbit/s"
            )
        time = _number(line, columns[0], "a time in seconds")
        rate = _number(line, columns[1], "a rate in Mbit/s")
        if before is not None:
            yield _Segment(_elapsed(line, before, time), rate * 1e6)
        before = time
    if line < 2:
        raise _Mistake(None, "a trace has at least two lines")


def _elapsed(line: int, before: float, time: float) -> float:
    if time <= before:
        raise _Mistake(line, "times increase")
    return time - before


def _write_pensieve(trace: LinkTrace) -> str:
    times = [_decimal(time) for time in (0.0, *trace.ends_s.tolist())]
    if any(map(operator.eq, times, times[1:])):
        problem = "the times of the format pensieve have nine decimals"
        raise ArgumentError("file", f"{problem}: a duration of this trace is too short")
    rates = _written_rates(trace, trace.rates_bps / 1e6, "pensieve").tolist()
    rows = zip(times, [rates[0], *rates], strict=True)
    return "".join(f"{time} {_decimal(rate)}\n" for time, rate in rows)


def _written_rates(
    trace: LinkTrace, rates: npt.NDArray[np.float64], form: str
) -> npt.NDArray[np.float64]:
    """Return the rates of a trace in the unit of a format, if no rate above 0 becomes 0 in it."""
    lost = trace.rates_bps[(trace.rates_bps > 0) & (rates == 0)]
    if lost.size:
        problem = f"the rate {lost[0]:.3g} bit/s is 0 in the format {form}"
        raise ArgumentError("file", problem)
    return rates


_TIME_UNITS = {"s": 1.0, "secs": 1.0, "ms": 1e-3, "us": 1e-6}
_RATE_UNITS = {
    f"{prefix}{unit}": factor
    for prefix, factor in {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}.items()
    for unit in ("bps", "bit")
}
_COLUMNS = {
    "time": ("time", _TIME_UNITS),
    "start_time": ("time", _TIME_UNITS),
    "duration": ("duration", _TIME_UNITS),
    "delay": ("delay", _TIME_UNITS),
    "rate": ("rate", _RATE_UNITS),
    "bandwidth": ("rate", _RATE_UNITS),
    "throughput": ("rate", _RATE_UNITS),
}
"""Names of columns without their units: what they are, and the units."""


def _read_header(names: Sequence[str]) -> dict[str, tuple[int, float]]:
    """Return of each known column what it is, with its position and its unit."""
    found: dict[str, tuple[int, float]] = {}
    for position, name in enumerate(name.strip().lower() for name in names):
        word, _, unit = (name, "", "") if name in _COLUMNS else name.rpartition("_")
        if word not in _COLUMNS:
            continue
        what, units = _COLUMNS[word]
        if unit not in units:
            raise _Mistake(1, f"the column `{_shorten(name)}` has no unit of {', '.join(units)}")
        if what in found:
            raise _Mistake(1, f"two columns are a {what}")
        found[what] = (position, units[unit])
    if "rate" not in found:
        raise _Mistake(1, "no column is a rate: the first line has names such as time_s,rate_bps")
    return found


def _read_csv(text: str, interval_s: float | None) -> Iterator[_Segment]:
    """Read rows with a rate, and with the times and delays that the header names."""
    before: dict[str, float] = {}
    length: float | None = None
    for line, values in _read_rows(text, interval_s):
        if before:
            if "duration" not in values:
                before["duration"] = _elapsed(line, before["time"], values["time"])
            elif "time" in values:
                end = before["time"] + before["duration"]
                _check_start(line, "this line", values["time"], end)
            length = before["duration"]
            yield _csv_segment(before)
        before = values
    if not before:
        raise _Mistake(None, "no rates")
    if "duration" not in before:
        if length is None:
            raise _Mistake(None, "one line with a time has no duration")
        before["duration"] = length
    yield _csv_segment(before)


def _read_rows(text: str, interval_s: float | None) -> Iterator[tuple[int, dict[str, float]]]:
    """Read the numbers of each row in base units, with the number of its line."""
    reader = csv.reader(io.StringIO(text))
    header = next(reader, [])
    columns = _read_header(header)
    times = not columns.keys().isdisjoint(("time", "duration"))
    if times == (interval_s is not None):
        problem = "a column is a time: leave out" if times else "no column is a time: add"
        raise _Mistake(1, f"{problem} --interval, the duration of a line")
    for row in reader:
        line = reader.line_num
        if len(row) != len(header):
            raise _Mistake(line, f"the first line has {len(header)} columns, this one {len(row)}")
        values = {
            what: _number(line, row[position], f"a {what}") * unit
            for what, (position, unit) in columns.items()
        }
        if interval_s is not None:
            values["duration"] = interval_s
        if values.get("duration") == 0:
            raise _Mistake(line, "a duration is above 0")
        yield line, values


def _csv_segment(values: dict[str, float]) -> _Segment:
    return _Segment(values["duration"], values["rate"], values.get("delay", math.nan))


def _check_start(line: int | None, what: str, start: float, end: float) -> None:
    """Check that a segment begins at the end of the one before."""
    if not math.isclose(start, end, rel_tol=1e-15, abs_tol=_AGREEMENT_S):
        raise _Mistake(
            line,
            f"{what} begins at {_decimal(start)} s and the one before ends at {_decimal(end)} s: "
            "leave no gap and no overlap; a time without capacity has a rate of 0",
        )


def _write_csv(trace: LinkTrace) -> str:
    columns = {
        "time_s": trace.ends_s - trace.durations_s,
        "duration_s": trace.durations_s,
        "rate_bps": trace.rates_bps,
    }
    if trace.delays_s is not None:
        columns["delay_s"] = trace.delays_s
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    lines = [",".join(columns), *(",".join(map(_decimal, row)) for row in rows)]
    return "".join(f"{line}\n" for line in lines)


_NETEM_RATE_BPS = 12e6
_NETEM_DURATION_S = 1.0
"""Defaults of netem-trace's `StaticBwConfig`."""
_NETEM_TIMES = {
    **dict.fromkeys(("ns", "nsec"), 1e-9),
    **dict.fromkeys(("us", "µs", "usec"), 1e-6),
    **dict.fromkeys(("ms", "msec"), 1e-3),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3600.0),
}
_PART = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zµ]+)")


def _read_netem(text: str, _: float | None) -> Iterator[_Segment]:
    """Read netem-trace's series of a rate, or a model without random numbers."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as mistake:
        raise _Mistake(mistake.lineno, f"not JSON: {mistake.msg}") from None
    except ValueError:
        raise _Mistake(None, "not JSON: a number has too many digits") from None
    if isinstance(document, list):
        if not document:
            raise _Mistake(None, "no rates")
        end: float | None = None
        for number, point in enumerate(document):
            at = f"[{number}]"
            values = _object(at, point, "start_time", "value", "duration")
            start = _json_number(values["start_time"], f"the start of {at}, in seconds")
            duration = _json_number(values["duration"], f"the duration of {at}, in seconds")
            if end is not None:
                _check_start(None, at, start, end)
            end = start + duration
            yield _segment(f"{at}.duration", duration, _rate(f"{at}.value", values["value"]))
    else:
        yield from _limit("the document", _model("", document, whole=True), MAX_LINES)


def _model(at: str, document: object, *, whole: bool) -> Iterator[_Segment]:
    """Read a model; ``whole`` is whether it is not in another one."""
    if not isinstance(document, dict) or len(document) != 1:
        raise _Mistake(None, f"{at or 'the document'}: not a series of points or a model")
    name, values = next(iter(document.items()))
    at = f"{at}.{_shorten(name)}" if at else _shorten(name)
    if name not in _MODELS:
        problem = f"of the models, {', '.join(_MODELS)} are read; write the series of another one"
        raise _Mistake(None, f"{at}: {problem}")
    yield from _MODELS[name](at, _object(at, values), whole)


def _static(at: str, values: JsonObject, _: bool) -> Iterator[_Segment]:  # noqa: FBT001
    rate, duration = values.get("bw"), values.get("duration")
    yield _segment(
        at,
        _NETEM_DURATION_S if duration is None else _duration(f"{at}.duration", duration),
        _NETEM_RATE_BPS if rate is None else _rate(f"{at}.bw", rate),
    )


def _replayed(at: str, values: JsonObject, _: bool) -> Iterator[_Segment]:  # noqa: FBT001
    """Read rates by the time for which they hold."""
    for number, item in enumerate(_list(f"{at}.pattern", values.get("pattern"))):
        place = f"{at}.pattern[{number}]"
        if not isinstance(item, list) or len(item) != 2:
            raise _Mistake(None, f"{place}: not a duration and a list of rates")
        duration = _duration(place, item[0])
        for rate in _list(place, item[1]):
            yield _segment(place, duration, _rate(place, rate))


def _repeated(at: str, values: JsonObject, whole: bool) -> Iterator[_Segment]:  # noqa: FBT001
    """Read a pattern as often as it repeats; once if that is for ever, a count of 0."""
    pattern, count = _list(f"{at}.pattern", values.get("pattern")), values.get("count", 0)
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise _Mistake(None, f"{at}.count: `{_shorten(count)}` is not a whole number")
    if not count and not whole:
        raise _Mistake(
            None, f"{at}: a pattern in another one does not repeat for ever: write its count"
        )
    segments: Iterable[_Segment] = (
        segment
        for number, item in enumerate(pattern)
        for segment in _model(f"{at}.pattern[{number}]", item, whole=False)
    )
    if count > 1:
        segments = list(_limit(at, segments, MAX_LINES // count)) * count
    yield from segments


def _limit(at: str, segments: Iterable[_Segment], most: int) -> Iterator[_Segment]:
    """Yield segments, of which there are so few that all repetitions have at most `MAX_LINES`."""
    for number, segment in enumerate(segments):
        if number >= most:
            raise _Mistake(None, f"{at}: more than {MAX_LINES} rates")
        yield segment


_MODELS = {
    "StaticBwConfig": _static,
    "TraceBwConfig": _replayed,
    "RepeatedBwPatternConfig": _repeated,
}
"""netem-trace's models of rates without random numbers."""


def _object(at: str, value: object, *required: str) -> JsonObject:
    if not isinstance(value, dict) or not value.keys() >= set(required):
        raise _Mistake(None, f"{at}: not an object with {', '.join(required) or 'values'}")
    return value


def _list(at: str, value: object) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise _Mistake(None, f"{at}: not a list with items")
    return value


def _segment(at: str, duration: float, rate: float) -> _Segment:
    if duration == 0:
        raise _Mistake(None, f"{at}: a duration is above 0")
    return _Segment(duration, rate)


def _rate(at: str, value: object) -> float:
    """Read a rate: gigabits and bits per second, or text such as `1Gbps 500Mbps`."""
    if isinstance(value, dict):
        parts = [(value.get("gbps", 0), 1e9), (value.get("bps", 0), 1.0)]
        return sum(_json_number(part, f"a rate at {at}") * unit for part, unit in parts)
    return _parts(at, value, _RATE_UNITS, "12Mbps")


def _duration(at: str, value: object) -> float:
    """Read a duration: seconds and nanoseconds, or text such as `1s 500ms`."""
    if isinstance(value, dict):
        parts = [(value.get("secs", 0), 1.0), (value.get("nanos", 0), 1e-9)]
        return sum(_json_number(part, f"a duration at {at}") * unit for part, unit in parts)
    return _parts(at, value, _NETEM_TIMES, "1s 500ms")


def _parts(at: str, value: object, units: dict[str, float], example: str) -> float:
    """Add up the parts of a text with units."""
    # Megabytes are not rates of netem-trace.
    text = value.lower() if isinstance(value, str) and "B" not in value else ""
    found = _PART.findall(text)
    if not found or _PART.sub("", text).strip() or any(unit not in units for _, unit in found):
        raise _Mistake(None, f"{at}: `{_shorten(value)}` is not like {example}")
    return sum(float(number) * units[unit] for number, unit in found)


def _write_netem(trace: LinkTrace) -> str:
    """Write a series of points, as `write_bw_series_json` does."""
    points = []
    starts = trace.ends_s - trace.durations_s
    rates = _written_rates(trace, np.rint(trace.rates_bps), "netem-trace")
    columns = (starts.tolist(), trace.durations_s.tolist(), rates.astype(int).tolist())
    for start, duration, rate in zip(*columns, strict=True):
        gigabits, bits = divmod(rate, 10**9)
        value = {"gbps": gigabits, "bps": bits}
        points.append({"start_time": round(start, 9), "value": value, "duration": duration})
    return json.dumps(points) + "\n"


_FUNCTIONS = (
    _Format(_read_mahimahi, _write_mahimahi),
    _Format(_read_pensieve, _write_pensieve),
    _Format(_read_netem, _write_netem),
    _Format(_read_csv, _write_csv),
)
FORMATS = dict(zip(TRACE_FORMATS, _FUNCTIONS, strict=True))
"""The formats of traces."""
