#!/bin/sh
# Ask the HTTP API what to inject for one message: turn.sh SESSION_KEY SENDER < message
# Start the server once with `dreamline serve http`. Needs curl and python3.
set -eu
home="${DREAMLINE_HOME:-$HOME/.dreamline}"
url="${DREAMLINE_URL:-http://127.0.0.1:8765}"
token="${DREAMLINE_HTTP_TOKEN:-$(cat "$home/http-token")}"
python3 -c 'import json, sys; json.dump({"message": sys.stdin.read()}, sys.stdout)' |
  curl --silent --show-error --fail-with-body --max-time 10 \
    --header "Authorization: Bearer $token" --header "Content-Type: application/json" \
    --header "X-Dreamline-Session: $1" --header "X-Dreamline-Sender: $2" \
    --data-binary @- "$url/v1/turn"
