"""The methods of the session protocol for what goes on in gdb: its past, what still runs, the hardware, viewers."""
