"""The functions of a compilation unit in the debug information, with the names that gdb has for them.

gdb takes the linker's name of a function, if the debug information has it, and otherwise what the program has: Rust's
path, a function of C with its parameters in a C++ unit (`main()`), a lambda without the function that it is in. A unit
may be large: its entries are skipped by their sizes, and only those of functions are read.

Source: DWARF 5, 7.5 "Format of Debugging Information"; which names gdb makes of it: gdb's dwarf2/read.c,
`dwarf2_physname`, `dwarf2_compute_name`, `determine_prefix`.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from rvtrace_gdb.decode.program.names.demangling import demangled
from rvtrace_gdb.decode.program.names.type_names import parameters

C_PLUS_PLUS = frozenset([0x04, 0x1A, 0x21, 0x2B, 0x3A])
"""DW_LANG_C_plus_plus and its versions."""
RUST = 0x1C
_SCOPES = {
    "DW_TAG_namespace": True, "DW_TAG_structure_type": True, "DW_TAG_class_type": True, "DW_TAG_union_type": True,
    "DW_TAG_enumeration_type": True, "DW_TAG_interface_type": True, "DW_TAG_module": True, "DW_TAG_subprogram": False,
}  # fmt: skip
"""The entries that others are in, and whether they are a part of the names of these."""
_ORIGINS = ("DW_AT_specification", "DW_AT_abstract_origin")
_ORIGINS_AT_MOST = 16
_ESCAPE = 0x80


class UnitFunctions:
    """The functions of a unit of pyelftools. *others*: returns those of the unit at an offset. Raises what pyelftools
    raises, for damaged files.
    """

    def __init__(self, unit: Any, others: "Callable[[int], UnitFunctions]") -> None:
        self._unit, self._others = unit, others
        language = unit.get_top_DIE().attributes.get("DW_AT_language")
        self.language = 0 if language is None else int(language.value)
        self.is_skeleton = not unit.get_top_DIE().has_children
        self._parents: dict[int, int] = {}
        self._entries: dict[int, int] | None = None

    def name(self, address: int) -> str | None:
        """Return the name of the function that begins at an address, None if that is not known."""
        offset = self._entry_places().get(address)
        if offset is None:
            return None
        entry = self._unit.get_DIE_from_refaddr(offset)
        linked = self._entry_text(entry, "DW_AT_linkage_name") or self._entry_text(entry, "DW_AT_MIPS_linkage_name")
        if linked is not None and self.language != RUST:
            return demangled(linked).plain
        own = self._entry_text(entry, "DW_AT_name")
        if own is None or (self.language != RUST and self.language not in C_PLUS_PLUS):
            return own
        path = f"{self.scope(entry)}{own}"
        if self.language == RUST:
            return path
        given = parameters(entry, self)
        return None if given is None else f"{path}{given}"

    def scope(self, entry: Any) -> str:
        """Return the namespaces and classes that an entry is in: "ns::box::"."""
        *_, entry = self._chain(entry)
        if entry.cu.cu_offset != self._unit.cu_offset:
            return self._others(entry.cu.cu_offset).scope(entry)
        self._entry_places()
        parent = self._parents.get(entry.offset)
        if parent is None:
            return ""
        around = self._unit.get_DIE_from_refaddr(parent)
        if not _SCOPES[around.tag]:
            return ""
        name = self._entry_text(around, "DW_AT_name")
        if name is None:
            if around.tag != "DW_TAG_namespace":
                return ""
            name = "(anonymous namespace)"
        return f"{self.scope(around)}{name}::"

    def _entry_text(self, entry: Any, name: str) -> str | None:
        """Return a text of an entry, or of the one that it completes."""
        value = next((it.attributes[name].value for it in self._chain(entry) if name in it.attributes), None)
        return value.decode(errors="replace") if isinstance(value, bytes) else None

    def _chain(self, entry: Any) -> Iterator[Any]:
        """Yield an entry, and those that it completes: few, but where the file is damaged."""
        for _ in range(_ORIGINS_AT_MOST):
            yield entry
            entry = self._origin(entry)
            if entry is None:
                return

    @staticmethod
    def _origin(entry: Any) -> Any:
        found = next((name for name in _ORIGINS if name in entry.attributes), None)
        return None if found is None else entry.get_DIE_from_attribute(found)

    def _entry_places(self) -> dict[int, int]:
        """Return the places of the functions' entries by the first addresses of the functions."""
        if self._entries is None:
            self._entries = {}
            for offset, low in self._scan():
                start = self._entry(offset) if low is None else low
                if start is not None:
                    self._entries.setdefault(start, offset)
        return self._entries

    def _entry(self, offset: int) -> int | None:
        """Return where a function begins, also one that is in several places: its first range."""
        entry = self._unit.get_DIE_from_refaddr(offset)
        low = entry.attributes.get("DW_AT_low_pc")
        if low is not None:
            return int(low.value)
        return next((start for start, _ in ranges_of(entry)), None)

    def _scan(self) -> Iterator[tuple[int, int | None]]:
        """Yield the places of the functions that have code, with their first addresses where these are quick to read.
        Learn what is in what.
        """
        data = self._unit.dwarfinfo.debug_info_sec.stream.getbuffer()
        shapes: dict[int, _EntryShape] = {}
        at, end = self._unit.cu_die_offset, self._unit.cu_offset + self._unit.size
        around, width = list[int | None](), int(self._unit["address_size"])
        while at < end:
            begin = at
            code, at = _leb(data, at)
            if not code:
                if not around:
                    return
                around.pop()
                continue
            shape = shapes.get(code)
            if shape is None:
                shape = shapes[code] = _shape(self._unit, code)
            inside = next((one for one in reversed(around) if one is not None), None) if shape.is_scope else None
            if inside is not None:
                self._parents[begin] = inside
            if shape.has_code:
                place = None if shape.low is None else at + shape.low
                yield begin, None if place is None else int.from_bytes(data[place : place + width], "little")
            at = shape.skip(data, at)
            if shape.has_children:
                around.append(begin if shape.is_scope else None)


def ranges_of(entry: Any) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of the code of an entry that has it in several places. Empty ranges are left out."""
    from elftools.dwarf.ranges import BaseAddressEntry

    lists = entry.dwarfinfo.range_lists()
    attribute = entry.attributes["DW_AT_ranges"]
    if lists is None:
        return
    low = entry.cu.get_top_DIE().attributes.get("DW_AT_low_pc")
    base = 0 if low is None else low.value
    for one in lists.get_range_list_at_offset(attribute.value, entry.cu):
        if isinstance(one, BaseAddressEntry):
            base = one.base_address
            continue
        start = one.begin_offset if one.is_absolute else base + one.begin_offset
        end = one.end_offset if one.is_absolute else base + one.end_offset
        if start < end:
            yield start, end


_Skip = Callable[[Any, int], int]


class _EntryShape(NamedTuple):
    """What the entries of an abbreviation are like. *skip*: returns where one ends whose attributes begin somewhere.
    *low*: where the first address is behind that, if it is always there.
    """

    is_scope: bool
    has_code: bool
    low: int | None
    has_children: bool
    skip: _Skip


def _shape(unit: Any, code: int) -> _EntryShape:
    abbreviation = unit.get_abbrev_table().get_abbrev(code)
    attributes = list(abbreviation.iter_attr_specs())
    steps: list[int | _Skip] = []
    low = None
    for name, form in attributes:
        if name == "DW_AT_low_pc" and form == "DW_FORM_addr" and all(isinstance(step, int) for step in steps):
            low = sum(step for step in steps if isinstance(step, int))
        step = _FORMS.get(form)
        step = _sized(unit, form) if step is None else step
        if isinstance(step, int) and steps and isinstance(steps[-1], int):
            steps[-1] += step
        else:
            steps.append(step)
    names = {name for name, _ in attributes}
    tag = abbreviation["tag"]
    has_code = tag == "DW_TAG_subprogram" and bool(names & {"DW_AT_low_pc", "DW_AT_ranges"})
    return _EntryShape(tag in _SCOPES, has_code, low, abbreviation.has_children(), _skipper(steps))


def _skipper(steps: list[int | _Skip]) -> _Skip:
    if not steps:
        return lambda data, at: at
    if len(steps) == 1 and isinstance(steps[0], int):
        size = steps[0]
        return lambda data, at: at + size

    def skip(data: Any, at: int) -> int:
        for step in steps:
            at = at + step if isinstance(step, int) else step(data, at)
        return at

    return skip


def _sized(unit: Any, form: str) -> int:
    """Return the size of a form that depends on the unit."""
    if form == "DW_FORM_addr" or (form == "DW_FORM_ref_addr" and unit["version"] < 3):
        return int(unit["address_size"])
    if form in _OFFSETS:
        return int(unit.dwarf_format()) // 8
    raise ValueError(f"an attribute has the form {form}")


def _leb(data: Any, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & ~_ESCAPE) << shift
        if byte < _ESCAPE:
            return value, at
        shift += 7


def _after_leb(data: Any, at: int) -> int:
    while data[at] >= _ESCAPE:
        at += 1
    return at + 1


def _after_text(data: Any, at: int) -> int:
    while data[at]:
        at += 1
    return at + 1


def _after_block(data: Any, at: int) -> int:
    size, at = _leb(data, at)
    return at + size


def _counted_skip(width: int) -> _Skip:
    return lambda data, at: at + width + int.from_bytes(data[at : at + width], "little")


_FORMS: dict[str, int | _Skip] = {
    **dict.fromkeys(["DW_FORM_flag_present", "DW_FORM_implicit_const"], 0),
    **{f"DW_FORM_{name}1": 1 for name in ("data", "ref", "strx", "addrx")}, "DW_FORM_flag": 1,
    **{f"DW_FORM_{name}2": 2 for name in ("data", "ref", "strx", "addrx")},
    **{f"DW_FORM_{name}3": 3 for name in ("strx", "addrx")},
    **{f"DW_FORM_{name}4": 4 for name in ("data", "ref", "strx", "addrx", "ref_sup")},
    **{f"DW_FORM_{name}8": 8 for name in ("data", "ref", "ref_sig", "ref_sup")}, "DW_FORM_data16": 16,
    **dict.fromkeys(
        [f"DW_FORM_{name}" for name in (
            "udata", "sdata", "ref_udata", "strx", "addrx", "loclistx", "rnglistx", "GNU_addr_index", "GNU_str_index"
        )], _after_leb
    ),
    "DW_FORM_string": _after_text, "DW_FORM_block": _after_block, "DW_FORM_exprloc": _after_block,
    **{f"DW_FORM_block{width}": _counted_skip(width) for width in (1, 2, 4)},
}  # fmt: skip
_OFFSETS = {f"DW_FORM_{name}" for name in (
    "strp", "sec_offset", "line_strp", "strp_sup", "GNU_strp_alt", "GNU_ref_alt", "ref_addr"
)}  # fmt: skip
