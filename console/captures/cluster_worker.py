"""What a worker of a Dask cluster does for rvtrace: it reads a trace that was sent, with files that were sent."""

import hashlib
import pickle
import zlib
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import rvtrace_gdb
from rvtrace_gdb.console.captures.readers import CaptureReader, read_or_problem
from rvtrace_gdb.session.version import tool
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.inputs import supplied_files

_one_at_a_time = Lock()


class OtherVersion(RvtraceError):
    """A worker has another rvtrace than the command."""


@cache
def identity() -> str:
    """Return the version of this program, and what tells its Python code from that of others."""
    package, digest = Path(rvtrace_gdb.__file__).parent, hashlib.sha256()
    for room in sorted(package.iterdir()):
        for file in sorted(room.rglob("*.py")) if room.is_dir() else ():
            digest.update(f"{file.relative_to(package)}\0".encode() + file.read_bytes())
    return f"{tool()} (code {digest.hexdigest()[:12]})"


def packed(value: Any) -> bytes:
    """Return a value as bytes."""
    return zlib.compress(pickle.dumps(value), 1)


def unpacked(content: bytes) -> Any:
    """Return what `packed` has packed."""
    return pickle.loads(zlib.decompress(content))


def read_parcel(sender: str, parcel: bytes, *bundles: bytes) -> bytes:
    """Return what a reader finds, or why it cannot, packed. *parcel*: the reader, packed; *bundles*: contents of files
    by their paths at the sender, packed: no file of this machine is read.

    Raises OtherVersion: *sender*, the identity of the rvtrace that asks, is another.
    """
    if sender != identity():
        raise OtherVersion(f"a worker has {identity()}, and this is {sender}: install the same on both")
    files: dict[str, bytes] = {}
    for bundle in bundles:
        files.update(unpacked(bundle))
    reader: CaptureReader[Any] = unpacked(parcel)
    with _one_at_a_time, supplied_files(files):  # threads of a worker would not be faster
        return packed(read_or_problem(reader))
