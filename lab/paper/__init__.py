"""The experiments of the paper, and two it does not have: one command, resumable, side by side."""
