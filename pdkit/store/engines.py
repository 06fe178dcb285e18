"""Who does the work: processes of this machine, or a Dask cluster; both are executors, and both retry by themselves."""

import multiprocessing
import os
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from pdkit.errors import PdkitError

if TYPE_CHECKING:
    from distributed import Client

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")
_RETRIES = 2  # by Dask, of a task whose worker died
_REACHED_S = 5  # a scheduler that is there answers sooner


@dataclass(frozen=True)
class Engine:
    """How many processes; or the address of a Dask scheduler, `tcp://host:8786`."""

    jobs: int | None = None
    scheduler: str | None = None

    def processes(self, tasks: int) -> int:
        """As many as there are processors, and never more than there is work."""
        return max(1, min(self.jobs or os.cpu_count() or 1, tasks))


@dataclass(frozen=True)
class Failed:
    """Why something was not done, in words."""

    why: str


def mapped(
    engine: Engine, work: Callable[[Asked], Answer], tasks: Sequence[Asked]
) -> Iterator[tuple[Asked, Answer | Failed]]:
    """Each task with its answer as it comes, or with why there is none; the rest is done whatever becomes of one.

    A process that dies takes with it all that its pool was doing: those are given to one process after the other, in
    order, so that the first that is not done then is the one that killed it; it is tried once more. Dask does the like
    by itself.
    """
    left = yield from _over(engine, work, tasks)
    killer = None
    while left:
        left = yield from _over(Engine(jobs=1), work, left, apart=True)
        first = left[0] if left else None
        if left and first is killer:
            yield left.pop(0), Failed("the process that read it died")
            first = None
        killer = first


def _over(
    engine: Engine, work: Callable[[Asked], Answer], tasks: Sequence[Asked], *, apart: bool = False
) -> Generator[tuple[Asked, Answer | Failed], None, list[Asked]]:
    """The same, once; it returns what a dying process left undone, in order."""
    left = []
    with _executor(engine, engine.processes(len(tasks)), apart) as pool:
        futures = {pool.submit(work, task): number for number, task in enumerate(tasks)}
        for future in as_completed(futures):
            problem = _problem(future)
            if isinstance(problem, BrokenProcessPool):
                left.append(futures[future])
            else:
                answer = Failed(_said(problem)) if problem else future.result()
                yield tasks[futures[future]], answer
    return [tasks[number] for number in sorted(left)]


def _problem(future: "Future[Answer]") -> BaseException | None:
    try:
        return future.exception()
    except CancelledError as lost:  # Dask's, where its scheduler went away
        return lost


def _said(problem: BaseException) -> str:
    if isinstance(problem, PdkitError):
        return str(problem)
    return f"{type(problem).__name__}: {str(problem).partition(chr(10))[0][:200]}"


@contextmanager
def _executor(engine: Engine, processes: int, apart: bool) -> Iterator[Executor]:
    if engine.scheduler:
        with _client(engine.scheduler) as client:
            yield client.get_executor(pure=False, retries=_RETRIES)
    elif processes == 1 and not apart:
        with ThreadPoolExecutor(1) as pool:  # one more process would only cost its start
            yield pool
    else:
        # spawned: polars' threads do not survive a fork
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(processes, mp_context=spawn, initializer=_leave_with_parent) as pool:
            yield pool


def _leave_with_parent() -> None:
    """End this process when the one that started it is gone: a killed ingest leaves nobody waiting for work."""
    threading.Thread(target=_left_alone, daemon=True).start()


def _left_alone() -> None:
    parent = multiprocessing.parent_process()
    if parent:
        parent.join()
        os._exit(1)


def _client(address: str) -> "Client":
    try:
        from distributed import Client
    except ModuleNotFoundError as problem:
        raise PdkitError(f"{address}: a Dask scheduler needs the extra; pip install 'pdkit[dask]'") from problem
    try:
        return Client(address, timeout=_REACHED_S)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as problem:
        raise PdkitError(f"{address}: no Dask scheduler answers there; start one with `dask scheduler`") from problem
