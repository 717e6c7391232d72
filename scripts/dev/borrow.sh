# Sourced after checkout.sh. Servers for the length of one script: what was not running is stopped again at its end.

readonly MEMORY_FOR_SERVERS_KIB=$((4 * 1024 * 1024))

borrowed_servers=()
uses_memory=

# use_memory: from here on, servers of their own that keep their data in memory, where there is enough of it.
use_memory() {
    local free
    free=$(df --output=avail -- /dev/shm 2>/dev/null | tail -n 1) || return 0
    ((free >= MEMORY_FOR_SERVERS_KIB)) || return 0
    export SERVERS_IN_MEMORY=1
    uses_memory=yes
}

return_servers() {
    local server
    for server in "${borrowed_servers[@]}"; do
        "$CHECKOUT/scripts/servers" stop "$server"
    done
    if [[ -n $uses_memory ]] && ((${#borrowed_servers[@]} == 2)); then
        rm -rf -- "/dev/shm/postrider-$CHECKOUT_ID" "$DEV_DIR/memory"
    fi
}

# borrow_servers SERVER...: starts postgres, rabbitmq or both, and exports how to reach and control them.
borrow_servers() {
    local server
    trap return_servers EXIT
    for server in "$@"; do
        if ! "$CHECKOUT/scripts/servers" status "$server" 2>/dev/null; then
            borrowed_servers+=("$server")
            # Said here as well, for callers that look at the failure: 'set -e' does not hold for them.
            "$CHECKOUT/scripts/servers" start "$server" || return
        fi
        export_lines "$("$CHECKOUT/scripts/servers" env "$server")"
    done
}
