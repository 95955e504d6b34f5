"""A trace of what QEMU ran: from the recorder's ring through the software encoders to what every trace is."""
