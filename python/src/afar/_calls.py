"""The commands as calls: what a function of this package asks the program to do.

``commands`` runs them in the calling thread, ``aio`` in an event loop; both have the names and
documentation of the functions here.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Type, Union

from . import _progress
from ._arguments import spellings, toml, words
from ._flags import FLAGS
from ._process import Call, R
from .records import Record
from .tables import Table

if TYPE_CHECKING:
    from typing_extensions import TypedDict, Unpack

    from . import _flag_types
    from ._progress import Progress

    Path = Union[str, "os.PathLike[str]"]
    Document = Union[Path, Mapping[str, Any]]

    class Options(TypedDict, total=False):
        """How a call runs, whatever the command."""

        check: bool
        verbose: bool
        progress: Progress
        cwd: Path
        env: Mapping[str, str]
        time_limit: float

    class RunOptions(_flag_types.RunFlags, Options, total=False):
        capture: bool

    class SweepOptions(_flag_types.SweepFlags, Options, total=False): ...

    class SimOptions(_flag_types.SimFlags, Options, total=False): ...

    class LoopOptions(_flag_types.LoopFlags, Options, total=False): ...

    class BenchOptions(_flag_types.BenchFlags, Options, total=False): ...

    class PredictOptions(_flag_types.PredictFlags, Options, total=False): ...

    class ReportOptions(_flag_types.ReportFlags, Options, total=False): ...

    class CostOptions(_flag_types.PlanCostFlags, Options, total=False): ...

    class LatencyOptions(_flag_types.PlanLatencyFlags, Options, total=False): ...

    class PlaceOptions(_flag_types.PlanPlaceFlags, Options, total=False): ...

    class AdmitOptions(_flag_types.PlanAdmitFlags, Options, total=False): ...

    class PoolOptions(_flag_types.PlanPoolFlags, Options, total=False): ...

    class FleetOptions(_flag_types.PlanFleetFlags, Options, total=False): ...


_OPTIONS = ("check", "verbose", "cwd", "env", "time_limit")


# The exit status of a run that is invalid, and the kinds of reasons for which it is the program's.
_INVALID = 4
_TOO_SMALL = ("small", "nothing_far")


class Run(Record):
    """The record of one run of a program."""

    stdout: str = ""

    def has_ended(self, status: int) -> bool:
        """Whether an exit status is the program's own: afar passes it on where the run counts."""
        results = self["results"]
        own, signal = results.get("exit_status"), results.get("signal")
        if status != (own if own is not None else 128 + (signal or 0)):
            return False
        # Of a run that is too small to tell anything afar passes it on, too.
        told = [reason for reason in results["invalid"] if reason["kind"] not in _TOO_SMALL]
        return status != _INVALID or not told

    @property
    def elapsed_s(self) -> float:
        """Seconds that the program ran; afar's own start and end are left out."""
        return float(self["results"]["elapsed_ns"]) / 1e9

    @property
    def fetches(self) -> int:
        """How many pages were fetched."""
        return int(self["results"]["faults"]["fetch_count"])

    @property
    def faults(self) -> Table:
        """Every fault as a row, if the run had ``record=FILE``."""
        return self.table("faults")


def run(
    command: "Sequence[Union[str, os.PathLike[str]]]", **options: "Unpack[RunOptions]"
) -> "Call[Run]":
    """Runs a program with part of its memory far away: ``afar run``.

    ``afar.run(["sort", "big.txt"], local="25%", of="1GiB", rtt="5us", bandwidth="40Gbps")``

    Returns the record, whose ``exit_status`` is the program's own, and whose ``stdout`` has what
    the program wrote there with ``capture=True``. What it writes to standard error is passed on.
    Raises InvalidError, with the record, for a run from which nothing follows.
    """
    if isinstance(command, (str, bytes, os.PathLike)):
        raise TypeError("command is a list of words, such as ['sort', 'big.txt']")
    given: Dict[str, Any] = dict(options)
    capture = bool(given.pop("capture", False))
    attach = {"faults": os.fspath(given["record"])} if given.get("record") else None
    operands = ["--", *(os.fspath(word) for word in command)]
    return _call(Run, "run", given, operands, captures=capture, attach=attach)


def sweep(experiment: "Document", **options: "Unpack[SweepOptions]") -> "Call[Record]":
    """Runs a program under many kinds of far memory: ``afar sweep``.

    ``experiment`` is a TOML file, or what is in one as a mapping, which needs ``output=DIR``. The
    directory goes on where it was after an interruption. With ``find="5%"`` the record is the
    requirement, else it is the findings, whose table has a row for each cell.
    """
    if isinstance(experiment, Mapping) and not options.get("output"):
        raise TypeError("an experiment that is no file needs output=DIR, to go on after an end")
    return _call(Record, "sweep", dict(options), [], experiment)


def sim(settings: "Optional[Document]" = None, **options: "Unpack[SimOptions]") -> "Call[Record]":
    """Simulates a datacenter network: ``afar sim``.

    ``afar.sim(transport=["dctcp", "ndp"], load=["40%", "80%"], flows=1000, repetitions=6)``

    Lists make a run of each combination. With ``parquet=FILE`` the record has the table ``flows``.
    """
    given: Dict[str, Any] = dict(options)
    flows = given.get("parquet")
    attach = {"flows": os.fspath(flows)} if flows else None
    # A flag has one value; several stand in a file.
    several = {name: value for name, value in given.items() if isinstance(value, (list, tuple))}
    if several:
        if settings is not None and not isinstance(settings, Mapping):
            names = ", ".join(several)
            raise TypeError(f"lists of {names} go into the file {os.fspath(settings)} itself")
        lists = {name: spellings("sim", name, given.pop(name)) for name in several}
        settings = {**(settings or {}), **lists}
    return _call(Record, "sim", given, [], settings, attach=attach)


def loop(experiment: "Document", **options: "Unpack[LoopOptions]") -> "Call[Record]":
    """Runs a program under the delays that its own traffic makes: ``afar loop``."""
    if isinstance(experiment, Mapping) and not options.get("output"):
        raise TypeError("an experiment that is no file needs output=DIR for what it records")
    return _call(Record, "loop", dict(options), [], experiment)


def bench(*uris: "Path", **options: "Unpack[BenchOptions]") -> "Call[Record]":
    """Loads a disk and times its answers: ``afar bench``. The record is laid out as fio's.

    Several disks are compared with the first, and the table has a row for each.
    """
    return _call(Record, "bench", dict(options), [os.fspath(uri) for uri in uris])


def predict(
    program: "Union[Path, Sequence[Path]]", **options: "Unpack[PredictOptions]"
) -> "Call[Record]":
    """Predicts how much slower a program gets: ``afar predict``.

    ``program`` is a file that an earlier call recorded (``record=FILE``), or a list of words to run
    and watch. The table has a row for each point.
    """
    if isinstance(program, (str, os.PathLike)):
        operands = [os.fspath(program)]
    else:
        operands = ["--", *(os.fspath(word) for word in program)]
    return _call(Record, "predict", dict(options), operands)


def report(*records: "Union[Path, Record]", **options: "Unpack[ReportOptions]") -> "Call[Record]":
    """Says what records come to: ``afar report``, as pages, pictures and words.

    Records are files, directories of sweeps and simulations, or what other calls returned.
    """
    return _call(Record, "report", dict(options), [], reported=records)


def plan_cost(
    file: "Optional[Document]" = None, **options: "Unpack[CostOptions]"
) -> "Call[Record]":
    """Compares servers that have flash of their own with pools: ``afar plan cost``."""
    return _call(Record, "plan cost", dict(options), [], file)


def plan_latency(
    file: "Optional[Document]" = None, **options: "Unpack[LatencyOptions]"
) -> "Call[Record]":
    """Adds up what a remote page costs by parts: ``afar plan latency``."""
    return _call(Record, "plan latency", dict(options), [], file)


def plan_place(
    file: "Optional[Document]" = None, **options: "Unpack[PlaceOptions]"
) -> "Call[Record]":
    """Finds servers for tenants, as few as can be: ``afar plan place``."""
    return _call(Record, "plan place", dict(options), [], file)


def plan_admit(
    file: "Optional[Document]" = None, **options: "Unpack[AdmitOptions]"
) -> "Call[Record]":
    """Says which tenants may share a flash device: ``afar plan admit``."""
    return _call(Record, "plan admit", dict(options), [], file)


def plan_pool(
    file: "Optional[Document]" = None, **options: "Unpack[PoolOptions]"
) -> "Call[Record]":
    """Says how much memory servers need, and how large a pool: ``afar plan pool``."""
    return _call(Record, "plan pool", dict(options), [], file)


def plan_fleet(**options: "Unpack[FleetOptions]") -> "Call[Record]":
    """Turns a trace of a cluster, or a seed, into files for other plans: ``afar plan fleet``."""
    return _call(Record, "plan fleet", dict(options), [])


def _call(
    kind: "Type[R]",
    command: str,
    options: "Dict[str, Any]",
    operands: "List[str]",
    document: "Optional[Document]" = None,
    *,
    reported: "Sequence[Union[Path, Record]]" = (),
    **further: Any,
) -> "Call[R]":
    chosen = {name: options.pop(name) for name in _OPTIONS if name in options}
    # What a program says stands alone, unless somebody wants to see how it goes.
    progress = options.pop("progress", False if command == "run" else None)
    watcher = _progress.watcher(progress) if command in QUIET else None
    flags = words(command, options)
    if command in QUIET and watcher is None and not chosen.get("verbose"):
        flags.append("--quiet")
    further["watcher"] = watcher
    text = None
    if isinstance(document, Mapping):
        text = toml(document)
    elif document is not None:
        operands = [os.fspath(document), *operands]
    return Call(
        kind, command, flags, operands, document=text, records=reported, **chosen, **further
    )


# Commands that can be told to print errors only.
QUIET = frozenset(("run", "sweep", "sim", "loop", "bench", "predict", "serve"))
assert QUIET <= FLAGS.keys()
