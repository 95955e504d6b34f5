"""Why a value is what it is: the instructions that made it, and the branches that let them run."""
