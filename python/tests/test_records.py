"""Records and their tables, without the program."""

import json

import pytest

import afar
from afar.tables import unit_of


def test_every_kind_is_read_and_saved_as_it_was(goldens, tmp_path):
    for path in goldens:
        record = afar.read(path)
        kept = tmp_path / path.name
        record.save(kept)
        assert json.loads(kept.read_text()) == json.loads(path.read_text()), path
        assert record.to_dict() == dict(record), path


def test_every_kind_that_has_rows_has_a_table(goldens):
    for path in goldens:
        record = afar.read(path)
        if record.kind in ("afar.order", "afar.run", "afar.report", "afar.version", "afar.watch"):
            with pytest.raises(KeyError, match="has no table"):
                record.table()
        else:
            table = record.table()
            assert len(table) > 0, path
            assert table.rows()[0].keys() <= set(table.columns), path


def test_nested_fields_are_columns_and_have_units():
    record = afar.Record(
        {
            "schema": "afar.findings/3",
            "cells": [{"local_bytes": 1, "slowdown": {"median": 2.0}}, {"rtt_ns": 5}],
        }
    )
    table = record.table()
    assert table.columns == ["local_bytes", "slowdown.median", "rtt_ns"]
    assert table.units == {"local_bytes": "B", "rtt_ns": "ns"}


@pytest.mark.parametrize(
    ("column", "unit"),
    [
        ("goodput_bits_per_sec", "bit/s"),
        ("bandwidth_bps", "bit/s"),
        ("requested_ns", "ns"),
        ("page_p99_us", "us"),
        ("a.seconds", "s"),
        ("fetch_count", "1"),
        ("name", None),
    ],
)
def test_a_unit_is_the_end_of_a_name(column, unit):
    assert unit_of(column) == unit


def test_an_invalid_record_says_why(goldens):
    runs = [afar.read(path) for path in goldens if path.name == "run.json"]
    assert not runs[0].valid
    assert "was not managed" in runs[0].invalid[0]
    assert "INVALID" in repr(runs[0])


def test_a_reason_alone_makes_a_record_invalid():
    record = afar.Record({"schema": "afar.loop/4", "invalid": "stayed local", "rounds": []})
    assert not record.valid
    assert record.invalid == ["stayed local"]


def test_a_table_that_is_not_there_is_named_with_those_that_are():
    record = afar.Record({"schema": "afar.loop/4", "rounds": [{"seconds": 1}]})
    with pytest.raises(KeyError, match="it has: rounds"):
        record.table("cells")


def test_what_is_no_record_is_refused(tmp_path):
    path = tmp_path / "list.json"
    path.write_text("[]")
    with pytest.raises(ValueError, match="is no record"):
        afar.read(path)


def test_tables_go_to_libraries_with_units():
    pyarrow = pytest.importorskip("pyarrow")
    rows = [{"rtt_ns": 5, "slowdown": {"median": 1.5}}, {"rtt_ns": 10, "slowdown": None}]
    table = afar.Table(rows)
    arrow = table.to_arrow()
    assert arrow.field("rtt_ns").metadata == {b"unit": b"ns"}
    assert arrow.num_rows == 2
    assert pyarrow.table(table).equals(arrow)


def test_tables_go_to_pandas():
    pytest.importorskip("pandas")
    frame = afar.Table([{"rtt_ns": 5, "name": "a"}]).to_pandas()
    assert list(frame.columns) == ["rtt_ns", "name"]
    assert frame.attrs["units"] == {"rtt_ns": "ns"}


def test_tables_go_to_polars():
    polars = pytest.importorskip("polars")
    table = afar.Table([{"rtt_ns": 5}, {"rtt_ns": None}])
    assert table.to_polars().to_dicts() == [{"rtt_ns": 5}, {"rtt_ns": None}]
    if hasattr(polars.DataFrame, "__arrow_c_stream__"):
        assert polars.DataFrame(table).shape == (2, 1)
