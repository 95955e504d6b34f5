"""Captures that the workers of a Dask cluster read.

The workers need no shared folder: what is in a capture is sent, and the files of its programs, each of these once. Dask
remembers both until the result is there, so that another worker can read what one that has died was to read.

Source: https://distributed.dask.org/en/stable/api.html, resilience.html and the limit allowed-failures of its
configuration.
"""

import asyncio
import hashlib
import importlib.metadata
import logging
import time
import warnings
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from functools import cache
from itertools import islice
from typing import Any, TypeVar
from uuid import uuid4

from rvtrace_gdb.console.captures.cluster_worker import identity, packed, read_parcel, unpacked
from rvtrace_gdb.console.captures.readers import CaptureReader, Unreadable, unreadable
from rvtrace_gdb.decode.program.elf import BadElf
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.source.source_lines import SourceLines
from rvtrace_gdb.reports.source_files import source_file
from rvtrace_gdb.session.exports.extra_library import library
from rvtrace_gdb.session.version import tool
from rvtrace_gdb.support.errors import Progress, RvtraceError
from rvtrace_gdb.support.inputs import read_input

_R = TypeVar("_R")
_ANSWER = 10.0  # seconds until a scheduler has to answer
_PATIENCE = 30.0  # seconds without any worker
_POLL = 0.5  # seconds between two looks at the progress, and at the workers


class ClusterError(RvtraceError):
    """A Dask cluster that cannot be used."""


def by_cluster(of: Sequence[CaptureReader[_R]], address: str, progress: Progress) -> Iterator[_R | Unreadable]:
    """Yield what each reader finds, in their order, read by the workers of the cluster with this scheduler.

    Raises LibraryMissing, ClusterError, and what *progress* raises.
    """
    dask: Any = library("distributed", "distributed", "--cluster", "cluster")
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what goes wrong, this says in a line
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Dask, about other versions, and captures that are large
        with _dask_client(dask, address) as client:
            _check_workers(client, address)
            yield from _Cluster(dask, client, address, progress).results(of)


@contextmanager
def _dask_client(dask: Any, address: str) -> Iterator[Any]:
    try:
        client = _client_class(dask)(address, timeout=_ANSWER, set_as_default=False)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        why = _first_line(error)
        raise ClusterError(f"--cluster {address}: no Dask scheduler answers there ({why}): `dask scheduler`") from None
    try:
        yield client
    finally:
        client.close(timeout=_POLL)


@cache
def _client_class(dask: Any) -> Any:
    """Return Dask's Client that is closed where it is used, and never by the garbage collector: what closes it takes a
    lock that the thread which collects may hold, because it starts another client just then.
    """

    class SchedulerClient(dask.Client):  # type: ignore[misc]
        def start(self, **settings: Any) -> None:
            try:
                super().start(**settings)
            except BaseException:
                with suppress(Exception):  # why it did not start is what counts
                    self.close(timeout=_POLL)
                raise

        def __del__(self) -> None:
            pass

    return SchedulerClient


@contextmanager
def _scheduler_there(address: str) -> Iterator[None]:
    """Raise ClusterError where the scheduler does not answer any more."""
    try:
        yield
    except (CancelledError, asyncio.CancelledError, OSError):
        raise ClusterError(f"--cluster {address}: the scheduler does not answer any more") from None


def _check_workers(client: Any, address: str) -> None:
    """Raise ClusterError if there are no workers, or one cannot read what this rvtrace sends."""
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
    except TimeoutError:
        raise _no_workers(address) from None
    ours = importlib.metadata.version("rvtrace-gdb")
    for worker, theirs in client.run(importlib.metadata.version, "rvtrace-gdb", on_error="return").items():
        if isinstance(theirs, importlib.metadata.PackageNotFoundError):
            raise ClusterError(f"{worker}: this worker has no rvtrace: install rvtrace-gdb {ours} in its Python")
        if isinstance(theirs, str) and theirs != ours:
            raise ClusterError(f"{worker}: this worker has rvtrace {theirs}, and this is {tool()}: install the same")


def _no_workers(address: str) -> ClusterError:
    return ClusterError(f"--cluster {address}: has had no worker for {_PATIENCE:g} s: dask worker {address}")


class _Cluster:
    """The workers of a cluster, and what they are reading."""

    def __init__(self, dask: Any, client: Any, address: str, progress: Progress) -> None:
        self._dask, self._client, self._address, self._progress = dask, client, address, progress
        self._identity = identity()
        self._sent: dict[str, Any] = {}  # the futures of files, by what tells them from others
        self._done, self._total = 0, 0

    def results(self, of: Sequence[CaptureReader[_R]]) -> Iterator[_R | Unreadable]:
        waiting, under_way = iter(of), deque[tuple[CaptureReader[_R], Any]]()
        self._total = len(of)
        while True:
            with _scheduler_there(self._address):
                most = 2 * len(self._client.nthreads()) + 2  # more of them would wait in memory, here and there
            for reader in islice(waiting, max(most - len(under_way), 0)):
                under_way.append((reader, self._submitted(reader)))
            if not under_way:
                break
            yield self._result(*under_way.popleft())
            self._done += 1

    def _submitted(self, reader: CaptureReader[_R]) -> Any:
        """Return the future of what a worker will read, or why it has nothing to read."""
        try:
            loaded = reader.trace.loaded()
        except RvtraceError as error:
            return unreadable(reader, error)
        files = {path: content for path in loaded.program_files() if (content := _sendable(path)) is not None}
        bundles = [self._sent_file(path, content) for path, content in files.items()]
        if reader.reads_sources:
            unpacked = loaded.capture.unpacked
            packed_sources = {} if unpacked is None else unpacked.sources
            bundles += [self._sources(path, content, packed_sources) for path, content in files.items()]
        return self._submit("capture", read_parcel, self._identity, packed(reader.with_trace(loaded)), *bundles)

    def _submit(self, what: str, function: Any, *args: Any) -> Any:
        with _scheduler_there(self._address):
            return self._client.submit(function, *args, key=f"rvtrace-{what}-{uuid4().hex}", pure=False)

    def _sent_file(self, path: str, content: bytes) -> Any:
        return self._bundle(f"{path} {hashlib.sha256(content).hexdigest()}", {path: content})

    def _sources(self, path: str, content: bytes, of_pack: Mapping[str, str]) -> Any:
        """Return the future of the source files that an ELF file names. *of_pack*: where those are that came with the
        capture: a worker looks for them there.
        """
        name = f"sources {path} {hashlib.sha256(content).hexdigest()} {next(iter(of_pack.values()), '')}"
        if name in self._sent:
            return self._sent[name]
        try:
            sources = {of_pack.get(it, it) for it in SourceLines(Image.from_elf(path)).paths()}
        except BadElf:
            sources = set()
        return self._bundle(name, {it: text for it in sorted(sources) if (text := source_file(it)) is not None})

    def _bundle(self, name: str, files: Mapping[str, bytes]) -> Any:
        if name not in self._sent:
            self._sent[name] = self._submit("files", bytes, packed(files))
        return self._sent[name]

    def _result(self, reader: CaptureReader[_R], future: Any) -> _R | Unreadable:
        if isinstance(future, Unreadable):
            return future
        error = self._outcome(future)
        if error is None:
            with _scheduler_there(self._address):
                found: _R | Unreadable = unpacked(future.result())
            return found
        if isinstance(error, self._dask.KilledWorker):
            why = "the workers that read it are killed each time: have they enough memory?"
        elif isinstance(error, RvtraceError):
            raise ClusterError(str(error))  # of another version
        else:
            why = f"no worker can read it: {type(error).__name__}: {_first_line(error)}"
        return Unreadable(f"{reader.trace.name}: {why}")

    def _outcome(self, future: Any) -> BaseException | None:
        """Wait for a future, and return what it raises. Raises ClusterError: no worker is left."""
        alone_since = None
        while True:
            self._progress("reading captures", self._done, self._total)
            with _scheduler_there(self._address):
                try:
                    error: BaseException | None = future.exception(timeout=_POLL)
                    return error
                except TimeoutError:
                    has_workers = bool(self._client.nthreads())
            now = time.monotonic()
            alone_since = None if has_workers else alone_since or now
            if alone_since is not None and now - alone_since > _PATIENCE:
                raise _no_workers(self._address)


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__


def _sendable(path: str) -> bytes | None:
    """Return what is in a file, None if it cannot be read: the worker says what that means."""
    try:
        return read_input(path)
    except (OSError, ValueError):
        return None
