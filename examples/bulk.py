"""Any number of texts, in order, with bounded memory; one that fails does not stop the others.

python examples/bulk.py [HOST:PORT] < lines.txt
"""

import sys

from dragoman_client import CallError, Client

with Client(*sys.argv[1:]) as client:
    lines = (line.rstrip("\n") for line in sys.stdin)
    for result in client.translate_many(lines, source_language="en", target_language="pt"):
        print(f"failed: {result}" if isinstance(result, CallError) else result.text)
