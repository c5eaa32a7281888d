"""Many calls at once from one event loop: the server decodes them in one batch.

python examples/asynchronous.py [HOST:PORT]
"""

import asyncio
import sys

from dragoman_client import AsyncClient

SENTENCES = ["Good morning.", "How are you?", "Where is the station?", "I am tired.", "Thank you."]


async def main() -> None:
    async with AsyncClient(*sys.argv[1:]) as client:
        calls = [
            client.translate(text, source_language="en", target_language="pt") for text in SENTENCES
        ]
        for text, translation in zip(SENTENCES, await asyncio.gather(*calls), strict=True):
            print(f"{text}  →  {translation.text}")


asyncio.run(main())
