"""A real Linux, booted in QEMU: the kernel of Debian 13 (scripts/setup-linux), and the processes in guest/."""
