"""The ``dragoman`` command: collects subcommands and reports their errors.

A subcommand is a function that another package offers as an entry point of the group
``dragoman.commands``. Its module must import cheaply and without its package's extra, so that
``dragoman --help`` always works; what it needs, it imports when it is called.
"""

import os
import sys
from importlib.metadata import EntryPoint, entry_points, version
from typing import Protocol, TypeGuard

from dragoman_cli.extras import how_to_install

GROUP = "dragoman.commands"
INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


class _UserError(Protocol):
    """An exception that carries an exit code has a message meant for the user."""

    exit_code: int


def _is_user_error(error: BaseException) -> TypeGuard[_UserError]:
    return isinstance(getattr(error, "exit_code", None), int)


def main() -> None:
    """Run the command line. Every expected failure is one line on standard error."""
    # Else gRPC says in its own words, beside ours, that a handshake failed. Read when it is loaded.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        import typer
    except ModuleNotFoundError:
        sys.exit(f"dragoman: the command needs an extra: {how_to_install('cli')}")

    from dragoman_cli.help import MAX_WIDTH, HelpCommand, HelpGroup

    commands = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    app = typer.Typer(
        name="dragoman",
        cls=HelpGroup,
        help="Train, serve and use translation models.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": MAX_WIDTH},
    )

    def show_version(wanted: bool) -> None:
        if wanted:
            typer.echo(f"dragoman {version('dragoman')}")
            raise typer.Exit

    @app.callback()
    def options(
        wants_version: bool = typer.Option(
            False, "--version", callback=show_version, is_eager=True, help="Print the version."
        ),
    ) -> None:
        pass

    for entry in commands:
        try:
            app.command(entry.name, cls=HelpCommand)(entry.load())
        except ImportError as error:
            # One package that is broken must not take the others with it.
            print(f"dragoman: no '{entry.name}': {error}", file=sys.stderr)
    try:
        code = app(prog_name="dragoman", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        _leave("", INTERRUPTED)
    except OSError as error:
        _leave(f"{error.filename or 'error'}: {error.strerror or error}", 1)
    except ModuleNotFoundError as error:
        _leave(_name_extra(error, commands), 2)
    except Exception as error:
        if not _is_user_error(error):
            raise
        if type(error).__name__ == "NoArgsIsHelpError":  # which typer does not export
            typer.echo(_help_of(error))
            _leave("", error.exit_code)
        _leave(_message(error), error.exit_code)
    else:
        _leave("", code if isinstance(code, int) else 0)


def _message(error: object) -> str:
    """In one line, with what to do next."""
    if not hasattr(error, "format_message"):
        return str(error)
    # Of typer: an option, argument or command that is wrong.
    message, context = str(error.format_message()), getattr(error, "ctx", None)
    if context is None:
        return message
    where = f"'{context.command_path} --help'"
    if getattr(error, "option_name", "").startswith("- "):  # an item of a list, not an option
        return f"a text that begins with a dash comes after '--'; see {where}"
    return (
        f"{message} See {where}" if message.endswith("?") else f"{message.rstrip('.')}; see {where}"
    )


def _help_of(error: object) -> str:
    """Return the help that was asked for by giving no arguments at all."""
    context = getattr(error, "ctx", None)
    return str(context.get_help()).rstrip("\n") if context is not None else ""


def _name_extra(error: ModuleNotFoundError, commands: list[EntryPoint]) -> str:
    """Which extra holds a missing module: that of the package whose command was called."""
    called = next((a for a in sys.argv[1:] if not a.startswith("-")), "")
    entry = next((entry for entry in commands if entry.name == called), None)
    missing = (error.name or "").partition(".")[0]
    if entry is None or missing.startswith("dragoman_"):
        raise error
    extra = entry.module.partition(".")[0].removeprefix("dragoman_")
    return f"'{called}' needs {missing}: {how_to_install(extra)}"


def _leave(message: str, exit_code: int) -> None:
    if message:  # of several processes, only one says what happened to all
        print(f"dragoman: {message}", file=sys.stderr)
    try:
        sys.stdout.flush()
    except (AttributeError, OSError):
        # Closed, or a disk that is full: what is left in the buffer would be tried again at the end
        # of the process, with a message of Python's.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        exit_code = exit_code or 1
    sys.exit(exit_code)
