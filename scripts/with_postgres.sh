#!/usr/bin/env bash
# Runs a command with a private PostgreSQL server on loopback, whose URL is in BARA_TEST_POSTGRES and whose folder is in
# BARA_TEST_POSTGRES_DATA (with pg_ctl's own path in BARA_TEST_PG_CTL). Installs the server where it is missing.
set -euo pipefail

find_bin() { ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1; }

bin=$(find_bin || true)
if [ -z "$bin" ]; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq postgresql >/dev/null
    bin=$(find_bin)
fi

home=$(mktemp -d /tmp/bara-postgres.XXXXXX)
data=$home/data
as() { "$@"; }
if [ "$(id -u)" = 0 ]; then # a server refuses to be root
    chown postgres "$home"
    as() { runuser -u postgres -- "$@"; }
fi
stop() {
    as "$bin/pg_ctl" -D "$data" -m immediate -w stop >/dev/null 2>&1 || true # by the pid in its own folder
    rm -rf "$home"
}
trap stop EXIT

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cd "$home"
as "$bin/initdb" -D "$data" -U bara -A trust -E UTF8 --no-sync >/dev/null
echo "listen_addresses = '127.0.0.1'
port = $port
unix_socket_directories = '$home'" | as tee -a "$data/postgresql.conf" >/dev/null
as "$bin/pg_ctl" -D "$data" -l "$home/log" -w start >/dev/null
cd "$OLDPWD"

export BARA_TEST_POSTGRES="postgresql+psycopg://bara@127.0.0.1:$port/postgres"
export BARA_LEDGER_HOSTS="127.0.0.1:$port" # what a run's folder may send readers to
export BARA_TEST_POSTGRES_DATA=$data
export BARA_TEST_PG_CTL=$bin/pg_ctl
"$@"
