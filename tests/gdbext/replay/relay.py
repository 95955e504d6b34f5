"""Standard input and output to a port of this machine: what a program at the other end of gdb's pipe is to gdb."""

import os
import select
import socket
import sys

with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as there:
    while True:
        ready, _, _ = select.select([0, there.fileno()], [], [])
        if 0 in ready:
            data = os.read(0, 4096)
            if not data:
                break
            there.sendall(data)
        if there.fileno() in ready:
            data = there.recv(4096)
            if not data:
                break
            os.write(1, data)
