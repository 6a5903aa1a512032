"""All commands, and whether a line of a shell would be one of them: its options are read, and nothing is run."""

import shlex

from typer.main import get_command

from interp.cli import app


def commands(command=None, path=()):
    """The commands by what one types, such as ``model info``."""
    command = command or get_command(app)
    if not hasattr(command, "commands"):
        return {" ".join(path): command}
    inner = [commands(each, (*path, name)) for name, each in command.commands.items()]
    return {name: each for found in inner for name, each in found.items()}


def parsed(line):
    """The command that a line gives, and the values of its options; what cannot be read raises."""
    program, *arguments = shlex.split(line, comments=True)
    assert program == "interp"
    command, path = get_command(app), []
    context = command.make_context("interp", arguments)
    while hasattr(command, "commands"):
        name, command, arguments = command.resolve_command(context, [*context._protected_args, *context.args])
        path.append(name)
        context = command.make_context(name, arguments, parent=context)
    return " ".join(path), context.params
