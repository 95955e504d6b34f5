"""The shipped targets: what each is, where its facts come from, and its description.

`load` reads a description by the name of a shipped target, or from a file.
"""

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from rvtrace_gdb.session.description import file
from rvtrace_gdb.session.description.model import AnyComponent, Description, DescriptionError

_FOLDER = Path(__file__).with_name("targets")
_ABOUT, _DESCRIPTION, _DEVICES = "about.toml", "rvtrace.toml", "devices.toml"
NOT_ON_SILICON = "on silicon: none yet"
IN_THE_SIMULATOR = "in the simulator"


@dataclass(frozen=True)
class TargetFact:
    """One thing that is known of a target. *source*: the document it comes from; *proved*: how far it is proved."""

    what: str
    source: str
    proved: str


@dataclass(frozen=True)
class TargetIdentity:
    """By what a target is recognised; what is empty says nothing.

    *idcodes*: of its TAP, all 32 bits. *manufacturers*: bits 11:1 of an IDCODE, the JEDEC number. *harts*: mvendorid
    and marchid of a hart. *vendors*: mvendorid alone. *compatible*: of the root of its device tree.
    """

    idcodes: tuple[int, ...] = ()
    manufacturers: tuple[int, ...] = ()
    harts: tuple[tuple[int, int], ...] = ()
    vendors: tuple[int, ...] = ()
    compatible: tuple[str, ...] = ()


@dataclass(frozen=True)
class SimulatedAs:
    """What `rvtrace sim` simulates besides the trace components. None: as for any other target."""

    isa: str | None = None
    debug_spec: str | None = None
    harts: int | None = None


class NotATarget(DescriptionError):
    """A name of no file and no shipped target."""

    def __init__(self, text: str) -> None:
        like = _names_like(text)
        meant = f', did you mean "{like[0]}"?' if like else ""
        super().__init__(f'there is no file and no shipped target "{text}"{meant or "; `rvtrace targets` lists them"}')


def _names_like(text: str) -> list[str]:
    """Return the name that *text* is part of, or close to, if any: "k3" is of spacemit-k3."""
    import difflib  # for a message alone

    names = target_names()
    parts = [name for name in names if text and text.lower() in name]
    return parts if len(parts) == 1 else difflib.get_close_matches(text, names, 1)


class NeedsBase(DescriptionError):
    """A description whose addresses begin at 0, since each design has its components elsewhere."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(
            f"the shipped target {name} is a template: {why}; `rvtrace targets show {name} --base ADDRESS -o"
            " rvtrace.toml` writes the description of yours"
        )


@dataclass(frozen=True)
class ShippedTarget:
    """A target of the library, as its `about.toml` says.

    *board*, *trace*: what it is, and its trace hardware. *limits*: what that cannot do. *template*: why its addresses
    are relative to a base that each design chooses; "" where they are those of the chip.
    """

    name: str
    board: str
    trace: str
    limits: tuple[str, ...]
    facts: tuple[TargetFact, ...]
    template: str
    identity: TargetIdentity
    simulated: SimulatedAs

    @property
    def path(self) -> Path:
        """The file of the description."""
        return _FOLDER / self.name / _DESCRIPTION

    @property
    def devices(self) -> Path | None:
        """The file that says how `rvtrace sim` builds its components, None if nothing is special about them."""
        path = _FOLDER / self.name / _DEVICES
        return path if path.is_file() else None

    @cached_property
    def proved(self) -> tuple[str, ...]:
        """How far the target is proved: where its addresses come from, which are the first fact, and where a trace of
        it was recorded and decoded.
        """
        return self.facts[0].proved, IN_THE_SIMULATOR, NOT_ON_SILICON

    def text(self, base: int = 0) -> str:
        """Return the text of the description. *base*: of a template. Raises DescriptionError."""
        text = self.path.read_text(encoding="utf-8")
        if not base:
            return text
        if not self.template:
            problem = f"the addresses of the shipped target {self.name} are those of the chip: leave out --base"
            raise DescriptionError(problem)
        if base % 0x1000 or not 0 <= base < 1 << 64:
            raise DescriptionError(f"--base {base:#x} is not a multiple of 0x1000 of 64 bits")
        return "\n".join(_moved(line, base) for line in text.split("\n"))

    def description(self) -> Description:
        """Return the description; that of a template has addresses from 0 on. Raises DescriptionError."""
        return replace(file.load(self.path), file=f"shipped target {self.name}")


_BASE_KEY = "base = "


def _moved(line: str, base: int) -> str:
    """Return a line of a description, with *base* added to the address of a component."""
    if not line.startswith(_BASE_KEY):
        return line
    number, space, rest = line.removeprefix(_BASE_KEY).partition(" ")
    return f"{_BASE_KEY}{int(number, 0) + base:#x}{space}{rest}"


def target_names() -> tuple[str, ...]:
    """Return the names of the shipped targets, in alphabetical order."""
    return tuple(sorted(path.parent.name for path in _FOLDER.glob(f"*/{_ABOUT}")))


def targets() -> tuple[ShippedTarget, ...]:
    """Return all shipped targets, in the order of `target_names`."""
    return tuple(map(shipped, target_names()))


def shipped(name: str) -> ShippedTarget:
    """Return the shipped target of a name. Raises NotATarget."""
    if name not in target_names():
        raise NotATarget(name)
    about = tomllib.loads((_FOLDER / name / _ABOUT).read_text(encoding="utf-8"))
    simulator: Mapping[str, Any] = about.get("simulator", {})
    return ShippedTarget(
        name,
        about["board"],
        about["trace"],
        tuple(about.get("limits", ())),
        tuple(TargetFact(**fact) for fact in about["fact"]),
        about.get("template", ""),
        _identity(about.get("identity", {})),
        SimulatedAs(**simulator),
    )


def _identity(table: Mapping[str, Sequence[Any]]) -> TargetIdentity:
    return TargetIdentity(
        idcodes=tuple(table.get("idcodes", ())),
        manufacturers=tuple(table.get("manufacturers", ())),
        harts=tuple((vendor, arch) for vendor, arch in table.get("harts", ())),
        vendors=tuple(table.get("vendors", ())),
        compatible=tuple(table.get("compatible", ())),
    )


def target_named(text: str) -> ShippedTarget | None:
    """Return the shipped target that a user means by *text*, None if it is the name of a file.

    A file of this name comes first, as it is the user's own.
    """
    if os.sep in text or os.path.isfile(text) or text not in target_names():
        return None
    return shipped(text)


def path_of(text: str) -> Path:
    """Return the file of a description that is named by its file or as a shipped target. Raises NotATarget."""
    target = target_named(text)
    if target is not None:
        return target.path
    path = Path(os.path.expanduser(text))
    if os.sep not in text and not path.suffix and not os.path.exists(path):
        raise NotATarget(text)
    return path


def load(text: str) -> Description:
    """Return the description that is named by its file or as a shipped target. Raises DescriptionError."""
    target = target_named(text)
    if target is None:
        return file.load(path_of(text))
    if target.template:
        raise NeedsBase(target.name, target.template)
    return target.description()


def same_components(components: Sequence[AnyComponent], target: ShippedTarget) -> bool:
    """Return whether all *components* have the types and addresses of some of a target's."""
    known = {(component.kind, component.base) for component in target.description().components}
    return bool(components) and all((component.kind, component.base) in known for component in components)
