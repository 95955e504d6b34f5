"""A decoder of undamaged E-Trace for the tests: instruction by instruction, slow, written without looking at ours.

It follows the pseudo-code of Efficient Trace for RISC-V 2.0.5 ("Decoder"), told anew where that is wrong: implicit
returns are counted when they are made, not when their instruction is reached; the outcome of the last branch of a
branch count comes from the predictor; a packet with thaddr=0 breaks the path; a jump to a known register content is no
uninferable one; only uninferable jumps that were reported enter the jump target cache (text of "Jump target cache");
format 3.0 right after the address of an instruction confirms it only if that leads to its own (else the address was
the target of an uninferable jump, reached later).
"""

from collections import deque
from typing import Any

from rvtrace_gdb.decode.etrace.options import Modes, Options
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import Instruction, IType, sequential_target
from tests.decode.etrace.packets import read

_CALLS = (IType.INFERABLE_CALL, IType.UNINFERABLE_CALL)
_NO_CHANGE, _ENDED_NTR = 0, 3
_QUAL_STATUS = {"reference": 2, "standard": 3}
"""Where qual_status is in a support packet, in bits after format and subformat."""

PREDICTED, MISPREDICTED = "predicted", "mispredicted"
"""Outcomes of branches that only the predictor knows."""


class Astray(Exception):
    """The packets do not fit the program."""


class NaiveDecoder:
    """Decodes the packets of one hart. *pcs*: what ran. *traps*: (position, EPC where it is told, packet)."""

    def __init__(self, image: Image, options: Options) -> None:
        self.image, self.options = image, options
        self.parameters = options.parameters
        self.modes: Modes = options.modes
        self.mask = (1 << self.parameters.iaddress_width) - 1
        self.pcs: list[int] = []
        self.traps: list[tuple[int, int | None, dict[str, Any]]] = []
        self.contexts: list[tuple[int, dict[str, Any]]] = []
        self.pc = self.last = -1  # last: the instruction retired before, in the same path
        self.address = 0
        self.outcomes: deque[bool | str] = deque()  # of branches reported and not made yet, the oldest first
        self.started = self.broken = False  # broken: the next packet tells where it goes on
        self.inferred: dict[str, Any] | None = None  # the last report, whose address may be meant when it comes again
        self.privilege = -1
        self.stack: list[list[int]] = []  # [return address, how many calls more]
        self.due: int | None = None  # where the return at pc goes
        self.depth = 0  # of the stack before the instruction at pc did anything to it
        self.returned = 0  # implicit returns since the last branch or packet
        self.predictor: dict[int, int] = {}  # what is not there is in state 01
        self.cache: dict[int, int] = {}

    def decode(self, payloads: list[bytes]) -> list[int]:
        """All packets, in order."""
        for payload in payloads:
            self.packet(read(payload, self.parameters, self.modes))
        return self.pcs

    def packet(self, fields: dict[str, Any]) -> None:
        """One te_inst packet."""
        if fields["format"] != 3:
            if not self.started:
                raise Astray("the trace does not start with a synchronizing packet")
            self.report(fields)
        elif fields["subformat"] == 3:
            self.support(fields["bits"] >> _QUAL_STATUS[self.options.support.value] & 3)
        elif fields["subformat"] == 2:
            self.contexts.append((len(self.pcs), fields))
        else:
            self.synchronize(fields)

    # -- packets ------------------------------------------------------------------------------------------------

    def support(self, qual_status: int) -> None:
        """Tracing ends, or packets were lost; ended_ntr: the last report was of an uninferable jump's target."""
        if qual_status == _ENDED_NTR and self.inferred is not None:
            self.second_occurrence()
        if qual_status != _NO_CHANGE:
            self.started = False

    def report(self, fields: dict[str, Any]) -> None:
        """Formats 0, 1 and 2."""
        if self.inferred is not None:
            self.second_occurrence()
        self.returned = 0
        if "branch_count" in fields:
            self.outcomes.extend([PREDICTED] * (fields["branch_count"] + 31))
            self.outcomes.extend([MISPREDICTED] if fields["branch_fmt"] in (0, 3) else [])
        elif "branch_map" in fields:
            bits = fields["branch_map"]
            self.outcomes.extend(bits >> i & 1 == 0 for i in range(fields["branches"] or 31))
        if "index" in fields:
            if fields["index"] not in self.cache:
                raise Astray("an entry of the jump target cache that was never written")
            self.address = self.cache[fields["index"]]
        elif "address" in fields:
            self.address = (0 if self.modes.full_address else self.address) + fields["address"] & self.mask
        else:
            self.to_last_branch()
            return
        self.to_address(fields)

    def synchronize(self, fields: dict[str, Any]) -> None:
        """Format 3, subformats 0 and 1."""
        trap, thaddr = fields["subformat"] == 1, fields.get("thaddr", 1)
        if trap:
            self.trap(fields)
        if not thaddr:
            self.broken, self.inferred = True, None
            return
        at = fields.get("address")
        if at is None:
            at = self.options.trap_handlers.handler_of(fields["ecause"], bool(fields["interrupt"]))
            assert at is not None
        here = [not fields["branch"]] if self.instruction(at).is_branch else []
        keeps = self.modes.resync_disabled and self.started
        follows = self.started and not trap and not self.broken
        if follows and self.inferred is not None and not self.leads_to(at, fields["privilege"]):
            self.second_occurrence()  # a report for the sake of this packet comes right before it
        self.address = at
        if follows:
            self.outcomes.extend(here)
            self.to_sync(at, fields["privilege"])
        else:
            self.outcomes = deque(here)
            self.arrive(at, -1)
        if not keeps:
            self.stack, self.due, self.predictor, self.cache = [], None, {}, {}
            self.remember_call()
        self.started, self.broken, self.inferred, self.returned = True, False, None, 0
        self.privilege = fields["privilege"]

    def trap(self, fields: dict[str, Any]) -> None:
        """The EPC is told, or what would have retired next (None where that is not known)."""
        epc: int | None = None
        inferred = self.started and (self.due is not None or self.follows_constant() is not None)
        jumped = not self.started or self.is_uninferable(self.pc)
        if self.broken or inferred:  # behind an inferred jump the address may be the EPC, but need not
            epc = None
        elif jumped:
            epc = None if fields["thaddr"] else fields["address"]
        else:
            instruction = self.instruction(self.pc)
            if instruction.itype is IType.EXCEPTION:
                epc = self.pc
            elif not instruction.is_branch or len(self.outcomes) == 1:
                epc = self.successor(instruction)[0]
        self.traps.append((len(self.pcs), epc, fields))

    # -- following the program ----------------------------------------------------------------------------------

    def to_last_branch(self) -> None:
        """No address was reported: the path ends at the last branch known."""
        while True:
            self.step()
            if len(self.outcomes) == 1 and self.instruction(self.pc).is_branch:
                return

    def to_address(self, fields: dict[str, Any]) -> None:
        """The path to a reported address."""
        at = self.address
        while True:
            by_return = self.due is not None
            if self.jumps(fields):
                if not self.used_up():
                    raise Astray("branches were reported that did not come")
                return
            if self.pc != at or not self.used_up() or fields.get("updiscon"):
                continue
            if "irdepth" in fields and fields["irdepth"] != self.depth:
                continue
            if by_return and self.parameters.iret_ext:
                continue  # would be reported as the target of the return
            # irets is told of the target of a return, and of any other place if it is not 0.
            if self.parameters.iret_ext and self.returned != (fields["irets"] or -1 if fields["irreport"] else 0):
                continue
            if not fields.get("notify") and not self.instruction(at).is_branch:
                self.inferred = fields
            return

    def jumps(self, fields: dict[str, Any]) -> bool:
        """One step; whether it was the uninferable jump to the address reported."""
        if not self.is_uninferable(self.pc) or self.follows_constant():
            self.step()
            return False
        if self.due is not None and not self.is_reported_return(fields):
            self.step()
            return False
        correct = fields["irreport"] and self.address == self.due
        if not correct:
            self.remember_target(self.address)
        self.arrive(self.address, self.pc)
        return True

    def is_reported_return(self, fields: dict[str, Any]) -> bool:
        """Whether the return at pc, whose target is known, is the one that is reported all the same."""
        left = 1 if self.instruction(self.address).is_branch else 0
        if not fields["irreport"] or len(self.outcomes) != left:
            return False
        return bool(fields["irets"] == self.returned if "irets" in fields else fields["irdepth"] == self.depth)

    def to_sync(self, at: int, privilege: int) -> None:
        """The path to the address of a synchronizing packet."""
        while True:
            came_from = self.pc
            if self.is_uninferable(self.pc) and not self.follows_constant() and self.due is None:
                self.remember_target(at)
                self.arrive(at, self.pc)
                if not self.used_up():
                    raise Astray("branches were reported that did not come")
                return
            self.step()
            trap_return = self.instruction(came_from).itype is IType.TRAP_RETURN
            if self.pc == at and self.used_up() and (privilege == self.privilege or trap_return):
                return

    def leads_to(self, at: int, privilege: int) -> bool:
        """Whether *at* is the next instruction, or may be, in that privilege mode."""
        if privilege != self.privilege and self.instruction(self.pc).itype is not IType.TRAP_RETURN:
            return False
        unknown = self.is_uninferable(self.pc) and self.follows_constant() is None and self.due is None
        return unknown or self.successor(self.instruction(self.pc))[0] == at

    def second_occurrence(self) -> None:
        """The address reported last comes once more, after an uninferable jump."""
        fields, self.inferred = self.inferred, None
        assert fields is not None
        while not self.jumps(fields):
            pass

    def step(self) -> None:
        """To the next instruction, which the program or what was reported tells."""
        if len(self.pcs) > 1_000_000:
            raise Astray("a loop without end")
        instruction = self.instruction(self.pc)
        if self.is_uninferable(self.pc) and not self.follows_constant() and self.due is None:
            raise Astray("an uninferable jump where none was reported")
        if instruction.itype is IType.EXCEPTION:
            raise Astray("the path leads over an instruction that traps")
        target, implicit = self.successor(instruction)
        if instruction.is_branch:
            self.take_branch(target != self.pc + instruction.length & self.mask)
            self.returned = 0
        self.returned += implicit
        self.arrive(target, self.pc)

    def successor(self, instruction: Instruction) -> tuple[int, bool]:
        """Where the instruction at pc leads, and whether as an implicit return."""
        fall = self.pc + instruction.length & self.mask
        if instruction.is_inferable_jump or (instruction.is_branch and self.outcome()):
            assert instruction.offset is not None
            return self.pc + instruction.offset & self.mask, False
        if not self.is_uninferable(self.pc):
            return fall, False
        constant = self.follows_constant()
        if constant is not None:
            return constant, False
        assert self.due is not None
        return self.due, True

    def outcome(self) -> bool:
        """Whether the branch at pc is taken."""
        if not self.outcomes:
            raise Astray("a branch whose outcome was not reported")
        told = self.outcomes[0]
        if isinstance(told, bool):
            return told
        predicted = self.predictor.get(self.index(self.pc, self.parameters.bpred_size), 0b01) >> 1 == 1
        return predicted is (told is PREDICTED)

    def take_branch(self, taken: bool) -> None:
        """The MSB predicts, and changes when it was wrong twice; the LSB is the last outcome ("Branch prediction")."""
        self.outcomes.popleft()
        if self.modes.branch_prediction:
            index = self.index(self.pc, self.parameters.bpred_size)
            state = self.predictor.get(index, 0b01)
            msb = taken if state in (0b01, 0b10) else state >> 1
            self.predictor[index] = msb << 1 | taken

    def arrive(self, pc: int, last: int) -> None:
        """The instruction at *pc* retires after *last*: it is reported, and calls and returns change the stack."""
        self.last, self.pc = last, pc
        self.pcs.append(pc)
        self.due, self.depth = None, len(self.stack)
        if self.modes.implicit_return and self.instruction(pc).itype is IType.RETURN and self.stack:
            top = self.stack[-1]
            self.due = top[0]
            top[1] -= 1
            if top[1] < 0:
                self.stack.pop()
        self.remember_call()

    def remember_call(self) -> None:
        """A call at pc pushes its return address ("push_return_stack")."""
        instruction = self.instruction(self.pc)
        if not self.modes.implicit_return or instruction.itype not in _CALLS:
            return
        entries, counter = self.parameters.return_stack_size, self.parameters.call_counter_size
        link = self.pc + instruction.length & self.mask
        if self.stack and self.stack[-1][0] == link and self.stack[-1][1] != ((1 << counter) - 1 if entries else 0):
            self.stack[-1][1] += 1
            return
        if len(self.stack) == 1 << (entries or counter):
            del self.stack[0]
        self.stack.append([link, 0])

    def remember_target(self, target: int) -> None:
        if self.modes.jump_target_cache:
            self.cache[self.index(target, self.parameters.cache_size)] = target

    # -- what the code tells ------------------------------------------------------------------------------------

    def instruction(self, pc: int) -> Instruction:
        return self.image.instruction(pc)

    def is_uninferable(self, pc: int) -> bool:
        return self.instruction(pc).is_uninferable

    def follows_constant(self) -> int | None:
        """Where the jump at pc goes, if the code tells: the opcode alone ("Jump classification"), or the instruction
        retired before it, which loaded its register with a constant.
        """
        jump = self.instruction(self.pc)
        if jump.via is not None and jump.via.register == 0:
            return jump.via.offset & self.mask
        if not self.modes.sijump or self.last == -1:
            return None
        before = self.instruction(self.last)
        return sequential_target(before, self.last, jump, self.image.xlen)

    def used_up(self) -> bool:
        """Whether all branches reported are behind, except that at pc."""
        return len(self.outcomes) == (1 if self.instruction(self.pc).is_branch else 0)

    def index(self, address: int, size: int) -> int:
        return address >> self.parameters.iaddress_lsb & (1 << size) - 1
