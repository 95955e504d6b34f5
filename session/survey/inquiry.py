"""A target description for a board that no file describes: what is found out, in which order, and what is asked.

OpenOCD leads to the target; a device tree and probing show the components; the user says what neither does. Addresses
that the user did not allow are not read, but for those of the TRACER of a NEORV32, which answers everywhere.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from rvtrace_gdb.controlregs.graph import CORESIGHT
from rvtrace_gdb.controlregs.trace_control.discovery import ProbeAnswer, ProbedComponent
from rvtrace_gdb.decode.program.image import read_elf
from rvtrace_gdb.decode.reconstruction.facts import MemoryRange
from rvtrace_gdb.session.description import file
from rvtrace_gdb.session.description.devicetree import DeviceTreeContents as Tree
from rvtrace_gdb.session.description.devicetree import has_trace_components, trace_components
from rvtrace_gdb.session.description.dtb import Node
from rvtrace_gdb.session.description.library.proposal import ChipIdentity, proposed
from rvtrace_gdb.session.description.library.shipped import ShippedTarget
from rvtrace_gdb.session.description.model import Description, power_of
from rvtrace_gdb.session.description.model import OpenOcdDescription as Defaults
from rvtrace_gdb.session.description.tables import MEMORY
from rvtrace_gdb.session.survey import (
    arm_trace_bus,
    harts,
    identity,
    known_board,
    openocd_config,
    parts,
    probing,
    wiring,
)
from rvtrace_gdb.session.survey.harts import SurveyedHart
from rvtrace_gdb.session.survey.openocd_config import ConfiguredServer
from rvtrace_gdb.session.survey.parts import SurveyedComponent
from rvtrace_gdb.session.survey.questions import Answered, Ask, BoardError, Question, SurveySetting, Unfit, yes_or_no
from rvtrace_gdb.session.target.hart_power import off_harts
from rvtrace_gdb.session.target.link import ConnectLink, Link
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.transport.openocd.errors import OpenOcdAbsent
from rvtrace_gdb.transport.openocd.target import OpenOcd

NONE, TREE = "none", "device-tree"
_GIVEN = "given by you"


@dataclass(frozen=True)
class BoardFacts:
    """What is known before anything is asked. *name*: of the board; *elf*: the program."""

    name: str | None = None
    elf: str | None = None


@dataclass
class _Board:
    """What is known so far. *link* None: the target is not reached."""

    server: ConfiguredServer
    link: Link | None
    harts: list[SurveyedHart] = field(default_factory=list)
    root: Node | None = None
    tree: Tree | None = None
    seen: dict[int, ProbedComponent] = field(default_factory=dict)


@dataclass(frozen=True)
class WrittenDescription:
    """A description that has been read back from *text*."""

    text: str
    description: Description


def inquire(
    ask: Ask, read_tree: Callable[[str], Node], wishes: BoardFacts, output: str, connect: ConnectLink = OpenOcd
) -> WrittenDescription:
    """Return the description of a board. *output*: its file, for messages; *read_tree*: reads a device tree.

    Raises BoardError, DescriptionError, BadElf and what *ask* raises.
    """
    taken, of_elf = _program(wishes.elf)
    board = _reached(ask, connect)
    try:
        xlen = _xlen(board, of_elf, wishes.elf)
        _read_tree(board, ask, read_tree)
        target = _shipped_target(board, ask)
        if target is not None:
            for line in () if board.link is None else known_board.tracer_lines(board.link, target.value.description()):
                ask.tell(line)
            return _of_shipped(board, target, wishes, output)
        components = _components(board, ask)
        wiring.harts(components, [hart.name for hart in board.harts], ask)
        wiring.connect(components, ask)
        wiring.buffers(components, ask, _readable(board.link), taken)
    finally:
        if board.link is not None:
            board.link.close()
    text = parts.text(_header(board), _tables(board, wishes, xlen, components))
    return WrittenDescription(text, file.parse(text, output))


def _program(elf: str | None) -> tuple[list[range], int | None]:
    """Return the addresses of the program, and its XLEN."""
    if elf is None:
        return [], None
    program = read_elf(elf)
    loaded = [range(part.paddr, part.paddr + len(part.data)) for part in program.segments]
    return [*loaded, *(range(part.start, part.end) for part in program.sections)], program.xlen


def _reached(ask: Ask, connect: ConnectLink) -> _Board:
    """Return the board as OpenOCD has it."""

    def parse(text: str) -> _Board:
        if text == NONE:
            return _Board(_nowhere(), None)
        server = openocd_config.server(text.split("\n"), _GIVEN)
        return _Board(server, *_connected(server, connect))

    text = "OpenOCD's Tcl server (HOST:PORT), or its configuration file"
    because = "default: where OpenOCD listens unless configured otherwise"
    board, source = ask.ask(Question(text, "--openocd HOST:PORT", parse, openocd_config.DEFAULT, because))
    server = board.server
    if server.host_source == _GIVEN:
        board.server = server._replace(host_source=source, port_source=source)
    ask.tell(f"OpenOCD: {server.host}:{server.port}" if board.link else "OpenOCD: none, so nothing is looked at")
    for hart in board.harts:
        ask.tell(hart.text)
    return board


def _nowhere() -> ConfiguredServer:
    return ConfiguredServer(Defaults.host, Defaults.tcl_port, "default", "default")


def _connected(server: ConfiguredServer, connect: ConnectLink) -> tuple[Link, list[SurveyedHart]]:
    link = connect(server.host, server.port)
    try:
        found = harts.find(link)
        usable = next((hart for hart in found if hart.available), None)
        if found and usable is None:
            raise Unfit(f"OpenOCD reaches no hart: {'; '.join(hart.text for hart in found)}")
        link.target = usable.name if usable else None
    except OpenOcdAbsent as error:
        link.close()
        hint = f": `{server.start}` starts it" if server.files else f"; without a target: {NONE}, with a device tree"
        raise Unfit(f"no OpenOCD at {server.host}:{server.port} ({error.reason}){hint}") from None
    except RvtraceError as error:
        link.close()
        raise Unfit(str(error)) from None
    return link, found


def _xlen(board: _Board, of_elf: int | None, elf: str | None) -> SurveySetting | None:
    of_hart = board.link.xlen() if board.link else None
    if of_hart and of_elf and of_hart != of_elf:
        raise BoardError(f"{elf} is a program for RV{of_elf}, OpenOCD says RV{of_hart}: is it this board's?")
    if of_hart:
        return SurveySetting(of_hart, "found: OpenOCD's `riscv info`")
    return SurveySetting(of_elf, f"of {Path(elf).name}") if of_elf and elf else None


def _read_tree(board: _Board, ask: Ask, read_tree: Callable[[str], Node]) -> None:
    """Ask for the device tree of the board, and note its contents."""
    for hart in board.harts if board.link is not None else ():
        address = None if board.link is None else identity.booted_with(board.link, hart)
        if address is not None:
            ask.tell(f"hart {hart.number} has {address:#x} in a1: where it was just booted, a device tree is there")
    text = f"Device tree of the board, .dtb or .dts, or its address in the chip's memory (or {NONE})"
    parse = partial(_tree, read_tree, board.link)
    found = ask.ask(Question(text, "--device-tree FILE|ADDRESS", parse, NONE, "default", optional=True)).value
    board.root, board.tree = found
    for line in board.tree.notes if board.tree else ():
        ask.tell(f"device tree: {line}")


def _shipped_target(board: _Board, ask: Ask) -> Answered[ShippedTarget] | None:
    """Return the shipped target that is the board's; None if it is not known, or a device tree has its components."""
    if board.tree is not None:
        return None
    harts, compatible = board.harts, () if board.root is None else board.root.strings("compatible")
    chip = ChipIdentity(compatible=compatible) if board.link is None else identity.chip(board.link, harts, board.root)
    target, source = known_board.choose(ask, chip)
    return None if target is None else Answered(target, source)


def _of_shipped(
    board: _Board, target: Answered[ShippedTarget], wishes: BoardFacts, output: str
) -> WrittenDescription:  # fmt: skip
    """Return the description of a shipped target, with OpenOCD where it is."""
    heads = [*(hart.text for hart in board.harts), *([f"The board: {wishes.name}"] if wishes.name else [])]
    text = known_board.description_text(target.value, target.source, board.server, heads)
    return WrittenDescription(text, file.parse(text, output))


def _components(board: _Board, ask: Ask) -> list[SurveyedComponent]:
    """Return the components that the device tree or probing shows."""
    if board.link is None and board.tree is None:
        raise BoardError("without OpenOCD and without a device tree nothing is known: give --openocd or --device-tree")
    if board.link is None:
        return _of_tree(board, ask)
    found = _probed(board, ask)
    return found if board.tree is not None else [*found, *arm_trace_bus.find(board.link, ask, found)]


def _tree(
    read_tree: Callable[[str], Node], link: Link | None, name: str
) -> tuple[Node | None, Tree | None]:  # fmt: skip
    """Return the root of a device tree, and its trace components; these are None in the tree of a board that rvtrace
    knows, if it has none. Raises Unfit.
    """
    if name == NONE:
        return None, None
    try:
        address = _memory_address(name)
        if address is not None and link is None:
            raise Unfit(f"{name}: without OpenOCD no memory can be read")
        root = read_tree(name) if address is None or link is None else identity.tree_in_memory(link, address)
        if not has_trace_components(root) and proposed(ChipIdentity(compatible=root.strings("compatible"))):
            return root, None
        return root, trace_components(root, {})
    except RvtraceError as error:
        raise Unfit(str(error)) from None


def _memory_address(text: str) -> int | None:
    """Return the address that a text is, None for the name of a file."""
    return int(text, 16) if re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}", text) else None


def _probed(board: _Board, ask: Ask) -> list[SurveyedComponent]:
    text = "Addresses to look for trace components at, as in 0x20000000-0x20004000"
    text += f"; or {TREE}: those in the device tree; or {NONE}" if board.tree else f" (or {NONE})"

    def parse(answer: str) -> list[SurveyedComponent]:
        if answer == NONE and board.tree is None:
            raise BoardError(_NOWHERE)
        _probe(board, ask, _allowed(board, answer))
        components = _of_tree(board, ask) if board.tree else parts.probed(board.seen.values())
        wiring.check_complete(components, _asleep(board.seen.values()))
        return components

    default = NONE if board.tree else None
    return ask.ask(Question(text, "--probe ADDRESS-ADDRESS", parse, default, "default", "", _RISK)).value


_NOWHERE = (
    "no trace component is looked for, so there is nothing to describe: nothing is written. A device tree names them,"
    " too (--device-tree), and `trace ctr` needs no target description"
)
_RISK = (
    "Reading an address where nothing is can hang a chip. Only what you name is read, two words of each 4 KiB: take the"
    " addresses from the chip's manual."
)


def _allowed(board: _Board, answer: str) -> Sequence[int]:
    if board.tree is None:
        return probing.blocks(answer)
    if answer == TREE:
        return _probeable(board, board.tree.description)
    return () if answer == NONE else probing.blocks(answer)


def _probeable(board: _Board, described: Description) -> list[int]:
    """Return the addresses of a device tree that can be looked at. CoreSight components have other registers there, and
    those of a hart that is off are not touched. Raises the transport's errors.
    """
    off = off_harts(board.link, described) if board.link is not None else {}
    asked = (part for part in described.components if part.kind not in CORESIGHT and power_of(part) not in off)
    return sorted({part.base for part in asked if part.base})


def _probe(board: _Board, ask: Ask, bases: Sequence[int]) -> None:
    """Look also at these addresses, and tell what is there."""
    if board.link is None:
        return
    found = probing.probe(board.link, bases)
    _tell(ask, found)
    asleep = _asleep(found)
    if asleep and _may_wake(ask, asleep):
        awake = probing.wake(board.link, asleep)
        _tell(ask, awake)
        found = [each for each in found if each not in asleep] + awake
    board.seen |= {each.base: each for each in found}


def _asleep(seen: Iterable[ProbedComponent]) -> list[ProbedComponent]:
    return [each for each in seen if each.answer is ProbeAnswer.MAYBE_IN_RESET]


def _tell(ask: Ask, seen: Iterable[ProbedComponent]) -> None:
    for line in probing.lines(seen):
        ask.tell(line)


def _may_wake(ask: Ask, asleep: Sequence[ProbedComponent]) -> bool:
    text = f"Wake what may be components in reset, at {probing.probed_addresses(asleep)}? y or n"
    return ask.ask(Question(text, "--wake", yes_or_no, "n", "default", "", _WAKING)).value


_WAKING = "A component in reset does not say what it is. Waking it writes 1 to its first word, and then what was there."


def _of_tree(board: _Board, ask: Ask) -> list[SurveyedComponent]:
    if board.tree is None:
        return []
    description = board.tree.description
    components = parts.of_tree(description.components, board.tree.nodes)
    if board.seen:
        for line in parts.checked(components, board.seen.values()):
            ask.tell(line)
    return components


def _readable(link: Link | None) -> Callable[[int, int], None]:
    """Return what tries whether a buffer that the user named can be read."""

    def read(start: int, size: int) -> None:
        if link is not None:
            link.read32(start)
            link.read32(start + size - 4)

    return read


def _header(board: _Board) -> list[str]:
    left_out = [each for each in board.seen.values() if each.answer in _WORTH_A_LINE]
    return [
        "Target description, written by rvtrace init. Each line has its source: correct what is wrong.",
        "All keys: docs/target-description.md",
        *(hart.text for hart in board.harts),
        *probing.lines(left_out),
        *(_ETRACE.format(each.base) for each in board.seen.values() if each.etrace),
        *([] if board.tree and board.tree.description.memory else [_MEMORY]),
    ]


_ETRACE = (
    "{:#x}: an E-Trace encoder. How it was built is in no register: [component.etrace], docs/etrace.md;"
    " without it all is as usual"
)

_MEMORY = (
    "Where memory is, is not known: with [[memory]] tables more is known of registers and memory in the past"
)


_WORTH_A_LINE = (
    ProbeAnswer.UNKNOWN_TYPE,
    ProbeAnswer.RESERVED_VERSION,
    ProbeAnswer.PRE_RATIFIED,
    ProbeAnswer.STAYS_IN_RESET,
)


def _tables(
    board: _Board, wishes: BoardFacts, xlen: SurveySetting | None, components: Iterable[SurveyedComponent]
) -> list[parts.SettingsTable]:
    of_tree = board.tree.description.xlen if board.tree else None
    xlen = xlen or (SurveySetting(of_tree, "device tree") if of_tree else None)
    target = {"name": _name_setting(board, wishes)} | ({"xlen": xlen} if xlen else {})
    if board.tree and board.tree.description.hart_power:
        target["power"] = SurveySetting(file.POWER_OF_HARTS, "device tree")
    server = board.server
    openocd = {
        "host": SurveySetting(server.host, server.host_source),
        "tcl_port": SurveySetting(server.port, server.port_source),
    }
    memory = board.tree.description.memory if board.tree else ()
    return [
        ("[target]", target),
        ("[openocd]", openocd),
        *(("[[component]]", part.settings) for part in components),
        *((MEMORY, _memory_table(it)) for it in memory),
    ]


def _memory_table(memory: MemoryRange) -> dict[str, SurveySetting]:
    """Return the table of memory that a device tree has."""
    found = {"name": memory.name, "address": memory.address, "size": memory.size, "kind": memory.kind.value}
    settings = {key: SurveySetting(value, "device tree") for key, value in found.items() if value != ""}
    return settings | {"dma": SurveySetting(True, "a device tree does not say: remove it if only the harts write here")}


def _name_setting(board: _Board, wishes: BoardFacts) -> SurveySetting:
    if wishes.name:
        return SurveySetting(wishes.name, f"{_GIVEN} (--name)")
    if board.tree:
        return SurveySetting(board.tree.description.name, "device tree")
    if board.server.files:
        return SurveySetting(Path(board.server.files[-1]).stem, "of OpenOCD's configuration")
    return SurveySetting("board", "default: any name, for messages")
