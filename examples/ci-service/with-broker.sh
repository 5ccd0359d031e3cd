#!/bin/sh
# Runs a command beside a broker: with-broker.sh COMMAND [ARGUMENT ...]. Its address is in KAFKA_BOOTSTRAP_SERVERS.
set -eu

[ $# -gt 0 ] || { echo "usage: $0 COMMAND [ARGUMENT ...]" >&2; exit 2; }
directory=$(mktemp -d)
port=${PORT:-$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')}
export KAFKA_BOOTSTRAP_SERVERS="127.0.0.1:$port"

# shellcheck disable=SC2086 # options are words
groupkeeper broker --port "$port" --data "$directory/data" ${BROKER_OPTIONS:-} > "$directory/log" 2>&1 &
broker=$!
trap 'kill $broker 2> /dev/null || true; wait $broker 2> /dev/null || true; rm -rf "$directory"' EXIT
trap 'exit 130' INT TERM

# Until it answers, or has ended.
until groupkeeper groups list --bootstrap-server "$KAFKA_BOOTSTRAP_SERVERS" --timeout 500ms > /dev/null 2>&1; do
    kill -0 $broker 2> /dev/null || { cat "$directory/log" >&2; exit 1; }
done
status=0
"$@" || status=$?
exit $status
