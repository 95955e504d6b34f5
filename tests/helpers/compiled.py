"""Compiled programs, which are kept in build/programs: most tests want the same few, in every process of the suite."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
_KEPT = HOME / "build" / "programs"
_INCLUDED = ("examples/**/*.*", "tests/programs/**/*.*")
"""What the sources of this repository may include, and linker scripts."""


def elf_bytes(command: Sequence[str], sources: Sequence[Path]) -> bytes:
    """Return the ELF that *command* makes of *sources*, which it names. Fails with what the compiler says.

    A program of other sources than those of this repository is kept as long as the process.
    """
    return _compiled(tuple(command), tuple(source.read_bytes() for source in sources), _ours(sources))


def _ours(sources: Sequence[Path]) -> bool:
    return all(source.resolve().is_relative_to(HOME) for source in sources)


@cache
def _compiled(command: tuple[str, ...], sources: tuple[bytes, ...], kept: bool) -> bytes:
    if not kept:
        return _linked(command)
    parts = (_toolchain(command[0]), *(word.encode() for word in command), *sources)
    name = hashlib.sha256(b"".join(b"%d:%b" % (len(part), part) for part in parts)).hexdigest()
    file = _KEPT / name
    if not file.exists():
        program = _linked(command)
        _KEPT.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=_KEPT, delete=False) as partial:
            partial.write(program)
        os.replace(partial.name, file)  # whole or not at all: others look for it meanwhile
    return file.read_bytes()


def _linked(command: tuple[str, ...]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        elf = Path(folder, "program.elf")
        finished = subprocess.run([*command, "-o", str(elf)], capture_output=True, check=False)
        assert finished.returncode == 0, finished.stderr.decode()
        return elf.read_bytes()


@cache
def _toolchain(compiler: str) -> bytes:
    """What a program depends on besides its command and its sources: the compiler, its library, what is included."""
    about = hashlib.sha256(subprocess.run([compiler, "--version"], check=True, capture_output=True).stdout)
    for file in (shutil.which(compiler), "/usr/lib/picolibc/riscv64-unknown-elf/lib/libc.a"):
        if file is not None and os.path.exists(file):
            about.update(f"{file} {os.stat(file).st_size} {os.stat(file).st_mtime_ns}".encode())
    for pattern in _INCLUDED:
        for path in sorted(HOME.glob(pattern)):
            about.update(str(path.relative_to(HOME)).encode() + b"\0" + path.read_bytes())
    return about.digest()
