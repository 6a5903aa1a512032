"""What a command's exit code says: the same of every command, as ``interp --help`` lists them."""

DONE, FAILED, BAD_INPUT, INTERRUPTED, CLOSED = 0, 1, 2, 130, 141

MEANINGS = {
    DONE: "done",
    FAILED: "a check failed: an audit, or one of `interp doctor`",
    BAD_INPUT: "bad input or usage: one line says what is wrong and what to do",
    INTERRUPTED: "interrupted: what is complete is kept, and the same command goes on",
    CLOSED: "the output was closed before its end, as by `| head`",
}
