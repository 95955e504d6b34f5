"""Call histories of small programs, by hand: each expectation is what a reader of the program would say."""

from dataclasses import replace
from itertools import accumulate

import pytest

from rvtrace_gdb.decode.calls import call_tree
from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.stacks import frame, stack
from rvtrace_gdb.decode.calls.stacks.frame import DEPTH_AT_MOST, StackOperationKind
from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Accounting, EventKind
from rvtrace_gdb.decode.history.history import GAP, Event, History, Path, RepeatPath
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.elf import Elf, ElfSection, Symbol
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.support.errors import Cancelled
from tests.decode import assembler as asm
from tests.decode.calls.call_histories import history_of
from tests.helpers.amounts import LONG
from tests.helpers.event_facts import INTERRUPT

BASE = 0x1000
RA, T0, T1 = 1, 5, 6
RET = asm.jalr(0, RA)
CALL = asm.jalr(RA, 10)  # of an address in a register, as `jalr a0`
JUMP = asm.jalr(0, T1)
NOTHING = Accounting(0, 0, 0, 0)


class Code:
    """Functions one after the other, of 4-byte instructions."""

    def __init__(self, base: int = BASE, **functions: list[bytes]) -> None:
        sizes = [4 * len(code) for code in functions.values()]
        self.starts = dict(zip(functions, accumulate(sizes, initial=base), strict=False))
        symbols = [Symbol(self.starts[name], name, size, True) for name, size in zip(functions, sizes, strict=True)]
        self.image = Image(64)
        self.image.add_code(base, b"".join(part for code in functions.values() for part in code))
        self.image.add_elf(replace(Elf("a.elf", "", 64), sections=[ElfSection(base, base + sum(sizes), symbols)]))

    def at(self, place: str) -> int:
        """main.2 is the third instruction of main; - a gap."""
        name, _, number = place.partition(".")
        return GAP if name == "-" else self.starts[name] + 4 * int(number)

    def pcs(self, places: str) -> list[int]:
        """Of places with blanks between them."""
        return list(map(self.at, places.split()))

    def trap(self, position: int, epc: str | None, handler: str) -> Event:
        """What the trace says of an interrupt."""
        last = None if epc is None else self.at(epc)
        return Event(position, EventKind.TRAP, 0, INTERRUPT, last, self.at(handler))

    def listing(self, places: str, *traps: Event) -> list[str]:
        """What ran, one line for each function: indented, and behind it how it came to run."""
        return self.lines(history_of(self.pcs(places), traps))

    def lines(self, history: History) -> list[str]:
        calls = CallHistory(history, self.image)
        return [
            f"{'.' * function.level}{self.name(function.pc)} {function.kind.name.lower()}"
            for function in calls.functions(1, len(calls) + 1)
        ]

    def name(self, pc: int) -> str:
        found = self.image.symbol(pc)
        return "-" if found is None else found[0]


NOP = asm.NOP
PLAIN = Code(main=[NOP, CALL, NOP, RET], f=[NOP, CALL, RET], g=[NOP, RET], h=[NOP, JUMP, NOP, NOP])


def test_calls_and_returns() -> None:
    assert PLAIN.listing("main.0 main.1 f.0 f.1 g.0 g.1 f.2 main.2") == [
        "main begin", ".f call", "..g call", ".f return", "main return",
    ]  # fmt: skip


def test_coroutines() -> None:
    """The first swap calls; after that each one goes where the other waits."""
    code = Code(main=[NOP, CALL, NOP], one=[asm.jalr(RA, T0), NOP, asm.jalr(RA, T0), NOP, JUMP],
                two=[NOP, asm.jalr(T0, RA), NOP, asm.jalr(T0, RA)])  # fmt: skip
    assert code.listing("main.1 one.0 two.0 two.1 one.1 one.2 two.2 two.3 one.3 one.4 main.2") == [
        "main begin", ".one call", "..two call", ".one return", "..two call", ".one return", "main return",
    ]  # fmt: skip


def test_calls_with_the_other_link_register() -> None:
    """`jal t0` as compilers call what saves registers, and `jalr t0`, which also is how a co-routine is swapped."""
    code = Code(main=[asm.jal(16, T0), asm.jalr(RA, T0), NOP, NOP], save=[NOP, asm.jalr(0, T0)], f=[NOP, RET])
    assert code.listing("main.0 save.0 save.1 main.1 f.0 f.1 main.2") == [
        "main begin", ".save call", "main return", ".f call", "main return",
    ]  # fmt: skip


HANDLED = Code(
    main=[NOP, CALL, NOP, asm.ECALL, NOP, asm.beq(-16)],
    f=[NOP, RET],
    handler=[asm.beq(8), CALL, asm.MRET],
    task=[NOP, NOP],
)


def test_an_interrupt() -> None:
    trap = HANDLED.trap(2, "f.1", "handler.0")
    assert HANDLED.listing("main.1 f.0 handler.0 handler.2 f.1 main.2", trap) == [
        "main begin", ".f call", "..handler trap", ".f trap_return", "main return",
    ]  # fmt: skip


def test_a_handler_that_returns_to_an_address_it_made_up() -> None:
    """As Linux does: ra is set to what ends the handler, then a C function jumped to."""
    code = Code(main=[NOP, NOP], entry=[NOP, JUMP], leave=[NOP, asm.MRET], work=[NOP, RET])
    trap = code.trap(1, "main.1", "entry.0")
    assert code.listing("main.0 entry.0 entry.1 work.0 work.1 leave.0 leave.1 main.1", trap) == [
        "main begin", ".entry trap", "..work tail", ".leave return", "main trap_return",
    ]  # fmt: skip


def test_code_without_symbols_is_one_function() -> None:
    image = Image(64)
    image.add_code(BASE, NOP * 8)
    calls = CallHistory(history_of([BASE, BASE + 4, BASE + 8]), image)
    assert [(f.begin, f.end, f.pc) for f in calls.functions(1, 9)] == [(0, 3, BASE)]


def test_code_that_is_missing() -> None:
    """Nothing is known of what it does, but that the code before it does not lead there."""
    calls = CallHistory(history_of([BASE, 0x5000, 0x5004, BASE + 4]), PLAIN.image)
    found = [(f.begin, f.level, f.kind) for f in calls.functions(1, 9)]
    assert found == [
        (0, 0, StackOperationKind.BEGIN),
        (1, 1, StackOperationKind.TRAP),
        (3, 1, StackOperationKind.SWITCH),
    ]


def test_each_context_has_its_own_functions() -> None:
    """The same addresses in two processes."""
    one, two = Code(a=[NOP, NOP]), Code(b=[NOP, NOP])
    program = ContextImages(Image(64))
    program.attach(one.image, scontext=1)
    program.attach(two.image, scontext=2)
    builder = HistoryBuilder()
    for scontext in (1, 2, 1):
        builder.context(ProgramContext(0, scontext=scontext))
        builder.append(Path([(BASE, BASE + 4)]))
    history = builder.finish(NOTHING)
    calls = CallHistory(history, program)
    assert [(f.begin, f.end) for f in calls.functions(1, 9)] == [(0, 2), (2, 4), (4, 6)]


def test_a_context_that_changes_within_a_piece() -> None:
    """Between two instructions that the decoder gave as one piece, and a trap right there."""
    one, two = Code(a=[NOP] * 4), Code(b=[NOP] * 2, c=[NOP] * 2)
    program = ContextImages(Image(64))
    program.attach(one.image, scontext=1)
    program.attach(two.image, scontext=2)
    pcs = (BASE, BASE + 4, BASE + 8, BASE + 12)
    for traps in ([], [two.trap(2, None, "c.0")]):
        builder = HistoryBuilder()
        builder.context(ProgramContext(0, scontext=1))
        builder.context(ProgramContext(0, scontext=2), after=2)
        builder.append(Path([pcs]))
        history = builder.finish(NOTHING)
        history.events = traps
        calls = CallHistory(history, program)
        found = [(f.begin, f.level, f.kind) for f in calls.functions(1, 9)]
        assert found == [
            (0, 0, StackOperationKind.BEGIN),
            (2, len(traps), StackOperationKind.TRAP if traps else StackOperationKind.SWITCH),
        ]


def test_recursion_for_ever() -> None:
    """A thousand million calls in a few objects: found at once, wherever one looks, and memory is bounded."""
    deeper, out = Path([tuple(PLAIN.pcs("f.0 f.1"))]), Path([tuple(PLAIN.pcs("f.2"))])
    builder = HistoryBuilder()
    builder.append(RepeatPath(deeper, 1000))
    builder.append(RepeatPath(out, 1000))
    calls = CallHistory(builder.finish(NOTHING), PLAIN.image)
    # the innermost one did not call: a call of the next instruction is none
    assert [f.level for f in calls.functions(1, 2001)] == [*range(1000), *reversed(range(999))]
    builder = HistoryBuilder()
    builder.append(RepeatPath(deeper, 10**12))
    endless = CallHistory(builder.finish(NOTHING), PLAIN.image)
    assert len(endless) == 10**12
    (some,) = endless.functions(10**11, 10**11 + 1)
    assert (some.begin, some.end) == (2 * 10**11 - 2, 2 * 10**11)


def test_deeper_than_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that never return: the oldest are forgotten, levels go on."""
    builder = HistoryBuilder()
    most = DEPTH_AT_MOST if LONG else 1 << 13
    for module in (call_tree, stack, frame):
        monkeypatch.setattr(module, "DEPTH_AT_MOST", most)
    count = 3 * most
    for _ in range(count // 1000):
        builder.append(Path([tuple(PLAIN.pcs("f.0 f.1") * 1000)]))
    calls = CallHistory(builder.finish(NOTHING), PLAIN.image)
    (last,) = calls.functions(len(calls), len(calls) + 1)
    assert last.level == len(calls) - 1 == count // 1000 * 1000 - 1


def test_it_can_be_interrupted() -> None:
    def stop(label: str, done: int, total: int | None = None) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        CallHistory(history_of(PLAIN.pcs("main.0")), PLAIN.image, stop)


def test_nothing_ran() -> None:
    calls = CallHistory(history_of([]), PLAIN.image)
    assert len(calls) == 0 and list(calls.functions(1, 10)) == []
