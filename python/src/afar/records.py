"""What commands have measured or computed: the records that they write, and their tables."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Union

from .tables import Table

if TYPE_CHECKING:
    Path = Union[str, "os.PathLike[str]"]

__all__ = ["Record", "read"]

# The list of a record that is its table, by kind of record.
_TABLES: Dict[str, str] = {
    "afar.doctor": "checks",
    "afar.findings": "cells",
    "afar.disks": "disks",
    "afar.kv.serve": "results.operations",
    "afar.loop": "rounds",
    "afar.plan.admit": "tenants",
    "afar.plan.cost": "tenants",
    "afar.plan.cost.map": "cells",
    "afar.plan.fleet": "dimensions",
    "afar.plan.latency": "paths",
    "afar.plan.place": "tenants",
    "afar.plan.pool": "programs",
    "afar.prediction": "points",
    "afar.reproduce": "points",
    "afar.requirement": "requirements",
    "afar.sim": "figures.bins",
    "afar.sim.findings": "runs",
    "afar.sim.sensitivity": "runs",
    "afar.torture": "results.cases",
    "afar.validation": "emulated",
    "fio": "jobs",
}


class Record(Mapping[str, Any]):
    """A record, as the mapping that the command wrote: ``record["results"]["elapsed_ns"]``.

    ``exit_status`` is that of the command, or of the program that ``afar run`` ran.
    """

    def __init__(self, document: Mapping[str, Any], *, exit_status: int = 0) -> None:
        self._document = dict(document)
        self.exit_status = exit_status
        self.attachments: Dict[str, Table] = {}

    @property
    def schema(self) -> str:
        """The kind of record and its version, such as ``afar.run/2``."""
        return str(self._document.get("schema", "fio" if "fio version" in self._document else ""))

    @property
    def kind(self) -> str:
        """The schema without its version."""
        return self.schema.partition("/")[0]

    @property
    def valid(self) -> bool:
        """Whether something follows from the figures; ``invalid`` has the reasons if not."""
        return not self.invalid and bool(self._results().get("valid", True))

    @property
    def invalid(self) -> List[str]:
        """Why nothing follows from the figures; empty if something does."""
        found = self._results().get("invalid") or self._document.get("invalid") or []
        found = [found] if isinstance(found, (str, Mapping)) else found
        return [each["reason"] if isinstance(each, Mapping) else str(each) for each in found]

    def has_ended(self, status: int) -> bool:
        """Whether an exit status is that of the program that the command ran, and no failure."""
        return False

    def table(self, name: Optional[str] = None) -> Table:
        """A table of the record: a list in it by its path, or an attachment by its name.

        Without a name it is the table that people look for first: cells of a sweep, points of a
        prediction. Raises KeyError, with the names there are.
        """
        if name in self.attachments:
            return self.attachments[name]
        chosen = _TABLES.get(self.kind) if name is None else name
        if chosen is None and self.attachments:
            return next(iter(self.attachments.values()))
        found: Any = self._document
        for key in chosen.split(".") if chosen else []:
            found = found.get(key) if isinstance(found, Mapping) else None
        if not isinstance(found, list) or not all(isinstance(row, Mapping) for row in found):
            raise KeyError(f"{self.schema} has no table {name or ''}; it has: {self._tables()}")
        return Table(found)

    def _tables(self) -> str:
        return ", ".join([*self.attachments, *_lists(self._document)]) or "none"

    def to_pandas(self) -> Any:
        """``table()`` as a frame of pandas."""
        return self.table().to_pandas()

    def to_polars(self) -> Any:
        """``table()`` as a frame of polars."""
        return self.table().to_polars()

    def to_arrow(self) -> Any:
        """``table()`` as a table of pyarrow."""
        return self.table().to_arrow()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table().__arrow_c_stream__(requested_schema)

    def to_dict(self) -> Dict[str, Any]:
        """The whole record, as the command wrote it."""
        copy: Dict[str, Any] = json.loads(json.dumps(self._document))
        return copy

    def save(self, path: "Path") -> None:
        """Writes the record as the command would: for ``afar report``, or to read again."""
        text = json.dumps(self._document, indent=2, ensure_ascii=False) + "\n"
        part = os.fspath(path) + ".part"
        with open(part, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(part, path)

    def report(self, path: "Path") -> None:
        """Writes the page of ``afar report`` about this record."""
        from . import _pages

        _pages.write(self, path)

    def _results(self) -> Mapping[str, Any]:
        results = self._document.get("results")
        return results if isinstance(results, Mapping) else {}

    def __getitem__(self, key: str) -> Any:
        return self._document[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._document)

    def __len__(self) -> int:
        return len(self._document)

    def __repr__(self) -> str:
        if not self.valid:
            return f"<afar record {self.schema}, INVALID: {'; '.join(self.invalid)}>"
        return f"<afar record {self.schema}: {', '.join(self)}>"

    def _repr_html_(self) -> str:
        from . import _pages

        return _pages.section(self)


def read(path: "Path") -> Record:
    """The record that a command wrote to a file with ``--json``."""
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    if not isinstance(document, dict):
        raise ValueError(f"{os.fspath(path)} is no record: it is no JSON object")
    return Record(document)


def _lists(value: Any, path: str = "") -> Iterator[str]:
    """The paths of lists of objects."""
    for key, below in value.items():
        if isinstance(below, Mapping):
            yield from _lists(below, f"{path}{key}.")
        elif isinstance(below, list) and below and isinstance(below[0], Mapping):
            yield path + key
