"""What a hart executed, as an encoder takes it, and the execution logs of other simulators that say it."""
