"""The wheel and the source distribution of this checkout, each in a virtual environment of its own."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent.parent
ROOMS = (
    "console", "controlregs", "decode", "gdbext", "reports", "rows", "session", "support", "transport", "views",
)  # fmt: skip
STRANGERS = ("console==0.9912", "decode==2025.10.0", "views==0.3")
"""Packages of PyPI that have the names of our rooms."""

QUIETLY = ("--disable-pip-version-check", "--quiet")


def done(*words: object, cwd: Path | None = None, **environ: str) -> str:
    """What a program that has to succeed prints on both streams."""
    keep = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "RVTRACE", "VIRTUAL_ENV"))}
    ended = subprocess.run(
        [str(word) for word in words], cwd=cwd, env={**keep, **environ}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


def tracked() -> list[str]:
    """The files of this checkout that belong to it."""
    return done("git", "ls-files", "-z", cwd=HOME).rstrip("\0").split("\0")


def built(folder: Path) -> tuple[Path, Path]:
    """(wheel, source distribution) in *folder*, the wheel from the other, as pip makes it for who installs that: with
    nothing but what pyproject.toml says that it takes. pip keeps it for the next who installs that by its name. The
    kernel is compiled without optimization, which takes a third of the time; nothing here is measured.
    """
    source = folder / "source"
    source.mkdir()
    names = folder / "names"
    names.write_bytes(b"".join(name.encode() + b"\0" for name in tracked()))
    done("sh", "-c", f"xargs -0 cp --no-dereference --parents --target-directory={source} <{names}", cwd=HOME)
    done(sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", folder, source)
    (sdist,) = folder.glob("*.tar.gz")
    words = (sys.executable, "-m", "pip", *QUIETLY, "wheel", "--no-deps", "--wheel-dir", folder, sdist)
    done(*words, RVTRACE_KERNEL_FLAGS="-O0")
    (wheel,) = folder.glob("*.whl")
    return wheel, sdist


@dataclass(frozen=True)
class Environment:
    """A virtual environment in *folder*. The pip of the tests' own environment installs into it."""

    folder: Path

    @classmethod
    def made(cls, folder: Path) -> "Environment":
        done(sys.executable, "-m", "venv", "--without-pip", folder)
        return cls(folder)

    def program(self, name: str) -> Path:
        return self.folder / "bin" / name

    def install(self, *words: object) -> None:
        done(
            sys.executable, "-m", "pip", "--python", self.program("python"), *QUIETLY, "install", "--no-compile",
            *words,
        )  # fmt: skip
