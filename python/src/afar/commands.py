"""The commands of afar as functions that return when the command has ended.

Flags of the command line are keywords: ``--in-flight 8`` is ``in_flight=8``. A value is a text as
the command line has it, a number, a path, a ``timedelta``, a list, or a mapping for ``KEY=VALUE``;
a float between 0 and 1 is a share where a size or share is due. Further keywords of every function:
``check=False`` returns the record of a command that did not succeed, if it wrote one.
``progress`` is False, True, or a function that gets each text; without it, progress is shown in a
terminal and in a notebook, but for ``run``. ``verbose=True`` passes on what the command writes to
standard error; ``cwd`` and ``env`` are those of its process; ``time_limit`` ends it after so many
seconds.

Ctrl-C interrupts the command, waits
until it has put back what it changed, and raises KeyboardInterrupt.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Callable

from . import _calls
from ._process import Call, R, drive

if TYPE_CHECKING:
    from typing_extensions import ParamSpec

    P = ParamSpec("P")


def _now(build: "Callable[P, Call[R]]") -> "Callable[P, R]":
    @functools.wraps(build)
    def command(*positional: "P.args", **named: "P.kwargs") -> "R":
        return drive(build(*positional, **named))

    return command


run = _now(_calls.run)
sweep = _now(_calls.sweep)
sim = _now(_calls.sim)
loop = _now(_calls.loop)
bench = _now(_calls.bench)
predict = _now(_calls.predict)
report = _now(_calls.report)


class plan:  # noqa: N801 - a namespace, as the command is one
    """What to buy, and where to put it: ``afar plan``."""

    cost = staticmethod(_now(_calls.plan_cost))
    latency = staticmethod(_now(_calls.plan_latency))
    place = staticmethod(_now(_calls.plan_place))
    admit = staticmethod(_now(_calls.plan_admit))
    pool = staticmethod(_now(_calls.plan_pool))
    fleet = staticmethod(_now(_calls.plan_fleet))
