"""The steps of a chain: what a source line did in one round, as one step, and what it was made of.

Instructions that only hand a value on (moves, and loads of a register that was saved on the stack) are nobody's step.
The stack pointer, the global and the thread pointer are no reasons.
"""

from collections.abc import Iterator
from typing import NamedTuple

from rvtrace_gdb.decode.program.csrs import X
from rvtrace_gdb.decode.semantics.reads import MEMORY
from rvtrace_gdb.session.questions.why.frames import Activations
from rvtrace_gdb.session.questions.why.links import Origin, UseRole, ValueLink, ValueLinks
from rvtrace_gdb.session.questions.why.names import ProgramNames

SP, FP = X + 2, X + 8
_NO_REASONS = frozenset({SP, X + 3, X + 4})
"""sp, gp, tp."""
_PASSED_AT_MOST = 256
_SAVED_AT_MOST = 32
"""How often values are followed through what was saved on the stack, before the next question: each time the trace may
have to be executed again for the addresses of tens of thousands of instructions.
"""


class ValueMaker(NamedTuple):
    """An instruction, and which of its results is meant: a register, MEMORY, or None for all.

    needed  the bytes of MEMORY that are; None: all
    """

    position: int
    result: int | None = None
    needed: frozenset[int] | None = None


class Use(NamedTuple):
    """A value that a step used.

    link     as the instruction at the position *user* has it
    maker    what made it, behind what only handed it on; None: no instruction
    crossed  where it first went from one activation to another: the position of its use, and that of what made it there
    way      from the step's instruction to the user: the registers through which the value went
    others   of memory that an instruction wrote in several rounds: what made the bytes before
    """

    link: ValueLink
    user: int
    maker: ValueMaker | None
    role: UseRole
    crossed: tuple[int, int] | None = None
    way: tuple[int, ...] = ()
    others: tuple[ValueMaker, ...] = ()


PassedValue = tuple[ValueMaker | None, tuple[int, int] | None, ValueLink | None]
"""What made a value that was only handed on; where it went from one activation to another; and if no instruction made
it, where it comes from.
"""


class ChainStep(NamedTuple):
    """What a source line did in one round: its instructions, and what it used."""

    maker: ValueMaker
    group: frozenset[int]
    uses: list[Use]


class ChainSteps:
    """The steps of a history. *thin*: what addresses are made of is left out."""

    def __init__(self, links: ValueLinks, activations: Activations, names: ProgramNames, *, thin: bool) -> None:
        self._links, self._activations, self._names, self._thin = links, activations, names, thin
        self._left = _SAVED_AT_MOST
        self._unfollowed: set[ValueMaker] = set()
        self._handed: dict[ValueMaker, ValueLink | None] = {}

    def begin(self) -> None:
        """Begin another question: values are followed anew."""
        self._left = _SAVED_AT_MOST
        self._unfollowed.clear()
        self._handed.clear()

    def is_unfollowed(self, maker: ValueMaker) -> bool:
        """Return whether an instruction only loads what was saved on the stack, and the question was not about that
        any more.
        """
        return maker in self._unfollowed

    def step(self, maker: ValueMaker, others: tuple[ValueMaker, ...] = ()) -> ChainStep:
        """Return the step that an instruction belongs to, with those that *others* belong to."""
        group, uses = self._grown(maker)
        for other in others:
            more, used = self._grown(other)
            group |= more
            uses += [it for it in used if it.link.register is None or it.role is UseRole.VALUE]
        return ChainStep(maker, group, uses)

    def _grown(self, maker: ValueMaker) -> tuple[frozenset[int], list[Use]]:
        """Return the instructions of a step, and what leaves it. An instruction's address may come once in a round."""
        position = maker.position
        group, uses, pcs = {position}, list[Use](), {self._names.instruction_address(position)}
        copied = self._copied_bytes(maker)
        waiting: list[tuple[int, int | None, UseRole, tuple[int, ...]]] = [(position, maker.result, UseRole.VALUE, ())]
        while waiting:
            user, result, role, way = waiting.pop()
            for link in self._links.links_of(user, result):
                kind = UseRole.ADDRESS if UseRole.ADDRESS in (role, link.role) else UseRole.VALUE
                if self._is_left_out(link, kind) and maker.result not in _NO_REASONS:
                    continue
                if maker.result != FP and self._is_frame(link):
                    continue
                at = link.position
                if link.register is not None and link.origin is Origin.INSTRUCTION and at is not None:
                    if at in group:
                        continue
                    if self._is_inside(position, at) and self._names.instruction_address(at) not in pcs:
                        group.add(at)
                        pcs.add(self._names.instruction_address(at))
                        waiting.append((at, link.register, kind, (*way, link.register)))
                        continue
                if link.address is not None and copied is not None and user == copied.position:
                    uses += self._of_bytes(copied, link, user, kind, way)
                else:
                    uses.append(self._use(link, user, kind, way))
        return frozenset(group), [it for it in uses if maker.result == FP or not self._is_frame_use(it)]

    def _is_frame(self, link: ValueLink) -> bool:
        """Return whether a register is the frame pointer: s0, made of nothing but sp."""
        if link.register != FP or link.origin is not Origin.INSTRUCTION or link.position is None:
            return False
        return self._links.reads(link.position).registers == {SP}

    def _is_frame_use(self, use: Use) -> bool:
        """Return whether it is the frame pointer that was saved and loaded again."""
        if use.link.register != FP or use.maker is None:
            return False
        return self._links.reads(use.maker.position).registers == {SP}

    def _is_left_out(self, link: ValueLink, role: UseRole) -> bool:
        return link.register in _NO_REASONS or (self._thin and role is UseRole.ADDRESS)

    def _is_inside(self, position: int, other: int) -> bool:
        """Return whether two instructions are of the same source line, in the same activation."""
        line = self._names.source_line(position)
        if line != self._names.source_line(other):
            return False
        return self._activations.activation_at(position) == self._activations.activation_at(other)

    # -- handed on

    def use(self, link: ValueLink, user: int) -> Use:
        """Return the use of a link of the instruction at a position, or of what is asked before it."""
        return self._use(link, user, link.role, ())

    def _use(self, link: ValueLink, user: int, role: UseRole, way: tuple[int, ...]) -> Use:
        if link.origin is not Origin.INSTRUCTION or link.position is None:
            return Use(link, user, None, role, way=way)
        if link.register is None:
            given = self._given_argument(link)
            if given is not None:
                maker, crossed, last = given
                return Use(last or link, user, maker, role, crossed, way)
            address = link.address or 0
            read = frozenset(range(address, address + link.size))
            return Use(link, user, ValueMaker(link.position, MEMORY, read), role, way=way)
        maker, crossed, last = self.through(ValueMaker(link.position, link.register), user)
        return Use(last or link, user, maker, role, crossed, way)

    def through(self, maker: ValueMaker, user: int) -> PassedValue:
        """Return what made a value, behind moves and what was saved on the stack and loaded again. Then where it first
        went from one activation to another; and where it comes from, if that is no instruction.
        """
        crossed = self._crossing(user, maker.position)
        for _ in range(_PASSED_AT_MOST):
            link = self._handed_on(maker)
            if link is None:
                break
            if link.origin is not Origin.INSTRUCTION or link.position is None:
                return None, crossed, link
            before, maker = maker, ValueMaker(link.position, link.register)
            crossed = crossed or self._crossing(before.position, maker.position)
        return maker, crossed, None

    def _crossing(self, user: int, maker: int) -> tuple[int, int] | None:
        own, other = self._activations.activation_at(user), self._activations.activation_at(maker)
        return None if (own.maker, own.level) == (other.maker, other.level) else (user, maker)

    def _handed_on(self, maker: ValueMaker) -> ValueLink | None:
        """Return the register whose value an instruction only hands on, None if it makes one."""
        if maker not in self._handed:
            self._handed[maker] = self._found_handed_on(maker)
        return self._handed[maker]

    def _found_handed_on(self, maker: ValueMaker) -> ValueLink | None:
        (made, *others) = self._links.reads(maker.position).results_of(maker.result) or (None,)
        if made is None or others or not made.is_copy:
            return None
        if made.loaded is None and made.stored is None and len(made.registers) == 1 and made.registers[0] >= X:
            return self._links.register(maker.position, made.registers[0])
        if made.loaded is None or made.loaded.base != SP or made.loaded.size * 8 < self._names.xlen:
            return None
        if not self._left:
            self._unfollowed.add(maker)
            return None
        self._left -= 1
        return self._saved(maker.position)

    def _saved(self, position: int) -> ValueLink | None:
        """Return the register that was saved on the stack and is loaded again at a position."""
        loaded = [it for it in self._links.links_of(position) if it.register is None]
        if len(loaded) != 1 or loaded[0].origin is not Origin.INSTRUCTION or loaded[0].doubts:
            return None
        (link,) = loaded
        stored = [it for it in self._links.reads(link.position or 0).results if it.stored is not None]
        is_saved = len(stored) == 1 and stored[0].stored is not None and stored[0].stored.base == SP
        if not is_saved or not stored[0].is_copy or not stored[0].registers or self._is_variable(position, link):
            return None
        return self._links.register(link.position or 0, stored[0].registers[0])

    def _given_argument(self, link: ValueLink) -> PassedValue | None:
        """Return where an argument comes from that was stored into its variable: code that is not optimized does so."""
        position = link.position or 0
        stored = [it for it in self._links.reads(position).results if it.stored is not None]
        if len(stored) != 1 or not stored[0].is_copy or link.doubts or stored[0].base not in (SP, FP):
            return None
        called = self._activations.activation_at(position).maker
        if len(stored[0].registers) != 1 or called is None:
            return None
        given = self._links.register(position, stored[0].registers[0])
        if given.origin is not Origin.INSTRUCTION or given.doubts or given.position is None:
            return None
        passed = self.through(ValueMaker(given.position, given.register), position)
        return passed if passed[0] is not None and passed[0].position < called else None

    def _is_variable(self, position: int, link: ValueLink) -> bool:
        """Return whether what an instruction loads from the stack is a variable."""
        loaded = [it.loaded for it in self._links.reads(position).results if it.loaded is not None]
        address = link.address or 0
        return self._names.variable(position, address, link.size, address - loaded[0].offset) is not None

    # -- copies

    def _copied_bytes(self, maker: ValueMaker) -> ValueMaker | None:
        """Return the load of what a store copies, with the bytes that are needed of it; None: it copies nothing."""
        if maker.needed is None:
            return None
        stored = self._links.access(maker.position, stores=True)
        reads = [it for it in self._links.reads(maker.position).results if it.stored is not None and it.is_copy]
        if stored is None or stored.address is None or len(reads) != 1 or not reads[0].registers:
            return None
        link = self._links.register(maker.position, reads[0].registers[0])
        if link.origin is not Origin.INSTRUCTION or link.position is None:
            return None
        loaded = self._links.access(link.position, stores=False)
        is_same = loaded is not None and loaded.size == stored.size and self._is_inside(maker.position, link.position)
        if loaded is None or loaded.address is None or not is_same:
            return None
        distance = loaded.address - stored.address
        return ValueMaker(link.position, None, frozenset(it + distance for it in maker.needed))

    def _of_bytes(
        self, copied: ValueMaker, link: ValueLink, user: int, role: UseRole, way: tuple[int, ...]
    ) -> Iterator[Use]:
        """Yield the use of those bytes of a load that are needed."""
        begin = link.address or 0
        needed = [it for it in range(begin, begin + link.size) if it in (copied.needed or ())]
        if needed:
            link = link._replace(address=needed[0], size=needed[-1] + 1 - needed[0])
            yield self._use(link, user, role, way)
