# Sourced after rabbitmq.sh. Three RabbitMQ nodes on this machine that are one cluster, in $FOLDER, each of which can be killed with its data.
#
# They have a name daemon, a cookie and a password in common; everything else is what rabbitmq.sh has of one broker, once for each.

readonly CLUSTER_NODES=(1 2 3)

node_name() { printf 'postrider-%s-%s@localhost\n' "$$" "$1"; }

# at_node NUMBER COMMAND...: with the folder and the name of this node. "names" has the name daemon.
at_node() {
    local STATE_DIR=$FOLDER/rabbitmq-$1 LOG_DIR=$FOLDER/rabbitmq-$1 DEV_DIR=$FOLDER/rabbitmq-$1 RABBITMQ_NODE_NAME
    RABBITMQ_NODE_NAME=$(node_name "$1")
    shift
    "$@"
}

start_cluster() {
    local number port
    mkdir -m 0711 -- "$FOLDER/rabbitmq-names" "$FOLDER/rabbitmq-names/rabbitmq"
    port=$(assign_port "$FOLDER/epmd.port" "$RABBITMQ_EPMD_SLOT")
    at_node names start_epmd "$port"
    random_secret | write_private "$FOLDER/rabbitmq.password"
    random_secret | write_private "$FOLDER/erlang.cookie"
    for number in "${CLUSTER_NODES[@]}"; do
        mkdir -m 0711 -- "$FOLDER/rabbitmq-$number"
        start_node "$number"
    done
    wait_until 60 cluster_is_whole || die "the nodes of RabbitMQ are not one cluster"
}

cluster_is_whole() { [[ $(control 1 eval 'length(rabbit_nodes:all_running()).' 2>/dev/null) == "${#CLUSTER_NODES[@]}" ]]; }

stop_cluster() {
    local number
    for number in "${CLUSTER_NODES[@]}"; do
        kill_node "$number"
    done
    at_node names stop_epmd
}

# start_node NUMBER: with the data that it has, or as a new member when it has none.
start_node() {
    at_node "$1" write_node
    at_node "$1" launch_rabbitmq_node
    disown "$!" # so that the shell says nothing about one that is killed
    wait_until 120 at_node "$1" rabbitmq_is_ready || {
        show_log_tail "$(at_node "$1" rabbitmq_log)"
        die "node $1 of RabbitMQ did not start"
    }
}

write_node() {
    local amqp_port dist_port epmd_port number
    cp -- "$FOLDER/rabbitmq.password" "$STATE_DIR/rabbitmq.password"
    make_rabbitmq_dir
    install -m 0400 -- "$FOLDER/erlang.cookie" "$(rabbitmq_dir)/.erlang.cookie"
    read -r epmd_port <"$FOLDER/epmd.port"
    amqp_port=$(assign_port "$STATE_DIR/amqp.port" "$RABBITMQ_AMQP_SLOT")
    dist_port=$(assign_port "$STATE_DIR/erlang.port" "$RABBITMQ_DIST_SLOT")
    write_rabbitmq_environment "$dist_port" "$epmd_port"
    write_rabbitmq_config "$amqp_port"
    {
        printf 'cluster_partition_handling = pause_minority\ncluster_formation.peer_discovery_backend = classic_config\n'
        for number in "${CLUSTER_NODES[@]}"; do
            printf 'cluster_formation.classic_config.nodes.%s = %s\n' "$number" "$(node_name "$number")"
        done
    } >>"$(rabbitmq_dir)/rabbitmq.conf"
    write_rabbitmq_control
    write_rabbitmq_tool rabbitmq-queues
}

kill_node() {
    local pid
    pid=$(at_node "$1" rabbitmq_pid) || return 0
    kill -s KILL -- "$pid"
    wait_until 10 is_gone_node "$1" || die "node $1 of RabbitMQ cannot be killed"
}

is_gone_node() { ! at_node "$1" rabbitmq_pid >/dev/null; }

# remove_node NUMBER: with its disk.
remove_node() { rm -rf -- "$(at_node "$1" rabbitmq_dir)"; }

# control NUMBER ARGUMENT...: rabbitmqctl, asking this node.
control() { "$FOLDER/rabbitmq-$1/rabbitmqctl" --silent "${@:2}"; }

# queues NUMBER ARGUMENT...: rabbitmq-queues, asking this node.
queues() { "$FOLDER/rabbitmq-$1/rabbitmq-queues" --silent "${@:2}"; }
