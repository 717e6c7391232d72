# Sourced by scripts/compose-test, which has compose, work and brokers, after traffic.sh. Loses the servers of docker-compose.cluster.yml under traffic, and
# brings each back by the commands of docs/cluster.md.

readonly QUEUES=(push.ready push.dead reseller.ready reseller.retry reseller.dead)
# Fewer than scripts/failover has: every process is in a container here.
readonly PER_SECOND=5

LEADS=postgres # the container of the database that takes writes

# sql DATABASE STATEMENT: rows with tabs between columns.
sql() {
    compose exec --no-TTY "$LEADS" psql --username postrider --no-psqlrc --quiet --tuples-only --no-align --field-separator=$'\t' \
        --set=ON_ERROR_STOP=1 --command="$2" -- "$1" 2>/dev/null
}

# another_of NAME MEMBER...: the first that is not the one of this name.
another_of() {
    local name
    for name in "${@:2}"; do
        [[ $name == "$1" ]] || break
    done
    printf '%s\n' "$name"
}

# kill_container SERVICE: without a moment to say goodbye. Docker does not start it again by itself.
kill_container() { docker kill "$(compose ps --quiet "$1")" >/dev/null; }

# say_why SERVICE WHAT: ends the test, with the end of what the container has said.
say_why() {
    compose logs --no-color --tail 30 "$1" >&2
    die "$2"
}

# --- RabbitMQ

# control NODE ARGUMENT...: rabbitmqctl, asking this node.
control() { compose exec --no-TTY "$1" rabbitmqctl --silent "${@:2}" 2>/dev/null; }

every_queue_has_three() { [[ $(control rabbitmq list_queues name online | grep -c '@.*@.*@') == "${#QUEUES[@]}" ]]; }

# The one that leads push.ready.
lose_node() {
    local lost other
    lost=$(control rabbitmq list_queues name leader | sed -n 's/^push\.ready\t.*rabbit@\([a-z0-9-]*\).*/\1/p')
    [[ -n $lost ]] || die "no node leads push.ready"
    other=$(another_of "$lost" "${brokers[@]}")
    fault "RabbitMQ: the node that leads (\`$lost\`) killed, its volume removed"
    kill_container "$lost"
    compose rm --stop --force "$lost" >/dev/null 2>&1
    docker volume rm "${PROJECT}_$lost-data" >/dev/null
    more_traffic 100
    fault "RabbitMQ: the lost node forgotten, a new one in its place"
    control "$other" forget_cluster_node "rabbit@$lost" || die "$lost is not forgotten"
    compose up --detach "$lost" >/dev/null 2>&1 || say_why "$lost" "$lost does not start"
    wait_until 180 every_queue_has_three || say_why "$lost" "not every queue has three members again"
    more_traffic 100
}

# --- PostgreSQL

# remove_data SERVICE: with its container. The volume itself cannot be removed while the other server looks into it.
remove_data() {
    compose rm --stop --force "$1" >/dev/null 2>&1
    compose run --rm --no-deps --no-TTY --entrypoint find "$1" /var/lib/postgresql/data -mindepth 1 -delete >/dev/null 2>&1
}

# promote SERVICE: by the statements of docs/cluster.md.
promote() {
    LEADS=$1
    fault "PostgreSQL: \`$1\` promoted"
    compose exec --no-TTY "$1" psql --username postrider postgres >/dev/null <<'SQL' || say_why "$1" "$1 is not promoted"
ALTER SYSTEM SET synchronous_standby_names = '';
SELECT pg_reload_conf();
SELECT pg_promote();
SQL
}

# make_standby SERVICE: of one that is lost, or whose data are of before.
make_standby() {
    remove_data "$1"
    compose up --detach "$1" >/dev/null 2>&1 || say_why "$1" "$1 does not start"
    compose run --rm --no-TTY require-standby >/dev/null 2>&1 || say_why "$1" "$1 does not become a standby"
    wait_until 60 is_synchronous "$1" || say_why "$1" "$1 is not synchronous"
}

is_synchronous() { [[ $(sql postgres "SELECT application_name, sync_state FROM pg_stat_replication") == "$1"$'\t'sync ]]; }

lose_primary() {
    fault "PostgreSQL: \`postgres\` killed, its data removed"
    kill_container postgres
    remove_data postgres
    promote postgres-2
    more_traffic 100
    fault "PostgreSQL: \`postgres\` made a standby"
    make_standby postgres
    more_traffic 50
}

# What the other one has been promoted over does not start again: neither beside it nor when it is alone.
bring_back_old_primary() {
    fault "PostgreSQL: \`postgres-2\` killed, its data kept"
    kill_container postgres-2
    promote postgres
    more_traffic 100
    fault "PostgreSQL: \`postgres-2\` started with its data of before"
    compose start postgres-2 >/dev/null 2>&1
    wait_until 60 has_refused 1 || say_why postgres-2 "postgres-2 starts beside the one that was promoted"
    more_traffic 50
    fault "PostgreSQL: both stopped, \`postgres-2\` started alone with its data of before; then \`postgres\`"
    compose stop postgres-2 postgres >/dev/null 2>&1
    compose start postgres-2 >/dev/null 2>&1
    wait_until 60 has_refused "$(($(refusals) + 1))" || say_why postgres-2 "postgres-2 starts while the one that was promoted is stopped"
    compose start postgres >/dev/null 2>&1
    more_traffic 50
    fault "PostgreSQL: \`postgres-2\` made a standby"
    make_standby postgres-2
    more_traffic 50
}

refusals() { compose logs --no-color postgres-2 2>/dev/null | grep -c 'postgres has been promoted since this one was a primary'; }

has_refused() { (($(refusals) >= $1)); }

# --- all of it

lose_servers() {
    FOLDER=$work
    mkdir -- "$FOLDER/books"
    touch -- "$FOLDER/books/accepted.jsonl"
    ADMIN_KEY=$(key --name lead --role admin)
    export ADMIN_KEY RESELLER_ID=$RESELLER
    subscribe "$ENDPOINTS"
    is_synchronous postgres-2 || die "postgres-2 is not synchronous"
    wait_until 60 every_queue_has_three || die "not every queue has three members"
    start_traffic compose "$PER_SECOND"
    more_traffic 50
    lose_node
    lose_primary
    bring_back_old_primary
    heal_receivers
    stop_traffic
    await_the_end
    write_units ended.tsv
    write_attempts
    say "the books"
    python3 -B "$DRILL/failover.py" "$FOLDER/books"
}
