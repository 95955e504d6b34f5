"""Calls under way in small programs, by hand: what random ones do not have, and calls deeper than any stack."""

from itertools import islice

import pytest

from rvtrace_gdb.decode.calls import call_tree
from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.frames import CallFrames
from rvtrace_gdb.decode.calls.pieces import frames as part_frames
from rvtrace_gdb.decode.calls.stacks import frame as frame_module
from rvtrace_gdb.decode.calls.stacks import stack
from rvtrace_gdb.decode.calls.stacks.frame import DEPTH_AT_MOST, UNKNOWN, StackOperationKind
from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Accounting
from rvtrace_gdb.decode.history.history import Event, History, Path, RepeatPath
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Image
from tests.decode import assembler as asm
from tests.decode.calls.call_histories import history_of
from tests.decode.calls.test_call_history import CALL, JUMP, NOP, PLAIN, RET, Code
from tests.helpers.amounts import LONG


def frames_of(history: History, image: Image | ContextImages) -> CallFrames:
    return CallFrames(history, CallHistory(history, image))


def shown(code: Code, history: History, position: int, pc: int | None = None) -> str:
    """As `f.1 main.2@0` and so on: where each is and goes on, and the position it was left at."""
    names = {address: name for name, address in code.starts.items()}
    words = []
    for frame in frames_of(history, code.image).frames(position, pc=pc):
        start = max((start for start in names if start <= frame.pc), default=0)
        place = f"{names[start]}.{(frame.pc - start) // 4}" if start else "?"
        assert frame.function == (start if start else UNKNOWN)
        left = {StackOperationKind.BEGIN: "", StackOperationKind.CALL: "@", StackOperationKind.TRAP: "!"}[frame.kind]
        words.append(f"{place}{left}{'' if frame.call is None else frame.call}")
    return " ".join(words)


def at_each(code: Code, places: str, *traps: Event) -> list[str]:
    history = history_of(code.pcs(places), traps)
    return [shown(code, history, position) for position in range(len(history))]


def test_a_handler_that_returns_to_what_it_put_there() -> None:
    """Its tail call is gone then; the call made next, within the same piece, is found from later ones."""
    code = Code(main=[NOP, NOP], handler=[NOP, JUMP], g=[NOP, RET], k=[CALL, RET], f=[NOP, NOP, RET])
    builder = HistoryBuilder()
    for places in ("main.0", "handler.0 handler.1 g.0", "g.1 k.0 f.0", "f.1"):
        builder.append(Path([tuple(code.pcs(places))]))
    history = builder.finish(Accounting(0, 0, 0, 0))
    history.events = [code.trap(1, "main.1", "handler.0")]
    assert shown(code, history, 4) == "g.1 main.1!0"
    assert shown(code, history, 6) == shown(code, history, 7).replace("f.1", "f.0") == "f.0 k.1@5 main.1!0"


def test_the_end() -> None:
    history = history_of(PLAIN.pcs("main.0 main.1 f.0 f.1"))
    assert shown(PLAIN, history, 4, pc=PLAIN.at("g.0")) == "g.0 f.2@3 main.2@1"
    assert shown(PLAIN, history, 4, pc=PLAIN.at("f.2")) == "f.2 main.2@1"
    assert shown(PLAIN, history, 4) == "? main.2@1"
    behind_a_gap = history_of(PLAIN.pcs("main.1 -"))
    assert shown(PLAIN, behind_a_gap, 2, pc=PLAIN.at("f.0")) == "f.0"
    assert list(frames_of(history_of([]), PLAIN.image).frames(0)) == []
    with pytest.raises(IndexError):
        list(frames_of(history, PLAIN.image).frames(5))


def test_without_symbols() -> None:
    image = Image(64)
    image.add_code(PLAIN.starts["main"], b"".join([NOP, CALL, NOP, RET, NOP, CALL, RET]))
    history = history_of(PLAIN.pcs("main.1 f.0"))
    found = list(frames_of(history, image).frames(1))
    assert [(frame.pc, frame.function) for frame in found] == [
        (PLAIN.at("f.0"), UNKNOWN),
        (PLAIN.at("main.2"), UNKNOWN),
    ]


def test_other_programs_at_the_same_addresses() -> None:
    """The functions are those of the program that runs there."""
    process = Code(start=[NOP, NOP, CALL, NOP], run=[NOP, NOP, NOP])
    program = ContextImages(PLAIN.image)
    program.attach(process.image, scontext=1)
    builder = HistoryBuilder()
    for scontext, pcs in ((0, PLAIN.pcs("main.0 main.1 f.0")), (1, process.pcs("start.2 run.0"))):
        builder.context(ProgramContext(0, scontext=scontext))
        builder.append(Path([tuple(pcs)]))
    frames = frames_of(builder.finish(Accounting(0, 0, 0, 0)), program)
    assert [frame.function for frame in frames.frames(2)] == [PLAIN.at("f.0"), PLAIN.at("main.0")]
    assert [frame.function for frame in frames.frames(4)][:2] == [process.at("run.0"), process.at("start.0")]


def recursion(depth: int, *, repeated: bool) -> History:
    """main calls f, which calls itself: so deep, and all the way back; as repetitions, or as single entries."""
    down, up = tuple(PLAIN.pcs("f.0 f.1")), tuple(PLAIN.pcs("f.2"))
    builder = HistoryBuilder()
    builder.append(Path([tuple(PLAIN.pcs("main.1"))]))
    for part, then in ((down, "g.0 g.1"), (up, "main.2")):
        if repeated:
            builder.append(RepeatPath(Path([part]), depth))
        else:
            pair = Path([part]), Path([part])  # the same one next to itself would become a repetition
            for k in range(depth):
                builder.append(pair[k % 2])
        builder.append(Path([tuple(PLAIN.pcs(then))]))
    return builder.finish(Accounting(0, 0, 0, 0))


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("depth", [40, 10000 if LONG else 2000])
def test_deep_recursion(depth: int, *, repeated: bool) -> None:
    """The call number k, from 0 on, is made at position 2 k: the first one by main. The returns begin behind g."""
    frames = frames_of(recursion(depth, repeated=repeated), PLAIN.image)
    behind_g = 2 * depth + 3
    for under_way in {1, 2, depth // 10, depth - 1, depth}:
        places = {2 * under_way - 1, 2 * under_way, behind_g + depth - under_way}  # f.0, f.1, f.2
        for position in places:
            if under_way in (1, 2, depth):
                wanted = [None, *range(2 * (under_way - 1), -1, -2)]
                assert [frame.call for frame in frames.frames(position)] == wanted
            found = list(islice(frames.frames(position), 3))
            assert [frame.level for frame in found] == list(range(under_way, under_way - len(found), -1))
            assert found[-1].pc == PLAIN.at("f.2" if under_way > 2 else "main.2")


@pytest.mark.parametrize("repeated", [False, True])
def test_recursion_that_is_deeper_than_the_stack_that_is_kept(
    monkeypatch: pytest.MonkeyPatch, *, repeated: bool
) -> None:
    """What is known is right, the newest calls at least; where older ones are not known any more, the frames end."""
    most = DEPTH_AT_MOST if LONG else 1 << 13
    for module in (call_tree, part_frames, stack, frame_module):
        monkeypatch.setattr(module, "DEPTH_AT_MOST", most)
    depth = most + 1000
    frames = frames_of(recursion(depth, repeated=repeated), PLAIN.image)
    behind_g = 2 * depth + 3
    for under_way in (100, most + 9):
        for position in (2 * under_way, behind_g + depth - under_way):
            found = list(frames.frames(position))
            wanted = [None, *range(2 * (under_way - 1), -1, -2)]
            assert [frame.call for frame in found] == wanted[: len(found)]
            if position < behind_g:
                assert len(found) > min(under_way, most // 2 if not repeated or under_way < most else 0)


@pytest.mark.parametrize("times", [1, 2, 3, 1000])
def test_repetitions_that_call_and_return(times: int) -> None:
    """A loop that calls f: the call under way is that of the round it is in."""
    code = Code(main=[CALL, asm.jal(-4)], f=[NOP, RET])
    builder = HistoryBuilder()
    builder.append(RepeatPath(Path([tuple(code.pcs("main.0")), tuple(code.pcs("f.0 f.1 main.1"))]), times))
    frames = frames_of(builder.finish(Accounting(0, 0, 0, 0)), code.image)
    for number in {0, 1, times // 2, times - 1} & set(range(times)):
        calls = [[frame.call for frame in frames.frames(4 * number + k)] for k in range(4)]
        assert calls == [[None], [None, 4 * number], [None, 4 * number], [None]]


def test_a_huge_repetition_is_not_walked() -> None:
    """A call made before it is found, too."""
    code = Code(main=[CALL, NOP], loop=[CALL, asm.jal(-4)], f=[NOP, RET])
    builder = HistoryBuilder()
    builder.append(Path([tuple(code.pcs("main.0"))]))
    inner = RepeatPath(Path([tuple(code.pcs("loop.0 f.0 f.1 loop.1"))]), 1 << 20)
    builder.append(RepeatPath(Path([inner]), 1 << 30))
    frames = frames_of(builder.finish(Accounting(0, 0, 0, 0)), code.image)
    for position in (2, (1 << 40) + 2, (1 << 52) - 2):
        assert [frame.call for frame in frames.frames(position)] == [None, position - 1, 0]
    assert [frame.call for frame in frames.frames((1 << 40) + 1)] == [None, 0]
