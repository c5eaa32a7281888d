"""A run over documents: each is taken apart, translated, written aside and named."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer

from dragoman_cli.documents.arguments import Task, tasks
from dragoman_cli.documents.journal import Journal, Key, write_aside
from dragoman_cli.documents.segments import SegmentTranslator
from dragoman_cli.extras import how_to_install
from dragoman_cli.line_files import StoppedError, sha256
from dragoman_cli.progress import document_progress
from dragoman_client._client import Client
from dragoman_client._errors import CallError, ConfigurationError
from dragoman_documents import DocumentError, DocumentSettings, open_document
from dragoman_documents.exchange.bilingual import BilingualFile, write_bilingual
from dragoman_documents.exchange.tmx import read_memory

_HOW = "the same command with --resume goes on after them"


@dataclass(frozen=True, kw_only=True)
class DocumentOptions:
    """What a run over documents is to write, and where."""

    output: Path | None
    resume: bool
    overwrite: bool
    bilingual: Path | None
    memory: Path | None = None
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.bilingual is None:
            return
        if self.bilingual.suffix.lower() not in (".xlf", ".xliff", ".tmx"):
            raise ConfigurationError(f"{self.bilingual}: --bilingual writes .xlf or .tmx")
        if self.bilingual.exists() and not (self.overwrite or self.resume):
            raise ConfigurationError(f"{self.bilingual}: is there already; --overwrite replaces it")


@dataclass
class DocumentRun:
    """Documents on their way to their translations."""

    client: Client
    asked: dict[str, Any]
    """Arguments of the SDK's calls."""
    options: DocumentOptions
    failed: list[Path] = field(default_factory=list)
    """Documents that have no translation, or not a whole one."""
    _pairs: list[BilingualFile] = field(default_factory=list)

    def translate(self, sources: Sequence[Path]) -> bool:
        """Translate documents and folders of them; return whether all of each is translated."""
        source_language, language = self._languages()
        options = self.options
        found = tasks(
            sources, options.output, language, resume=options.resume, overwrite=options.overwrite
        )
        bilingual = options.bilingual
        if bilingual and any(bilingual.resolve() == t.output.resolve() for t in found):
            raise ConfigurationError(f"{bilingual}: --bilingual and --output are the same file")
        memory = self._memory(source_language, language)
        there = 0
        for task in found:
            if options.resume and task.output.exists() and not _journal(task.output).exists():
                there += 1
                continue
            try:
                self._document(task, language, memory)
            except DocumentError as error:
                if len(found) == 1:
                    raise
                self.failed.append(task.source)
                typer.echo(f"dragoman: {error}", err=True)
        if bilingual:
            kind = bilingual.suffix.lower().removeprefix(".")
            write_aside(bilingual, write_bilingual(kind, self._pairs, source_language, language))
        if there:
            typer.echo(f"{there:,} of {len(found):,} documents were there already", err=True)
        return not self.failed

    def _document(self, task: Task, language: str, memory: dict[Key, str]) -> None:
        settings = DocumentSettings(columns=self.options.columns)
        try:
            document = open_document(task.source, settings=settings)
        except ModuleNotFoundError as error:
            how = how_to_install("documents")
            raise ConfigurationError(f"{task.source} needs {error.name}: {how}") from None
        digest = sha256(task.source)
        made_from = {
            "source": digest,
            "asked": repr(self.asked),
            "columns": repr(settings.columns),
            "memory": repr(self.options.memory and sha256(self.options.memory)),
        }
        if self.options.output is not None:
            task.output.parent.mkdir(parents=True, exist_ok=True)
        translator = SegmentTranslator(self.client, self.asked)
        journal = Journal(
            task.output,
            made_from,
            resume=self.options.resume,
            overwrite=self.options.overwrite,
        )
        with journal, _going_on(journal, task):
            journal.done.update(memory)
            texts = len({(each.text, each.has_tags) for each in document.segments})
            with document_progress(task.source.name, texts) as watch:
                translations = translator.translate(document, journal, watch)
            try:
                write_aside(task.output, document.write(translations, language))
            except DocumentError as error:
                raise DocumentError(f"{task.source}: {error}") from None
            journal.finish()
        pairs = [(each, translations.get(each.id)) for each in document.segments]
        name, form = str(task.source), document.format
        self._pairs.append(BilingualFile(name=name, format=form, pairs=pairs))
        if translator.errors:
            self.failed.append(task.source)
        self._say(task, document.left, len(document.segments), translator)

    def _memory(self, source: str, target: str) -> dict[Key, str]:
        """Return what is known already, as the journal of a document has it."""
        path = self.options.memory
        if path is None:
            return {}
        try:
            found = read_memory(path.read_bytes(), source, target)
        except DocumentError as error:
            raise DocumentError(f"{path}: {error}") from None
        return {(text, False): translation for text, translation in found.items()}

    def _say(
        self, task: Task, left: dict[str, int], segments: int, translator: SegmentTranslator
    ) -> None:
        """Say what was written, and what of the document was left as it is."""
        typer.echo(f"{task.output}: {segments:,} segments", err=True)
        notes = [f"{count:,} × {what}" for what, count in left.items()]
        if notes:
            typer.echo(f"  left as they are: {'; '.join(notes)}", err=True)
        if translator.in_pieces:
            typer.echo(
                f"  {translator.in_pieces:,} segments were translated piece by piece between tags",
                err=True,
            )
        for error, count in Counter(translator.errors).items():
            typer.echo(f"  not translated: {count:,} × {error}", err=True)

    def _languages(self) -> tuple[str, str]:
        """Return the languages of the run: those asked for, or the only ones of the server."""
        source, target = self.asked["source_language"], self.asked["target_language"]
        if source and target:
            return source, target
        name = self.asked["model"]
        models = [model for model in self.client.models() if name in (None, model.name)]
        sources = {one for m in models for one in m.source_languages or (m.source_language,)}
        targets = {one for m in models for one in m.target_languages or (m.target_language,)}
        if target is None:
            if len(targets) != 1:
                raise ConfigurationError(
                    "the server translates to several languages: say which with --target-language"
                )
            target = next(iter(targets))
        return source or (next(iter(sources)) if len(sources) == 1 else "und"), target


def _journal(output: Path) -> Path:
    return output.with_name(f".{output.name}.journal")


@contextmanager
def _going_on(journal: Journal, task: Task) -> Iterator[None]:
    """Say how to go on where a run ends in the midst of a document."""
    try:
        yield
    except KeyboardInterrupt:
        if not journal.done:
            raise
        raise StoppedError(
            f"{task.source}: stopped after {len(journal.done):,} texts: {_HOW}"
        ) from None
    except CallError as error:
        if journal.done:
            error.message = f"{error.message}; {len(journal.done):,} texts are done: {_HOW}"
        raise
