"""What a command's exit code says."""

OUR_FAULT, BAD_INPUT, INTERRUPTED = 1, 2, 130
