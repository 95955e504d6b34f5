"""QEMU as a target: starting it, and what it ran, from a plugin of ours or from its own log."""
