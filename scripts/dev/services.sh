# Sourced after checkout.sh, process.sh and port.sh. Postrider's services in one process, and what they talk to: the Swrve
# simulator, a receiver of webhooks, and a mail server that delivers nothing.

readonly INGEST_PORT_SLOT=4 ADMIN_PORT_SLOT=5 SWRVE_PORT_SLOT=6 PORTAL_PORT_SLOT=7 RECEIVER_PORT_SLOT=8 SMTP_PORT_SLOT=9
readonly OPERATOR_PORT_SLOT=10 WEBPUSH_PORT_SLOT=12 WEBPUSH_SOCKET_PORT_SLOT=13 WEBPUSH_ROUTER_PORT_SLOT=14
readonly ENV_FILE=$DEV_DIR/env
readonly RUN_DIR=$DEV_DIR/run
readonly DEV_MAIL_DIR=$DEV_DIR/mail
readonly DEV_RESELLER=demo
readonly SECRETS_KEY_FILE=$DEV_DIR/reseller-secrets.key
readonly WEBPUSH_KEY_FILE=$DEV_DIR/webpush.key
readonly DOCS_SITE=$DEV_DIR/site
readonly POSTRIDER=$DEV_DIR/postrider # a link to the built binary: one name for it, however it was built

# The binary of PROFILE (the quickly built trial unless set otherwise), or POSTRIDER_BIN when one is there already. With POOL_MODE set it has a
# PgBouncer of its own before its database, with this pool_mode: session, transaction or statement.
build_postrider() {
    local profile=${PROFILE:-trial} bin=${POSTRIDER_BIN:-} folder usually=
    case $profile in
        trial) usually=": usually three minutes on two cores the first time, then seconds" ;;
        release) usually=": usually a quarter of an hour on two cores" ;;
    esac
    if [[ -z $bin ]]; then
        command -v cargo >/dev/null || die "a Rust toolchain is needed to build Postrider: https://rustup.rs"
        say "building postrider, profile $profile$usually"
        # A compiler cache may leave a daemon behind, which must not keep the lock of this script.
        (close_inherited_descriptors && cd -- "$CHECKOUT" && cargo build --profile "$profile" --package cli >&2)
        folder=$profile
        [[ $folder != dev ]] || folder=debug
        bin=$(cd -- "$CHECKOUT" && cd -- "${CARGO_TARGET_DIR:-target}" && pwd -P)/$folder/postrider
    fi
    [[ -x $bin ]] || die "$bin is not there"
    make_dev_dir
    bin=$(realpath -- "$bin")
    if [[ -n ${POOL_MODE:-} ]]; then
        [[ -x /usr/sbin/pgbouncer ]] || die "POOL_MODE needs PgBouncer; as root: apt-get install pgbouncer"
        mkdir -p -- "$DEV_DIR/pooled"
        ln -sfn -- "$bin" "$DEV_DIR/pooled/postrider"
        printf '%s\n' "$POOL_MODE" >"$DEV_DIR/pooled/mode"
        bin=$CHECKOUT/scripts/dev/behind-pgbouncer
    fi
    ln -sfn -- "$bin" "$POSTRIDER"
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

# All are the same program: their pid files tell them apart. A script that runs each service as a process of its own names them instead of postrider.
PROCESSES=(postrider swrve-sim receiver smtp-sink)

pid_of() { owned_pid "$RUN_DIR/$1.pid" "$CHECKOUT" postrider; }

services_run() {
    local name
    for name in "${PROCESSES[@]}"; do
        pid_of "$name" >/dev/null || return 1
    done
}

services_are_ready() {
    http_ok "$INGEST_URL/readyz" && http_ok "$PORTAL_URL/readyz" && http_ok "$OPERATOR_URL/readyz" &&
        http_ok "${METRICS_URL%/metrics}/readyz" && http_ok "$SWRVE_SIM_URL/healthz" &&
        http_ok "$RECEIVER_URL/_healthz" && port_is_open "${SMTP_SINK##*:}"
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

# kept_key FILE: 32 bytes of this checkout, in base64; kept as long as its database is.
kept_key() {
    if [[ ! -s $1 ]]; then
        head -c 32 /dev/urandom | base64 | write_private "$1"
    fi
    cat -- "$1"
}

# What the reseller lane needs on a machine for development: a key for its secrets, endpoints on this machine, and a mail
# server. What the caller set stays, and a configuration of their own is left alone.
choose_reseller_lane() {
    [[ -z ${POSTRIDER_CONFIG:-} ]] || return 0
    export POSTRIDER__RESELLER__SECRETS__KEY=${POSTRIDER__RESELLER__SECRETS__KEY:-$(kept_key "$SECRETS_KEY_FILE")}
    export POSTRIDER__RESELLER__EGRESS__ALLOW_NETWORKS=${POSTRIDER__RESELLER__EGRESS__ALLOW_NETWORKS:-127.0.0.0/8,::1/128}
    export POSTRIDER__RESELLER__EGRESS__ALLOW_HTTP=${POSTRIDER__RESELLER__EGRESS__ALLOW_HTTP:-true}
    export POSTRIDER__MAIL__SMTP_URL=${POSTRIDER__MAIL__SMTP_URL:-smtp://$SMTP_SINK}
    export POSTRIDER__MAIL__CONFIRM_ADDRESSES=${POSTRIDER__MAIL__CONFIRM_ADDRESSES:-false}
}

# Web Push is a part of the installation when it has keys. They are written with the alphabet of URLs.
choose_web_push() {
    [[ -z ${POSTRIDER_CONFIG:-} ]] || return 0
    export POSTRIDER__WEBPUSH__KEYS=${POSTRIDER__WEBPUSH__KEYS:-$(kept_key "$WEBPUSH_KEY_FILE" | tr '+/' '-_')}
}

# The documentation for resellers, which reseller-portal serves under /docs. Without it everything else works.
choose_docs() {
    [[ -z ${POSTRIDER_CONFIG:-}${POSTRIDER__PORTAL__DOCS_DIRECTORY:-} && ${DOCS:-} != no ]] || return 0
    say "building the documentation for resellers: usually half a minute the first time, then seconds"
    if (close_inherited_descriptors && "$CHECKOUT/scripts/docs" "$DOCS_SITE"); then
        export POSTRIDER__PORTAL__DOCS_DIRECTORY=$DOCS_SITE
    else
        say "!!! LEFT OUT: the documentation for resellers could not be built; /docs shows the reference of the API alone"
    fi
}

# What the caller set stays; the rest gets a port of this checkout.
choose_addresses() {
    local ingest portal operator admin swrve webpush socket router
    ingest=${POSTRIDER__INGEST__LISTEN:-127.0.0.1:$(assign_port "$RUN_DIR/ingest.port" "$INGEST_PORT_SLOT")}
    portal=${POSTRIDER__PORTAL__LISTEN:-127.0.0.1:$(assign_port "$RUN_DIR/portal.port" "$PORTAL_PORT_SLOT")}
    operator=${POSTRIDER__OPERATOR__LISTEN:-127.0.0.1:$(assign_port "$RUN_DIR/operator.port" "$OPERATOR_PORT_SLOT")}
    admin=${POSTRIDER__ADMIN__LISTEN:-127.0.0.1:$(assign_port "$RUN_DIR/admin.port" "$ADMIN_PORT_SLOT")}
    webpush=${POSTRIDER__WEBPUSH__ENDPOINT__LISTEN:-127.0.0.1:$(assign_port "$RUN_DIR/webpush.port" "$WEBPUSH_PORT_SLOT")}
    socket=${POSTRIDER__WEBPUSH__CONNECTION__LISTEN:-127.0.0.1:$(assign_port "$RUN_DIR/webpush-socket.port" "$WEBPUSH_SOCKET_PORT_SLOT")}
    router=${POSTRIDER__WEBPUSH__CONNECTION__ROUTER_LISTEN:-127.0.0.1:$(assign_port "$RUN_DIR/webpush-router.port" "$WEBPUSH_ROUTER_PORT_SLOT")}
    swrve=127.0.0.1:$(assign_port "$RUN_DIR/swrve.port" "$SWRVE_PORT_SLOT")
    export POSTRIDER__INGEST__LISTEN=$ingest
    export POSTRIDER__PORTAL__LISTEN=$portal
    export POSTRIDER__OPERATOR__LISTEN=$operator
    export POSTRIDER__ADMIN__LISTEN=$admin
    export POSTRIDER__WEBPUSH__ENDPOINT__LISTEN=$webpush
    export POSTRIDER__WEBPUSH__CONNECTION__LISTEN=$socket
    export POSTRIDER__WEBPUSH__CONNECTION__ROUTER_LISTEN=$router
    export POSTRIDER__WEBPUSH__ENDPOINT_URL=${POSTRIDER__WEBPUSH__ENDPOINT_URL:-$(url_of "$webpush")}
    export POSTRIDER__SWRVE__URL=${POSTRIDER__SWRVE__URL:-$(url_of "$swrve")}
    INGEST_URL=$(url_of "$ingest")
    PORTAL_URL=$(url_of "$portal")
    OPERATOR_URL=$(url_of "$operator")
    # By its name: browsers keep the cookies of a visit over http on localhost alone.
    CONSOLE_URL=http://localhost:${operator##*:}/console
    DASHBOARD_URL=http://localhost:${portal##*:}/app
    export POSTRIDER__PORTAL__PUBLIC_URL=${POSTRIDER__PORTAL__PUBLIC_URL:-${DASHBOARD_URL%/app}}
    WEBPUSH_URL=$POSTRIDER__WEBPUSH__ENDPOINT_URL
    WEBPUSH_SOCKET_URL=ws://${socket/#0.0.0.0:/127.0.0.1:}
    METRICS_URL=$(url_of "$admin")/metrics
    SWRVE_SIM_URL=$(url_of "$swrve")
    RECEIVER_URL=http://127.0.0.1:$(assign_port "$RUN_DIR/receiver.port" "$RECEIVER_PORT_SLOT")
    SMTP_SINK=127.0.0.1:$(assign_port "$RUN_DIR/smtp-sink.port" "$SMTP_PORT_SLOT")
}

create_keys() {
    INGEST_KEY=$("$POSTRIDER" keys create --name dev-ingest --role ingest)
    OPERATOR_KEY=$("$POSTRIDER" keys create --name dev-operator --role operator)
    VIEWER_KEY=$("$POSTRIDER" keys create --name dev-viewer --role viewer)
    ADMIN_KEY=$("$POSTRIDER" keys create --name dev-admin --role admin)
    RESELLER_KEY=$("$POSTRIDER" keys create --name dev-reseller --role reseller --reseller "$DEV_RESELLER")
}

write_environment() {
    local name
    POSTRIDER_PID=$(pid_of postrider) || true # none where each service is a process of its own
    SWRVE_SIM_PID=$(pid_of swrve-sim)
    RECEIVER_PID=$(pid_of receiver)
    SMTP_SINK_PID=$(pid_of smtp-sink)
    SMTP_URL=smtp://$SMTP_SINK
    MAIL_DIR=$DEV_MAIL_DIR
    RESELLER_ID=$DEV_RESELLER
    for name in INGEST_URL PORTAL_URL OPERATOR_URL CONSOLE_URL DASHBOARD_URL WEBPUSH_URL WEBPUSH_SOCKET_URL METRICS_URL SWRVE_SIM_URL \
        RECEIVER_URL SMTP_URL MAIL_DIR \
        INGEST_KEY OPERATOR_KEY VIEWER_KEY ADMIN_KEY RESELLER_KEY RESELLER_ID DATABASE_URL AMQP_URL \
        POSTRIDER_PID SWRVE_SIM_PID RECEIVER_PID SMTP_SINK_PID POSTGRES_PID RABBITMQ_PID; do
        # The servers' pids are known only of private servers.
        [[ -z ${!name:-} ]] || shell_line "$name" "${!name}"
    done | { cat && path_line; } | write_private "$ENV_FILE"
}

# path_line: puts the command postrider on PATH, once.
path_line() {
    local folder quote="'\\''"
    folder=\'${DEV_DIR//\'/$quote}\'
    printf 'case :$PATH: in *:%s:*) ;; *) PATH=%s:$PATH ;; esac\n' "$folder" "$folder"
}

# services_match: running, on the same servers as DATABASE_URL and AMQP_URL name now, and all that this version knows of.
services_match() {
    services_run && [[ -r $ENV_FILE ]] || return 1
    grep -q '^WEBPUSH_URL=' -- "$ENV_FILE" || return 1
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
    SMTP_SINK=${SMTP_URL#smtp://}
    wait_for_services || return 1
    write_environment
}

# prepare_services: everything but the services themselves.
prepare_services() {
    stop_services
    mkdir -p -- "$RUN_DIR"
    "$POSTRIDER" migrate >&2
    choose_addresses
    choose_push_keys
    choose_reseller_lane
    choose_web_push
    choose_docs
    create_keys
    launch swrve-sim sim swrve --listen "${SWRVE_SIM_URL#http://}"
    launch receiver receive --listen "${RECEIVER_URL#http://}"
    launch smtp-sink sim smtp --listen "$SMTP_SINK" --dir "$DEV_MAIL_DIR"
}

start_services() {
    prepare_services
    launch postrider up
    finish_services
}

# finish_services: waits for what was launched, and writes its addresses down.
finish_services() {
    local name
    if ! wait_for_services; then
        for name in "${PROCESSES[@]}"; do
            show_log_tail "$LOG_DIR/$name.log"
        done
        stop_services
        die "Postrider did not become ready"
    fi
    write_environment
}

# A made-up week of the reseller's deliveries. Without it everything else works.
write_history() {
    PORTAL_URL=$PORTAL_URL RECEIVER_URL=$RECEIVER_URL RESELLER_KEY=$RESELLER_KEY RESELLER_ID=$DEV_RESELLER \
        "$POSTRIDER" demo --history --timeout 60 >&2 || say "!!! LEFT OUT: a week of made-up deliveries; the pages begin empty"
}

# Where the pages are.
say_dashboards() {
    local link
    say "the console for on-call: $CONSOLE_URL, open to the keys OPERATOR_KEY, VIEWER_KEY and ADMIN_KEY"
    if link=$("$POSTRIDER" portal-links create --portal-url "$PORTAL_URL" --reseller-key "$RESELLER_KEY" 2>/dev/null); then
        say "the dashboard of the reseller $RESELLER_ID, once and within 5 minutes: $link"
        say "another link: postrider portal-links create"
    fi
}

# The time covers the services' own grace period, in which they finish what is in flight.
stop_services() {
    local name
    for name in "${PROCESSES[@]}"; do
        stop_process "$RUN_DIR/$name.pid" "$CHECKOUT" postrider TERM 40
    done
    rm -f -- "$ENV_FILE"
}
