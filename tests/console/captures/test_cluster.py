"""Captures that the workers of a Dask cluster read: a real scheduler, and real workers, one of which is killed."""

import gc
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import pytest

from rvtrace_gdb.console.captures import cluster, pieces
from rvtrace_gdb.console.captures.cluster_worker import identity, packed, read_parcel, unpacked
from rvtrace_gdb.console.captures.readers import Readers, Unreadable
from rvtrace_gdb.console.captures.reading import read_captures
from rvtrace_gdb.console.commands.source_coverage import CoveredTrace
from rvtrace_gdb.console.main import main
from rvtrace_gdb.console.options.inputs import Programs
from rvtrace_gdb.console.options.request import RequestedTrace
from rvtrace_gdb.session.formats.long_traces.trace_pieces import STEP
from rvtrace_gdb.session.program import GIVE_IT
from rvtrace_gdb.support.errors import silent
from tests.console.captures.dying import DyingReader
from tests.console.captures.long_runs import SECTIONS, long_run
from tests.console.captures.runs import three_runs
from tests.helpers.amounts import thorough
from tests.helpers.cross_compiler import HOME
from tests.helpers.wait import until
from tests.reports.coverage.traced import PROGRAMS, program, retired, trace


class Cluster(NamedTuple):
    """A scheduler and its address, its workers, and three captures."""

    scheduler: subprocess.Popen[bytes]
    address: str
    workers: list[subprocess.Popen[bytes]]
    captures: list[Path]


def dask(*words: str, folder: Path, path: str = "") -> subprocess.Popen[bytes]:
    """Start one of Dask's programs, in a folder in which there is nothing."""
    settings = {
        "PYTHONPATH": os.pathsep.join(filter(None, (path, str(HOME)))),
        "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
    }
    command = [sys.executable, "-m", "dask", *words, "--no-dashboard"]
    folder.mkdir(exist_ok=True)
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(command, cwd=folder, env={**os.environ, **settings}, stdout=log, stderr=log)


def worker(address: str, folder: Path, path: str = "") -> subprocess.Popen[bytes]:
    words = ("worker", address, "--nthreads", "1", "--no-nanny", "--local-directory", str(folder))
    return dask(*words, folder=folder, path=path)


def workers(client: Any) -> Iterable[Mapping[str, Any]]:
    """Return what the scheduler knows of its workers."""
    return client.scheduler_info(n_workers=-1)["workers"].values()  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A scheduler and two workers on this machine."""
    folder = tmp_path_factory.mktemp("cluster")
    address = f"tcp://127.0.0.1:{free_port()}"
    port = address.rpartition(":")[2]
    started = [dask("scheduler", "--host", "127.0.0.1", "--port", port, folder=folder / "scheduler")]
    try:
        started += [worker(address, folder / f"worker{number}") for number in range(2)]
        yield Cluster(started[0], address, started[1:], three_runs(folder))
    finally:
        for process in started:
            process.kill()
            process.wait()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def printed(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert main([*map(str, words), "--quiet"]) == 0
    return capsys.readouterr().out


def test_the_result_is_that_without_a_cluster_and_a_killed_worker_is_made_up_for(
    running: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Byte for byte, by two workers, and by the one that is left. Every worker that reads a capture while there is a
    file in the folder is killed: with one file, one.
    """
    first, *others = running.captures
    pack = first.with_suffix(".rvtz")
    printed(capsys, "pack", first, "-o", pack)
    commands = (
        ["report", first, "--json", "--each", "--top", "0", "--merge", *others],
        ["coverage", first, "--json", "--merge", *others],
        ["pgo", first, *others, "--to", "llvm", "-o", "-"],
        ["coverage", pack, "--json", "--merge", *others],
        ["blame", "--good", *others, "--bad", first, "--json", "--top", "0"],
        ["blame", "--good", pack, "--bad", *others],
    )
    alone = [printed(capsys, *command, "--jobs", "1") for command in commands]
    for said in (alone[1], alone[3]):
        assert json.loads(said.splitlines()[-1])["total"]["conditions"]["covered"] > 5  # sources are read
    assert len(alone[4].splitlines()) > 5  # what the longest run did, and the others did not
    assert [printed(capsys, *command, "--cluster", running.address) for command in commands] == alone
    readers = [DyingReader.of(capture, tmp_path) for capture in running.captures]
    expected = list(read_captures(readers, Readers(jobs=1), silent))
    (tmp_path / "one").touch()
    assert list(read_captures(readers, Readers(cluster=running.address), silent)) == expected
    ended = [process.poll() for process in running.workers]
    assert sorted(ended, key=str) == [-9, None] and not (tmp_path / "one").exists()
    assert printed(capsys, *commands[0], "--cluster", running.address) == alone[0]


def test_one_long_trace_is_read_in_pieces(
    running: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "_LEAST", STEP)
    file, elf = long_run(tmp_path)
    command = ["report", file, *SECTIONS, "--ntrace", "--elf", elf, "--json", "--each", "--top", "0"]
    alone = printed(capsys, *command, "--jobs", "1")
    read = list[int]()
    by_cluster = cluster.by_cluster

    def counted(of: Sequence[Any], *rest: Any) -> Iterator[Any]:
        read.append(len(of))
        return by_cluster(of, *rest)

    monkeypatch.setattr(cluster, "by_cluster", counted)
    assert printed(capsys, *command, "--cluster", running.address) == alone
    assert read == [5, 5]


def test_a_worker_needs_no_file_of_the_machine_that_asks(tmp_path: Path) -> None:
    """Neither the capture, nor its program, nor the source."""
    source = Path(shutil.copy(PROGRAMS.parent / "conditions" / "main.c", tmp_path))
    elf = program(tmp_path / "program", [source])
    capture = trace(elf, retired(elf), tmp_path / "a.rvt")
    reader = CoveredTrace(RequestedTrace(str(capture), None, Programs()), None, "")
    expected = reader.read()
    assert any(covered.vectors for covered in expected.programs)
    loaded = reader.trace.loaded()
    files = {path: Path(path).read_bytes() for path in loaded.program_files()}
    texts = {str(source): source.read_bytes()}
    parcel = packed(reader.with_trace(loaded))
    for file in (capture, elf, source):
        file.unlink()
    assert unpacked(read_parcel(identity(), parcel, packed(files), packed(texts))) == expected
    missing = unpacked(read_parcel(identity(), parcel, packed(texts)))
    assert missing == Unreadable(f"{capture} was made with {elf}, which was not found: {GIVE_IT}")
    assert not any(it.vectors for it in unpacked(read_parcel(identity(), parcel, packed(files))).programs)


def test_captures_that_cannot_be_read(running: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One that is not one; one whose program is not here."""
    bad = tmp_path / "bad.rvt"
    bad.write_bytes(b"nothing of the kind")
    assert main(["report", str(bad), "--cluster", running.address, "--quiet"]) == 1
    cluster_says = capsys.readouterr().err
    assert main(["report", str(bad), "--quiet"]) == 1
    assert capsys.readouterr().err == cluster_says and cluster_says.count("\n") == 1
    capture = str(running.captures[0])
    gone = ["report", capture, "--elf", str(tmp_path / "gone.elf"), "--quiet"]
    assert main([*gone, "--cluster", running.address]) == 1
    why = f"{tmp_path}/gone.elf: cannot be read: No such file or directory"
    assert capsys.readouterr().err == f"rvtrace: {capture}: {why}\n"


def test_a_worker_of_another_version(running: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its Python has another rvtrace installed, or none with the same code."""
    other = tmp_path / "other"
    information = other / "rvtrace_gdb-9.9.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: rvtrace-gdb\nVersion: 9.9\n")
    process = worker(running.address, tmp_path / "worker", str(other))
    try:
        with cluster._dask_client(import_module("distributed"), running.address) as client:
            until(lambda: any(str(tmp_path) in it["local_directory"] for it in workers(client)))
        assert main(["report", str(running.captures[0]), "--cluster", running.address, "--quiet"]) == 1
        error = capsys.readouterr().err
        assert error.count("\n") == 1 and "this worker has rvtrace 9.9, and this is rvtrace " in error
    finally:
        process.kill()
        process.wait()


def test_other_code_of_the_same_version(
    running: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cluster, "identity", lambda: "rvtrace 0 (code 0)")
    assert main(["report", str(running.captures[0]), "--cluster", running.address, "--quiet"]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and error.endswith("and this is rvtrace 0 (code 0): install the same on both\n")


def test_nobody_answers(running: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(cluster, "_ANSWER", 0.3)
    capture, address = str(running.captures[0]), f"tcp://127.0.0.1:{free_port()}"
    for place in (address, "nothing://127.0.0.1:1", "tcp://127.0.0.1"):
        assert main(["report", capture, "--cluster", place, "--quiet"]) == 1
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert error.startswith(f"rvtrace: --cluster {place}: no Dask scheduler answers there (")
    with pytest.raises(SystemExit):
        main(["report", capture, "--cluster", "host"])
    assert "'host' is not the address of a Dask scheduler, tcp://HOST:PORT" in capsys.readouterr().err


def test_what_is_left_of_a_client_waits_for_nothing(running: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    """Not of one that found no scheduler either: garbage is collected while another client starts, and that has this
    lock.
    """
    capture, loops = str(running.captures[0]), import_module("distributed.utils").LoopRunner
    gc.collect()
    gc.disable()
    try:
        assert main(["report", capture, "--cluster", "nothing://127.0.0.1:1", "--quiet"]) == 1
        assert main(["report", capture, "--cluster", running.address, "--quiet"]) == 0
        capsys.readouterr()
        collection = Thread(target=gc.collect, daemon=True)
        with loops._lock:
            collection.start()
            collection.join(20)
            waits = collection.is_alive()
        collection.join()
    finally:
        gc.enable()
    assert not waits


def test_without_the_extra(
    running: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["report", str(running.captures[0]), "--cluster", running.address, "--quiet"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("rvtrace: --cluster: distributed is not installed: ") and error.count("\n") == 1
    assert error.endswith("-m pip install distributed (or 'rvtrace-gdb[cluster]')\n")


@thorough("test_the_result_is_that_without_a_cluster_and_a_killed_worker_is_made_up_for")
def test_a_cluster_that_goes_away(running: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First its workers, then its scheduler, while that has something to read. The last test: nothing is left."""
    for process in running.workers:
        process.kill()
        process.wait()
    readers, by = [DyingReader.of(capture, tmp_path) for capture in running.captures], Readers(cluster=running.address)
    monkeypatch.setattr(cluster, "_PATIENCE", 0.2)
    no_worker = f"{by.cluster}: has had no worker for 0.2 s: dask worker {by.cluster}"
    with pytest.raises(cluster.ClusterError, match=no_worker):
        list(read_captures(readers, by, silent))
    monkeypatch.setattr(cluster, "_check_workers", lambda client, address: None)
    with pytest.raises(cluster.ClusterError, match=no_worker):
        list(read_captures(readers, by, silent))

    def kill_scheduler(label: str, done: int, total: int | None = None) -> None:
        running.scheduler.kill()

    monkeypatch.setattr(cluster, "_PATIENCE", 20.0)
    with pytest.raises(cluster.ClusterError, match=f"{by.cluster}: the scheduler does not answer any more"):
        list(read_captures(readers, by, kill_scheduler))
