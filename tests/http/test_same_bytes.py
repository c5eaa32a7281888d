"""The same text over gRPC and each HTTP API: the same translation, alone and under load."""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from support.http_client import events_of, post, post_form
from support.service_running import Running

WORDS = [
    "the",
    "a",
    "cat",
    "dog",
    "house",
    "rains",
    "slowly",
    "in",
    "on",
    "we",
    "buy",
    "old",
    "new",
]


def texts(count: int) -> list[str]:
    rng = random.Random(23)
    made = [" ".join(rng.choices(WORDS, k=rng.randint(1, 8))).capitalize() for _ in range(count)]
    odd = ["", " ", "1,250.50", "😀", "a@b.org\n\nHello.\t ", "<b>Hi</b> & bye", "É já.", "\u2028"]
    return odd + [f"{text}." for text in made]


def over_grpc(running: Running, text: str) -> str:
    return running.translate(text)[0].text


def over_v1(running: Running, text: str) -> str:
    return str(post(running, "/v1/translate", {"texts": [text]}).json["translations"][0]["text"])


def over_libretranslate(running: Running, text: str) -> str:
    fields = {"q": text, "source": "en", "target": "pt"}
    return str(post_form(running, "/translate", fields).json["translatedText"])


def over_deepl(running: Running, text: str) -> str:
    fields = {"text": [text], "source_lang": "EN", "target_lang": "PT-BR"}
    return str(post(running, "/v2/translate", fields).json["translations"][0]["text"])


WAYS: list[Callable[[Running, str], str]] = [
    over_grpc,
    over_v1,
    over_libretranslate,
    over_deepl,
]


def test_every_way_gives_the_same_bytes(running: Running) -> None:
    for text in texts(8):
        expected = over_grpc(running, text)
        assert [way(running, text) for way in WAYS[1:]] == [expected] * 3, text


def test_a_stream_ends_with_the_same_bytes(running: Running) -> None:
    for text in texts(4):
        request = {"text": text, "options": {"mend": False}}
        found = events_of(post(running, "/v1/stream", request).body)[-1][1]["translation"]
        plain = {"texts": [text], "options": {"mend": False}}
        (expected,) = post(running, "/v1/translate", plain).json["translations"]
        assert found == expected


def test_under_load_all_are_as_alone(running: Running) -> None:
    some = texts(192)
    alone = [over_grpc(running, text) for text in some]
    with ThreadPoolExecutor(16) as pool:
        ways = [WAYS[number % len(WAYS)] for number in range(len(some))]
        found = list(pool.map(lambda way, text: way(running, text), ways, some))
    assert found == alone
    running.wait_until_idle()
