"""The answer to a question why: a tree of values, each with the line that made it, down to constants and inputs; then
the branches that let it happen. Each row is made once, and can be gone on from.
"""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.history.positions import history_number
from rvtrace_gdb.decode.program.csrs import F, X
from rvtrace_gdb.decode.semantics.reads import FLOW
from rvtrace_gdb.rows.list_rows import WhyRow, called
from rvtrace_gdb.session.questions.why.branches import Decided, Decision, Decisions
from rvtrace_gdb.session.questions.why.calls import FoldedCalls
from rvtrace_gdb.session.questions.why.links import Origin, UseRole, ValueLink, ValueLinks
from rvtrace_gdb.session.questions.why.names import PartName, ProgramNames
from rvtrace_gdb.session.questions.why.rounds import Carried, carried
from rvtrace_gdb.session.questions.why.steps import ChainStep, ChainSteps, Use, ValueMaker
from rvtrace_gdb.session.questions.why.trace import TracedPast
from rvtrace_gdb.support.errors import Progress

DEPTH = 5
"""The levels that are shown without another number."""
MOST = 30
"""The rows after which nothing is gone into any more, in one part of an answer."""
_DECISIONS = 8
_CHOICES = 1000
"""Decisions, each round of a loop counted, among which those are looked for that chose a constant."""
_SIZES, _MOST_BYTES = (1, 2, 4, 8), 32
_EMPTY = WhyRow(
    number=0, level=0, kind="", subject="", value=None, position=None, pc=None, source_line="", code="", inside="",
    role="", given=None, returned="", rounds=None, instructions=None, same=None, left=None, operands=None, taken=None,
    deeper=False, doubts=None,
)  # fmt: skip
_KINDS = {
    Origin.TRAP: "trap", Origin.OUTSIDE: "outside", Origin.BEGINNING: "beginning", Origin.CONSTANT: "constant",
    Origin.INPUT: "input", Origin.NO_ADDRESS: "no-address", Origin.UNDECODED: "undecoded",
}  # fmt: skip
_DECIDED = {
    Decision.CALL: "called", Decision.JUMP: "jumped", Decision.TRAP: "trapped", Decision.BEGINNING: "begins",
}  # fmt: skip


class _OpenRow(NamedTuple):
    """A row that can be gone on from: what made its value, or the branch that it is. *is_loaded*: the maker only loads
    it from where it was saved, and the question ended there.
    """

    maker: ValueMaker | None
    branch: int | None = None
    is_loaded: bool = False


class WhyAnswer:
    """The answer to one question, and to those that go on from its rows. *choices*: the branches by which a function
    that was called chose the constant that it returned are below that.
    """

    def __init__(
        self, trace: TracedPast, links: ValueLinks, branches: Decisions, names: ProgramNames, *, thin: bool, depth: int,
        choices: bool = False,
    ) -> None:  # fmt: skip
        self._trace, self._links, self._branches, self._names = trace, links, branches, names
        self._depth, self._choices = depth, choices
        self._steps = ChainSteps(links, branches.activations, names, thin=thin)
        self._calls = FoldedCalls(links, branches.activations, names, self._steps, thin=thin)
        self.rows: list[WhyRow] = []
        self._open: dict[int, _OpenRow] = {}  # by the numbers of rows
        self._made: dict[int, int] = {}  # the row of each instruction that was gone into
        self._waiting: list[int] = []  # rows that were not gone into
        self._limit = MOST

    def show_progress(self, progress: Progress) -> None:
        """Let what is asked from now on call a function now and then, which may raise to end it."""
        self._trace.progress = progress

    # -- questions

    def ask_register(self, position: int, number: int) -> None:
        """Ask why a register has its value before the instruction at a position."""
        self._steps.begin()
        self._ask([self._steps.use(self._links.register(position, number), position)])

    def ask_memory(self, position: int, address: int, size: int) -> None:
        """Ask why some bytes have their value."""
        self._steps.begin()
        self._ask([self._steps.use(it, position) for it in self._links.memory(position, address, size)])

    def _ask(self, uses: list[Use]) -> None:
        for use in self._join_neighbours(uses):
            row = self._node(use, 0, self._depth)
            if row is not None and use.link.register is None:
                self._add_former(use, row)

    def ask_row(self, number: int) -> bool:
        """Ask on from a row: what its value was made of, or the operands of the branch. Return whether one can."""
        opened = self._open.get(number)
        if opened is None:
            return False
        self._limit = len(self.rows) + MOST
        self._steps.begin()
        if opened.branch is not None:
            for link in self._links.links_of(opened.branch, FLOW):
                self._node(self._steps.use(link, opened.branch), 0, self._depth)
        elif opened.maker is not None:
            if number in self._waiting:
                self._waiting.remove(number)
            self._made.pop(opened.maker.position, None)
            if opened.is_loaded:
                link = ValueLink(Origin.INSTRUCTION, opened.maker.position, opened.maker.result)
                self._node(self._steps.use(link, opened.maker.position + 1), 0, self._depth)
            else:
                self._gone_on(number, opened.maker)
        return True

    def deepen(self) -> bool:
        """Go into the first row that was not gone into. Return whether there was one."""
        return bool(self._waiting) and self.ask_row(self._waiting[0])

    def _gone_on(self, number: int, maker: ValueMaker) -> None:
        row = self.rows[number - 1]
        self._append_row(row._replace(level=0, deeper=False, same=number), maker)
        self._children(maker, 1, self._depth)

    def ask_branches(self) -> None:
        """Ask which branches let the instruction run that is the answer's first row."""
        opened = self._open.get(1)
        if opened is not None and opened.maker is not None:
            self._add_decisions(opened.maker.position)

    def ask_execution(self, position: int) -> None:
        """Ask which branches let the instruction at a position run."""
        self._add_decisions(position)

    # -- the tree

    def _append_row(self, row: WhyRow, maker: ValueMaker | None = None, branch: int | None = None) -> int:
        number = len(self.rows) + 1
        self.rows.append(row._replace(number=number))
        if maker is not None or branch is not None:
            self._open[number] = _OpenRow(maker, branch)
        return number

    def _node(self, use: Use, level: int, depth: int) -> int | None:
        """Add the row of a value that was used, and what it was made of. Return its number."""
        self._trace.progress("following values (rows)", len(self.rows), None)
        row = self._value_row(use, level)
        maker = use.maker
        if maker is None:
            return self._append_row(row)
        if use.link.doubts:
            return self._append_row(row._replace(kind="probably", deeper=True), maker)
        row = self._at_instruction(row, maker.position)
        same = self._made.get(maker.position)
        if same is not None:
            return self._append_row(row._replace(kind="again", same=same), maker)
        if self._steps.is_unfollowed(maker):
            number = self._append_row(row._replace(deeper=True), maker)
            self._open[number] = _OpenRow(maker, is_loaded=True)
            self._waiting.append(number)
            return number
        call = self._calls.around(maker.position)
        if call is not None:
            return self._call(row, (maker, *use.others), call, depth)
        rounds = carried(self._links, self._branches.activations, self._steps, maker)
        if rounds is not None:
            return self._carried_row(row, maker, rounds, depth)
        step = self._steps.step(maker, use.others)
        if use.others:
            row = row._replace(rounds=len(use.others) + 1)
        if not self._shown(step):
            return self._constant(row, maker)
        return self._deeper(row, maker, depth, step)

    def _constant(self, row: WhyRow, maker: ValueMaker) -> int:
        number = self._append_row(row._replace(kind="constant"), maker)
        if self._choices and row.returned and number > 1:  # row 1 has its branches behind the answer
            found = list(islice(self._branches.decisions(maker.position), _CHOICES))
            chosen = [it for it in found if it.kind is Decision.BRANCH]
            self._decided_rows(chosen, row.level + 1, is_whole=len(found) < _CHOICES)
        return number

    def _deeper(self, row: WhyRow, maker: ValueMaker, depth: int, step: ChainStep) -> int:
        is_cut = depth <= 1 or len(self.rows) >= self._limit
        number = self._append_row(row._replace(deeper=is_cut), maker)
        if is_cut:
            self._waiting.append(number)
        else:
            self._used(step, number, row.level + 1, depth - 1)
        return number

    def _children(self, maker: ValueMaker, level: int, depth: int) -> None:
        self._used(self._steps.step(maker), len(self.rows), level, depth)

    def _used(self, step: ChainStep, number: int, level: int, depth: int) -> None:
        """Add what a step used."""
        for position in step.group:
            self._made[position] = number
        for use in self._shown(step):
            self._node(use, level, depth)

    def _shown(self, step: ChainStep) -> list[Use]:
        """Return what a step used, the latest first, each value once; without parts of addresses and literals."""
        found: dict[tuple[object, ...], Use] = {}
        for use in step.uses:
            if not self._is_literal(use):
                key = use.link.register, use.link.address, use.maker
                if key not in found or use.role is UseRole.VALUE:
                    found[key] = use
        uses = self._join_neighbours(list(found.values()))
        return sorted(uses, key=lambda it: -1 if it.maker is None else it.maker.position, reverse=True)

    def _join_neighbours(self, uses: list[Use]) -> list[Use]:
        """Return uses, where neighbours in memory that one instruction wrote in several rounds are one."""
        found: list[Use] = []
        for use in sorted(uses, key=lambda it: it.link.address or -1):
            last = found[-1] if found else None
            if last is not None and self._are_neighbours(last, use):
                size = last.link.size + use.link.size
                others = (*last.others, last.maker) if last.maker is not None else last.others
                found[-1] = use._replace(link=use.link._replace(address=last.link.address, size=size), others=others)
            else:
                found.append(use)
        return found

    def _are_neighbours(self, one: Use, other: Use) -> bool:
        if one.link.address is None or one.link.address + one.link.size != other.link.address or one.maker is None:
            return False
        makers = one.maker, other.maker
        if makers[1] is None or makers[0] == makers[1] or one.link.doubts or other.link.doubts:
            return False
        pcs = {self._names.instruction_address(it.position) for it in makers if it is not None}
        own = [self._branches.activations.activation_at(it.position) for it in makers if it is not None]
        return len(pcs) == 1 and own[0] == own[1] and one.user == other.user

    def _is_literal(self, use: Use) -> bool:
        """Return whether a value is a constant of the code that no variable has."""
        number, maker = use.link.register, use.maker
        if number is None or maker is None or self._links.links_of(maker.position, maker.result):
            return False
        return self._variable(use) is None and use.crossed is None

    def _carried_row(self, row: WhyRow, maker: ValueMaker, rounds: Carried, depth: int) -> int:
        """Add a row for a value that a line made of the one it had made in the round before, many times."""
        first = rounds.first
        row = self._at_instruction(row, first.position)._replace(kind="rounds", rounds=rounds.rounds)
        for position in rounds.positions:
            self._made.setdefault(position, len(self.rows) + 1)
        step = self._steps.step(first)
        if not self._shown(step):
            return self._append_row(row, maker)
        return self._deeper(row, first, depth, step)

    def _call(self, row: WhyRow, makers: tuple[ValueMaker, ...], call: int, depth: int) -> int:
        """Add a row for a value that a function without source lines made."""
        folded = [self._calls.folded(it, call, self._trace.progress) for it in makers]
        row = self._at_instruction(row, call)._replace(kind="call", instructions=sum(it.instructions for it in folded))
        row = row._replace(returned=self._names.function_name(call + 1))
        maker = makers[0]
        if maker.result is not None and maker.result >= X:
            row = row._replace(subject=called(row.returned))
        made = frozenset(it.position for it in makers)
        step = ChainStep(maker, made, [use for it in folded for use in it.uses])
        if not self._shown(step):
            return self._append_row(row, maker)
        return self._deeper(row, maker, depth, step)

    def _add_former(self, use: Use, number: int) -> None:
        """Add what stood in memory before, if something else wrote that."""
        maker, link = use.maker, use.link
        if maker is None or link.doubts or link.address is None:
            return
        (old, *others) = self._links.memory(maker.position, link.address, link.size)
        if others or old.doubts:
            return
        before = self._steps.use(old, maker.position)
        row = self._value_row(before, 1)
        if before.maker is None:
            if row.value is not None:
                self._append_row(row._replace(kind="before"))
        elif self._names.source_line(before.maker.position) != self._names.source_line(maker.position):
            self._append_row(self._at_instruction(row, before.maker.position)._replace(kind="before"), before.maker)

    # -- rows

    def _at_instruction(self, row: WhyRow, position: int) -> WhyRow:
        pc = self._names.instruction_address(position)
        return row._replace(
            kind=row.kind or "wrote", position=history_number(position), pc=None if pc == GAP else pc,
            source_line=self._names.source_line(position), code=self._names.text(position),
            inside=self._names.function_name(position),
        )  # fmt: skip

    def _value_row(self, use: Use, level: int) -> WhyRow:
        """Return the row of a value, without what made it."""
        link = use.link
        named = self._subject(use)
        row = _EMPTY._replace(
            level=level, kind=_KINDS.get(link.origin, ""), subject=named.text, value=self._value(use, named),
            role="address" if use.role is UseRole.ADDRESS else "", doubts=link.doubts or None, left=self._left(use),
        )  # fmt: skip
        if link.origin is Origin.UNDECODED and link.position is not None:
            row = self._at_instruction(row, link.position)
        if use.crossed is not None:
            row = self._crossed(row, *use.crossed)
        if link.origin is Origin.INSTRUCTION and use.maker is not None:
            return self._at_instruction(row, use.maker.position)
        return row

    def _subject(self, use: Use) -> PartName:
        link = use.link
        if link.register is not None:
            return self._variable(use) or PartName(self._names.register_text(link.register))
        if link.address is not None:
            found = self._names.variable(use.user, link.address, link.size)
            if found is None and use.maker is not None:  # of the function that wrote it, which others were told of
                found = self._names.variable(use.maker.position, link.address, link.size)
            return found or self._names.place(use.user, link.address, link.size)
        return PartName("memory at an address that is not known")

    def _variable(self, use: Use) -> PartName | None:
        """Return the variable that is in a register where it is used, or behind what made it."""
        number, maker = use.link.register, use.maker
        if number is None:
            return None
        found = self._names.register(use.user, number) if use.user < len(self._trace.history) else None
        if found is None and maker is not None and maker.result is not None and X <= maker.result < F + 32:
            after = maker.position + 1
            functions = {self._names.function_name(it) for it in (after, maker.position)}
            found = self._names.register(after, maker.result) if len(functions) == 1 else None
        return found

    def _value(self, use: Use, named: PartName) -> str | None:
        link = use.link
        if link.register is not None:
            value, size = self._trace.register_value(use.user, link.register), self._names.xlen // 8
        elif link.address is not None and self._trace.past is not None and link.size <= _MOST_BYTES:
            content = self._trace.past.memory(use.user, link.address, link.size)
            known = [it for it in content if it is not None]
            value = int.from_bytes(bytes(known), "little") if len(known) == len(content) else None
            size = link.size
            if value is None:
                value = self._loaded(use)
            if size not in _SIZES:
                return None if len(known) < len(content) else " ".join(f"{it:02x}" for it in known)
        else:
            return None
        if link.register is not None and F <= link.register < F + 32:
            size = 8
        return None if value is None else self._names.value_text(use.user, value, size, named.type)

    def _loaded(self, use: Use) -> int | None:
        """Return what a load put into its register, for memory that is not known: a device's."""
        for it in self._links.reads(use.user).results if use.user < len(self._trace.history) else ():
            if it.loaded is not None and X <= it.result < F and use.user + 1 <= len(self._trace.history):
                return self._trace.register_value(use.user + 1, it.result)
        return None

    def _crossed(self, row: WhyRow, user: int, maker: int) -> WhyRow:
        """Say how a value came into the activation in which it was used."""
        own, other = self._branches.activations.activation_at(user), self._branches.activations.activation_at(maker)
        makers = [it for it, _ in self._branches.activations.makers(user)]
        if other.maker in makers[1:] or (other.maker is None and makers):
            return row._replace(given=history_number(makers[0])) if own.maker is not None else row
        return row._replace(returned=self._names.function_name(maker))

    def _left(self, use: Use) -> str | None:
        """Return who left a value on the stack that the function itself has not written; "" nobody known; None: it is
        not so.
        """
        link = use.link
        if link.address is None or link.origin not in (Origin.INSTRUCTION, Origin.BEGINNING) or link.doubts:
            return None
        if use.user >= len(self._trace.history):
            return None
        made = self._branches.activations.activation_at(use.user).maker
        if made is None or (link.position is not None and link.position > made):
            return None
        if not self._names.is_on_stack(use.user, link.address):
            return None
        return "" if link.position is None else self._names.function_name(link.position)

    # -- branches

    def _add_decisions(self, position: int) -> None:
        """Add the branches that let an instruction run, each once, and how its function came to run; then its caller's,
        as far as there are source lines.
        """
        at: int | None = position
        for _ in range(_DECISIONS):
            if at is None:
                return
            decisions = list(self._branches.decisions(at))
            self._decided_rows([it for it in decisions if it.kind is Decision.BRANCH])
            last = decisions[-1]
            row = _EMPTY._replace(kind=_DECIDED.get(last.kind, "begins"), level=0)
            if last.position is None or last.kind is Decision.BRANCH:
                self._append_row(row._replace(kind="begins"))
                return
            self._append_row(self._at_instruction(row, last.position))
            if last.kind is Decision.TRAP or not self._names.is_own(last.position):
                return
            at = last.position

    def _decided_rows(self, decisions: list[Decided], level: int = 0, *, is_whole: bool = True) -> None:
        """Add a row for each branch. *is_whole*: there were no more decisions, so that rounds can be counted."""
        times: dict[int, int] = {}
        newest: dict[int, int] = {}
        for it in decisions:
            if it.position is not None:
                pc = self._names.instruction_address(it.position)
                times[pc] = times.get(pc, 0) + 1
                newest.setdefault(pc, it.position)
        for pc, position in newest.items():
            row = self._at_instruction(_EMPTY._replace(kind="branch", level=level), position)
            rounds = times[pc] if times[pc] > 1 and is_whole else None
            taken, operands = self._taken(position), list(self._operands(position)) or None
            self._append_row(row._replace(rounds=rounds, taken=taken, operands=operands, deeper=True), branch=position)

    def _operands(self, position: int) -> Iterator[tuple[str, str | None]]:
        for link in self._links.links_of(position, FLOW):
            use = self._steps.use(link, position)
            named = self._subject(use)
            yield named.text, self._value(use, named)

    def _taken(self, position: int) -> bool | None:
        """Return whether a branch was taken; None: it is not known, or it is no branch."""
        instruction = self._trace.image_at(position).instruction(self._names.instruction_address(position))
        if not instruction.is_branch or self._branches.activations.is_trap(position + 1):
            return None
        after = self._names.instruction_address(position + 1) if position + 1 < len(self._trace.history) else GAP
        return None if after == GAP else after != self._names.instruction_address(position) + instruction.length

