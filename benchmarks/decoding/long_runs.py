"""How fast long runs of branchy code are decoded.

Run: python benchmarks/decoding/long_runs.py [MILLION_INSTRUCTIONS [PART_OF_A_SETTING]]

Two programs of benchmarks/programs run on the simulated hart (default: 60 million instructions) and are encoded in
several modes: `mixed` does what embedded programs do, `random` never repeats itself. Decoded three times: cold, nothing
known; warm, the same trace again by the same decoder; and without remembering steps. Figures are CPU time; compare them
within one run, machines are noisy. Bytes per instruction are those of the decoded history in memory.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from rvtrace_gdb.decode.etrace import decoder as etrace
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.etrace.encoder import encoder as etrace_encoder
from rvtrace_gdb.decode.etrace.encoder import options as etrace_encoder_options
from rvtrace_gdb.decode.etrace.options import Modes, Parameters
from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.history.history import History, RepeatPath
from rvtrace_gdb.decode.history.history import Path as HistoryPath
from rvtrace_gdb.decode.ntrace import decoder as ntrace
from rvtrace_gdb.decode.ntrace import options as ntrace_encoder_options
from rvtrace_gdb.decode.ntrace.encoder import encoder as ntrace_encoder
from rvtrace_gdb.decode.ntrace.messages import Evcode, Sync
from rvtrace_gdb.decode.ntrace.options import ImplicitReturn, Options
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import classify
from rvtrace_gdb.decode.stepping.decoder import StreamDecoder
from rvtrace_gdb.decode.stepping.hart import MEMO_LIMIT
from rvtrace_gdb.transport.simulated.hart.block import Accessed, HartBlock, Situation, TrapEntry
from rvtrace_gdb.transport.simulated.machine import build
from tests.helpers.cross_compiler import compile_program

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
MARCH = "rv64imac_zicsr"
Items = list[Block | IngressTrap]


class Setting(NamedTuple):
    """One way to trace: what makes a message each, and what reads them; None: with the usual limit of the memo. The
    keyword `compiled` of *decoder* says whether with the kernel.
    """

    name: str
    encode: Callable[[Items], list[bytes]]
    decoder: Callable[..., StreamDecoder[Any]]


def ntrace_setting(name: str, encoder: dict[str, Any], **decoder: Any) -> Setting:
    """One of N-Trace; 512 messages from synchronization to synchronization."""
    options = ntrace_encoder_options.EncoderOptions(
        sync_mode=ntrace_encoder_options.InstSyncMode.MESSAGES, sync_max=8, **encoder
    )

    def encode(items: Items) -> list[bytes]:
        messages: list[bytes] = []
        made = ntrace_encoder.Encoder(options, messages.append)
        made.start(Sync.EXIT_FROM_DEBUG)
        for first in range(0, len(items), 1000):
            made.retire(items[first : first + 1000])
        made.stop(Evcode.DEBUG_MODE)
        return messages

    def decode(image: Image, limit: int | None, *, compiled: bool = True) -> StreamDecoder[Any]:
        memo = MEMO_LIMIT if limit is None else limit
        return ntrace.StreamDecoder(image, Options(**decoder), memo_limit=memo, split=False, compiled=compiled)

    return Setting(name, encode, decode)


def etrace_setting(name: str, parameters: dict[str, Any], **modes: bool) -> Setting:
    """One of E-Trace; 4096 packets from synchronization to synchronization."""
    encapsulation = Encapsulation("encap")
    options = etrace_encoder_options.EncoderOptions(
        parameters=Parameters(iaddress_width=64, ecause_width=5, **parameters),
        modes=Modes(**modes),
        sync_mode=etrace_encoder_options.ResyncMode.PACKETS,
        sync_max=8,
    )

    def encode(items: Items) -> list[bytes]:
        messages: list[bytes] = []
        frame = encapsulation.framer().packet
        made = etrace_encoder.Encoder(
            options,
            lambda payload: messages.append(frame(payload)),
            lambda payloads: messages.extend(map(frame, payloads)),
        )
        made.enable()
        made.start()
        for first in range(0, len(items), 1000):
            made.retire(items[first : first + 1000])
        made.stop()
        return messages

    def decode(image: Image, limit: int | None, *, compiled: bool = True) -> StreamDecoder[Any]:
        memo = MEMO_LIMIT if limit is None else limit
        return etrace.StreamDecoder(
            image, options.decoder, encapsulation, memo_limit=memo, split=False, compiled=compiled
        )

    return Setting(name, encode, decode)


_ALL: dict[str, Any] = {"implicit_return": ImplicitReturn.FULL_STACK, "sequential_jump": True}
_STACK: dict[str, Any] = {"return_stack_size": 5, "iret_ext": True}

SETTINGS = (
    ntrace_setting("HTM", {}),
    ntrace_setting("HTM, all on", {**_ALL, "repeated_history": True}, **_ALL),
    ntrace_setting("HTM, times", {"timestamps": True}, timestamps=True),
    ntrace_setting("BTM", {"btm": True}, btm=True),
    etrace_setting("E-Trace", {}),
    etrace_setting("E-Trace, full addr", {}, full_address=True),
    etrace_setting("E-Trace, returns", _STACK, implicit_return=True, sijump=True),
    etrace_setting("E-Trace, cache", {"cache_size": 5}, jump_target_cache=True),
    etrace_setting("E-Trace, predictor", {"bpred_size": 7}, branch_prediction=True),
)


class Speed(NamedTuple):
    instructions: int
    seconds: float
    history: History


def main() -> None:
    head = ("cold", "warm", "no memo")
    print(f"{'':27}{'MB':>6}{'messages':>10}" + "".join(f"{name:>9}" for name in head) + "  Minstr/s")
    print(f"{'':43}" + f"{'cold: kmsg/s':>15}{'MB/s':>7}{'bytes/instr':>13}")
    with tempfile.TemporaryDirectory() as folder:
        for program in ("mixed", "random"):
            for setting, items, elf in encoded(Path(folder), program):
                measure(program, setting, items, elf)


def encoded(
    folder: Path, program: str, part: float = 1
) -> Iterator[tuple[Setting, list[Block | IngressTrap], Path]]:
    """What a program of `PROGRAMS` ran, for each setting: as many million instructions as the first argument says, or a
    *part* of these, a third of them of "random". The second argument: only settings with that in their names.
    """
    count = int(float(sys.argv[1]) * 1e6 * part) if len(sys.argv) > 1 else int(60_000_000 * part)
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    elf = compile_program(folder, PROGRAMS / f"{program}.c", march=MARCH, options=("-O2",))
    items = list(executed(elf, count if program == "mixed" else count // 3))
    for setting in SETTINGS:
        if wanted in setting.name:
            yield setting, items, elf


def histories(program: str = "mixed", part: float = 1) -> Iterator[tuple[str, History, Image]]:
    """(name of the setting, history, program) of what `encoded` gives."""
    with tempfile.TemporaryDirectory() as folder:
        for setting, items, elf in encoded(Path(folder), program, part):
            image = Image.from_elf(elf)
            decoder = setting.decoder(image, None)
            decoder.feed(b"".join(setting.encode(items)))
            yield setting.name, decoder.finish_one(), image


def cpu_seconds(work: Callable[[], object]) -> float:
    """Of one call."""
    begin = process_time()
    work()
    return process_time() - begin


def measure(program: str, setting: Setting, items: list[Block | IngressTrap], elf: Path) -> None:
    """One line for the three ways, one for what the cold one means."""
    messages = setting.encode(items)
    data = b"".join(messages)
    image = Image.from_elf(elf)
    cold, warm = twice(data, image, setting)
    plain = without_memo(data[: len(data) // 16], Image.from_elf(elf), setting)
    rates = "".join(f"{speed.instructions / speed.seconds / 1e6:9.1f}" for speed in (cold, warm, plain))
    print(f"{program + ', ' + setting.name:27}{len(data) / 1e6:6.2f}{len(messages):10}{rates}")
    kilo, mega = len(messages) / cold.seconds / 1e3, len(data) / cold.seconds / 1e6
    print(f"{'':43}{kilo:15.0f}{mega:7.2f}{held(cold.history) / cold.instructions:13.3f}", flush=True)


def twice(data: bytes, image: Image, setting: Setting) -> tuple[Speed, Speed]:
    """A decoder that knows nothing, and the same again when it knows what it saw."""
    decoder = setting.decoder(image, None)
    seconds = [timed(decoder.feed, data) for _ in range(2)]
    single = setting.decoder(image, None)
    single.feed(data)
    history = single.finish_one()
    cold, warm = (Speed(history.instructions, spent, history) for spent in seconds)
    return cold, warm


def without_memo(data: bytes, image: Image, setting: Setting) -> Speed:
    """Every message is worked out."""
    decoder = setting.decoder(image, 0)
    seconds = timed(decoder.feed, data)
    history = decoder.finish_one()
    return Speed(history.instructions, seconds, history)


def timed(work: Callable[[bytes], None], data: bytes) -> float:
    """CPU seconds."""
    begin = process_time()
    work(data)
    return process_time() - begin


def executed(elf: Path, count: int) -> Iterator[Block | IngressTrap]:
    """What the simulated hart retires, at least *count* instructions."""
    machine = build(elf)
    hart = machine.hart
    known: dict[HartBlock, Block] = {}
    hart.retired = []
    while hart.instret < count:
        machine.run_slice(100_000)
        for item in hart.retired:
            if isinstance(item, TrapEntry):
                yield IngressTrap(item.epc, item.interrupt, item.cause, item.tval, item.handler)
            elif isinstance(item, HartBlock):
                whole = known.get(item)
                if whole is None:
                    whole = known[item] = _block(item, hart.xlen)
                yield whole
            elif not isinstance(item, Situation | Accessed):  # the hart was interrupted in the middle of a block
                block, count = item
                yield Block(block.pc, _block(block, hart.xlen).lengths[:count])
        hart.retired.clear()


def _block(block: HartBlock, xlen: int) -> Block:
    return Block.from_instructions(block.pc, [classify(word, xlen) for word in block.words], xlen)


def held(history: History) -> int:
    """Bytes of memory a history takes: what it refers to, each thing once."""
    seen: set[int] = set()
    waiting: list[object] = [history._entries, history._index, history.times._positions, history.times._times]
    total = 0
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        total += sys.getsizeof(thing)
        if isinstance(thing, HistoryPath):
            waiting.append(thing.parts)
        elif isinstance(thing, RepeatPath):
            waiting.append(thing.path)
        elif isinstance(thing, list) or (isinstance(thing, tuple) and thing and not isinstance(thing[0], int)):
            waiting.extend(thing)
    return total


if __name__ == "__main__":
    main()
