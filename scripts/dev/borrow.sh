# Sourced after checkout.sh. Servers for the length of one script: what was not running is stopped again at its end.

borrowed_servers=()

return_servers() {
    local server
    for server in "${borrowed_servers[@]}"; do
        "$CHECKOUT/scripts/servers" stop "$server"
    done
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
