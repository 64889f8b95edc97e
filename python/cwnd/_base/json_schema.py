"""JSON Schemas of documents, from the types that describe them."""

from __future__ import annotations

import dataclasses
import inspect
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

if TYPE_CHECKING:
    from cwnd._base.records import JsonObject

DIALECT = "https://json-schema.org/draft/2020-12/schema"
"""The version of JSON Schema."""

_SCALARS: dict[object, JsonObject] = {
    Any: {},
    object: {},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    # NaN and infinity are null.
    float: {"type": ["number", "null"]},
    str: {"type": "string"},
    NoneType: {"type": "null"},
}


def json_schema(title: str, kind: object) -> JsonObject:
    """Return the JSON Schema of a document of a type.

    Types are those of JSON, lists, tuples of fixed lengths, dictionaries, literals, unions, and
    classes: typed dictionaries, dataclasses and named tuples. Later versions may add keys.
    """
    definitions: JsonObject = {}
    found = _schema(kind, definitions)
    return {"$schema": DIALECT, "title": title, **found, "$defs": definitions}


def _schema(kind: Any, definitions: JsonObject) -> JsonObject:  # noqa: ANN401
    """Return the schema of a type, and add the classes that it names to the definitions."""
    origin, parts = get_origin(kind), get_args(kind)
    if kind in _SCALARS or origin is Literal:
        return {"enum": list(parts)} if parts else dict(_SCALARS[kind])
    if origin in (Union, UnionType):
        return {"anyOf": [_schema(part, definitions) for part in parts]}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(parts[1], definitions)}
    if origin in (list, tuple):
        items = [_schema(part, definitions) for part in parts]
        fixed = {"prefixItems": items, "minItems": len(items), "items": False}
        return {"type": "array", **(fixed if origin is tuple else {"items": items[0]})}
    if kind.__name__ not in definitions:
        definitions[kind.__name__] = {}
        definitions[kind.__name__] |= _object(kind, definitions)
    return {"$ref": f"#/$defs/{kind.__name__}"}


def _object(kind: Any, definitions: JsonObject) -> JsonObject:  # noqa: ANN401
    """Return the schema of a class."""
    hints = get_type_hints(kind, localns={"JsonObject": dict[str, Any]})
    names = list(hints)
    if is_typeddict(kind):
        names = [name for name in hints if name in kind.__required_keys__]
    elif dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
    properties = {name: _schema(hint, definitions) for name, hint in hints.items()}
    about = (inspect.getdoc(kind) or "").partition("\n\n")[0]
    return {
        "description": " ".join(about.split()),
        "type": "object",
        "required": names,
        "properties": properties,
    }
