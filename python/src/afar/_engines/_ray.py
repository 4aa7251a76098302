"""Ray: a cluster of our own, or one that is there."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Dict, List, Optional

from ._driver import LACKS, Ended, EngineError, missing
from ._plan import Ids, Plan, run

RESOURCE = "afar"
LOOK_S = 1.0


class Ray:
    """Tasks are references; a node that is lost makes Ray hand its tasks to others."""

    def __init__(self, plan: Plan, at: Optional[str], jobs: Optional[int]) -> None:
        try:
            ray: Any = import_module("ray")
        except ImportError as error:
            raise missing("ray", error) from None
        self._library = ray
        self._plan = plan
        self._tasks: Dict[Any, Ids] = {}
        quiet = {"log_to_driver": False, "logging_level": "ERROR", "include_dashboard": False}
        own = {"num_cpus": jobs, "resources": {RESOURCE: 1}, **quiet}
        try:
            ray.init(address=at, **{"log_to_driver": False}) if at else ray.init(**own)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise EngineError(f"--on ray:{at}: {error}; is the cluster there?", LACKS) from None
        there = ray.cluster_resources()
        if plan.measured and RESOURCE not in there:
            ray.shutdown()
            raise EngineError(
                "no node may measure: start each with"
                """ ray start --resources='{"afar": 1}'""",
                LACKS,
            )
        self.processors = int(there.get("CPU", 1)) or 1
        self.window = max(64, 4 * self.processors)
        needs = {"resources": {RESOURCE: 1}} if plan.measured else {}
        self._run: Any = ray.remote(num_cpus=1, max_retries=0, **needs)(run)

    def submit(self, ids: Ids) -> None:
        """Hands out a task."""
        plan = self._plan
        self._tasks[self._run.remote(plan.afar, plan.directory, plan.cwd, ids)] = ids

    def ended(self) -> List[Ended]:
        """Waits a moment for tasks to end."""
        done, _others = self._library.wait(list(self._tasks), num_returns=1, timeout=LOOK_S)
        return [self._ended(task) for task in done]

    def _ended(self, task: Any) -> Ended:
        ids = self._tasks.pop(task)
        try:
            status, said = self._library.get(task)
        except Exception as error:  # Whatever a lost node comes to.
            return Ended(ids, f"{type(error).__name__}: {error}")
        return Ended(ids, said or f"exit status {status}")

    def __enter__(self) -> "Ray":
        return self

    def __exit__(self, *_error: object) -> None:
        for task in self._tasks:
            self._library.cancel(task, force=True)
        self._library.shutdown()
