"""What `rvtrace doctor` says of one thing: its state, its limits, what it gives, and the packages that have it."""

import platform
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

_INDENT, _WIDTH = 10, 80
_DNF = ("fedora", "rhel", "centos")
_APT = ("debian", "ubuntu")


class Usability(Enum):
    """Whether rvtrace can use a thing; the word that rows begin with."""

    OK = "ok"
    LIMITED = "limited"
    UNUSABLE = "unusable"
    MISSING = "missing"


@dataclass(frozen=True)
class Packages:
    """What installs a thing. *debian*, *fedora*: names of packages, the first of which Ubuntu has, too; *command*: what
    to type on any system, as a line of pip.
    """

    debian: str = ""
    fedora: str = ""
    command: str = ""

    def commands(self) -> dict[str, str]:
        """Return what to type, by the system for which it is, "any" for all."""
        made = {
            "debian": self.debian and f"apt install {self.debian}",
            "fedora": self.fedora and f"dnf install {self.fedora}",
            "any": self.command,
        }
        return {system: text for system, text in made.items() if text}


@dataclass(frozen=True)
class Finding:
    """What was found out. *gives*: what rvtrace does with it; *facts*: what else is known of it; *notes*: what it does
    not give as it is, or why it cannot be used.
    """

    name: str
    state: Usability
    gives: str
    version: str = ""
    path: str = ""
    facts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    packages: Packages = field(default_factory=Packages)

    @property
    def is_usable(self) -> bool:
        return self.state in (Usability.OK, Usability.LIMITED)

    def fields(self, word: str) -> dict[str, Any]:
        """Return the object of `--json`: what is not known, or not needed, is not in it. *word*: the command line's."""
        made: dict[str, Any] = {
            "name": word, "title": self.name, "state": self.state.value, "version": self.version, "file": self.path,
            "facts": list(self.facts), "gives": self.gives, "notes": list(self.notes),
        }  # fmt: skip
        if not self.is_usable:
            made["install"] = self.packages.commands()
        return {name: value for name, value in made.items() if value}

    def lines(self, system: str) -> Iterator[str]:
        """Yield the lines for a terminal. *system*: one of `Packages.commands`, whose packages are named; "": all."""
        there = ", ".join((*filter(None, [self.path]), *self.facts))
        subject = f"{self.name} {self.version}".strip()
        yield from _wrapped(self.state.value, f"{subject}: {there}" if there else f"{subject}: {self.gives}")
        if there and not self.is_usable:
            yield from _wrapped("", f"It gives: {self.gives}")
        for note in self.notes:
            yield from _wrapped("", note)
        if self.is_usable:
            return
        for of, command in self.packages.commands().items():
            if of in ("any", system) or not system:
                named = f" ({of.capitalize()})" if of != "any" and not system else ""
                yield from _wrapped("", f"To have it{named}: {command}")


def _wrapped(word: str, text: str) -> list[str]:
    """Return a row: the word, and the text beside it in as many lines as it takes."""
    return textwrap.wrap(
        text, _WIDTH, initial_indent=f"{word:<{_INDENT}}", subsequent_indent=" " * (_INDENT + 2),
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def this_system() -> str:
    """Return the system whose packages are named here: "debian", also for what is made of it, "fedora", or ""."""
    try:
        said = platform.freedesktop_os_release()
    except OSError:
        return ""
    names = (said.get("ID", ""), *said.get("ID_LIKE", "").split())
    if any(name in _APT for name in names):
        return "debian"
    return "fedora" if any(name in _DNF for name in names) else ""
