"""What is known of partly known lines of memory, against a search byte by byte."""

import random
from typing import Any, cast

from rvtrace_gdb.decode.program.elf import Elf, ElfSection
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.replay.cache_lines import LINE, partly_known_lines

SP, VARIABLES = 0x8000_0F34, 0x8000_4010
READ = 16  # bytes: no variable of a test is larger


class PatchyPast:
    """Some bytes are known."""

    def __init__(self, chance: random.Random) -> None:
        self.bytes: dict[int, int] = {}
        for base in range(0x8000_0000, 0x8000_6000, LINE):
            size = chance.choice([0, LINE, LINE, chance.randrange(LINE)])
            begin = chance.choice([0, chance.randrange(LINE - size + 1)])
            self.bytes |= {base + at: chance.randrange(256) for at in range(begin, begin + size)}

    def registers(self, position: int) -> dict[str, int]:
        return {"sp": SP}

    def memory(self, position: int, address: int, size: int) -> list[int | None]:
        return [self.bytes.get(at) for at in range(address, address + size)]


def test_a_debugger_that_reads_lines_finds_what_is_known_and_nothing_else() -> None:
    image = Image(64)
    elf = Elf("variables.elf", "", xlen=64, sections=[ElfSection(VARIABLES, VARIABLES + 0x500, [])])
    image.add_elf(elf)
    for seed in range(3):
        past = PatchyPast(random.Random(seed))
        parts = list(partly_known_lines(cast(Any, past), 0, image))
        for address, data in parts:
            assert list(data) == past.memory(0, address, len(data))
        sent = {at for address, data in parts for at in range(address, address + len(data) - READ + 1)}
        for at in [*range(SP, SP + 0xA00, 3), *range(VARIABLES, VARIABLES + 0x500, 3)]:
            lines = range(at // LINE * LINE, (at + READ - 1) // LINE * LINE + LINE)
            whole = all(other in past.bytes for other in lines)
            known = all(other in past.bytes for other in range(at, at + READ))
            assert not known or whole or at in sent, hex(at)
