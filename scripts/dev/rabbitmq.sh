# Sourced after state.sh, process.sh, port.sh and package.sh. The private RabbitMQ of this checkout.
#
# It has its own node name, Erlang cookie and name daemon (epmd), so that it never meets a broker of the system or of
# another checkout. The plain start scripts are used: Debian's wrapper would switch to the user and folders of the system.

readonly RABBITMQ_AMQP_SLOT=1 RABBITMQ_DIST_SLOT=2 RABBITMQ_EPMD_SLOT=3
readonly RABBITMQ_ATTEMPTS=3
RABBITMQ_NODE_NAME=postrider-$CHECKOUT_ID@localhost # of a cluster each node has another (rabbitmq-cluster.sh)

rabbitmq_dir() { printf '%s\n' "$STATE_DIR/rabbitmq"; }
rabbitmq_log() { printf '%s\n' "$LOG_DIR/rabbitmq.log"; }
rabbitmq_control() { printf '%s\n' "$DEV_DIR/rabbitmqctl"; }

rabbitmq_bin() {
    local bin
    for bin in /usr/lib/rabbitmq/bin /usr/local/sbin /opt/rabbitmq/sbin; do
        if [[ -x $bin/rabbitmq-server && -x $bin/rabbitmqctl ]]; then
            printf '%s\n' "$bin"
            return
        fi
    done
    return 1
}

ensure_rabbitmq_installed() {
    rabbitmq_bin >/dev/null && return
    install_package rabbitmq-server
    rabbitmq_bin >/dev/null || die "the package rabbitmq-server brought no server"
}

rabbitmq_pid() { owned_pid "$(rabbitmq_dir)/pid" "$(rabbitmq_dir)" beam.smp; }

rabbitmq_url() {
    local port password
    read -r port <"$STATE_DIR/amqp.port" 2>/dev/null || return 1
    read -r password <"$STATE_DIR/rabbitmq.password" 2>/dev/null || return 1
    printf 'amqp://postrider:%s@127.0.0.1:%s/%%2f\n' "$password" "$port"
}

make_rabbitmq_dir() {
    local dir
    dir=$(rabbitmq_dir)
    if [[ ! -d $dir ]]; then
        mkdir -m 0700 -- "$dir"
    fi
    # The broker takes the password when it creates its database, and never again.
    if [[ ! -s $STATE_DIR/rabbitmq.password ]]; then
        random_secret | write_private "$STATE_DIR/rabbitmq.password"
    fi
    if [[ ! -s $dir/.erlang.cookie ]]; then
        random_secret | write_private "$dir/.erlang.cookie"
        chmod 0400 -- "$dir/.erlang.cookie"
    fi
}

# Everything that the broker and its tools would otherwise look for in the system's folders.
write_rabbitmq_environment() {
    local dist_port=$1 epmd_port=$2 dir
    dir=$(rabbitmq_dir)
    {
        printf 'unset "${!RABBITMQ_@}"\nset -a\n'
        shell_line HOME "$dir"
        shell_line LANG C.UTF-8
        shell_line ERL_EPMD_ADDRESS 127.0.0.1
        shell_line ERL_EPMD_PORT "$epmd_port"
        shell_line ERL_CRASH_DUMP "$dir/erl_crash.dump"
        shell_line RABBITMQ_CONF_ENV_FILE "$dir/none"
        shell_line RABBITMQ_NODENAME "$RABBITMQ_NODE_NAME"
        shell_line RABBITMQ_USE_LONGNAME false
        shell_line RABBITMQ_DIST_PORT "$dist_port"
        shell_line RABBITMQ_CONFIG_FILE "$dir/rabbitmq.conf"
        shell_line RABBITMQ_CONFIG_FILES "$dir/none/*.conf"
        shell_line RABBITMQ_ADVANCED_CONFIG_FILE "$dir/advanced.config"
        shell_line RABBITMQ_ENABLED_PLUGINS_FILE "$dir/enabled_plugins"
        shell_line RABBITMQ_GENERATED_CONFIG_DIR "$dir/generated"
        shell_line RABBITMQ_SCHEMA_DIR "$dir/schema"
        shell_line RABBITMQ_MNESIA_BASE "$dir/mnesia"
        shell_line RABBITMQ_LOG_BASE "$dir"
        shell_line RABBITMQ_LOGS -
        shell_line RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS '-kernel inet_dist_use_interface {127,0,0,1}'
        shell_line RABBITMQ_CTL_ERL_ARGS '-kernel inet_dist_use_interface {127,0,0,1}'
        printf 'set +a\n'
    } | write_private "$dir/environment"
}

write_rabbitmq_config() {
    local amqp_port=$1 password
    read -r password <"$STATE_DIR/rabbitmq.password"
    # A write-ahead log of 64 MiB instead of 512 keeps the memory of quorum queues low. Development disks are small and
    # shared: an absolute free-space limit, not one that grows with the machine's memory.
    write_private "$(rabbitmq_dir)/rabbitmq.conf" <<CONFIG
listeners.tcp.1 = 127.0.0.1:$amqp_port
default_user = postrider
default_pass = $password
default_user_tags.administrator = true
disk_free_limit.absolute = 50MB
vm_memory_high_watermark.relative = 0.4
raft.wal_max_size_bytes = 67108864
CONFIG
}

write_rabbitmq_control() { write_rabbitmq_tool rabbitmqctl; }

# write_rabbitmq_tool PROGRAM: beside rabbitmq_control.
write_rabbitmq_tool() {
    local program=$DEV_DIR/$1
    {
        printf '#!/usr/bin/env bash\n# %s for the private broker of this checkout.\n' "$1"
        printf '. %q\n' "$(rabbitmq_dir)/environment"
        printf 'exec %q "$@"\n' "$(rabbitmq_bin)/$1"
    } | write_private "$program"
    chmod u+x -- "$program"
}

# The broker would start one of its own, which could not be stopped again without stopping others.
start_epmd() {
    local port=$1
    start_detached "$(rabbitmq_dir)/epmd.pid" "$(rabbitmq_log)" "$(rabbitmq_dir)" \
        epmd -port "$port" -address 127.0.0.1
    wait_until 10 port_is_open "$port" || die "the Erlang name daemon epmd did not start"
}

stop_epmd() { stop_process "$(rabbitmq_dir)/epmd.pid" "$(rabbitmq_dir)" epmd TERM 5; }

launch_rabbitmq() {
    local amqp_port dist_port epmd_port
    stop_epmd
    amqp_port=$(assign_port "$STATE_DIR/amqp.port" "$RABBITMQ_AMQP_SLOT")
    dist_port=$(assign_port "$STATE_DIR/erlang.port" "$RABBITMQ_DIST_SLOT")
    epmd_port=$(assign_port "$STATE_DIR/epmd.port" "$RABBITMQ_EPMD_SLOT")
    write_rabbitmq_environment "$dist_port" "$epmd_port"
    write_rabbitmq_config "$amqp_port"
    start_epmd "$epmd_port"
    launch_rabbitmq_node
}

# What is written is there, and the name daemon runs.
launch_rabbitmq_node() {
    # RUNNING_UNDER_SYSTEMD makes the start script become the broker instead of staying as its parent.
    # shellcheck disable=SC2016 # expanded by the inner shell
    start_detached "$(rabbitmq_dir)/pid" "$(rabbitmq_log)" "$(rabbitmq_dir)" \
        env RUNNING_UNDER_SYSTEMD=true bash -c '. "$1"; exec "$2"' bash \
        "$(rabbitmq_dir)/environment" "$(rabbitmq_bin)/rabbitmq-server"
}

rabbitmq_listens() {
    local port
    read -r port <"$STATE_DIR/amqp.port"
    port_is_open "$port"
}

rabbitmq_listens_or_died() {
    local launched
    read -r launched <"$(rabbitmq_dir)/pid"
    rabbitmq_listens || ! kill -0 "$launched" 2>/dev/null
}

launch_rabbitmq_on_free_ports() {
    local attempt
    for ((attempt = 1; attempt <= RABBITMQ_ATTEMPTS; attempt++)); do
        launch_rabbitmq
        wait_until 120 rabbitmq_listens_or_died || return 1
        rabbitmq_pid >/dev/null && return
    done
}

rabbitmq_is_ready() {
    rabbitmq_listens && "$(rabbitmq_control)" --silent await_startup --timeout 60 >/dev/null 2>&1
}

start_rabbitmq() {
    if ! rabbitmq_pid >/dev/null; then
        make_rabbitmq_dir
        launch_rabbitmq_on_free_ports || true
    fi
    write_rabbitmq_control
    if ! { rabbitmq_pid >/dev/null && wait_until 90 rabbitmq_is_ready; }; then
        show_log_tail "$(rabbitmq_log)"
        die "RabbitMQ did not start"
    fi
}

stop_rabbitmq() {
    stop_process "$(rabbitmq_dir)/pid" "$(rabbitmq_dir)" beam.smp TERM 45
    stop_epmd
}

print_rabbitmq_environment() {
    local pid
    pid=$(rabbitmq_pid) || return 1
    shell_line AMQP_URL "$(rabbitmq_url)"
    shell_line RABBITMQ_PID "$pid"
    shell_line RABBITMQ_NODE "$RABBITMQ_NODE_NAME"
    shell_line RABBITMQCTL "$(rabbitmq_control)"
}
