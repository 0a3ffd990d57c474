"""Files that outlive a process: archives, checkpoints and models."""
