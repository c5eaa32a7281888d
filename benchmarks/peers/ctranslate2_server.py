"""CTranslate2 behind a plain gRPC server with a batching window.

It is what one would write in an afternoon to serve CTranslate2. Calls wait until a batch is full or
its window has passed; the calls of a batch are translated together and answered together. The
server speaks Dragoman's contract, so that the same client can put load on both.

    PYTHONPATH=benchmarks python -m peers.ctranslate2_server MODEL TOKENIZER [--window 0.01]
"""

import argparse
import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ctranslate2
import grpc
import sentencepiece

from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import (
    TranslationServiceServicer,
    add_TranslationServiceServicer_to_server,
)
from peers import ctranslate2_calls
from peers.ctranslate2_calls import decoding_options, ids_of, named

_QUEUE = 4096
"""Most texts that may wait for a batch; more are refused."""


class Batcher:
    """Collects calls, and hands them to CTranslate2's workers in batches."""

    def __init__(
        self, translator: ctranslate2.Translator, batch: int, window: float, options: dict[str, Any]
    ) -> None:
        self._translator = translator
        self._batch = batch
        self._window = window
        self._options = options
        self._waiting: asyncio.Queue[tuple[list[str], asyncio.Future[list[str]]]] = asyncio.Queue(
            _QUEUE
        )
        self._workers = ThreadPoolExecutor(translator.num_translators)
        self._free = asyncio.Semaphore(translator.num_translators)
        self._under_way: set[asyncio.Task[None]] = set()

    async def translate(self, tokens: list[str]) -> list[str]:
        answer: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()
        self._waiting.put_nowait((tokens, answer))
        return await answer

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._free.acquire()
            batch = [await self._waiting.get()]
            end = loop.time() + self._window
            while len(batch) < self._batch:
                try:
                    async with asyncio.timeout_at(end):
                        batch.append(await self._waiting.get())
                except TimeoutError:
                    break
            task = asyncio.create_task(self._one(batch))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def _one(self, batch: list[tuple[list[str], "asyncio.Future[list[str]]"]]) -> None:
        try:
            results = await asyncio.get_running_loop().run_in_executor(
                self._workers,
                lambda: self._translator.translate_batch(
                    [tokens for tokens, _ in batch], **self._options
                ),
            )
        finally:
            self._free.release()
        for (_, answer), result in zip(batch, results, strict=True):
            if not answer.done():  # whoever asked may have gone
                answer.set_result(result.hypotheses[0])


class Service(TranslationServiceServicer):
    """The call ``Translate`` of Dragoman's contract, and no other."""

    def __init__(self, batcher: Batcher, tokenizer: sentencepiece.SentencePieceProcessor) -> None:
        self._batcher = batcher
        self._tokenizer = tokenizer
        self._names = ctranslate2_calls.tokens(tokenizer.vocab_size())

    async def Translate(self, request: pb.TranslateRequest, context: Any) -> pb.TranslateResponse:
        try:
            made = await asyncio.gather(*(self._text(text) for text in request.texts))
        except asyncio.QueueFull:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "the queue is full")
        return pb.TranslateResponse(translations=made)

    async def _text(self, text: str) -> pb.Translation:
        ids = self._tokenizer.encode(text)
        found = ids_of(await self._batcher.translate(named(ids, self._names)))
        return pb.Translation(
            text=self._tokenizer.decode([token for token in found if token >= 0]),
            source_tokens=len(ids),
            target_tokens=len(found),
            segments=[pb.Segment()],
        )


async def serve(wanted: argparse.Namespace) -> None:
    translator = ctranslate2_calls.load(
        wanted.model, wanted.precision, wanted.workers, wanted.threads
    )
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=wanted.tokenizer)
    options = decoding_options(wanted.forced, wanted.beam)
    batcher = Batcher(translator, wanted.batch, wanted.window, options)
    server = grpc.aio.server()
    add_TranslationServiceServicer_to_server(Service(batcher, tokenizer), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(f"gRPC 127.0.0.1:{port}", flush=True)
    await batcher.run()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="directory of the CTranslate2 model")
    parser.add_argument("tokenizer", help="SentencePiece model of both languages")
    parser.add_argument(
        "--precision", default="int8", help="CTranslate2's compute type (default: %(default)s)"
    )
    parser.add_argument(
        "--workers",
        type=int,
        default=1,
        help="batches that are translated at a time (default: %(default)s)",
    )
    parser.add_argument(
        "--threads", type=int, default=2, help="threads of each worker (default: %(default)s)"
    )
    parser.add_argument(
        "--batch", type=int, default=32, help="most texts of a batch (default: %(default)s)"
    )
    parser.add_argument(
        "--window",
        type=float,
        default=0.01,
        help="seconds to wait for a batch to fill (default: %(default)s)",
    )
    parser.add_argument(
        "--beam", type=int, default=1, help="beam size; 1 is greedy search (default: %(default)s)"
    )
    parser.add_argument(
        "--forced",
        type=int,
        help="tokens that every translation is made to have (default: as the model chooses)",
    )
    wanted = parser.parse_args()
    try:
        asyncio.run(serve(wanted))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
