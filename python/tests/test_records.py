"""The records of Rust, and what is generated from them."""

import importlib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_types_and_tables_of_records_are_those_of_rust(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    for path, text in importlib.import_module("records").generated().items():
        assert path.read_text(encoding="utf-8") == text, "run `python bench/records.py`"


def test_a_record_has_the_keys_of_its_type(result):
    from cwnd._base import records

    assert set(result.record) == records.RunRecord.__required_keys__
    assert set(result.record["flows"][0]) == records.FlowRecord.__required_keys__
    assert set(result.record["links"][0]) == records.LinkRecord.__required_keys__
