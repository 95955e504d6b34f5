"""`rvtrace init` on boards that no file describes: what is found, what is asked, what is written."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest

from rvtrace_gdb.session.description import devicetree
from rvtrace_gdb.session.description.dtb import Node
from rvtrace_gdb.session.description.model import DescriptionError
from rvtrace_gdb.session.survey.inquiry import BoardFacts, WrittenDescription, inquire
from rvtrace_gdb.session.survey.questions import Answered, BoardError, MissingAnswer, Question, Unfit
from tests.session.board import DEMO
from tests.session.description.devicetrees import tree
from tests.session.survey.boards import IMPL, Silicon, cluster

Value = TypeVar("Value")
ALL = "0x4a000000-0x4a008000"


@dataclass
class Script:
    """Answers by option; a default where there is none. *asked*: every question whose answer is not obvious; *told*:
    every line.
    """

    answers: dict[str, str]
    asked: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def ask(self, question: Question[Value]) -> Answered[Value]:
        given = self.answers.get(question.spelt.partition(" ")[0], self.answers.get(question.spelt))
        if given or not question.obvious:
            self.asked.append(question.spelt)
        text = given or question.default
        if text is None:
            raise MissingAnswer(question.text, question.spelt, None)
        return Answered(question.parse(text), "given by you" if given else question.because)

    def tell(self, line: str) -> None:
        self.told.append(line)


def no_tree(name: str) -> Node:
    raise AssertionError(f"there is no device tree {name}")


def written(
    board: Silicon, name: str | None = None, elf: str | None = None, **answers: str
) -> tuple[WrittenDescription, Script]:
    script = Script({f"--{option.replace('_', '-')}": text for option, text in answers.items()})
    found = inquire(script, no_tree, BoardFacts(name, elf), "rvtrace.toml", board.connect)
    return found, script


def comments(text: str) -> list[tuple[str, str]]:
    """Key and comment of each line with a value."""
    return re.findall(r"^(\w+) = .*?  # (.+)$", text, re.M)


def test_no_address_is_touched_that_was_not_allowed() -> None:
    board = cluster()
    written(board, probe=f"{ALL}, 0x60000000", wake="y")
    words = {base + offset for base in [*range(0x4A00_0000, 0x4A00_8000, 0x1000), 0x6000_0000] for offset in (0, 4)}
    assert board.accesses <= words
    assert {base & ~0xFFF for base in board.accesses} == {base & ~0xFFF for base in words}
    assert {address for address, _ in board.writes} == set(board.components)


def test_nothing_is_written_to_the_target_unless_allowed() -> None:
    board = cluster()
    with pytest.raises(BoardError, match="no trace component was found"):
        written(board, probe=ALL)
    assert board.writes == []


def test_every_find_is_one_line() -> None:
    board = cluster()
    board.components |= {0x4A00_2000: 0x0000_0701, 0x4A00_3000: 0x0000_0102, 0x4A00_5000: 0x0001_0110}
    board.awake |= set(board.components)
    found, script = written(board, probe=ALL)
    lines = [line for line in script.told if line.startswith("0x")]
    assert lines == [
        "0x4a000000: trace encoder, interface 1.0",
        "0x4a001000: trace encoder, interface 1.0",
        "0x4a002000: no trace component that rvtrace knows: tr??Impl reads 0x00000701, type 0x7; left out",
        "0x4a003000: no trace component, or one of version 2.0, which rvtrace does not know (it knows 1.0; tr??Impl"
        " reads 0x00000102); left out",
        "0x4a004000: trace funnel, interface 1.0",
        "0x4a005000: no trace component of version 1 (tr??Impl reads 0x00010110); if it is SiFive's pre-ratification"
        " interface, describe it by hand with version = 0 (docs/sifive-v0.md)",
        "0x4a006000: RAM sink, interface 1.0, memory of its own or system memory",
        "0x4a007000: bus error: nothing is there, or it has no power",
    ]
    assert [f"# {line}" in found.text for line in lines] == [False, False, True, True, False, True, False, False]
    assert board.writes == []


def test_the_harts_say_who_made_them() -> None:
    board = cluster()
    board.awake |= set(board.components)
    board.states = {"cpu0": "halted"}
    found, script = written(board, probe=ALL)
    assert script.told[1:3] == [
        "hart 0: cpu0, halted, mvendorid 0x489 (SiFive), marchid 0x7, mimpid cannot be read: not there",
        "hart 1: cpu1, running, mvendorid and marchid are not read: halt it for that",
    ]
    assert f"# {script.told[1]}\n" in found.text


def test_harts_that_are_not_available() -> None:
    board = cluster()
    board.awake |= set(board.components)
    board.states = {"cpu0": "unavailable"}
    _, script = written(board, probe=ALL)
    assert script.told[1] == "hart 0: cpu0, unavailable, check power, reset and OpenOCD's log"
    assert board.target == "cpu1", "through which the components are read"
    board.states = {"cpu0": "unavailable", "cpu1": "unknown"}
    with pytest.raises(Unfit, match="OpenOCD reaches no hart: hart 0: cpu0, unavailable"):
        written(board, probe=ALL)


@pytest.mark.parametrize(
    ("kinds", "problem"),
    [
        ({}, "no trace component was found"),
        ({0x4A00_0000: "both"}, "no trace encoder was found"),
        ({0x4A00_0000: "encoder", 0x4A00_1000: "funnel"}, "no sink was found"),
    ],
)
def test_what_is_missing_on_the_board(kinds: dict[int, str], problem: str) -> None:
    board = Silicon({base: IMPL[kind] for base, kind in kinds.items()}, awake=set(kinds))
    with pytest.raises(Unfit, match=problem):
        written(board, probe=ALL)


@pytest.mark.parametrize(
    ("kinds", "awake", "problem"),
    [
        ({0x4A00_0000: "encoder"}, (), "no trace component was found: what is at 0x4a000000 may"),
        (
            {0x4A00_0000: "encoder", 0x4A00_1000: "encoder", 0x4A00_4000: "funnel"},
            (0x4A00_4000,),
            "no trace encoder was found, so nothing can be traced: what is at 0x4a000000 to 0x4a001000 may",
        ),
        (
            {0x4A00_0000: "encoder", 0x4A00_6000: "both"},
            (0x4A00_0000,),
            "no sink was found, so trace has nowhere to go: what is at 0x4a006000 may",
        ),
    ],
)
def test_what_is_missing_may_be_in_reset(kinds: dict[int, str], awake: tuple[int, ...], problem: str) -> None:
    board = Silicon({base: IMPL[kind] for base, kind in kinds.items()}, awake=set(awake))
    with pytest.raises(Unfit) as refused:
        written(board, probe=ALL, wake="n")
    assert str(refused.value).startswith(f"{problem} be in reset: --wake finds out; or allow ")
    assert "--probe" in str(refused.value) and not board.writes


def test_a_chip_that_hangs() -> None:
    with pytest.raises(BoardError, match=r"lost while 0x4a004000 was read .*leave this address out"):
        written(Silicon(cluster().components, hangs=0x4A00_4000), probe=ALL)


@pytest.mark.parametrize(
    ("probe", "problem"),
    [
        ("0x1001", "not a multiple of 0x1000"),
        ("4096", "is not ADDRESS"),
        ("0x3000-0x2000", "must be higher"),
        ("0x0-0xffffffffffffffff", "more than 16 MiB"),
        (",".join(f"{n << 24:#x}-{(n << 24) + 0x900000:#x}" for n in range(2)), "4608 blocks"),
    ],
)
def test_addresses_that_are_none(probe: str, problem: str) -> None:
    board = cluster()
    with pytest.raises(Unfit, match=problem):
        written(board, probe=probe)
    assert not board.accesses


@pytest.mark.parametrize(
    ("option", "answer", "problem"),
    [
        ("harts", "0", "one for each encoder"),
        ("harts", "1,1", "twice"),
        ("harts", "0,2", "from 0 to 1"),
        ("buffer", "0x50000000", "is not START:SIZE"),
        ("buffer", "0x50000000:0x1001", "multiples of 4"),
        ("buffer", "0x60000000:0x1000", "cannot be read on the target: bus error"),
        ("buffer", "0x80000000:0x1000", "the program is at 0x80000000"),
    ],
)
def test_answers_that_cannot_be(option: str, answer: str, problem: str) -> None:
    board = cluster()
    board.awake |= set(board.components)
    with pytest.raises(Unfit, match=problem):
        written(board, elf=str(DEMO), probe=ALL, **{option: answer})


def test_only_what_the_registers_do_not_say_is_asked() -> None:
    board = Silicon({0x4A00_0000: IMPL["encoder"], 0x4A00_1000: IMPL["sram"]}, targets=("cpu0",))
    board.awake |= set(board.components)
    found, script = written(board, probe=ALL)
    assert [word.partition(" ")[0] for word in script.asked] == ["--openocd", "--device-tree", "--probe"]
    assert ("to", "the only sink that was found") in comments(found.text)
    assert ("mode", "found: trRamImpl says that it has only memory of its own") in comments(found.text)


def test_several_funnels_have_to_be_said() -> None:
    board = cluster()
    board.components |= {0x4A00_5000: IMPL["funnel"], 0x4A00_7000: IMPL["pib"]}
    board.awake |= set(board.components)
    with pytest.raises(MissingAnswer, match="give --to encoder0=NAME"):
        written(board, probe=ALL)
    to = {"encoder0": "funnel0", "encoder1": "funnel0", "funnel0": "funnel1", "funnel1": "ram0,pib0"}
    script = Script({"--probe": ALL} | {f"--to {name}=NAME,...": names for name, names in to.items()})
    found = inquire(script, no_tree, BoardFacts(), "x", board.connect).description
    fed = {e.name: ",".join(e.to) for e in found.encoders} | {f.name: ",".join(f.to) for f in found.funnels}
    assert fed == to


def test_a_running_buffer_is_offered() -> None:
    """A boot loader has set the sink up: SMEM mode, Active, and the registers of the buffer."""

    class Booted(Silicon):
        def read32(self, address: int) -> int:
            own = {0x4A00_6000: 0x19, 0x4A00_6010: 0x5000_0000, 0x4A00_6018: 0x5000_0FFC}
            return own.get(address, super().read32(address))

    board = Booted(cluster().components)
    board.awake |= set(board.components)
    found, _ = written(board, probe=ALL)
    assert (found.description.sinks[0].start, found.description.sinks[0].size) == (0x5000_0000, 0x1000)
    assert ("start", "found: where the sink has its buffer now") in comments(found.text)


def test_the_program_of_another_board() -> None:
    board = cluster()
    board.width = 32
    with pytest.raises(BoardError, match="a program for RV64, OpenOCD says RV32"):
        written(board, elf=str(DEMO), probe=ALL)


def test_without_openocd_nothing_is_known() -> None:
    with pytest.raises(BoardError, match="without OpenOCD and without a device tree"):
        written(cluster(), openocd="none")


def test_an_openocd_that_is_not_there(tmp_path: Path) -> None:
    board = cluster()
    board.absent = True
    with pytest.raises(Unfit, match=r"^no OpenOCD at 127.0.0.1:6666 .Connection refused.; without a target: none"):
        written(board)
    config = tmp_path / "board.cfg"
    config.write_text("adapter driver x\n  tcl_port 7777 ;# ours\nbindto 0.0.0.0\n")
    with pytest.raises(Unfit, match=f": `openocd -f {config}` starts it"):
        written(board, openocd=str(config))
    assert board.places == [("127.0.0.1", 6666), ("127.0.0.1", 7777)]


@pytest.mark.parametrize(("line", "problem"), [("tcl_port disabled", "is disabled"), ("tcl_port $p", "not a TCP port")])
def test_a_configuration_without_a_port(line: str, problem: str, tmp_path: Path) -> None:
    config = tmp_path / "board.cfg"
    config.write_text(f"{line}\n")
    with pytest.raises(Unfit, match=problem):
        written(cluster(), openocd=str(config))


def test_a_device_tree_and_what_really_answers() -> None:
    """The tree calls every component that only receives a RAM sink with memory of its own."""
    root = tree("per_hart")
    found = devicetree.trace_components(root, {})
    bases = {c.base: IMPL["encoder" if c.kind == "encoder" else "smem"] for c in found.description.components}
    board = Silicon(bases | {0x4A00_0000: IMPL["funnel"]}, awake={*bases, 0x4A00_0000})
    script = Script({"--device-tree": "x.dtb", "--probe": "device-tree", "--buffer": "0x50000000:0x1000"})
    written = inquire(script, lambda name: root, BoardFacts(), "x", board.connect)
    assert {address & ~0xFFF for address in board.accesses} - {0x5000_0000} == set(bases)
    assert [sink.mode for sink in written.description.sinks] == ["SMEM", "SMEM"]
    assert [e.to for e in written.description.encoders] == [e.to for e in found.description.encoders]
    assert any(key == "base" and "device tree, node /" in source for key, source in comments(written.text))


@pytest.mark.parametrize(("name", "xlen"), [("clusters", None), ("per_hart", 32), ("spacemit_k3", 64)])
def test_a_device_tree_alone(name: str, xlen: int | None) -> None:
    """One has no `riscv,isa`, the other has rv32imac."""
    root = tree(name)
    found = devicetree.trace_components(root, {})
    script = Script({"--device-tree": "x.dtb", "--openocd": "none"})
    written = inquire(script, lambda name: root, BoardFacts("mine"), "x", cluster().connect)
    assert written.description.components == found.description.components
    assert written.description.name == "mine"
    assert written.description.xlen == xlen


def test_a_device_tree_that_is_wrong() -> None:
    root = tree("per_hart")
    found = devicetree.trace_components(root, {})
    bases = [c.base for c in found.description.components]
    board = Silicon({bases[0]: IMPL["pib"]}, awake={bases[0]}, memory=range(1 << 32))
    script = Script({"--device-tree": "x.dtb", "--probe": "device-tree"})
    with pytest.raises((DescriptionError, Unfit)):
        inquire(script, lambda name: root, BoardFacts(), "x", board.connect)
    assert any("encoder by the device tree, but it says that it is pib_sink" in line for line in script.told)
    assert any("but no trace component answers there" in line for line in script.told)


def test_memory_of_the_device_tree() -> None:
    """With its source beside each value, as everything else."""
    nodes = '\tmemory@80000000 { device_type = "memory"; reg = <0x0 0x80000000 0x0 0x1000>; };\n\tcpus {'
    read = lambda name: tree(name, ("\tcpus {", nodes))  # noqa: E731
    script = Script({"--openocd": "none", "--device-tree": "qemu_etrace"})
    found = inquire(script, read, BoardFacts(), "rvtrace.toml")
    (memory,) = found.description.memory
    assert (memory.address, memory.size, memory.dma) == (0x8000_0000, 0x1000, True)
    assert ("address", "device tree") in comments(found.text)
    assert "[[memory]] tables" not in found.text
