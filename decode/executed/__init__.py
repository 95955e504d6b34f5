"""What a hart executed, in the form that an encoder takes, and the execution logs of other
simulators it is read from.
"""
