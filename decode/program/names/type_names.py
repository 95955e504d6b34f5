"""The types of a function's parameters as gdb writes them in names: `(char const*, int volatile*)`.

Source: DWARF 5, 5 "Type Entries"; the spelling: gdb's cp-name-parser.y, which puts what is const behind the type.
"""

from collections.abc import Iterator
from itertools import takewhile
from typing import Any, Protocol

_BASE = {
    "long int": "long", "long unsigned int": "unsigned long", "short int": "short", "long long int": "long long",
    "short unsigned int": "unsigned short", "long long unsigned int": "unsigned long long",
}  # fmt: skip
_NAMED = frozenset(f"DW_TAG_{name}" for name in (
    "base_type", "typedef", "structure_type", "class_type", "union_type", "enumeration_type", "unspecified_type"
))  # fmt: skip
_POINTERS = {"DW_TAG_pointer_type": "*", "DW_TAG_reference_type": "&", "DW_TAG_rvalue_reference_type": "&&"}
_QUALIFIERS = {"DW_TAG_const_type": " const", "DW_TAG_volatile_type": " volatile"}
_BODY = frozenset(f"DW_TAG_{name}" for name in (
    "lexical_block", "inlined_subroutine", "call_site", "GNU_call_site", "label"
))  # fmt: skip
_DEEPEST = 64


class Scopes(Protocol):
    """Knows what an entry is in: "ns::box::"."""

    def scope(self, entry: Any) -> str: ...


class _UnknownType(Exception):
    """A type that is not written here."""


def parameters(function: Any, scopes: Scopes) -> str | None:
    """Return `(int, char const*)` of a function's entry, and whether a method leaves its object as it is; None: its
    types are none that are written here.
    """
    try:
        return _parameters(function, scopes, 0) + (" const" if _is_const(function) else "")
    except _UnknownType:
        return None


def _parameters(function: Any, scopes: Scopes, depth: int, *, with_object: bool = False) -> str:
    texts = []
    for child in _given(function):
        if child.tag == "DW_TAG_formal_parameter" and (with_object or not _is_artificial(child)):
            texts.append(_type_text(_type(child), " const" if _is_artificial(child) else "", scopes, depth))
        elif child.tag == "DW_TAG_unspecified_parameters":
            texts.append("...")
    return f"({', '.join(texts)})"


def _given(function: Any) -> Iterator[Any]:
    """Yield the entries in that of a function, up to its body, which may be long: parameters come first."""
    return takewhile(lambda child: child.tag not in _BODY, function.iter_children())


def _is_artificial(entry: Any) -> bool:
    return "DW_AT_artificial" in _with(entry, "DW_AT_artificial").attributes


def _is_const(function: Any) -> bool:
    """Return whether the object of a method is const."""
    first = next((one for one in _given(function) if one.tag == "DW_TAG_formal_parameter"), None)
    if first is None or not _is_artificial(first):
        return False
    target = _type(first)
    while target is not None and target.tag in ("DW_TAG_const_type", "DW_TAG_pointer_type"):
        is_pointer, target = target.tag == "DW_TAG_pointer_type", _type(target)
        if is_pointer:
            return target is not None and target.tag == "DW_TAG_const_type"
    return False


def _with(entry: Any, name: str) -> Any:
    """Return the entry, or the one that it completes, that has an attribute."""
    for _ in range(_DEEPEST):
        origin = next((it for it in ("DW_AT_abstract_origin", "DW_AT_specification") if it in entry.attributes), None)
        if name in entry.attributes or origin is None:
            return entry
        entry = entry.get_DIE_from_attribute(origin)
    raise _UnknownType


def _type(entry: Any) -> Any:
    entry = _with(entry, "DW_AT_type")
    return entry.get_DIE_from_attribute("DW_AT_type") if "DW_AT_type" in entry.attributes else None


def _type_text(entry: Any, behind: str, scopes: Scopes, depth: int) -> str:
    """Return a type; *behind*: what is written behind it, as for a pointer to it."""
    if depth > _DEEPEST:
        raise _UnknownType
    if entry is None:
        return f"void{behind}"
    if entry.tag in _NAMED:
        return _type_name(entry, scopes) + behind
    target = _type(entry)
    if entry.tag in _POINTERS:
        inner = f"{_POINTERS[entry.tag]}{behind}"
        grouped = target is not None and target.tag in ("DW_TAG_subroutine_type", "DW_TAG_array_type")
        return _type_text(target, f" ({inner})" if grouped else inner, scopes, depth + 1)
    if entry.tag in _QUALIFIERS:
        return _type_text(target, f"{_QUALIFIERS[entry.tag]}{behind}", scopes, depth + 1)
    if entry.tag == "DW_TAG_subroutine_type":
        return _type_text(target, f"{behind}{_parameters(entry, scopes, depth + 1)}", scopes, depth + 1)
    if entry.tag == "DW_TAG_ptr_to_member_type":
        return _of_member(entry, target, behind, scopes, depth + 1)
    if entry.tag == "DW_TAG_array_type":
        return _type_text(target, f"{behind} {_lengths(entry)}", scopes, depth + 1)
    raise _UnknownType


def _of_member(entry: Any, target: Any, behind: str, scopes: Scopes, depth: int) -> str:
    """Return a pointer to a member of a class; that to a method also names its object."""
    if "DW_AT_containing_type" not in entry.attributes:
        raise _UnknownType
    owner = _type_name(entry.get_DIE_from_attribute("DW_AT_containing_type"), scopes)
    if target is None or target.tag != "DW_TAG_subroutine_type":
        return _type_text(target, f" {owner}::*{behind}", scopes, depth)
    given = _parameters(target, scopes, depth, with_object=True)
    return _type_text(_type(target), f" ({owner}::*{behind}){given}", scopes, depth)


def _lengths(array: Any) -> str:
    texts = []
    for one in array.iter_children():
        bound = one.attributes.get("DW_AT_upper_bound") or one.attributes.get("DW_AT_count")
        if bound is None or not isinstance(bound.value, int):
            raise _UnknownType
        texts.append(f"[{bound.value + ('DW_AT_upper_bound' in one.attributes)}]")
    return "".join(texts)


def _type_name(entry: Any, scopes: Scopes) -> str:
    named = entry.attributes.get("DW_AT_name")
    if named is None:
        raise _UnknownType
    name = named.value.decode(errors="replace")
    return _BASE.get(name, name) if entry.tag == "DW_TAG_base_type" else f"{scopes.scope(entry)}{name}"
