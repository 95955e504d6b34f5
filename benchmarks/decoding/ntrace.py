"""How fast N-Trace is decoded and encoded. Run: python -m benchmarks.decoding.ntrace [MEGABYTES]

Decodes the reference encoder's streams, repeated to the given size (default 2 MB), with and without remembered steps in
one run; the ratio says more than the figures, which depend on the machine and on what else it does. Then encodes their
executions.
"""

import sys
from pathlib import Path
from time import process_time

from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap, blocks_from_pcs
from rvtrace_gdb.decode.ntrace.decoder import StreamDecoder
from rvtrace_gdb.decode.ntrace.encoder.encoder import Encoder
from rvtrace_gdb.decode.ntrace.messages import Evcode, Sync
from rvtrace_gdb.decode.ntrace.options import EncoderOptions, Options
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.stepping.hart import MEMO_LIMIT

REFERENCE = Path(__file__).resolve().parents[2] / "tests" / "data" / "ntrace-reference"
PROGRAMS = ("dhrystone", "qsort", "multiply", "mt-matmul", "rsort", "towers")


def main() -> None:
    size = int(float(sys.argv[1]) * 1e6) if len(sys.argv) > 1 else 2_000_000
    print(f"decoding, {size / 1e6:g} MB each (CPU time; Minstr/s, MB/s)")
    print(f"{'program':12}{'cold':>16}{'remembered':>16}{'not':>16}{'ratio':>7}{'bytes/instr':>13}")
    for program in PROGRAMS:
        image = Image.from_elf(REFERENCE / f"{program}.elf")
        once = (REFERENCE / f"{program}.1.nex").read_bytes()
        data = once * max(1, size // len(once))
        cold, remembered, plain = measure(once, image), measure(data, image), measure(data[: len(data) // 8], image, 0)
        ratio = remembered[0] / plain[0]
        cells = "".join(f"{minstr:9.1f}{mbytes:7.2f}" for minstr, mbytes in (cold, remembered, plain))
        print(f"{program:12}{cells}{ratio:7.1f}{len(once) / instructions(once, image):13.3f}")
    print("encoding (CPU time)")
    for program in PROGRAMS:
        items = executed(program)
        spent, messages = encode(items)
        print(f"{program:12}{spent / len(items) * 1e6:8.3f} us/block {len(items) / messages:7.1f} blocks/message")
    print(f"reading a history: {reading():.1f} M addresses/s")


def reading() -> float:
    """Million addresses per second, as a listing of everything reads them."""
    image = Image.from_elf(REFERENCE / "qsort.elf")
    decoder = StreamDecoder(image, Options(), split=False)
    decoder.feed((REFERENCE / "qsort.1.nex").read_bytes() * 20)
    history = decoder.finish_one()
    begin = process_time()
    count = sum(1 for _ in history.pcs())
    return count / (process_time() - begin) / 1e6


def measure(data: bytes, image: Image, memo_limit: int = MEMO_LIMIT) -> tuple[float, float]:
    """Million instructions and megabytes per second."""
    decoder = StreamDecoder(image, Options(), memo_limit=memo_limit, split=False)
    begin = process_time()
    decoder.feed(data)
    history = decoder.finish_one()
    spent = process_time() - begin
    return history.instructions / spent / 1e6, len(data) / spent / 1e6


def instructions(data: bytes, image: Image) -> int:
    decoder = StreamDecoder(image, Options(), split=False)
    decoder.feed(data)
    return decoder.finish_one().instructions


def executed(program: str) -> list[Block | IngressTrap]:
    image = Image.from_elf(REFERENCE / f"{program}.elf")
    decoder = StreamDecoder(image, Options(), split=False)
    decoder.feed((REFERENCE / f"{program}.1.nex").read_bytes())
    return list(blocks_from_pcs(decoder.finish_one().pcs(), image))


def encode(items: list[Block | IngressTrap]) -> tuple[float, int]:
    """CPU seconds, and messages sent."""
    sent: list[bytes] = []
    encoder = Encoder(EncoderOptions(), sent.append)
    encoder.start(Sync.EXIT_FROM_DEBUG)
    begin = process_time()
    for first in range(0, len(items), 1000):
        encoder.retire(items[first : first + 1000])
    encoder.stop(Evcode.DEBUG_MODE)
    return process_time() - begin, len(sent)


if __name__ == "__main__":
    main()
