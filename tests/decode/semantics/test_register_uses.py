"""What instructions that the reconstruction does not execute do to registers, compared with Spike.

Random words of V, Zfa, Zacas and Zabha run in Spike. What it says that each wrote must be what is said here, and the
registers that its disassembly names must be those that are said to be read.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from rvtrace_gdb.decode.program.csrs import F, X
from rvtrace_gdb.decode.semantics.reads import MEMORY, ReadTable
from rvtrace_gdb.decode.semantics.register_uses import VL, VTYPE, register_use
from rvtrace_gdb.decode.semantics.writes import WriteTable
from tests.helpers.amounts import some_of
from tests.session.questions.why.shadow import sources
from tests.transport.simulated.hart.programs import assemble
from tests.transport.simulated.hart.spike import Commit, run_spike
from tests.transport.simulated.hart.torture import program

WORDS = some_of(20_000)
_OP_V, _OP_FP, _AMO, _LOAD_FP, _STORE_FP = 0x57, 0x53, 0x2F, 0x07, 0x27
_ADDRESS = 11  # a1, which has an address wherever one is wanted
_VECTOR_CSRS = {0x008, 0x009, 0x00F}
_SETUP = "li t0, 0x600\ncsrs mstatus, t0"
_LOCALS = {"rv64imafdc": "IMAFDCV_zfa_zabha_zacas", "rv32imafdc": "IMAFDCV_zfa_zabha_zacas"}


def vector_words(rng: Random) -> Iterator[tuple[str, int]]:
    """Arithmetic of any kind, loads and stores at an address, and vset with any type. What sets a known state comes
    with each.
    """
    registers = [rng.randrange(32) for _ in range(3)]
    plain = "vsetivli zero, 4, e32, m1, ta, ma"
    match rng.randrange(8):
        case 0:
            kind = rng.choice([0 << 31, 0b11 << 30, 1 << 31]) | rng.randrange(256) << 20
            kind = kind & ~(0x7F << 25) | 1 << 31 if kind >> 30 == 2 else kind
            yield plain, kind | registers[0] << 15 | 7 << 12 | registers[1] << 7 | _OP_V
        case 1:
            opcode, mop = rng.choice([_LOAD_FP, _STORE_FP]), rng.choice([0, 0, 1, 3])
            width, field = rng.choice([0, 5, 6]), rng.choice([0, 0x10, 8, 0x0B]) if not mop else registers[2]
            yield plain, mop << 26 | 1 << 25 | field << 20 | _ADDRESS << 15 | width << 12 | registers[0] << 7 | opcode
        case 2:
            unary = rng.choice([0, 0x10, 0x11, registers[1]])
            yield plain, 0x10 << 26 | 1 << 25 | registers[0] << 20 | unary << 15 | 2 << 12 | registers[2] << 7 | _OP_V
        case 3:
            yield plain, 0x10 << 26 | 1 << 25 | registers[0] << 20 | 1 << 12 | registers[2] << 7 | _OP_V
        case _:
            form = rng.randrange(64) << 26 | rng.randrange(2) << 25 | registers[0] << 20 | registers[1] << 15
            yield plain, form | rng.randrange(7) << 12 | registers[2] << 7 | _OP_V


def scalar_words(rng: Random) -> Iterator[tuple[str, int]]:
    """Zfa, Zacas and Zabha."""
    rd, rs1, rs2 = (rng.randrange(32) for _ in range(3))
    if rng.randrange(2):
        width, kind = rng.randrange(5), rng.choice([0, 1, 4, 5, 5, 5, 8, 12, 16, 20, 24, 28])
        yield "", kind << 27 | rs2 << 20 | _ADDRESS << 15 | width << 12 | rd << 7 | _AMO
        return
    funct5, second, funct3 = rng.choice(
        [(0x1E, 1, 0), (5, rs2, 2), (5, rs2, 3), (8, 4, 0), (8, 5, 7), (0x14, rs2, 4), (0x14, rs2, 5), (0x18, 8, 1),
         (0x1C, 1, 0), (0x16, rs2, 0)]
    )  # fmt: skip
    yield "", funct5 << 27 | rng.randrange(2) << 25 | second << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | _OP_FP


def executed(folder: Path, words: Callable[[Random], Iterator[tuple[str, int]]], march: str) -> dict[int, list[Commit]]:
    """What Spike says that each word did, and its disassembly."""
    rng, chosen = Random(f"{words.__name__} {march}"), list[int]()
    lines = [_SETUP]
    for _ in range(WORDS):
        for before, word in words(rng):
            chosen.append(word)
            setup = [f".option push\n.option arch, +v\n{before}\n.option pop"] if before else []
            lines += [*setup, f"la a{_ADDRESS - 10}, buffer", f".4byte {word:#x}"]
    elf = assemble(folder, words.__name__, program(iter(lines), "buffer: .skip 4096"), march)
    texts.clear()
    run = run_spike(elf, folder, _LOCALS[march], steps=20 * WORDS, texts=texts)
    found: dict[int, list[Commit]] = {}
    asked = set(chosen)
    for step in run.steps:
        if isinstance(step, Commit) and step.word in asked:
            found.setdefault(step.word, []).append(step)
    return found


texts: dict[int, str] = {}


@pytest.mark.parametrize("march", _LOCALS)
@pytest.mark.parametrize("words", [vector_words, scalar_words])
def test_spike_writes_what_is_said(
    tmp_path: Path, words: Callable[[Random], Iterator[tuple[str, int]]], march: str
) -> None:
    xlen = int(march[2:4])
    writes, reads, ran = WriteTable(xlen, zcm=False), ReadTable(xlen, zcm=False), executed(tmp_path, words, march)
    names = {texts[word].split()[0] for word in ran}
    assert len(names) > (100 if words is vector_words else 30), sorted(names)
    for word, steps in ran.items():
        said, use = writes.writes_of(word), register_use(word, xlen)
        assert use is not None or said.possible == frozenset(), texts[word]
        for step in steps:
            written = {X + it for it in step.x} | {F + it for it in step.f}
            assert {it for it in said.registers if it >= X} == written, texts[word]
            assert (said.possible or frozenset()) <= _VECTOR_CSRS, texts[word]
            assert {it for it in step.csrs if it in (VL, VTYPE)} <= said.registers, texts[word]
        known = reads.reads_of(word)
        if known.is_known:
            assert _read(known.registers) == _named(word, xlen), (texts[word], known)


def _read(registers: frozenset[int]) -> set[int]:
    """Return integer and floating-point registers by their numbers in the tags."""
    return {it - X if it < F else it - F + 32 for it in registers if it >= X}


def _named(word: int, xlen: int) -> set[int]:
    """The registers that Spike's disassembly says are read: of pairs, it names the first."""
    mnemonic, *operands = texts[word].split()
    own = set(sources(texts[word]))
    if mnemonic.startswith("amocas"):  # compares with its destination, too
        compared = set(sources(f"sd {operands[0].rstrip(',')}, 0"))
        own |= compared
        if mnemonic == {64: "amocas.q", 32: "amocas.d"}[xlen]:
            own |= {it + 1 for it in {*compared, *sources(f"sd {operands[1].rstrip(',')}, 0")}}
    return own


def test_what_is_made_of_what() -> None:
    """vsetvli a0, a1, e8, m1; vsetvl a0, a1, a2; vsetivli a0, 4, e8, m1; amocas.w a0, a1, (a2)."""
    a0, a1, a2, reads = X + 10, X + 11, X + 12, ReadTable(64, zcm=False)
    made = {it.result: it.registers for it in reads.reads_of(0x0005F557).results}
    assert made == {a0: (a1,), VL: (a1,), VTYPE: ()}
    made = {it.result: it.registers for it in reads.reads_of(0x80C5F557).results}
    assert made == {a0: (a1, a2), VL: (a1, a2), VTYPE: (a2,)}
    made = {it.result: it.registers for it in reads.reads_of(0xC0027557).results}
    assert made == {a0: (), VL: (), VTYPE: ()}
    (got, stored) = reads.reads_of(0x28B6252F).results
    assert (got.result, got.loaded, got.is_copy) == (a0, (a2, 0, 4), True)
    assert (stored.result, set(stored.registers), stored.stored) == (MEMORY, {a0, a1}, (a2, 0, 4))
