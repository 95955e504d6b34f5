"""A wrong ELF is noticed within one period of synchronizing messages, and named as such."""

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.executed.encoder_ingress import blocks_from_pcs
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.ntrace.decoder import decode
from rvtrace_gdb.decode.ntrace.encoder.encoder import Encoder
from rvtrace_gdb.decode.ntrace.messages import Evcode, Sync
from rvtrace_gdb.decode.ntrace.options import EncoderOptions, InstSyncMode, Options
from rvtrace_gdb.decode.program.image import Image
from tests.decode import assembler as asm
from tests.decode.ntrace.encodings import Case, any_fields, periodic
from tests.decode.ntrace.messages import SYNCS, located
from tests.helpers.amounts import crossed, some_of

REFERENCE = Path(__file__).parents[2] / "data" / "ntrace-reference"
examples = settings(derandomize=True, max_examples=some_of(60), deadline=None)
seeds = st.integers(0, 1 << 32)


def reference_trace(program: str, sync_max: int) -> tuple[list[bytes], Image]:
    """A real program's trace with periodic synchronization."""
    image = Image.from_elf(REFERENCE / f"{program}.elf")
    pcs = decode((REFERENCE / f"{program}.1.nex").read_bytes(), image, Options()).pcs()
    messages: list[bytes] = []
    encoder = Encoder(EncoderOptions(sync_mode=InstSyncMode.MESSAGES, sync_max=sync_max), messages.append)
    encoder.start(Sync.EXIT_FROM_RESET)
    encoder.retire(list(blocks_from_pcs(pcs, image)))
    encoder.stop(Evcode.DEBUG_MODE)
    return messages, image


@pytest.mark.parametrize(
    ("program", "wrong"),
    crossed(
        ["dhrystone", "towers", "qsort", "rsort", "median"],
        ["shifted by 2", "shifted by 4", "another program", "rebuilt"],
    ),
)
def test_a_wrong_elf_is_noticed_within_one_sync_period(program: str, wrong: str) -> None:
    messages, image = reference_trace(program, 0)
    other = Image(64)
    if wrong == "another program":
        other = Image.from_elf(REFERENCE / f"{'multiply' if program != 'multiply' else 'towers'}.elf")
    for start, code in image.segments:
        if wrong.startswith("shifted"):
            other.add_code(start + int(wrong[-1]), code)
        elif wrong == "rebuilt":  # the same code, with a few instructions more in it here and there
            rng, changed = random.Random(program), bytearray()
            for at in range(0, len(code), 2):
                changed += asm.C_NOP * (rng.random() < 0.02) + code[at : at + 2]
            other.add_code(start, bytes(changed))
    history = decode(b"".join(messages), other, Options())
    first = next(event for event in history.events if event.kind is EventKind.MISMATCH)
    assert "trace does not match" in first.text
    period = [i for i, m in enumerate(messages) if i and m[0] >> 2 in SYNCS]
    assert first.offset < sum(map(len, messages[: period[0] + 1]))


@examples
@given(seeds, any_fields, st.sampled_from(["shifted by 2", "shifted by 4", "another program"]))
def test_another_program_is_noticed_whatever_the_encoder(seed: int, fields: dict[str, Any], wrong: str) -> None:
    """A few lines of random code may fit another few for a period or two; to the sixth nothing does."""
    case = periodic(seed, fields, trap_rate=0, marks=False, steps=2500)
    syncs = [offset for offset, raw in located(case.trace) if raw[0] >> 2 in SYNCS]
    if len(syncs) < 7:
        return  # a loop that needs no message: nothing to be noticed by
    if wrong == "another program":
        other = Case(seed + 1).program
        image = other.image() if (other.base, other.xlen) == (case.program.base, case.program.xlen) else Image(64)
    else:
        image = case.program.image(int(wrong[-1]))
    history = decode(case.trace, image, case.options)
    first = next(event for event in history.events if event.kind is EventKind.MISMATCH)
    assert "trace does not match" in first.text
    assert first.offset <= syncs[6]
