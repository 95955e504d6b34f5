"""RISC-V debug modules over USB, without OpenOCD: USB devices, JTAG adapters, the DMI, harts and memory."""
