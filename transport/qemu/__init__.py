"""QEMU as a target: starting it, and reading what it ran, from our plugin (plugin/) or from its own log."""
