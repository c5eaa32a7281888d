#!/usr/bin/env bash
# What `make run` does: serve the default model on this machine, translate a little through the real
# client, and go on serving until Ctrl-C.
set -euo pipefail
bin=$1 model=$2
listen=${DRAGOMAN_LISTEN:-127.0.0.1:50051}
export DRAGOMAN_ADDRESS=${DRAGOMAN_ADDRESS:-$listen}

say() { printf '\n\033[1m$ dragoman %s\033[0m\n' "$*"; }

say serve "$model"
"$bin/dragoman" serve "$model" --log-level warning &
server=$!
trap 'kill -TERM $server 2>/dev/null || true; wait $server || true' EXIT
trap 'exit 0' INT TERM
until "$bin/dragoman" health --timeout 1 >/dev/null 2>&1; do
  kill -0 $server 2>/dev/null || { wait $server; exit; }  # it has said why
  sleep 0.2
done

say 'translate "Good morning, how are you?" "We are going to the beach this weekend."'
"$bin/dragoman" translate "Good morning, how are you?" "We are going to the beach this weekend."

say 'translate --stream "I forgot my keys. Can you help me? Write to anna@example.com 😀"'
"$bin/dragoman" translate --stream "I forgot my keys. Can you help me? Write to anna@example.com 😀"

say 'score "Good morning." "Bom dia." "Boa noite."'
"$bin/dragoman" score "Good morning." "Bom dia." "Boa noite."

cat <<EOF

The server goes on at $listen until you press Ctrl-C. In another terminal:

  $bin/dragoman translate "How much does this shirt cost?"
  cat some-text.txt | $bin/dragoman translate
  $bin/python examples/sync.py
EOF
wait $server
