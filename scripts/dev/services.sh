# Sourced after checkout.sh, process.sh and port.sh. Postrider's services in one process, and the Swrve simulator.

readonly INGEST_PORT_SLOT=4 ADMIN_PORT_SLOT=5 SWRVE_PORT_SLOT=6
readonly ENV_FILE=$DEV_DIR/env
readonly RUN_DIR=$DEV_DIR/run
readonly POSTRIDER=$DEV_DIR/postrider # a link to the built binary: one name for it, however it was built

# The binary of PROFILE (release unless set otherwise), or POSTRIDER_BIN when one is there already.
build_postrider() {
    local profile=${PROFILE:-release} bin=${POSTRIDER_BIN:-} folder
    if [[ -z $bin ]]; then
        command -v cargo >/dev/null || die "a Rust toolchain is needed to build Postrider: https://rustup.rs"
        say "building postrider ($profile)"
        # A compiler cache may leave a daemon behind, which must not keep the lock of this script.
        (close_inherited_descriptors && cd -- "$CHECKOUT" && cargo build --profile "$profile" --package cli >&2)
        folder=$profile
        [[ $folder != dev ]] || folder=debug
        bin=$(cd -- "$CHECKOUT" && cd -- "${CARGO_TARGET_DIR:-target}" && pwd -P)/$folder/postrider
    fi
    [[ -x $bin ]] || die "$bin is not there"
    make_dev_dir
    ln -sfn -- "$(realpath -- "$bin")" "$POSTRIDER"
}

# http_ok URL: a GET is answered with 200. Needs no client program.
http_ok() (
    local rest=${1#http://} address status
    address=${rest%%/*}
    exec 3<>"/dev/tcp/${address%:*}/${address##*:}"
    printf 'GET /%s HTTP/1.0\r\nHost: %s\r\n\r\n' "${rest#*/}" "$address" >&3
    read -r -t 5 _ status _ <&3
    [[ $status == 200 ]]
) 2>/dev/null

# url_of ADDRESS: how this machine reaches a listener, which may listen on every address.
url_of() { printf 'http://%s\n' "${1/#0.0.0.0:/127.0.0.1:}"; }

# Both are the same program: their pid files tell them apart.
postrider_pid() { owned_pid "$RUN_DIR/postrider.pid" "$CHECKOUT" postrider; }
swrve_sim_pid() { owned_pid "$RUN_DIR/swrve-sim.pid" "$CHECKOUT" postrider; }

services_run() { postrider_pid >/dev/null && swrve_sim_pid >/dev/null; }

services_are_ready() {
    http_ok "$INGEST_URL/readyz" && http_ok "${METRICS_URL%/metrics}/readyz" && http_ok "$SWRVE_SIM_URL/healthz"
}

services_are_ready_or_died() { services_are_ready || ! services_run; }

wait_for_services() { wait_until 60 services_are_ready_or_died && services_are_ready; }

# launch NAME ARGUMENT...: one postrider process, with its log and pid file named after NAME.
launch() {
    local name=$1
    shift
    : >"$LOG_DIR/$name.log"
    start_detached "$RUN_DIR/$name.pid" "$LOG_DIR/$name.log" "$CHECKOUT" "$POSTRIDER" "$@"
}

# Two message prototypes to try things with, unless the caller has a configuration of their own. The simulator takes
# any push key.
choose_push_keys() {
    local both='{"IOS": "d36ae023-010c-4f3a-9bd7-9924a754b4b4", "ANDROID": "f31690cb-a763-4259-af18-6aed41afd9ed"}'
    [[ -z ${POSTRIDER_CONFIG:-}${POSTRIDER__SWRVE__MESSAGE_PROTOTYPE_PUSH_KEYS:-} ]] || return 0
    export POSTRIDER__SWRVE__MESSAGE_PROTOTYPE_PUSH_KEYS="{\"Hello\": $both, \"Good bye\": $both}"
}

# What the caller set stays; the rest gets a port of this checkout.
choose_addresses() {
    local ingest admin swrve
    ingest=${POSTRIDER__INGEST__LISTEN:-127.0.0.1:$(assign_port "$RUN_DIR/ingest.port" "$INGEST_PORT_SLOT")}
    admin=${POSTRIDER__ADMIN__LISTEN:-127.0.0.1:$(assign_port "$RUN_DIR/admin.port" "$ADMIN_PORT_SLOT")}
    swrve=127.0.0.1:$(assign_port "$RUN_DIR/swrve.port" "$SWRVE_PORT_SLOT")
    export POSTRIDER__INGEST__LISTEN=$ingest
    export POSTRIDER__ADMIN__LISTEN=$admin
    export POSTRIDER__SWRVE__URL=${POSTRIDER__SWRVE__URL:-$(url_of "$swrve")}
    INGEST_URL=$(url_of "$ingest")
    METRICS_URL=$(url_of "$admin")/metrics
    SWRVE_SIM_URL=$(url_of "$swrve")
}

create_keys() {
    INGEST_KEY=$("$POSTRIDER" keys create --name dev-ingest --role ingest)
    ADMIN_KEY=$("$POSTRIDER" keys create --name dev-admin --role admin)
}

write_environment() {
    local name
    POSTRIDER_PID=$(postrider_pid)
    SWRVE_SIM_PID=$(swrve_sim_pid)
    for name in INGEST_URL METRICS_URL SWRVE_SIM_URL INGEST_KEY ADMIN_KEY DATABASE_URL AMQP_URL \
        POSTRIDER_PID SWRVE_SIM_PID POSTGRES_PID RABBITMQ_PID; do
        # The servers' pids are known only of private servers.
        [[ -z ${!name:-} ]] || shell_line "$name" "${!name}"
    done | write_private "$ENV_FILE"
}

# services_match: running, and on the same servers as DATABASE_URL and AMQP_URL name now.
services_match() {
    services_run && [[ -r $ENV_FILE ]] || return 1
    grep -qxF -- "$(shell_line DATABASE_URL "$DATABASE_URL")" "$ENV_FILE" &&
        grep -qxF -- "$(shell_line AMQP_URL "$AMQP_URL")" "$ENV_FILE"
}

# keep_services: the running ones, when they are ready; renews .dev/env, as a server may have got a new pid.
keep_services() {
    local servers
    services_match || return 1
    servers=$(for name in POSTGRES_PID RABBITMQ_PID; do shell_line "$name" "${!name:-}"; done)
    export_lines "$(<"$ENV_FILE")"
    export_lines "$servers"
    wait_for_services || return 1
    write_environment
}

start_services() {
    stop_services
    mkdir -p -- "$RUN_DIR"
    "$POSTRIDER" migrate >&2
    choose_addresses
    choose_push_keys
    create_keys
    launch swrve-sim sim swrve --listen "${SWRVE_SIM_URL#http://}"
    launch postrider up
    if ! wait_for_services; then
        show_log_tail "$LOG_DIR/swrve-sim.log"
        show_log_tail "$LOG_DIR/postrider.log"
        stop_services
        die "Postrider did not become ready"
    fi
    write_environment
}

# The time covers the services' own grace period, in which they finish what is in flight.
stop_services() {
    stop_process "$RUN_DIR/postrider.pid" "$CHECKOUT" postrider TERM 40
    stop_process "$RUN_DIR/swrve-sim.pid" "$CHECKOUT" postrider TERM 5
    rm -f -- "$ENV_FILE"
}
