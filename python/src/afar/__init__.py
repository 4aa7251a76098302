"""afar: run programs with part of their memory far away, and serve, load and simulate the rest.

Each function runs the program ``afar`` and returns its record. See ``afar.commands`` for what they
have in common, ``afar.aio`` for coroutines, ``afar.errors`` for exceptions.
"""

from ._binary import find_binary
from ._calls import Run
from .commands import bench, loop, plan, predict, report, run, sim, sweep
from .errors import (
    AboveError,
    AfarError,
    BinaryMissingError,
    FailedError,
    InternalError,
    InvalidError,
    MachineError,
    NotExecutableError,
    ProgramMissingError,
    SignalledError,
    StoppedError,
    UndecidedError,
    UsageError,
)
from .records import Record, read
from .serving import Target, serve
from .tables import Table

__all__ = [
    "AboveError",
    "AfarError",
    "BinaryMissingError",
    "FailedError",
    "InternalError",
    "InvalidError",
    "MachineError",
    "NotExecutableError",
    "ProgramMissingError",
    "Record",
    "Run",
    "SignalledError",
    "StoppedError",
    "Table",
    "Target",
    "UndecidedError",
    "UsageError",
    "bench",
    "find_binary",
    "loop",
    "plan",
    "predict",
    "read",
    "report",
    "run",
    "serve",
    "sim",
    "sweep",
]


def __getattr__(name: str) -> object:
    """``afar.aio`` and ``afar.__version__``, when somebody asks for them."""
    if name == "aio":
        from importlib import import_module

        return import_module("afar.aio")
    if name == "__version__":
        from importlib.metadata import version

        return version("afar")
    raise AttributeError(f"module afar has no attribute {name}")
