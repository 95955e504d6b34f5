"""The methods of the session protocol for questions with one answer: who wrote, how it ended, which tasks there are."""
