"""JSON Schema of report cards."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from cwnd._base.json_schema import DIALECT
from cwnd._experiments.bound import GRADES
from cwnd._experiments.experiment import BACKENDS
from cwnd._runs.defaults import STACKS
from cwnd.metrics.catalog import Dimension

if TYPE_CHECKING:
    from cwnd._base.records import JsonObject

_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_THRESHOLD = {"type": ["number", "null"]}
_GRADE = {"$ref": "#/$defs/Grade"}
_FIGURE = {"$ref": "#/$defs/Figure"}
_COUNT = {"type": "integer", "minimum": 0}


def card_schema() -> JsonObject:
    """Return the JSON Schema of `Card.to_json`."""
    return {
        "$schema": DIALECT,
        "title": "Report card of a controller",
        "$ref": "#/$defs/Card",
        "$defs": _definitions(),
    }


def evaluation_schema() -> JsonObject:
    """Return the JSON Schema of the document of ``cwnd evaluate --json``."""
    return {
        "$schema": DIALECT,
        "title": "Report cards of controllers",
        **_object(cards=_list("Card"), changes=_TEXTS),
        "$defs": _definitions(),
    }


def _definitions() -> JsonObject:
    """Return the parts of a card."""
    estimate = {"mean": {"type": ["number", "null"]}, "interval": _or_null("Interval")}
    interval = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
    figure = {"$ref": "#/$defs/Estimate"}
    suspect: dict[str, JsonObject] = {
        **dict.fromkeys(("objective", "metric", "test", "verdict", "sentence"), _TEXT),
        "fails": _TEXTS,
        "network": {"type": "object"},
        "reduced": {"type": "boolean"},
        **dict.fromkeys(("size", "value", "reference"), figure),
        "seeds": {"type": "array", "items": _COUNT},
        "errors": _TEXTS,
        "sensitivity": {"type": "array", "items": {"type": "object"}},
        "confirmation": {"type": "null"},
    }
    section = {"type": "string", "pattern": r"^[567](\.[0-9]+)+$"}
    return {
        "Card": _object(
            schema={"const": 1},
            controller=_TEXT,
            hash={"type": ["string", "null"]},
            suite=_TEXT,
            quick={"type": "boolean"},
            on={"enum": list(BACKENDS)},
            stack={"enum": [*STACKS, None]},
            conventions=_TEXTS,
            badge=_TEXT,
            sections=_list("Section"),
            counts={
                "type": "object",
                "propertyNames": _GRADE,
                "additionalProperties": {"type": "integer", "minimum": 1},
            },
            tests=_list("Test"),
            search=_or_null("Search"),
        ),
        "Section": _object(
            section=section,
            title=_TEXT,
            grade=_GRADE,
            networks=_COUNT,
            of=_COUNT,
            seeds={"type": "array", "items": _COUNT, "minItems": 2, "maxItems": 2},
        ),
        "Test": _object(
            id=_TEXT,
            section=section,
            title=_TEXT,
            suites=_TEXTS,
            grade=_GRADE,
            finding=_TEXT,
            metric=_TEXT,
            dimension={"enum": list(get_args(Dimension))},
            meets={**_TEXTS, "minItems": 1},
            fails={**_TEXTS, "minItems": 1},
            experiment=_TEXT,
            networks=_COUNT,
            baseline=_TEXT,
            reason=_TEXT,
            source=_TEXT,
            problem=_TEXT,
            cells=_list("Cell"),
            command=_TEXT,
        ),
        "Cell": _object(
            cell=_TEXT,
            grade=_GRADE,
            value=_FIGURE,
            baseline=_FIGURE,
            ratio=_or_null("Estimate"),
            meets=_THRESHOLD,
            fails=_THRESHOLD,
            failures=_TEXTS,
        ),
        "Search": _object(
            controller=_TEXT,
            against=_TEXT,
            runs=_COUNT,
            out=_TEXT,
            findings=_list("Finding"),
            rejected=_list("Suspect"),
            front={"type": "array", "items": {"type": "object"}},
        ),
        "Finding": _object(**suspect, file=_TEXT),
        "Suspect": _object(**suspect),
        "Estimate": _object(**estimate),
        "Figure": _object(**estimate, values={"type": "array", "items": _THRESHOLD}),
        "Interval": interval,
        "Grade": {"enum": list(GRADES)},
    }


def _object(**properties: JsonObject) -> JsonObject:
    """Return the schema of an object with these keys; later versions may add others."""
    return {"type": "object", "required": list(properties), "properties": properties}


def _or_null(name: str) -> JsonObject:
    """Return the schema of a definition that may be missing."""
    return {"anyOf": [{"$ref": f"#/$defs/{name}"}, {"type": "null"}]}


def _list(name: str) -> JsonObject:
    """Return the schema of a list of a definition."""
    return {"type": "array", "items": {"$ref": f"#/$defs/{name}"}}
