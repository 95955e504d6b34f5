"""The instructions of a program, as whoever executes them again needs them."""

from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import UndecodableInstruction, length


def word_at(image: Image, pc: int, other: bytes = b"") -> int:
    """Return an instruction; one whose code is not there counts as illegal, so that nothing is known behind it.
    *other*: what ran there instead of the program's.
    """
    try:
        content = other or image.read(pc, 2)
        word = int.from_bytes(content, "little")
        if length(word) > 2 and len(content) == 2:
            word |= int.from_bytes(image.read(pc + 2, 2), "little") << 16
    except (CodeMissing, UndecodableInstruction):
        word = 0
    return word
