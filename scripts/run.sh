#!/usr/bin/env bash
# What `make run` does: serve the default model on this machine, translate a little through the real
# client, and go on serving until Ctrl-C. Whatever fails, the server ends with this script.
set -euo pipefail
bin=$1 model=$2
listen=${DRAGOMAN_LISTEN:-127.0.0.1:${PORT:-50051}}

say() { printf '\n\033[1m$ dragoman %s\033[0m\n' "$*"; }
fail() { printf 'make run: %s\n' "$*" >&2; exit 2; }
is_taken() { (exec 3<>"/dev/tcp/${1%:*}/${1##*:}") 2>/dev/null; }

if is_taken "$listen"; then
  port=${listen##*:}
  fail "port $port is taken by another program; choose another one: make run PORT=$((port + 2))"
fi
if [[ -z ${DRAGOMAN_METRICS+set} ]] && is_taken 127.0.0.1:9464; then
  export DRAGOMAN_METRICS=127.0.0.1:0 # any that is free; the server says which
fi
if [[ -z ${DRAGOMAN_HTTP+set} ]] && is_taken 127.0.0.1:8080; then
  export DRAGOMAN_HTTP=127.0.0.1:0
fi
# The demonstration asks the server that is started here, in its own languages.
unset DRAGOMAN_ADDRESS DRAGOMAN_KEY DRAGOMAN_TLS DRAGOMAN_ROOT_CERTIFICATES \
  DRAGOMAN_MODEL DRAGOMAN_SOURCE_LANGUAGE DRAGOMAN_TARGET_LANGUAGE

say serve "$model"
server=''
pipe=$(mktemp -d)
trap 'rm -rf "$pipe"; if [[ $server ]]; then kill $server 2>/dev/null || true; wait $server || true; fi' EXIT
trap 'exit 0' INT TERM
mkfifo "$pipe/printed"
"$bin/dragoman" serve "$model" --listen "$listen" --log-level warning >"$pipe/printed" &
server=$!
exec 3<"$pipe/printed"

# Another server might answer at this address, so only what this one prints says that it is ready.
address='' page=''
while IFS= read -r -u 3 ${address:+-t 0.2} line; do
  printf '%s\n' "$line"
  if [[ $line =~ ^\ +gRPC\ +([^ ]+) ]]; then address=${BASH_REMATCH[1]}; fi
  if [[ $line =~ ^\ +page\ +([^ ]+) ]]; then page=${BASH_REMATCH[1]}; fi
done
if [[ -z $address ]]; then
  wait $server || { code=$?; server=''; exit $code; } # it has said why
fi
export DRAGOMAN_ADDRESS=$address

say 'translate "Good morning, how are you?" "The phone costs $1,250.50 and arrives on March 15."'
"$bin/dragoman" translate "Good morning, how are you?" 'The phone costs $1,250.50 and arrives on March 15.'

say 'translate "The server could not open the file because the disk is full."'
"$bin/dragoman" translate "The server could not open the file because the disk is full."

say 'translate --stream "I forgot my keys at the office, so I had to wait in the rain until my neighbour came home. Can you help me? Write to anna@example.com 😀"'
"$bin/dragoman" translate --stream "I forgot my keys at the office, so I had to wait in the rain until my neighbour came home. Can you help me? Write to anna@example.com 😀"

say 'score "Good morning." "Bom dia." "Boa noite."'
"$bin/dragoman" score "Good morning." "Bom dia." "Boa noite."

if [[ $page ]]; then printf '\nTo translate in a browser, open %s\n' "$page"; fi
printf '\nThe server goes on at %s until you press Ctrl-C. In another terminal, in this directory:\n\n' "$address"
printf '  . %s/activate\n' "$bin"
if [[ $address != 127.0.0.1:50051 ]]; then printf '  export DRAGOMAN_ADDRESS=%s\n' "$address"; fi
cat <<'EOF'
  dragoman translate "How much does this shirt cost?"
  echo "Thank you for everything." | dragoman translate
  python examples/sync.py
EOF
if [[ $page ]]; then printf '  curl %stranslate -d q="Good night." -d source=en -d target=pt\n' "$page"; fi
printf '\n'
wait $server
