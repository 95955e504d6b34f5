"""What is kept from one use of a long trace to the next, in the user's folder for caches.

These are indexes (`formats.trace_index`) and states of harts (`past.reconstructed.kept_states`). The name of each file
is a hash of everything that it was made of, so that it is never used for anything else. All together have at most
`_ALL_BYTES`: the ones not used for longest go.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.files import NotPrivate, atomic_output, private_folder

FOLDER_VARIABLE = "RVTRACE_CACHE"
"""The environment variable with the folder; empty: nothing is kept."""
DECODERS = ("decode",)
"""The folders in which, and below which, it is decided what a history is."""
_ALL_BYTES = 1 << 28
_SUFFIXES = (".index", ".states")
_SOURCES = (".py", ".so")


@cache
def sources_of(*folders: str) -> tuple[tuple[str, int, int], ...]:
    """Return what changes when the code in some folders of this package does, or in folders inside them, although the
    version does not: someone is working on it.
    """
    return tuple(source_states(Path(__file__).resolve().parents[1], folders))


def source_states(package: Path, folders: Iterable[str]) -> Iterator[tuple[str, int, int]]:
    """Yield the path of each source and each compiled module, its size, and when it was written."""
    for folder in folders:
        files = (file for file in (package / folder).rglob("*") if file.suffix in _SOURCES)
        for file in sorted(files):
            state = file.stat()
            yield str(file.relative_to(package)), state.st_size, state.st_mtime_ns


def folder_of_kept(environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the folder of kept files, None if there are to be none."""
    given = environ.get(FOLDER_VARIABLE)
    if given is not None:
        return Path(given) if given else None
    base = environ.get("XDG_CACHE_HOME") or os.path.join(environ.get("HOME", ""), ".cache")
    return Path(base) / "rvtrace" if os.path.isabs(base) else None


def write_kept(name: str, pieces: Iterable[bytes]) -> None:
    """Write a file; nothing happens if that is not possible. Raises what *pieces* raise."""
    folder = folder_of_kept()
    if folder is None:
        return
    with contextlib.suppress(NotPrivate, OSError, RvtraceError):
        private_folder(folder)
        with atomic_output(str(folder / name)) as file:
            file.writelines(pieces)
        _tidy(folder)


def _tidy(folder: Path) -> None:
    """Remove the files that were not used for longest, if there are too many bytes of them."""
    states = [(file.stat(), file) for file in folder.iterdir() if file.suffix in _SUFFIXES]
    total = 0
    for _, size, file in sorted(((it.st_mtime_ns, it.st_size, file) for it, file in states), reverse=True):
        total += size
        if total > _ALL_BYTES:
            with contextlib.suppress(OSError):
                file.unlink()
