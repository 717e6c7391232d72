# Sourced by scripts/compose-test, which has compose, work, databases and brokers. What docker-compose.yml and docs/deploying.md promise of containers that run.

readonly SERVICES=(ingest-api reseller-portal operator-api dispatcher retry-worker)
# Something that a container with a way out reaches.
readonly OUTSIDE=deb.debian.org

check_promises() {
    local service
    for service in "${SERVICES[@]}" swrve-sim; do
        check_powers "$service" 10001
        check_root "$service"
    done
    [[ -z $cluster ]] || check_servers
    check_networks
    check_egress
    check_secrets
    say "privileges, networks, endpoints and secrets are as docker-compose.yml and its documentation say"
}

# inside SERVICE COMMAND...: in its first container, as its own user.
inside() { compose exec --no-TTY "$@" 2>/dev/null; }

# Of docker-compose.cluster.yml: where they are alone they begin as root.
check_servers() {
    local service
    for service in "${databases[@]}" "${brokers[@]}"; do
        check_powers "$service" 999
    done
    for service in "${databases[@]}"; do
        check_root "$service"
    done
}

# check_powers SERVICE USER: of the first process of the container, as the kernel sees it.
check_powers() {
    local service=$1 user=$2 status
    status=$(inside "$service" cat /proc/1/status)
    grep -qP "^Uid:\t$user\t$user\t$user\t$user\$" <<<"$status" || die "$service: runs as another user than $user"
    ! grep '^Cap' <<<"$status" | grep -qv '[[:space:]]0000000000000000$' || die "$service: has capabilities"
    grep -q '^NoNewPrivs:[[:space:]]1$' <<<"$status" || die "$service: may get privileges"
}

# Root itself cannot write to it either.
check_root() {
    local service=$1
    inside "$service" grep -qE '^[^ ]+ / [^ ]+ ro[, ]' /proc/mounts || die "$service: its root is not read-only"
    ! compose exec --no-TTY --user 0 "$service" touch /written 2>/dev/null || die "$service: root may write to its root"
}

# reaches SERVICE HOST PORT
reaches() { inside "$1" timeout 3 bash -c "exec 3<>/dev/tcp/$2/$3"; }

# addresses_of SERVICE: of its first container, in each of its networks.
addresses_of() {
    docker inspect --format '{{range .NetworkSettings.Networks}}{{println .IPAddress}}{{end}}' "$(compose ps --quiet "$1" | head -n 1)"
}

# By name and by address: what is in no network with another may know its address all the same.
check_networks() {
    local service address
    for service in "${databases[@]}"; do
        reaches ingest-api "$service" 5432 || die "ingest-api: does not reach $service"
        reaches reseller-portal "$service" 5432 || die "reseller-portal: does not reach $service"
    done
    for service in "${brokers[@]}"; do
        reaches ingest-api "$service" 5672 || die "ingest-api: does not reach $service"
        reaches_no reseller-portal "$service" 5672
    done
    reaches dispatcher swrve-sim 8090 || die "dispatcher: does not reach Swrve"
    for service in ingest-api operator-api dispatcher retry-worker; do
        reaches_no reseller-portal "$service" 9090
    done
    for service in "${databases[@]}" "${brokers[@]}"; do
        reaches_no "$service" swrve-sim 8090
    done
    address=$(getent ahostsv4 "$OUTSIDE" | sed -n '1s/ .*//p') || true
    if [[ -n $address ]] && reaches dispatcher "$address" 80; then
        for service in "${databases[@]}" "${brokers[@]}"; do
            ! reaches "$service" "$address" 80 || die "$service: reaches $OUTSIDE"
        done
    else
        say "!!! LEFT OUT: whether PostgreSQL and RabbitMQ reach the internet, since $OUTSIDE is not reached at all"
    fi
}

# reaches_no SERVICE OTHER PORT
reaches_no() {
    local host
    for host in "$2" $(addresses_of "$2"); do
        ! reaches "$1" "$host" "$3" || die "$1: reaches $2 at $host"
    done
}

# The guard lets through what the override allows alone.
check_egress() { wait_until 60 is_refused http://postgres:5432/ || die "an endpoint may be an address of PostgreSQL, or is refused for another reason"; }

# is_refused URL: as an endpoint, for its address.
is_refused() {
    local said
    ! said=$("$POSTRIDER" subscriptions check "$1" 2>&1) && [[ $said == *"no public address"* ]]
}

# check_stopped: everything has ended by itself when it was asked to, within its time, save the dispatcher that was killed.
check_stopped() {
    local left
    left=$(compose ps --all --format '{{.Service}} ended with {{.ExitCode}}' | grep -v ' 0$' | grep -vx 'dispatcher ended with 137') || true
    [[ -z $left ]] || die "$left"
}

# Neither what Docker tells of a container nor what it has said holds a secret.
check_secrets() {
    local secret told
    told=$(compose ps --all --quiet | xargs docker inspect && compose logs --no-color 2>&1)
    while read -r secret; do
        ! grep -qF -- "$secret" <<<"$told" || die "a secret of deploy/compose/secrets is in docker inspect or the logs"
    done < <(secret_values)
}

secret_values() {
    local folder=$work/deploy/compose/secrets
    sed -n 's|^[a-z]*://[a-z_]*:\([^@]*\)@.*|\1|p' "$folder/"database-url-* "$folder/amqp-url"
    cat -- "$folder/postgres-password" "$folder/sealing-key"
    [[ -z $cluster ]] || cat -- "$folder/standby-password" "$folder/erlang-cookie"
    grep -oE '[0-9a-f]{8}-[0-9a-f-]{27}' "$folder/push-keys"
}
