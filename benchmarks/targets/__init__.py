"""Ways to a target, the simulated one, and the recorder in QEMU."""
