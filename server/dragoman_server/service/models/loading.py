"""From bundles on disk to models that are ready: read, verified, warmed up."""

import asyncio
import logging
import time
from dataclasses import replace
from pathlib import Path

from dragoman_server.bundle.reading import read_bundle
from dragoman_server.errors import BundleError, ServerError
from dragoman_server.service.dispatch import Dispatcher
from dragoman_server.service.models.choice import Models
from dragoman_server.service.models.directions import Directions
from dragoman_server.service.models.served import ServedModel
from dragoman_server.service.settings import ServerSettings
from dragoman_server.service.telemetry.metrics import Metrics
from dragoman_server.text.detection import warm_up
from dragoman_server.text.faults import examiner_for
from dragoman_server.text.languages import parse
from dragoman_server.text.masks import MaskSet
from dragoman_server.text.plan import Planner
from dragoman_server.text.vocabulary_file import load_vocabularies

log = logging.getLogger("dragoman.server")


def load_models(
    settings: ServerSettings, models: Models, metrics: Metrics, loop: asyncio.AbstractEventLoop
) -> None:
    """Load all bundles into ``models``, and start their engines, which report to the event loop.

    Takes seconds, so it is not to be called on that loop.
    """
    names: set[str] = set()
    for path in settings.bundles:
        try:
            model = _load(path, settings, metrics)
        except BundleError as error:
            if not settings.skip_refused:
                raise
            # Where it is, is for whoever runs the server, and not for the log.
            reason = str(error).replace(str(path), path.name)
            log.error("a bundle was refused: %s", reason, extra={"facts": {"bundle": path.name}})
            models.refuse(path.name)
            continue
        if model.name in names:
            raise ServerError(f"{path}: another bundle has the name {model.name!r} too")
        names.add(model.name)
        began = time.monotonic()
        model.dispatcher.start(loop, metrics.observer(model.name))
        models.add(model)
        metrics.add_model(model.name, model.dispatcher.engine)
        log.info("%s is warm", model.name, extra={"facts": {"seconds": _since(began)}})
    if not names:
        raise ServerError("no bundle could be loaded")
    if len({name for model in models for name in model.directions.source_languages}) > 1:
        warm_up()  # there is something to detect


def _load(path: Path, settings: ServerSettings, metrics: Metrics) -> ServedModel:
    began = time.monotonic()
    bundle = read_bundle(path)
    manifest = bundle.manifest
    for tag in (
        *(manifest.source_language, manifest.target_language),
        *(*manifest.source_languages, *manifest.target_languages),
    ):
        try:
            parse(tag)
        except ValueError:
            raise BundleError(f"{path}: {tag!r} is not a language tag") from None
    source, target = load_vocabularies(bundle)
    limits = settings.limits
    engine_settings = replace(
        settings.engine,
        # By tokens alone: what is within the limit of a request must not be refused for ever.
        max_waiting_sentences=limits.max_waiting_tokens + limits.max_source_tokens,
        max_waiting_requests=limits.max_waiting_requests,
        max_waiting_tokens=limits.max_waiting_tokens,
    )
    dispatcher = Dispatcher(bundle, engine_settings)
    check = dispatcher.open()
    if check.alignments_depend:
        log.warning(
            "%s: on this CPU the last bits of an alignment depend on what else is in the batch; "
            "translations and scores do not",
            manifest.name,
        )
    log.info(
        "%s is loaded and verified",
        manifest.name,
        extra={"facts": {"golden_error": f"{check.golden_error:.1e}", "seconds": _since(began)}},
    )
    planner = Planner(
        source,
        manifest.source_language,
        manifest.max_source_tokens - 1,
        masks=MaskSet.placeholders(manifest.placeholders),
    )
    examiner = examiner_for(manifest.source_language, manifest.target_language)
    directions = Directions(manifest)
    return ServedModel(
        bundle,
        dispatcher,
        source,
        target,
        planner,
        examiner,
        directions,
        metrics.retries_of(manifest.name),
        metrics.warnings_of(manifest.name),
    )


def _since(began: float) -> float:
    return round(time.monotonic() - began, 2)
