"""Which functions are meant by a name that somebody types: in any namespace, with or without parameters and arguments.

Source: GDB, "Linespec Locations", and its strncmp_iw_with_mode: `b::f` is `a::b::f(int)`, too, and `f` is `f<int>`.
"""

import re
from typing import NamedTuple

_OPENED, _CLOSED = "([{<", ")]}>"
_OPERATOR = re.compile(r"operator\s*(?:\(\s*\)|\[\s*\]|->\*?|<=>|[<>]{2}=?|[<>]=?|[^\w\s(<]+)")
_BLANKS = re.compile(r"(?<=\W)\s+|\s+(?=\W)")
_IDENTIFIER = re.compile(r"[^\W\d]\w*")


class NameComponent(NamedTuple):
    """A part of a name between `::`, and the arguments of a template behind it."""

    name: str
    arguments: str


class Parts(NamedTuple):
    """A name taken apart: `ns::box<int>::get(int) const`. *parameters*: "" without any."""

    path: tuple[NameComponent, ...]
    parameters: str
    behind: str
    is_whole: bool
    """It begins with `::`."""


def parts(name: str) -> Parts:
    """Take a name apart."""
    text = _BLANKS.sub("", name.strip()).replace("::<", "<")  # Rust's f::<u8>
    is_whole = text.startswith("::")
    path, at = list[NameComponent](), 2 if is_whole else 0
    while at < len(text):
        component, at = _name_component(text, at)
        path.append(component)
        if not text.startswith("::", at):
            break
        at += 2
    end = _closing(text, at) if text[at : at + 1] == "(" else at
    return Parts(tuple(path), text[at:end], text[end:].strip(), is_whole)


def _name_component(text: str, at: int) -> tuple[NameComponent, int]:
    """Return the component that begins at a place, and where it ends."""
    begin = at
    operator = _OPERATOR.match(text, at)
    if operator is not None:
        at = operator.end()
    elif text.startswith("operator ", at) or text.startswith("(", at):  # of a type; (anonymous namespace)
        at = _until(text, at + 1, "(") if text[at] == "o" else _closing(text, at)
    elif text.startswith(("{", "<"), at):  # {closure#0}, {lambda(int)#1}, <T as Trait>
        at = _closing(text, at)
    while at < len(text) and text[at] not in "(<" and not text.startswith("::", at):
        at = _closing(text, at) if text[at] in "{[" else at + 1
    name, end = text[begin:at], at
    if text.startswith("<", at):
        end = _closing(text, at)
    return NameComponent(name, text[at:end]), end


def _until(text: str, at: int, character: str) -> int:
    while at < len(text) and text[at] != character:
        at = _closing(text, at) if text[at] in "<" else at + 1
    return at


def _closing(text: str, at: int) -> int:
    """Return the place behind the parenthesis that closes the one at a place; the end, if none does."""
    depth = 0
    while at < len(text):
        if text[at] in _OPENED:
            depth += 1
        elif text[at] in _CLOSED and text[at - 1 : at + 1] != "->":
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return len(text)


class Pattern:
    """A name as it is typed."""

    def __init__(self, text: str) -> None:
        self._components = parts(text)
        last = self._components.path[-1].name.removeprefix("~") if self._components.path else ""
        self._needed = last if _IDENTIFIER.fullmatch(last) and not last.startswith("operator") else ""

    def may_be(self, linked: str) -> bool:
        """Return whether a name of the linker may be meant, which is quick to say: it has the last identifier."""
        needed = self._needed
        if not needed:
            return bool(self._components.path)
        if linked.startswith(("_Z", "_R")):
            return f"{len(needed)}{needed}" in linked or f"{len(needed)}_{needed}" in linked
        return linked == needed or linked.startswith(f"{needed}.")

    def means(self, name: str) -> bool:
        """Return whether a name as it stands in the program is meant."""
        asked, found = self._components, parts(name)
        if len(asked.path) > len(found.path) or (asked.is_whole and len(asked.path) != len(found.path)):
            return False
        if asked.parameters and asked.parameters != found.parameters:
            return False
        if asked.behind and asked.behind != found.behind:
            return False
        return all(map(_is_meant, reversed(asked.path), reversed(found.path)))


def _is_meant(pattern: NameComponent, component: NameComponent) -> bool:
    return pattern.name == component.name and (not pattern.arguments or pattern.arguments == component.arguments)
