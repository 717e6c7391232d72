# Sourced after checkout.sh. Loopback ports of this checkout, remembered between starts.
#
# They lie below the usual ephemeral range (32768 and up), where an outgoing connection could take one at any moment.
# Every checkout begins its search at its own block of sixteen, so that two of them rarely meet at all.

readonly FIRST_PORT=20000 PORT_BLOCKS=750 PORTS_PER_BLOCK=16

port_is_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

port_is_open() { ! port_is_free "$1"; }

# assign_port FILE SLOT: prints the port remembered in FILE, or a new one when there is none or another process took it.
assign_port() {
    local file=$1 slot=$2 port block
    if [[ -r $file ]] && read -r port <"$file" && [[ $port =~ ^[0-9]+$ ]] && port_is_free "$port"; then
        printf '%s\n' "$port"
        return
    fi
    for ((block = 0; block < PORT_BLOCKS; block++)); do
        port=$((FIRST_PORT + (CHECKOUT_ID + block) % PORT_BLOCKS * PORTS_PER_BLOCK + slot))
        if port_is_free "$port"; then
            printf '%s\n' "$port" >"$file"
            printf '%s\n' "$port"
            return
        fi
    done
    die "no free port between $FIRST_PORT and $((FIRST_PORT + PORT_BLOCKS * PORTS_PER_BLOCK))"
}
