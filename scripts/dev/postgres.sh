# Sourced after state.sh, process.sh, port.sh and package.sh. The private PostgreSQL of this checkout.

readonly POSTGRES_MIN_VERSION=15
readonly POSTGRES_PORT_SLOT=0
readonly POSTGRES_NAME=postrider # the superuser and the database
readonly POSTGRES_ATTEMPTS=3

# Durable as in production; sized for a small development machine.
readonly POSTGRES_SETTINGS=(
    listen_addresses=127.0.0.1
    unix_socket_directories=
    fsync=on
    full_page_writes=on
    synchronous_commit=on
    shared_buffers=512MB
    effective_cache_size=4GB
    maintenance_work_mem=256MB
    max_connections=200
    max_wal_size=4GB
    checkpoint_timeout=15min
    random_page_cost=1.1
    jit=off
    timezone=UTC
    log_timezone=UTC
    "log_line_prefix=%m [%p] %q%u@%d "
)

postgres_dir() { printf '%s\n' "$STATE_DIR/postgres"; }
postgres_data() { printf '%s\n' "$STATE_DIR/postgres/data"; }
postgres_log() { printf '%s\n' "$LOG_DIR/postgres.log"; }

# The newest installed version's folder of programs.
postgres_bin() {
    local bin version newest=0 found=
    for bin in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin; do
        [[ -x $bin/postgres && -x $bin/initdb && -x $bin/psql ]] || continue
        version=$("$bin/postgres" --version 2>/dev/null | grep -oE '[0-9]+' | head -n 1)
        if ((version >= POSTGRES_MIN_VERSION && version > newest)); then
            newest=$version found=$bin
        fi
    done
    [[ -n $found ]] && printf '%s\n' "$found"
}

# A data folder is tied to the version that made it.
postgres_bin_for_data() {
    local version bin
    read -r version <"$(postgres_data)/PG_VERSION"
    for bin in "/usr/lib/postgresql/$version/bin" "/usr/pgsql-$version/bin"; do
        if [[ -x $bin/postgres ]]; then
            printf '%s\n' "$bin"
            return
        fi
    done
    die "$(postgres_data) needs PostgreSQL $version, which is not installed: install it or remove the folder"
}

ensure_postgres_installed() {
    postgres_bin >/dev/null && return
    install_package postgresql
    postgres_bin >/dev/null || die "this system's PostgreSQL is older than $POSTGRES_MIN_VERSION"
}

postgres_pid() { owned_pid "$(postgres_data)/postmaster.pid" "$(postgres_data)" postgres; }

postgres_url() {
    local port password
    read -r port <"$STATE_DIR/postgres.port" 2>/dev/null || return 1
    read -r password <"$STATE_DIR/postgres.password" 2>/dev/null || return 1
    printf 'postgres://%s:%s@127.0.0.1:%s/%s\n' "$POSTGRES_NAME" "$password" "$port" "$POSTGRES_NAME"
}

# The folder belongs to the user that runs the server; what root writes stays outside of it.
make_postgres_dir() {
    local dir owner
    dir=$(postgres_dir)
    owner=$(as_postgres id -u)
    if [[ ! -d $dir ]]; then
        mkdir -m 0700 -- "$dir"
        ((EUID != 0)) || chown postgres:postgres -- "$dir"
    fi
    [[ $(stat -c '%F:%u' -- "$dir") == "directory:$owner" ]] ||
        die "$dir does not belong to user $owner: remove it, or start as the user that made it"
}

init_postgres() {
    local data partial secret_file
    data=$(postgres_data)
    [[ -d $data ]] && return
    say "creating a PostgreSQL cluster in $data"
    partial=$data.partial
    secret_file=$(postgres_dir)/secret
    random_secret | write_private "$STATE_DIR/postgres.password"
    # shellcheck disable=SC2016 # expanded by the inner shell
    as_postgres sh -c 'umask 077; rm -rf "$1"; cat >"$2"' sh "$partial" "$secret_file" \
        <"$STATE_DIR/postgres.password"
    as_postgres "$(postgres_bin)/initdb" --pgdata="$partial" --username="$POSTGRES_NAME" --pwfile="$secret_file" \
        --auth=scram-sha-256 --encoding=UTF8 --locale=C >>"$(postgres_log)" 2>&1 || {
        show_log_tail "$(postgres_log)"
        die "initdb failed"
    }
    as_postgres rm -f -- "$secret_file"
    as_postgres mv -- "$partial" "$data"
}

launch_postgres() {
    local port=$1 bin setting arguments=()
    bin=$(postgres_bin_for_data)
    for setting in "port=$port" "${POSTGRES_SETTINGS[@]}"; do
        arguments+=(-c "$setting")
    done
    local command=("$bin/postgres" -D "$(postgres_data)" "${arguments[@]}")
    if ((EUID == 0)); then
        command=(setpriv --reuid=postgres --regid=postgres --init-groups -- "${command[@]}")
    fi
    start_detached "$STATE_DIR/postgres.launched" "$(postgres_log)" / "${command[@]}"
}

query_postgres() {
    local url
    url=$(postgres_url)
    "$(postgres_bin)/psql" --no-psqlrc --quiet --tuples-only --no-align --set=ON_ERROR_STOP=1 "$@" -- "${url%/*}/postgres"
}

postgres_answers() { query_postgres --command='SELECT 1' >/dev/null 2>&1; }

postgres_answers_or_died() {
    local launched
    read -r launched <"$STATE_DIR/postgres.launched"
    postgres_answers || ! kill -0 "$launched" 2>/dev/null
}

create_database() {
    [[ -n $(query_postgres --command="SELECT 1 FROM pg_database WHERE datname = '$POSTGRES_NAME'") ]] ||
        query_postgres --command="CREATE DATABASE $POSTGRES_NAME"
}

# After a kill -9 the server's children live for a moment and still use the data; its pid file, whose pid may belong to
# another process by now, must not be removed before they are gone.
clear_postgres_leftovers() {
    local data
    data=$(postgres_data)
    wait_until 30 no_process_in "$data" || die "processes of a lost PostgreSQL still work in $data"
    as_postgres rm -f -- "$data/postmaster.pid"
}

launch_postgres_on_free_port() {
    local attempt port
    for ((attempt = 1; attempt <= POSTGRES_ATTEMPTS; attempt++)); do
        clear_postgres_leftovers
        port=$(assign_port "$STATE_DIR/postgres.port" "$POSTGRES_PORT_SLOT")
        launch_postgres "$port"
        wait_until 60 postgres_answers_or_died || return 1
        postgres_pid >/dev/null && return
    done
}

start_postgres() {
    if ! postgres_pid >/dev/null; then
        make_postgres_dir
        init_postgres
        launch_postgres_on_free_port || true
    fi
    if ! wait_until 30 postgres_answers; then
        show_log_tail "$(postgres_log)"
        die "PostgreSQL did not start"
    fi
    create_database
}

stop_postgres() {
    # SIGINT is PostgreSQL's fast shutdown: it does not wait for clients to leave.
    stop_process "$(postgres_data)/postmaster.pid" "$(postgres_data)" postgres INT 30
}

print_postgres_environment() {
    local pid
    pid=$(postgres_pid) || return 1
    shell_line DATABASE_URL "$(postgres_url)"
    shell_line POSTGRES_PID "$pid"
}
