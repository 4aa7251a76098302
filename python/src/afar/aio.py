"""The commands of afar as coroutines, with the names and keywords of ``afar.commands``.

``await afar.aio.sim(load="80%")``. Cancelling a task interrupts its command and waits until it has
put back what it changed.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Callable, Coroutine

from . import _calls
from ._event_loop import drive
from ._process import Call, R

if TYPE_CHECKING:
    from typing_extensions import ParamSpec

    P = ParamSpec("P")


def _later(build: "Callable[P, Call[R]]") -> "Callable[P, Coroutine[Any, Any, R]]":
    @functools.wraps(build)
    async def command(*positional: "P.args", **named: "P.kwargs") -> "R":
        return await drive(build(*positional, **named))

    return command


run = _later(_calls.run)
sweep = _later(_calls.sweep)
sim = _later(_calls.sim)
loop = _later(_calls.loop)
bench = _later(_calls.bench)
predict = _later(_calls.predict)
report = _later(_calls.report)


class plan:  # noqa: N801 - a namespace, as the command is one
    """What to buy, and where to put it: ``afar plan``."""

    cost = staticmethod(_later(_calls.plan_cost))
    latency = staticmethod(_later(_calls.plan_latency))
    place = staticmethod(_later(_calls.plan_place))
    admit = staticmethod(_later(_calls.plan_admit))
    pool = staticmethod(_later(_calls.plan_pool))
    fleet = staticmethod(_later(_calls.plan_fleet))
