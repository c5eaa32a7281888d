"""A text that appears while it is translated.

python examples/streaming.py [HOST:PORT]
"""

import sys

from dragoman_client import Client

TEXT = """My sister lives in a small town near the sea. She has been learning Portuguese.

Could you speak a little more slowly? I don't understand what he wants."""

with Client(*sys.argv[1:]) as client:
    for piece in client.stream(TEXT, source_language="en", target_language="pt"):
        print(piece, end="", flush=True)
    print()
