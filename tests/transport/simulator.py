"""Child process of `live`: serves a simulated machine until terminated. Arguments: program, path of the socket."""

import signal
import sys

from transport.simulated.machine import build
from transport.simulated.server import Server, listen_unix


def main(program: str, path: str) -> None:
    with listen_unix(path) as listener:
        server = Server(build(program), listener)
        signal.signal(signal.SIGTERM, lambda number, frame: server.stop())
        server.serve()


if __name__ == "__main__":
    main(*sys.argv[1:])
