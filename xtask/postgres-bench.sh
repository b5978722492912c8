#!/bin/sh
# What capture costs a client of PostgreSQL, and how fast rows go back. Starts a server of its own and stops it.
#
#     xtask/postgres-bench.sh BACKOUT        # the program, best from a release build
#
# Runs with and without capture take turns, since the machine has moods. Compare the ratio, not the milliseconds.
set -eu
backout=$1
programs=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
place=$(mktemp -d)
as() { if [ "$(id -u)" = 0 ]; then setpriv --reuid nobody --regid nogroup --clear-groups "$@"; else "$@"; fi; }
[ "$(id -u)" != 0 ] || chown nobody "$place"
cd /
as "$programs/initdb" -D "$place/data" -U postgres -A trust >/dev/null
as "$programs/pg_ctl" -D "$place/data" -w -l "$place/log" -o "-k $place -c listen_addresses=" start >/dev/null
trap 'as "$programs/pg_ctl" -D "$place/data" -m immediate stop >/dev/null; rm -rf "$place"' EXIT
export PGHOST="$place" PGUSER=postgres BACKOUT_STATE_DIR="$place/../$(basename "$place")-state"
mkdir -m 700 "$BACKOUT_STATE_DIR"
for name in bench_off bench_on; do
    psql -q -d postgres -c "CREATE DATABASE $name"
    "$programs/pgbench" -q -i -s 5 "$name" 2>/dev/null
done
"$backout" db enroll "postgres://postgres@/bench_on?host=$place" --name bench
for round in 1 2 3 4; do
    for name in bench_off bench_on; do
        printf 'TPC-B, capture %s: ' "$name"
        "$programs/pgbench" -n -c 1 -T 5 "$name" 2>/dev/null | grep 'latency average'
    done
done
psql -q -d bench_on -c "TRUNCATE backout.log, backout.transaction"
"$backout" sql --db bench "UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid <= 100000"
id=$("$backout" --json log -n 1 | sed 's/.*"operations":\[{"id":"\([0-9a-f]*\)".*/\1/')
begin=$(date +%s%N)
"$backout" undo "$id"
end=$(date +%s%N)
echo "undo of 100000 rows: $(( (end - begin) / 1000000 )) ms, $(( 100000 * 1000000000 / (end - begin) )) rows/s"
rm -rf "$BACKOUT_STATE_DIR"
