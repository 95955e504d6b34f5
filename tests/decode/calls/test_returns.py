"""Returns whose address comes from the stack of the function, and those that never say where they should have gone.

Which is which is said by the names in the assembler source; objdump says where the returns are.
"""

import re
import subprocess
from pathlib import Path

import pytest

from rvtrace_gdb.decode.calls.returns import Returns, follows_call
from rvtrace_gdb.decode.program.image import Image
from tests.helpers.cross_compiler import HOME, compile_program

SHAPES = HOME / "tests" / "programs" / "returns" / "shapes.S"
NOWHERE = 0x4140
CODE = re.compile(r"^ *([0-9a-f]+):\t[0-9a-f ]+\t(\S+)(.*)$")


def _disassembled(elf: Path) -> dict[str, list[tuple[int, str]]]:
    """Return (address, instruction) of each function."""
    text = subprocess.run(["riscv64-unknown-elf-objdump", "-dw", str(elf)], capture_output=True, text=True, check=True)
    found: dict[str, list[tuple[int, str]]] = {}
    for line in text.stdout.splitlines():
        if label := re.fullmatch(r"[0-9a-f]+ <(\w+)>:", line):
            code = found[label[1]] = []
        elif row := CODE.match(line):
            code.append((int(row[1], 16), f"{row[2]}{row[3]}"))
    return found


@pytest.fixture(scope="module", params=["rv64imac_zicsr", "rv32imac_zicsr"])
def shapes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shapes")
    options = ("-Wl,--defsym=main=_exit", "-Wl,-e,taken_plain")
    return compile_program(folder, SHAPES, march=request.param, options=options)


def test_only_returns_that_take_their_address_from_the_stack_count(shapes: Path) -> None:
    image, functions = Image.from_elf(shapes), _disassembled(shapes)
    returns = Returns(image)
    looked_at = set()
    for name, code in functions.items():
        if name.startswith(("taken", "other")):
            # of other_early the last return is meant
            at = [address for address, text in code if re.match(r"ret\b|jr\t", text)][-1:]
            assert at or name in ("taken_millicode", "other_stack", "other_called"), name
            for pc in at:
                assert returns.is_unexpected(pc, NOWHERE, image) is name.startswith("taken"), name
                looked_at.add(name)
    assert len(looked_at) >= 15


def test_a_place_after_a_call_may_be_returned_to_but_not_the_beginning_of_a_function(shapes: Path) -> None:
    image, functions = Image.from_elf(shapes), _disassembled(shapes)
    code = {address: text for function in functions.values() for address, text in function}
    begins = {function[0][0] for function in functions.values()}
    after = {
        place
        for (before, text), place in zip(sorted(code.items()), sorted(code)[1:], strict=False)
        if re.match(r"jal\tra|jalr|jal\t(?!\w+,)", text) and before in code
    }
    assert after - begins
    assert all(follows_call(image, place) for place in after - begins)
    assert not any(follows_call(image, place) for place in begins)
    others = code.keys() - after - begins  # half of an instruction may look like a call of 2 bytes
    assert sum(follows_call(image, place) for place in others) <= 1 < len(others)
    assert not follows_call(image, NOWHERE)
