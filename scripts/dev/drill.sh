# Sourced after checkout.sh, process.sh, port.sh, state.sh, postgres.sh and services.sh. What scripts/drill, scripts/failover and scripts/replicas have in common: servers of
# PostgreSQL that are killed with their data, callers and receivers, and what the database holds in the end. All of it is in $FOLDER.

readonly DRILL=$CHECKOUT/testing/drill
readonly DRILL_PORT_SLOT=15

PORT= # of the server that sql asks
traffic_pid=

make_drill_folder() {
    FOLDER=$(mktemp -d "/var/tmp/postrider-$1.XXXXXX")
    chmod 0755 -- "$FOLDER"
    mkdir -m 0755 -- "$FOLDER/books"
}

remove_drill_folder() {
    if [[ ${KEEP:-} == yes ]]; then
        say "kept: $FOLDER"
    else
        rm -rf -- "$FOLDER"
    fi
}

# --- servers of PostgreSQL, each in a folder of its name

data() { printf '%s\n' "$FOLDER/$1/data"; }

# make_server_folder NAME: for its data and whatever else its user writes. Sets PORT.
make_server_folder() {
    mkdir -m 0700 -- "$FOLDER/$1"
    ((EUID != 0)) || chown postgres:postgres -- "$FOLDER/$1"
    PORT=$(assign_port "$FOLDER/$1.port" "$DRILL_PORT_SLOT")
}

# make_server NAME: an empty database that takes writes; standard input is added to its configuration. Sets PORT.
make_server() {
    make_server_folder "$1"
    # For the length of a drill, on the loopback interface alone.
    as_postgres "$(postgres_bin)/initdb" --pgdata="$(data "$1")" --username=postrider --auth=trust --encoding=UTF8 --locale=C >"$FOLDER/initdb.log"
    {
        cat <<CONFIG
listen_addresses = '127.0.0.1'
port = $PORT
unix_socket_directories = ''
max_connections = 200
timezone = 'UTC'
CONFIG
        cat
    } | configure_server "$1"
    start_server "$1"
    sql postgres "CREATE DATABASE postrider" >/dev/null
}

# configure_server NAME: adds standard input, which holds against what stands before it.
configure_server() { as_postgres tee -a -- "$(data "$1")/postgresql.conf" >/dev/null; }

# start_server NAME [CONDITION]: until the condition holds, which is that it takes writes.
start_server() {
    local name=$1 condition=${2:-server_is_writable} data command
    data=$(data "$name")
    command=("$(postgres_bin)/postgres" -D "$data")
    if ((EUID == 0)); then
        command=(setpriv --reuid=postgres --regid=postgres --init-groups -- "${command[@]}")
    fi
    start_detached "$FOLDER/$name.pid" "$FOLDER/$name.log" / "${command[@]}"
    disown "$!" # so that the shell says nothing about one that is killed
    wait_until 120 "$condition" || {
        show_log_tail "$FOLDER/$name.log"
        die "the database did not start"
    }
}

server_is_writable() { [[ $(sql postgres "SELECT pg_is_in_recovery()" 2>/dev/null) == f ]]; }

# base_backup FOLDER ARGUMENT...: of the server that sql asks.
base_backup() {
    as_postgres "$(postgres_bin)/pg_basebackup" --pgdata="$1" --checkpoint=fast --wal-method=stream "${@:2}" \
        --dbname="postgres://postrider@127.0.0.1:$PORT/postgres"
}

# sql DATABASE STATEMENT: rows with tabs between columns.
sql() {
    "$(postgres_bin)/psql" --no-psqlrc --quiet --tuples-only --no-align --field-separator=$'\t' --set=ON_ERROR_STOP=1 \
        --command="$2" -- "postgres://postrider@127.0.0.1:$PORT/$1"
}

kill_server() {
    local data pid
    data=$(data "$1")
    if pid=$(owned_pid "$FOLDER/$1.pid" "$data" postgres); then
        kill -s KILL -- "$pid"
        wait_until 30 no_process_in "$data" || die "processes of the database still run"
    fi
}

# --- what the database holds

readonly UNITS="SELECT 'push' AS lane, push_key AS name, '' AS path, status, id FROM push_notifications
    UNION ALL SELECT 'reseller', e.event_id, regexp_replace(s.url, '^https?://[^/]*', ''), n.status, n.id
    FROM notifications n JOIN events e ON e.id = n.event JOIN subscriptions s ON s.id = n.subscription_id"

write_units() { sql postrider "SELECT lane, name, path, status FROM ($UNITS) AS u ORDER BY 1, 2, 3" >"$FOLDER/books/$1"; }

write_attempts() {
    sql postrider "SELECT u.lane, u.name, u.path, extract(epoch FROM a.started_at), a.ending FROM ($UNITS) AS u JOIN (
            SELECT push_notification_id AS id, started_at, CASE status WHEN 'OK' THEN 'OK' ELSE 'UNKNOWN' END AS ending FROM send_attempts
            WHERE status = 'OK' OR other_error_stack_trace LIKE '%may have been sent'
            UNION ALL SELECT notification_id, started_at, CASE status WHEN 'OK' THEN 'OK' ELSE 'UNKNOWN' END FROM delivery_attempts
            WHERE status = 'OK' OR fingerprint = 'delivery/lease-lost'
        ) AS a ON a.id = u.id" >"$FOLDER/books/attempts.tsv"
}

unfinished() {
    sql postrider "SELECT count(*) FROM ($UNITS) AS u
        WHERE status IN ('PENDING', 'IN_MEMORY', 'RETRY') OR status = 'SCHEDULED' AND name NOT LIKE 'later-%'"
}

nothing_is_unfinished() { [[ $(unfinished) == 0 ]]; }

await_the_end() { wait_until 300 nothing_is_unfinished || die "$(unfinished) have not ended"; }

# --- callers and receivers

# choose_retries: what fails waits long enough to meet the loss, and not for long.
choose_retries() {
    export POSTRIDER__PUSH__RETRY__DELAY_IN_SECONDS=15 POSTRIDER__PUSH__RETRY__MAX_ATTEMPTS=100
    export POSTRIDER__RESELLER__RETRY__INITIAL_DELAY_IN_SECONDS=15 POSTRIDER__RESELLER__RETRY__MAX_DELAY_IN_SECONDS=20
    export POSTRIDER__RESELLER__RETRY__MAX_RETRIES=50
}

# start_traffic PREFIX PER_SECOND: so many pushes and so many events.
start_traffic() {
    python3 -B "$DRILL/traffic.py" send "$FOLDER/books/accepted.jsonl" "$1" "$2" &
    traffic_pid=$!
}

stop_traffic() {
    [[ -n $traffic_pid ]] || return 0
    kill -s TERM -- "$traffic_pid" 2>/dev/null || true
    wait "$traffic_pid" || die "the callers failed"
    traffic_pid=
}

abandon_traffic() { [[ -z $traffic_pid ]] || kill -s KILL -- "$traffic_pid" 2>/dev/null || true; }

# Three endpoints: one that is well, one that fails, and one that gets few a second, so that some wait in line.
subscribe() {
    local slow
    curl -fsS -X PUT "$RECEIVER_URL/_control" -d '{"rules": [{"match": {"path": "/failing", "type": "contact.deleted"}, "status": 503}]}' >/dev/null
    curl -fsS -X PUT "$SWRVE_SIM_URL/script" -d '[{"match": {"user": {"prefix": "failing-"}}, "status": 503}]' >/dev/null
    "$POSTRIDER" subscriptions create --url "$RECEIVER_URL/well" --event-types '*' --email ops@reseller.example --wait -o name >"$FOLDER/well"
    "$POSTRIDER" subscriptions create --url "$RECEIVER_URL/failing" --event-types contact.deleted --email ops@reseller.example --wait -o name >"$FOLDER/failing"
    "$POSTRIDER" subscriptions create --url "$RECEIVER_URL/slow" --event-types domain.created --email ops@reseller.example --wait -o name >"$FOLDER/slow"
    slow=$(<"$FOLDER/slow")
    "$POSTRIDER" quotas set "$slow" --requests-per-second 1 >&2
}

heal_receivers() {
    curl -fsS -X PUT "$RECEIVER_URL/_control" -d '{"rules": []}' >/dev/null
    curl -fsS -X DELETE "$SWRVE_SIM_URL/script" >/dev/null
    "$POSTRIDER" quotas set "$(<"$FOLDER/slow")" --requests-per-second 100 >&2
}
