"""A sentence, several texts, and what else the server can say of them.

python examples/sync.py [HOST:PORT]
"""

import sys

from dragoman_client import Client, NotFoundError, Options

with Client(*sys.argv[1:]) as client:
    print(client.translate("Good morning.", source_language="en", target_language="pt").text)

    # Several texts in one call; each may be a paragraph. White space stays as it is.
    for translation in client.translate_batch(
        ["Where is the station?", "It is raining.\n\nWe stay at home."],
        source_language="en",
        target_language="pt",
    ):
        print(translation.text)

    # A beam finds better translations than greedy search, and alternatives.
    best = client.translate(
        "I'd like a cup of coffee, please.",
        source_language="en",
        target_language="pt",
        options=Options(beam_size=4, alternatives=3),
    )
    for alternative in best.alternatives:
        print(f"{alternative.score:7.3f}  {alternative.text}")

    for score in client.score([("Good morning.", "Bom dia."), ("Good morning.", "Boa noite.")]):
        print(f"{score.score:7.3f}")

    try:
        client.translate("Good morning.", source_language="en", target_language="xx")
    except NotFoundError as error:
        print(f"{error} ({error.reason}, request {error.request_id})")
