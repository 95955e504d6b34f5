"""The plugin as QEMU loads it: compiled once by whatever C compiler there is, and kept in the user's cache."""

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from rvtrace_gdb.support import private
from rvtrace_gdb.transport.qemu.errors import QemuError

SOURCES = sorted(Path(__file__).with_name("plugin").glob("*.[ch]"))
_COMPILERS = ("gcc", "cc", "clang")
_OPTIONS = ("-O2", "-shared", "-fPIC", "-pthread")
_PATIENCE = 120  # seconds


class NoPlugin(QemuError):
    """Why there is none."""


def plugin(environ: Mapping[str, str] = os.environ) -> Path:
    """The compiled plugin. Raises NoPlugin."""
    parts = [part for path in SOURCES for part in (path.name.encode(), path.read_bytes())]
    parts += map(str.encode, (*_OPTIONS, platform.machine()))
    key = hashlib.sha256(b"\0".join(parts)).hexdigest()
    name = f"qemu-plugin-{key[:20]}.so"
    folder = private.cache(environ)
    compiler = None if private.is_ours(folder / name) else _compiler(environ)
    try:
        private.made(folder)
        if compiler is not None:
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                made = Path(scratch, name)
                _compile(compiler, made, environ)
                made.replace(folder / name)
    except private.NotPrivate as error:
        raise NoPlugin(f"{error}, so nothing is loaded from it (XDG_CACHE_HOME may name another folder)") from None
    except OSError as error:
        raise NoPlugin(f"{error.filename or folder}: {error.strerror}") from None
    return folder / name


def _compiler(environ: Mapping[str, str]) -> str:
    found = next((found for it in _COMPILERS if (found := shutil.which(it, path=environ.get("PATH")))), None)
    if found is None:
        raise NoPlugin("there is no C compiler (gcc)")
    return found


def _compile(compiler: str, made: Path, environ: Mapping[str, str]) -> None:
    command = [compiler, *_OPTIONS, "-o", str(made), *(str(path) for path in SOURCES if path.suffix == ".c")]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, env=dict(environ), check=False
        )
    except subprocess.TimeoutExpired:
        raise NoPlugin(f"{compiler} does not come to an end") from None
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["it does not say why"]
        said = next((line for line in lines if "error" in line), lines[0])
        raise NoPlugin(f"{compiler} cannot compile it: {said.strip()}")
