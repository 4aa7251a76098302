"""Dask: workers of our own, or those of a scheduler."""

from __future__ import annotations

import asyncio
import os
from importlib import import_module
from typing import Any, Dict, List, Optional

from ._driver import LACKS, Ended, EngineError, missing
from ._plan import Ids, Plan, run

RESOURCE = "afar"
# Seconds: to reach a scheduler, and to wait for tasks.
REACH_S = 10
LOOK_S = 1.0


class Dask:
    """Tasks are futures; a worker that is lost makes Dask hand its tasks to others."""

    def __init__(self, plan: Plan, at: Optional[str], jobs: Optional[int]) -> None:
        try:
            self._library: Any = import_module("distributed")
        except ImportError as error:
            raise missing("dask", error) from None
        self._plan = plan
        self._futures: Dict[Any, Ids] = {}
        self._cluster: Any = None
        self._client: Any = self._reach(at) if at else self._own(jobs)
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        if plan.measured and not any(RESOURCE in worker["resources"] for worker in workers):
            self._close()
            raise EngineError(
                "no worker may measure: start one on each machine with"
                " dask worker --nthreads 1 --resources afar=1",
                LACKS,
            )
        self.processors = sum(worker["nthreads"] for worker in workers) or 1
        self.window = max(64, 4 * self.processors)

    def _own(self, jobs: Optional[int]) -> Any:
        # One measures at a time.
        count = 1 if self._plan.measured else jobs or len(os.sched_getaffinity(0))
        self._cluster = self._library.LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=None,
            resources={RESOURCE: 1},
            local_directory=self._plan.log("dask"),
        )
        return self._library.Client(self._cluster)

    def _reach(self, at: str) -> Any:
        known = {"scheduler_file": at} if os.path.isfile(at) else {"address": at}
        try:
            return self._library.Client(timeout=REACH_S, **known)
        except (OSError, ValueError) as error:
            raise EngineError(f"--on dask:{at}: {error}; is the scheduler there?", LACKS) from None

    def submit(self, ids: Ids) -> None:
        """Hands out a task."""
        future = self._client.submit(
            run,
            self._plan.afar,
            self._plan.directory,
            self._plan.cwd,
            ids,
            pure=False,
            resources={RESOURCE: 1} if self._plan.measured else None,
        )
        self._futures[future] = ids

    def ended(self) -> List[Ended]:
        """Waits a moment for tasks to end."""
        try:
            done = self._library.wait(
                list(self._futures), timeout=LOOK_S, return_when="FIRST_COMPLETED"
            ).done
        except (TimeoutError, asyncio.TimeoutError):
            return self._found_done()
        return [self._ended(future) for future in done]

    def _found_done(self) -> List[Ended]:
        # A result that is there needs no word of the worker that is gone.
        futures = [each for each, ids in self._futures.items() if not self._plan.left(ids)]
        for future in futures:
            future.cancel()
        return [Ended(self._futures.pop(future)) for future in futures]

    def _ended(self, future: Any) -> Ended:
        ids = self._futures.pop(future)
        if future.status == "finished":
            status, said = future.result()
            return Ended(ids, said or f"exit status {status}")
        error = future.exception() if future.status == "error" else future.status
        return Ended(ids, f"{type(error).__name__}: {error}")

    def _close(self) -> None:
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()

    def __enter__(self) -> "Dask":
        return self

    def __exit__(self, *_error: object) -> None:
        # Those of a scheduler that is not ours would go on.
        self._client.cancel(list(self._futures), force=True)
        self._close()
