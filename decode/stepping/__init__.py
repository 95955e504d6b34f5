"""What the N-Trace and the E-Trace decoder share when they step through a program."""
