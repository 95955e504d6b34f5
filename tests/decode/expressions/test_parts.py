"""Of which parts a value consists: the members of C and C++ by their rules."""

from rvtrace_gdb.decode.expressions.parts import ValuePart, parts_of
from rvtrace_gdb.decode.expressions.types import SIGNED, Array, BaseType, MemberField, Struct

INT, SHORT = BaseType("int", 4, SIGNED), BaseType("short", 2, SIGNED)


def struct(*members: MemberField, size: int = 16, is_union: bool = False) -> Struct:
    return Struct("s", size, "struct", lambda: members, is_union=is_union)


def test_elements_have_the_numbers_of_the_language() -> None:
    assert parts_of(Array(SHORT, 3, lowest=1), 16) == (
        [ValuePart("[1]", SHORT, 0), ValuePart("[2]", SHORT, 2), ValuePart("[3]", SHORT, 4)], 0
    )  # fmt: skip
    found, more = parts_of(Array(Array(INT, 4), 40), 16)
    assert (len(found), found[-1].suffix, found[-1].offset, more) == (16, "[15]", 240, 24)
    assert parts_of(Array(INT, None), 16) == parts_of(Array(struct(size=0), 9), 16) == ([], 0)


def test_members_of_bases_and_of_what_has_no_name_are_those_of_the_whole() -> None:
    base = struct(MemberField("own", INT, 4), size=8)
    union = struct(MemberField("byte", SHORT, 0), MemberField("word", INT, 0), size=4, is_union=True)
    whole = struct(
        MemberField("base", base, 0, is_base=True), MemberField("", union, 8), MemberField("u", union, 12),
        MemberField("high", INT, 16, bits=(3, 7)), MemberField("", INT, 17, bits=(2, 3)),
        MemberField("tail", Array(INT, 0), 20),
    )  # fmt: skip
    found, more = parts_of(whole, 16)
    assert [(it.suffix, it.offset, it.size) for it in found] == [
        (".own", 4, 4), (".byte", 8, 2), (".word", 8, 4), (".u", 12, 4), (".high", 16, 2),
    ]  # fmt: skip
    assert more == 0 and parts_of(whole, 2) == (found[:2], 3)
    assert parts_of(union, 16) == parts_of(INT, 16) == ([], 0)
