"""The calls of a hart as stacks: from the outermost function to the one that ran, with the instructions that ran there.

They are the nodes of the call tree (`decode.calls.call_tree`), so their instructions add up to all that ran. Where it
is known which task ran (`session.tasks`), each task is the outermost frame of its stacks.
"""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from rvtrace_gdb.decode.calls.call_tree import CallNode, call_tree, call_tree_of_parts
from rvtrace_gdb.decode.calls.stacks.frame import UNKNOWN
from rvtrace_gdb.decode.calls.tree.programs import FunctionPrograms
from rvtrace_gdb.decode.history.hart_events import HartEvent, HartEventKind
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.source.source_lines import LineTableRow, SourceLines
from rvtrace_gdb.session.exports.export import ExportedTrace
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.text import printable

NO_SYMBOL = "[no symbol]"
"""The name of what ran where no symbol is."""
_REPORT_EVERY = 1 << 12


class StackFrame(NamedTuple):
    """A function on a stack. *function*: its start, UNKNOWN without a symbol; *trap*: a trap led to it. *task*: not a
    function, but the task that runs. *program*: in which of the programs that ran it is (`CallHistory.images`).
    """

    function: int
    trap: bool
    task: str = ""
    program: int = 0


class CallStack(NamedTuple):
    """*frames*, outermost first; *own*: instructions that ran in the last one there; *calls*: how often it was called
    there.
    """

    frames: tuple[StackFrame, ...]
    own: int
    calls: int


def call_stacks(trace: ExportedTrace, progress: Progress) -> Iterator[CallStack]:
    """Yield the different call stacks of the part of a hart that is written, callers first, in the order of their
    addresses. Of PC samples alone, a stack is the function where they are, and its instructions are the samples.
    """
    if trace.is_sampled:
        yield from _sampled_stacks(trace)
        return
    calls, turns = trace.calls(progress), trace.task_stacks(progress)
    if turns is None:
        yield from _stacks_of_tree(call_tree(calls, progress, trace.part), (), progress)
        return
    for label, parts in turns.parts_by_label(trace.part).items():
        root = call_tree_of_parts(calls, parts, progress)
        yield from _stacks_of_tree(root, (StackFrame(UNKNOWN, False, label),), progress)


def _stacks_of_tree(root: CallNode, outer: tuple[StackFrame, ...], progress: Progress) -> Iterator[CallStack]:
    """Yield the stacks of a call tree, inside some *outer* frames."""
    waiting: list[tuple[tuple[StackFrame, ...], CallNode]] = [(outer, root)]
    done = 0
    while waiting:
        if done % _REPORT_EVERY == 0:
            progress("writing (stacks)", done, None)
        done += 1
        frames, node = waiting.pop()
        if node is not root:
            yield CallStack(frames, node.own, node.calls)
        below = sorted(node.children.items(), reverse=True)
        waiting += [
            ((*frames, StackFrame(child.function, child.trap, program=child.program)), child) for _, child in below
        ]


def _sampled_stacks(trace: ExportedTrace) -> Iterator[CallStack]:
    samples: Counter[int] = Counter()
    for event in trace.history.events:
        if isinstance(event.fact, HartEvent) and event.fact.kind is HartEventKind.PC_SAMPLE:
            image = trace.program.image_of(trace.history.context_at(event.position))
            function = None if event.last_pc is None else image.function(event.last_pc)
            samples[UNKNOWN if function is None else function] += 1
    for function in sorted(samples):
        yield CallStack((StackFrame(function, False),), samples[function], 0)


class ProfileNames:
    """The names of functions and where they are in the source, in the programs that ran."""

    def __init__(self, trace: ExportedTrace, progress: Progress) -> None:
        self._calls = None if trace.is_sampled else trace.calls(progress)
        contexts = map(trace.program.image_of, trace.history.program_contexts)
        images = {id(image): image for image in (trace.program.base, *contexts)}
        found = list(images.values()) if self._calls is None else self._calls.images
        self._programs = FunctionPrograms(found)
        self._lines: dict[int, SourceLines] = {}  # by the id of the image, which is kept
        self._names: dict[StackFrame, str] = {}

    def frame_at(self, position: int, function: int, *, trap: bool) -> StackFrame:
        """Return the frame of a function that runs at a position, or called what runs there."""
        program = 0 if self._calls is None else self._calls.program_at(position)
        return StackFrame(function, trap, program=self._programs.number(program, function))

    def image(self, frame: StackFrame) -> Image:
        """Return the program of a function on a stack."""
        return self._programs.image(frame.program, frame.function)

    def name(self, frame: StackFrame) -> str:
        """Return the name of a function on a stack, on one line; one that a trap led to has "[trap]" behind it. That of
        a task is its own.
        """
        name = self._names.get(frame)
        if name is None:
            name = self._function_name(frame) + (" [trap]" if frame.trap else "")
            name = self._names[frame] = printable(frame.task) if frame.task else name
        return name

    def _function_name(self, frame: StackFrame) -> str:
        if frame.function == UNKNOWN:
            return NO_SYMBOL
        found = self.image(frame).symbol(frame.function)
        return f"0x{frame.function:x}" if found is None else printable(found[0])

    def source_row(self, frame: StackFrame) -> LineTableRow | None:
        """Return the source line where a function begins, None if it is not known."""
        if frame.function == UNKNOWN:
            return None
        image = self.image(frame)
        lines = self._lines.get(id(image))
        if lines is None:
            lines = self._lines[id(image)] = SourceLines(image)
        row = lines.row(frame.function)
        return row if row is not None and row.line else None
