"""Tables of results, for pandas, polars and everything that reads Arrow.

None of those libraries is needed until a method asks for one. Names of columns end with the unit
(``_ns``, ``_bytes``, ``_per_sec``); Arrow fields have it as metadata, too, under ``unit``.
"""

from __future__ import annotations

import importlib
import os
from typing import (
    TYPE_CHECKING,
    Any,
    Dict,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
)

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

__all__ = ["Table"]

# What names of columns end with, and the unit that stands for, the longest endings first.
_UNITS: Tuple[Tuple[str, str], ...] = (
    ("_bits_per_sec", "bit/s"),
    ("_bytes_per_sec", "B/s"),
    ("_per_sec", "1/s"),
    ("_bytes", "B"),
    ("_share", "1"),
    ("_count", "1"),
    ("_bps", "bit/s"),
    ("_seconds", "s"),
    ("_ns", "ns"),
    ("_us", "us"),
    ("_ms", "ms"),
    ("_ps", "ps"),
    ("_s", "s"),
)


def unit_of(column: str) -> Optional[str]:
    """The unit that the name of a column ends with, or None."""
    last = "_" + column.rsplit(".", 1)[-1]
    return next((unit for ending, unit in _UNITS if last.endswith(ending)), None)


class Table:
    """Rows of a result, from a record or from a Parquet file.

    A Parquet file is read when somebody asks for its rows, and not before.
    """

    def __init__(
        self,
        rows: Optional[Sequence[Mapping[str, Any]]] = None,
        *,
        parquet: "Optional[Union[str, os.PathLike[str]]]" = None,
    ) -> None:
        if (rows is None) == (parquet is None):
            raise TypeError("a table has rows, or a Parquet file")
        self.parquet = None if parquet is None else os.fspath(parquet)
        self._rows = None if rows is None else [_flat(row) for row in rows]

    @property
    def columns(self) -> List[str]:
        """The names of the columns, in order."""
        if self._rows is None:
            return list(self._arrow().column_names)
        return list({name: None for row in self._rows for name in row})

    @property
    def units(self) -> Dict[str, str]:
        """The units of those columns whose names have one."""
        named = ((column, unit_of(column)) for column in self.columns)
        return {column: unit for column, unit in named if unit}

    def rows(self) -> List[Dict[str, Any]]:
        """All rows, each by names of columns; those of a Parquet file need pyarrow or polars."""
        if self._rows is not None:
            return [dict(row) for row in self._rows]
        if _there("pyarrow"):
            found: List[Dict[str, Any]] = self._arrow().to_pylist()
            return found
        return list(self.to_polars().to_dicts())

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        return iter(self.rows())

    def __len__(self) -> int:
        return len(self.rows()) if self._rows is None else len(self._rows)

    def to_arrow(self) -> "pyarrow.Table":
        """As a table of pyarrow; fields have their ``unit`` as metadata."""
        table = self._arrow()
        fields = [
            field.with_metadata({**(field.metadata or {}), b"unit": unit.encode()})
            if (unit := unit_of(field.name))
            else field
            for field in table.schema
        ]
        arrow = _library("pyarrow")
        schema = arrow.schema(fields, metadata=table.schema.metadata)
        return table.cast(schema)

    def to_pandas(self) -> "pandas.DataFrame":
        """As a frame of pandas; ``attrs["units"]`` has the units."""
        pandas = _library("pandas")
        if self._rows is None:
            frame = pandas.read_parquet(self.parquet)
        else:
            frame = pandas.DataFrame.from_records(self._rows, columns=self.columns)
        frame.attrs["units"] = {
            name: unit for name in frame.columns if (unit := unit_of(str(name)))
        }
        return frame

    def to_polars(self) -> "polars.DataFrame":
        """As a frame of polars, which keeps no units."""
        polars = _library("polars")
        if self._rows is None:
            return polars.read_parquet(self.parquet)
        return polars.DataFrame(self._rows, schema=self.columns, infer_schema_length=None)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The Arrow PyCapsule interface, through pyarrow or else polars."""
        if _there("pyarrow"):
            return self.to_arrow().__arrow_c_stream__(requested_schema)
        if _there("polars"):
            return self.to_polars().__arrow_c_stream__(requested_schema)
        raise ImportError("Arrow needs pyarrow or polars: pip install pyarrow")

    def _arrow(self) -> Any:
        arrow = _library("pyarrow")
        if self._rows is None:
            parquet = _library("pyarrow.parquet")
            return parquet.read_table(self.parquet)
        columns = {name: [row.get(name) for row in self._rows] for name in self.columns}
        return arrow.table(columns)

    def __repr__(self) -> str:
        if self._rows is None:
            return f"<afar.Table of {self.parquet}>"
        return f"<afar.Table of {len(self._rows)} rows: {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        from html import escape

        shown = self.rows()[:_SHOWN]
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>"
            + "".join(f"<td>{escape(_cell(row.get(name)))}</td>" for name in self.columns)
            + "</tr>"
            for row in shown
        )
        more = len(self) - len(shown)
        note = f"<p>{more} more rows</p>" if more else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


# Rows of a table in a notebook.
_SHOWN = 50
# Letters of a cell there.
_CELL = 60


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _CELL else text[: _CELL - 1] + "…"


def _flat(row: Mapping[str, Any], path: str = "") -> Dict[str, Any]:
    """A row whose objects are columns of their own: ``slowdown.median``."""
    flat: Dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, Mapping):
            flat.update(_flat(value, f"{path}{key}."))
        else:
            flat[path + key] = value
    return flat


def _there(library: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(library) is not None


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        home = name.partition(".")[0]
        raise ImportError(f"this needs {home}: pip install {home}") from error
