"""The types of values, read from the debug information.

Source: DWARF 5, 5 "Type FunctionEntries", 7.8 (encodings of base types).
"""

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from rvtrace_gdb.decode.expressions.types import (
    BOOL,
    CHAR,
    FLOAT,
    NOTHING,
    SIGNED,
    UNSIGNED,
    UNSIGNED_CHAR,
    Array,
    BaseType,
    Enum,
    FunctionType,
    MemberField,
    Named,
    Pointer,
    Struct,
    ValueType,
    stripped,
)
from rvtrace_gdb.decode.program.names.unit_functions import C_PLUS_PLUS, RUST

_ENCODINGS = {2: BOOL, 4: FLOAT, 5: SIGNED, 6: CHAR, 7: UNSIGNED, 8: UNSIGNED_CHAR, 0x10: UNSIGNED}
_POINTERS = {"DW_TAG_pointer_type": "*", "DW_TAG_reference_type": "&", "DW_TAG_rvalue_reference_type": "&&"}
_QUALIFIERS = {"DW_TAG_const_type": "const", "DW_TAG_volatile_type": "volatile"}
_PASSED_OVER = ("DW_TAG_restrict_type", "DW_TAG_atomic_type")
_TAGS = {"DW_TAG_structure_type": "struct", "DW_TAG_class_type": "class", "DW_TAG_union_type": "union"}
_SCOPES = ("DW_TAG_namespace", "DW_TAG_module", *_TAGS)
_BY_REFERENCE = 4  # DW_CC_pass_by_reference


class UnreadableType(Exception):
    """A type that is not understood here: its name. Raised where the parts of a value of it are asked for."""


class DebugTypes:
    """The types of an ELF file. Methods raise `dwarf_file.ERRORS` for a damaged file."""

    def __init__(self, address_size: int) -> None:
        self._width = address_size
        self._types: dict[int, ValueType] = {}
        self._definitions: dict[str, Any] = {}

    def of(self, entry: Any) -> ValueType:
        """Return the type that the entry of a variable, or of another type, refers to; NOTHING: to none."""
        for it in completed(entry):
            if "DW_AT_type" in it.attributes:
                return self.type_of(it.get_DIE_from_attribute("DW_AT_type"))
        return NOTHING

    def type_of(self, entry: Any) -> ValueType:
        """Return the type of an entry. One that is not understood is a structure whose members cannot be read."""
        found = self._types.get(entry.offset)
        if found is None:
            try:
                found = self._new_type(entry)
            except UnreadableType as problem:
                found = _unreadable(entry, problem)
            self._types[entry.offset] = found
        return found

    def _new_type(self, entry: Any) -> ValueType:
        tag, size = entry.tag, _integer_attribute(entry, "DW_AT_byte_size")
        if tag == "DW_TAG_base_type":
            return _base(entry, size)
        if tag in _POINTERS:
            return Pointer(self.of(entry), size or self._width, _POINTERS[tag])
        if tag in _QUALIFIERS:
            return Named("", self.of(entry), _QUALIFIERS[tag])
        if tag in _PASSED_OVER:
            return self.of(entry)
        if tag in ("DW_TAG_typedef", "DW_TAG_template_alias"):
            return Named(full_name(entry), self.of(entry))
        if tag in _TAGS:
            return self._struct(entry, size)
        if tag == "DW_TAG_enumeration_type":
            values = [(_enumerator_name(entry, it), it.attributes["DW_AT_const_value"].value)
                      for it in entry.iter_children() if it.tag == "DW_TAG_enumerator"]  # fmt: skip
            return Enum(full_name(entry), size, values, tagged=_language(entry) not in C_PLUS_PLUS | {RUST})
        if tag == "DW_TAG_array_type":
            return self._array(entry)
        if tag == "DW_TAG_subroutine_type":
            given = [self.of(it) for it in entry.iter_children() if it.tag == "DW_TAG_formal_parameter"]
            return FunctionType(self.of(entry), tuple(given), "DW_AT_prototyped" in entry.attributes)
        if tag == "DW_TAG_unspecified_type":
            return NOTHING
        raise UnreadableType(tag.removeprefix("DW_TAG_"))

    def _struct(self, entry: Any, size: int) -> Struct:
        tag = "" if _language(entry) in C_PLUS_PLUS | {RUST} else _TAGS[entry.tag]
        if any(it.tag == "DW_TAG_variant_part" for it in entry.iter_children()):
            raise UnreadableType(f"{full_name(entry)}, an enumeration of Rust")
        return Struct(
            full_name(entry), size, tag, lambda: list(self._members(entry)), is_union=entry.tag == "DW_TAG_union_type",
            is_by_reference=_integer_attribute(entry, "DW_AT_calling_convention") == _BY_REFERENCE,
        )  # fmt: skip

    def _members(self, entry: Any) -> Iterator[MemberField]:
        for it in entry.iter_children():
            if it.tag not in ("DW_TAG_member", "DW_TAG_inheritance") or "DW_AT_external" in it.attributes:
                continue
            if "DW_AT_virtuality" in it.attributes:
                raise UnreadableType("a virtual base class")
            kind = self.of(it)
            offset = _integer_attribute(it, "DW_AT_data_member_location")
            name = text_of(it, "DW_AT_name")
            field = _bits(it, kind, offset)
            if field is not None:
                yield MemberField(name, kind, field[0], field[1:])
            else:
                yield MemberField(name, kind, offset, is_base=it.tag == "DW_TAG_inheritance")

    def _array(self, entry: Any) -> ValueType:
        if "DW_AT_GNU_vector" in entry.attributes:
            raise UnreadableType("a vector")
        found = self.of(entry)
        ranges = [it for it in entry.iter_children() if it.tag == "DW_TAG_subrange_type"]
        for it in reversed(ranges):
            count, upper = it.attributes.get("DW_AT_count"), it.attributes.get("DW_AT_upper_bound")
            lowest = _integer_attribute(it, "DW_AT_lower_bound")
            known = None if count is None else count.value
            if count is None and upper is not None:
                known = upper.value + 1 - lowest if isinstance(upper.value, int) else upper.value
            if isinstance(known, int) and upper is not None and upper.form in ("DW_FORM_ref4", "DW_FORM_exprloc"):
                raise UnreadableType("an array whose length the program computes")
            if known is not None and not isinstance(known, int):
                raise UnreadableType("an array whose length the program computes")
            found = Array(found, None if known is None or known >= 1 << 48 else known, lowest)
        return found


def _unreadable(entry: Any, problem: UnreadableType) -> Struct:
    """Return a type of which the size alone is understood."""

    def members() -> NoReturn:
        raise problem

    return Struct(full_name(entry), _integer_attribute(entry, "DW_AT_byte_size"), "", members)


def _base(entry: Any, size: int) -> BaseType:
    encoding = _integer_attribute(entry, "DW_AT_encoding")
    if encoding not in _ENCODINGS:
        raise UnreadableType(text_of(entry, "DW_AT_name"))
    return BaseType(text_of(entry, "DW_AT_name"), size, _ENCODINGS[encoding])


def _bits(entry: Any, kind: ValueType, offset: int) -> tuple[int, int, int] | None:
    """Return (byte, lowest bit, how many bits) of a bit-field."""
    if "DW_AT_bit_size" not in entry.attributes:
        return None
    count = _integer_attribute(entry, "DW_AT_bit_size")
    if "DW_AT_data_bit_offset" in entry.attributes:
        first = _integer_attribute(entry, "DW_AT_data_bit_offset")
        return first // 8, first % 8, count
    if "DW_AT_bit_offset" in entry.attributes:  # of the unit in memory, from its highest bit on (DWARF 3)
        behind = stripped(kind)
        size = _integer_attribute(entry, "DW_AT_byte_size")
        size = size or (behind.size if isinstance(behind, (BaseType, Enum)) else 0)
        first = 8 * (offset + size) - _integer_attribute(entry, "DW_AT_bit_offset") - count
        return first // 8, first % 8, count
    return offset, 0, count


def completed(entry: Any) -> Iterator[Any]:
    """Yield an entry, and those that it completes."""
    for _ in range(16):
        yield entry
        for name in ("DW_AT_abstract_origin", "DW_AT_specification"):
            if name in entry.attributes:
                entry = entry.get_DIE_from_attribute(name)
                break
        else:
            return


def text_of(entry: Any, name: str) -> str:
    """Return a text of an entry, or of one that it completes."""
    value = next((it.attributes[name].value for it in completed(entry) if name in it.attributes), b"")
    return value.decode(errors="replace") if isinstance(value, bytes) else ""


def _integer_attribute(entry: Any, name: str) -> int:
    value = entry.attributes.get(name)
    return int(value.value) if value is not None and isinstance(value.value, int) else 0


def _language(entry: Any) -> int:
    return language_of(entry.cu)


def language_of(unit: Any) -> int:
    """Return the DW_LANG of a unit."""
    return _integer_attribute(unit.get_top_DIE(), "DW_AT_language")


def full_name(entry: Any) -> str:
    """Return the name of a type or a function, with the namespaces and classes that it is in."""
    own = text_of(entry, "DW_AT_name")
    around = scope_names(entry)
    return "::".join([*around, own]) if own else ""


def _enumerator_name(entry: Any, enumerator: Any) -> str:
    own = text_of(enumerator, "DW_AT_name")
    if _language(entry) not in C_PLUS_PLUS | {RUST}:
        return own
    is_class = "DW_AT_enum_class" in entry.attributes or _language(entry) == RUST
    around = [full_name(entry)] if is_class and text_of(entry, "DW_AT_name") else scope_names(entry)
    return "::".join([*around, own])


def scope_names(entry: Any) -> Sequence[str]:
    """Return the names of the namespaces and classes that an entry is in, the outermost first."""
    if _language(entry) not in C_PLUS_PLUS | {RUST}:
        return ()
    *_, entry = completed(entry)
    found: list[str] = []
    parent = entry.get_parent()
    while parent is not None:
        if parent.tag in _SCOPES:
            found.append(text_of(parent, "DW_AT_name") or "(anonymous namespace)")
        parent = parent.get_parent()
    return found[::-1]
