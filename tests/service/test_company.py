"""A text's translation is the same alone and among those of sixteen clients, to the last bit."""

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationServiceStub
from support.service_running import PATIENCE, Running, few_rows, serving, settings_for

CLIENTS = 16
WHO = ("Tom", "My friend", "Nobody", "The doctor", "She")
DOES = ("reads a lot", "is tired", "swims", "can wait")
WHEN = ("today", "every day", "at home", "with me", "again")
TEXTS = [
    f"{who} {does} {when}{mark}" for who in WHO for does in DOES for when in WHEN for mark in ".!"
]
GREEDY, BEAM = pb.Options(), pb.Options(beam_size=4, alternatives=2)
COMPANY = [
    pb.Options(beam_size=8, length_penalty=0.0),
    pb.Options(sampling=pb.Sampling(temperature=2.0)),
    pb.Options(repetition_penalty=1.5, no_repeat_ngram_size=2, alignment=True),
    pb.Options(min_tokens=20, token_scores=True),
    pb.Options(max_tokens=3),
]

Send = Callable[[TranslationServiceStub], bytes]


def unary(text: str, options: pb.Options) -> Send:
    def send(stub: TranslationServiceStub) -> bytes:
        request = pb.TranslateRequest(texts=[text], options=options)
        (translation,) = stub.Translate(request, timeout=PATIENCE).translations
        return translation.SerializeToString(deterministic=True)

    return send


def streamed(text: str, options: pb.Options) -> Send:
    def send(stub: TranslationServiceStub) -> bytes:
        request = pb.TranslateStreamRequest(text=text, options=options)
        *deltas, last = stub.TranslateStream(request, timeout=PATIENCE)
        assert "".join(event.delta for event in deltas) == last.translation.text
        return last.translation.SerializeToString(deterministic=True)

    return send


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with serving(settings_for(engine=few_rows(24, lanes=2, max_beam=8))) as running:
        yield running


def test_two_hundred_texts_of_sixteen_clients_are_translated_as_if_each_were_alone(
    running: Running,
) -> None:
    """Texts, scores and spans; greedy and with a beam, in one go and as a stream."""
    assert len(set(TEXTS)) == 200
    alone = [unary(text, options)(running.stub) for options in (GREEDY, BEAM) for text in TEXTS]
    rng = random.Random(16)
    subjects: list[Send] = [
        (streamed if rng.random() < 0.25 else unary)(text, options)
        for options in (GREEDY, BEAM)
        for text in TEXTS
    ]
    others = [unary(rng.choice(TEXTS), rng.choice(COMPANY)) for _ in range(100)]
    shuffled = rng.sample(list(enumerate([*subjects, *others])), len(subjects) + len(others))
    found: dict[int, bytes] = {}

    def client(number: int) -> None:
        stub = TranslationServiceStub(running.connect())
        for place, send in shuffled[number::CLIENTS]:
            found[place] = send(stub)

    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(client, range(CLIENTS)))
    different = [place for place, expected in enumerate(alone) if found[place] != expected]
    assert different == []
    assert len(found) == len(shuffled)
    steps = "dragoman_step_rows_bucket"
    of_all, of_few = (
        running.metric(f'{steps}{{le="{le}",model="en-pt"}}') for le in ("+Inf", "8.0")
    )
    assert of_few < of_all, "they were not decoded together"


def test_a_text_among_others_of_its_request_is_translated_as_if_it_were_alone(
    running: Running,
) -> None:
    alone = [running.translate(text)[0] for text in TEXTS[::20]]
    assert running.translate(*TEXTS)[::20] == alone
