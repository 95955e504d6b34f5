"""What a program sends to the simulated target's UART, and to that of QEMU's `virt` board, which is where ours is; and
the cause of a fault whose handler cannot run.
"""

import subprocess
from pathlib import Path

from rvtrace_gdb.transport.simulated.hart.block import LostCause
from rvtrace_gdb.transport.simulated.machine import Machine, build
from tests.helpers.cross_compiler import compile_program

UART = r"""
#define UART ((volatile unsigned char *)0x10000000)
static void put(char c) { while (!(UART[5] & 0x20)); UART[0] = c; }
int main(void)
{
    UART[3] = 0x80; UART[0] = 1; UART[1] = 0; /* the divisor: not printed */
    UART[3] = 3; UART[7] = 'x';
    for (const char *s = "sent by the UART"; *s; s++) put(*s);
    put(UART[7]); put('0' + (UART[3] == 3)); put('0' + (UART[2] & 1)); put('\n');
    return 0;
}
"""
FAULT = "int main(void) { return *(volatile int *)0x40; }"
SENT = b"sent by the UARTx11\n"


def program(folder: Path, text: str) -> Machine:
    source = folder / "uart.c"
    source.write_text(text)
    return build(compile_program(folder, source))


def test_what_is_sent_is_printed(tmp_path: Path) -> None:
    machine, printed = program(tmp_path, UART), bytearray()
    machine.printed = printed.extend
    for _ in range(10):
        machine.run_slice(200)
    assert printed == SENT


def test_qemu_prints_the_same(tmp_path: Path) -> None:
    program(tmp_path, UART)
    command = ["qemu-system-riscv64", "-M", "virt", "-bios", "none", "-kernel", str(next(tmp_path.glob("*.elf")))]
    command += ["-display", "none", "-serial", "stdio", "-monitor", "none"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as qemu:
        assert qemu.stdout is not None
        try:
            assert qemu.stdout.readline().replace(b"\r", b"") == SENT
        finally:
            qemu.kill()


def test_the_first_cause_where_no_handler_can_run(tmp_path: Path) -> None:
    """mtvec is 0 after a reset, where nothing is: the second trap overwrites mcause, mepc and mtval."""
    machine = program(tmp_path, FAULT)
    lost: list[tuple[int, LostCause]] = []
    machine.lost_cause = lambda hart, cause: lost.append((hart, cause))
    for _ in range(10):
        machine.run_slice(100)
    assert [(hart, one.cause, one.tval, one.vector) for hart, one in lost] == [(0, 5, 0x40, 0)]
    assert machine.hart.csr.trap.mcause == 1 and machine.hart.csr.trap.mepc == 0, "what is left of it"
