"""What a command's exit code says."""

BAD_INPUT, INTERRUPTED = 2, 130
