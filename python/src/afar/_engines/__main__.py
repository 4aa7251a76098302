"""``python -m afar._engines ENGINE --directory DIR --afar PATH``: what ``afar`` starts."""

from __future__ import annotations

import argparse
import signal
import sys
from typing import Any

from ._driver import Driver, EngineError
from ._plan import Plan


def engine(name: str, plan: Plan, options: argparse.Namespace) -> Any:
    """The engine of a name; raises EngineError if it is not installed."""
    if name == "dask":
        from ._dask import Dask

        return Dask(plan, options.at, options.jobs)
    if name == "ray":
        from ._ray import Ray

        return Ray(plan, options.at, options.jobs)
    from ._slurm import Slurm

    return Slurm(plan, options.at, options.jobs)


def interrupted(_number: int, _frame: object) -> None:
    """A request to end is a Ctrl-C."""
    raise KeyboardInterrupt


def main() -> int:
    """Has an engine do what is not done; the exit status says how that went."""
    parser = argparse.ArgumentParser(prog="python -m afar._engines")
    parser.add_argument("engine", choices=("dask", "slurm", "ray"))
    parser.add_argument("--directory", required=True)
    parser.add_argument("--afar", required=True)
    parser.add_argument("--at", default=None)
    parser.add_argument("--jobs", type=int, default=None)
    parser.add_argument("--measured", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, interrupted)
    signal.signal(signal.SIGTERM, interrupted)
    try:
        plan = Plan(options.directory, options.afar, measured=options.measured)
        if plan.missing():
            with engine(options.engine, plan, options) as found:
                Driver(plan, found).run()
    except KeyboardInterrupt:
        return 130
    except EngineError as error:
        sys.stderr.write(f"\nafar: {error}\n")
        return error.status
    return 0


# Dask starts its workers from a module that may be imported again.
if __name__ == "__main__":
    sys.exit(main())
