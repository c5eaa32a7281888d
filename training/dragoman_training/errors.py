"""What can go wrong through no fault of the code; each message is one line for the user.

    TrainingError
    ├── RecipeError       a recipe that can't be used: unknown key, impossible value
    ├── CorpusError       parallel text that can't be read or leaves nothing to train on
    ├── CheckpointError   a checkpoint or run that is missing, damaged or does not fit
    ├── StorageError      the disk is full or does not let us write
    ├── DivergedError     the loss is no longer a number
    └── StoppedError      asked to stop by a signal; everything is saved

The ``dragoman`` command prints the message of an exception that carries an ``exit_code``, and
leaves with that code.
"""

import signal


class TrainingError(Exception):
    exit_code = 2


class RecipeError(TrainingError):
    pass


class CorpusError(TrainingError):
    pass


class CheckpointError(TrainingError):
    pass


class StorageError(TrainingError):
    exit_code = 1


class DivergedError(TrainingError):
    exit_code = 1


class StoppedError(TrainingError):
    """Leaves with the shell's code for the signal, so that a script does not go on to use an
    unfinished model."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number
        self.signal = signal.Signals(signal_number)
