"""What a part of a history adds to a call tree, found once, whatever the stacks are."""
