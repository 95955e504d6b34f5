"""What the N-Trace and the E-Trace decoder share to step through a program."""
