"""RISC-V debug modules over USB, with no OpenOCD in between: USB devices, JTAG adapters, the DMI, harts and memory."""
