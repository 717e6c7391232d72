# Sourced after checkout.sh, process.sh, port.sh, state.sh and postgres.sh. Servers of PostgreSQL for scripts/drill, scripts/failover and scripts/replicas,
# which are killed with their data. All of it is in $FOLDER.

readonly DRILL_PORT_SLOT=15

PORT= # of the server that sql asks

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
