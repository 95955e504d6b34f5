"""RVVI-TEXT, read by the grammar of its specification: the events are what Spike did, or what a core reported."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.program import csrs
from tests.decode.tandem.corpus import DATA, Step, golden_steps, parameters_of, trace_bytes

SIZES = {"VENDOR": 3, "VERSION": 2, "HART": 1, "RET": 2, "TRAP": 2, "X": 2, "F": 2, "C": 2, "MODE": 1}
"""The values behind each key; PARAMS says itself how many it has."""
START = 0x8000_0000
OTHERS = {csrs.FFLAGS, 0x309, 0x310, 0x7A5}
"""CSRs that Spike logs, and that these cores do not have or tell: fflags set before, mvip, mstatush, tcontrol."""
OTHER_BITS = {0x302, csrs.MIP}
"""CSRs (medeleg, mip) in which these cores and Spike have other bits (docs/tandem.md)."""


class RvviEvent(NamedTuple):
    """What a logical line says. *kind*: RET or TRAP, "" without an event. *written*: values by kind and number."""

    kind: str
    pc: int
    word: int
    mode: int | None
    written: dict[tuple[str, int], int]


def logical_lines(text: str) -> Iterator[list[str]]:
    """The tokens of each logical line. Comments are not, and a backslash at the end continues a line."""
    tokens: list[str] = []
    for line in text.splitlines():
        tokens += re.sub(r"'[^']*'", " ", line).split()
        if tokens[-1:] == ["\\"]:
            tokens.pop()
            continue
        yield tokens
        tokens = []
    assert not tokens


def events(text: str) -> tuple[dict[str, int], list[RvviEvent]]:
    """The parameters, and the events."""
    parameters: dict[str, int] = {}
    found: list[RvviEvent] = []
    for tokens in logical_lines(text):
        event = RvviEvent("", -1, -1, None, {})
        while tokens:
            key, *tokens = tokens
            if key == "PARAMS":
                count, tokens = int(tokens[0]), tokens[1:]
                parameters.update(zip(tokens[: 2 * count : 2], map(int, tokens[1 : 2 * count : 2]), strict=True))
                tokens = tokens[2 * count :]
                continue
            values, tokens = tokens[: SIZES[key]], tokens[SIZES[key] :]
            if key in ("RET", "TRAP"):
                event = event._replace(kind=key, pc=int(values[0], 16), word=int(values[1], 16))
            elif key == "MODE":
                event = event._replace(mode=int(values[0], 16))
            elif key in ("X", "F", "C"):
                event.written[key, int(values[0], 16 if key == "C" else 10)] = int(values[1], 16)
        if event.kind:
            found.append(event)
        else:
            assert not event.written
    return parameters, found


def exported(trace: Path, name: str, out: Path) -> str:
    """What is written for a trace. *name*: that of the corpus, which says the core and the program."""
    core, _, program = name.partition("_")
    words = ["--tandem", "--dialect", core, "--elf", str(DATA / "riscv-tests" / program), "--to", "rvvi"]
    assert main(["export", str(trace), *words, "-o", str(out), "--quiet"]) == 0
    return out.read_text()


def of_corpus(name: str, folder: Path) -> str:
    return exported(DATA / "tandem" / f"{name}.tvt", name, folder / "it.rvvi")


def of_file(event: RvviEvent, file: str) -> dict[int, int]:
    """The registers of a kind that an event has written."""
    return {number: value for (kind, number), value in event.written.items() if kind == file}


@pytest.mark.parametrize(
    "name",
    ["flute_rv64ud-p-fadd", "flute_rv64uc-p-rvc", "flute_rv64si-p-scall", "piccolo_rv32ui-p-lw",
     "flute_rv64mi-p-illegal"],
)  # fmt: skip
def test_the_events_are_what_spike_did(name: str, tmp_path: Path) -> None:
    parameters, found = events(of_corpus(name, tmp_path))
    xlen = parameters_of(name).xlen
    assert parameters == {"ILEN": 32, "XLEN": xlen, "FLEN": 64, "VLEN": 0, "NHART": 1, "RETIRE": 1}
    begin = next(number for number, event in enumerate(found) if event.pc == START)
    steps = [step for step in golden_steps(name) if not (step.cause or "").startswith("interrupt")]
    start = next(number for number, step in enumerate(steps) if step.pc == START)
    assert len(found) > begin + 80
    for event, step in zip(found[begin:], steps[start:], strict=False):
        check(event, step)


def check(event: RvviEvent, step: Step) -> None:
    assert (event.kind, event.pc) == ("RET" if step.cause is None else "TRAP", step.pc)
    assert (event.word == step.word or step.word is None) and (event.mode == step.mode or step.mode is None)
    assert (of_file(event, "X"), of_file(event, "F")) == (step.x, step.f)
    if step.cause is None and csrs.MCAUSE not in of_file(event, "C"):  # what an interrupt wrote is there, too
        ours, theirs = of_file(event, "C"), step.csrs
        assert {number for number in ours.keys() & theirs.keys() if ours[number] != theirs[number]} <= OTHER_BITS
        assert (ours.keys() ^ theirs.keys()) <= OTHERS
    elif step.cause is not None:
        cause = of_file(event, "C").get(csrs.MCAUSE, of_file(event, "C").get(csrs.SCAUSE))
        assert cause is not None and not cause >> 31


def test_what_an_interrupt_wrote_is_in_the_next_event(tmp_path: Path) -> None:
    text = of_corpus("flute_rv64-irq", tmp_path)
    taken = [event for event in events(text)[1] if of_file(event, "C").get(csrs.MCAUSE, 0) >> 63]
    assert [event.kind for event in taken] == ["RET", "RET"]
    assert {of_file(event, "C")[csrs.MEPC] for event in taken} <= {event.pc for event in events(text)[1]}
    assert "'interrupt 3 (machine software interrupt)' \\\n" in text


def test_a_loss_is_a_comment_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "flute_rv64ui-p-add"
    data, cut = trace_bytes(name), tmp_path / "cut.tvt"
    cut.write_bytes(data[:3000] + b"\xff" * 40 + data[3040:])
    text = exported(cut, name, tmp_path / "it.rvvi")
    comments = [line for line in text.splitlines() if line.startswith("'") and line != "'the end'"]
    assert len(comments) == 1 and re.fullmatch(r"'.*; trace byte 0x\w+'", comments[0])
    words = ["export", str(cut), "--tandem", "--dialect", "flute", "--elf", str(DATA / "riscv-tests" / "rv64ui-p-add")]
    assert main([*words, "--to", "rvvi", "-o", str(tmp_path / "again")]) == 0
    assert "1 part of the trace that cannot be read is left out" in capsys.readouterr().err
    whole = [(event.pc, event.word) for event in events(of_corpus(name, tmp_path))[1]]
    ran = [(event.pc, event.word) for event in events(text)[1]]
    assert len(whole) > len(ran) > len(whole) - 40 and set(ran) <= set(whole)
