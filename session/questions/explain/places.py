"""What is where in a program: functions with their source lines, data, and what a stack must not run into."""

from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.history.positions import history_number
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.layout import PlacedObject, ProgramLayout
from rvtrace_gdb.decode.program.source.source_lines import SourceLines
from rvtrace_gdb.reports.source_files import source_file
from rvtrace_gdb.rows.explain_rows import ExplainedPlace
from rvtrace_gdb.rows.list_rows import called
from rvtrace_gdb.session.questions.explain.evidence import Evidence
from rvtrace_gdb.session.tasks.stack_rooms import TaskRoom
from rvtrace_gdb.support.text import printable

_SOURCE_MOST = 48
"""Characters of a source line that are shown."""


class ProgramPlaces:
    """The places of a program."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence, self.image = evidence, evidence.image
        self._lines = SourceLines(self.image)
        self._lines_of = {id(self.image): self._lines}
        self._layout = ProgramLayout(self.image)
        self._source_registers: dict[str, list[str]] = {}

    def place_at(self, position: int) -> ExplainedPlace | None:
        """Return the place of the instruction at a position; None: there is none."""
        history = self._evidence.history
        if not 0 <= position < len(history) or history.pc(position) == GAP:
            return None
        image = self._evidence.programs.image_at(position)
        return self._explained_place(history.pc(position), history_number(position), image)

    def place_of(self, pc: int, number: int | None = None) -> ExplainedPlace:
        """Return the place of an address in the program that runs at the end."""
        return self._explained_place(pc, number, self.image)

    def _explained_place(self, pc: int, number: int | None, image: Image) -> ExplainedPlace:
        lines = self._lines_of.get(id(image))
        if lines is None:
            lines = self._lines_of[id(image)] = SourceLines(image)
        symbol, row = image.symbol(pc), lines.row(pc)
        name, offset = ("", 0) if symbol is None else (printable(symbol[0]), symbol[1])
        line = "" if row is None else f"{printable(row.name.rpartition('/')[2])}:{row.line}"
        return ExplainedPlace(number, pc, name, offset, line, "" if row is None else self._source(row.path, row.line))

    def _source(self, path: str, line: int) -> str:
        lines = self._source_registers.get(path)
        if lines is None:
            lines = self._source_registers[path] = (source_file(path) or b"").decode(errors="replace").splitlines()
        text = printable(" ".join(lines[line - 1].split())) if 0 < line <= len(lines) else ""
        return text if len(text) <= _SOURCE_MOST else f"{text[: _SOURCE_MOST - 2]}.."

    def same_line(self, pc: int) -> list[int]:
        """Return the addresses of the code of the line of an instruction, in its function."""
        row, function = self._lines.row(pc), self.image.function(pc)
        if row is None or function is None:
            return []
        found, at = list[int](), function
        while self.image.function(at) == function and self.image.knows(at) and len(found) < 4096:
            here = self._lines.row(at)
            if here is not None and (here.path, here.line) == (row.path, row.line):
                found.append(at)
            at += self._evidence.code.operation(at).length
        return found

    def function_name(self, pc: int) -> str:
        """Return `name()` of the function at an address, or the address."""
        symbol = self.image.symbol(pc)
        return f"0x{pc:x}" if symbol is None else called(printable(symbol[0]))

    def data_name(self, address: int) -> str:
        """Return `name`, or `name+offset`, of the object at an address, "" without one."""
        found = self._layout.object_at(address)
        if found is None:
            return ""
        offset = address - found.start
        return f"{printable(found.name)}{f'+{offset}' if offset else ''}"

    def is_object(self, address: int, size: int) -> bool:
        """Return whether so many bytes at an address are an object, and no part of one."""
        found = self._layout.object_at(address)
        return found is not None and (found.start, found.end) == (address, address + size)

    def address_name(self, address: int) -> str:
        """Return the name of the object at an address, else the address."""
        return self.data_name(address) or f"0x{address:x}"

    def is_code(self, pc: int) -> bool:
        """Return whether there is code at an address, as far as the program says."""
        if not self.image.knows(pc):
            return False
        return self._layout.is_code(pc)

    def is_memory(self, address: int) -> bool:
        """Return whether an address is in a section of the program, or in one of its segments."""
        return self._layout.section_at(address) is not None or self.image.knows(address)

    def code_problem(self, pc: int) -> str:
        """Return what is at an address where no code is."""
        name = self.data_name(pc)
        if name:
            return f"`{name}`, which is data"
        if self.image.knows(pc):
            is_erased = set(self.image.read(pc, 2)) == {0xFF}
            return "erased flash" if is_erased else "data"
        return "address 0" if pc == 0 else "memory without code"

    def stack_room(self, top: int, position: int, *, is_start: bool) -> PlacedObject | None:
        """Return where a stack may be that begins below an address, or goes on there, behind a position: that of the
        task that runs, if it is known; None: that is not known. *is_start*: the code says that it begins there.
        """
        room, stacks = self._layout.stack_room(top), self._evidence.task_rooms
        if stacks is not None:
            return stacks.room(top, position, room, is_start=is_start)
        return room if is_start or not self._evidence.has_tasks else None

    def section_name(self, address: int) -> str:
        """Return the name of the section that an address is in, "" without one."""
        found = self._layout.section_at(address)
        return "" if found is None else printable(found.name)

    def is_placed(self, address: int) -> bool:
        """Return whether an address is in an object or a section of the program."""
        return (self._layout.object_at(address) or self._layout.section_at(address)) is not None

    def below_stack(self, room: PlacedObject, lowest: int, position: int) -> str:
        """Return the name of what a stack runs into that leaves its room downwards, to *lowest*, at a position."""
        stacks = self._evidence.task_rooms
        task_part = stacks.below(room, lowest, position) if stacks is not None and isinstance(room, TaskRoom) else None
        if task_part is not None:
            return printable(task_part)
        address = room.start - 1
        found = self._layout.object_at(address) or self._layout.section_at(address)
        if found is None:
            return f"0x{address:x}"
        name = f"`{printable(found.name)}`"
        return f"what is below it in {name}" if found.end > room.start else name
