"""Ctrl-C for a gdb while its program runs: `python ctrl_c.py TCL_PORT GDB SECONDS`, GDB is a process.

First it waits until OpenOCD says that the hart runs, and then for so long. A gdb that is interrupted before would let
the program run afterwards, and nobody would stop it.
"""

import os
import signal
import socket
import sys
import time


def runs(openocd: socket.socket) -> bool:
    """By OpenOCD's Tcl server: a command and 0x1a there, the result and 0x1a back."""
    openocd.sendall(b"sim.cpu curstate\x1a")
    answer = b""
    while not answer.endswith(b"\x1a"):
        data = openocd.recv(4096)
        if not data:
            raise ConnectionError("OpenOCD closed the connection")
        answer += data
    return answer == b"running\x1a"


if __name__ == "__main__":
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60) as connection:
        while not runs(connection):
            time.sleep(0.005)
    time.sleep(float(sys.argv[3]))
    os.kill(int(sys.argv[2]), signal.SIGINT)
