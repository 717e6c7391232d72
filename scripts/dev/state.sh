# Sourced after checkout.sh. The folder that holds the private servers' data, ports and passwords.
#
# It is .dev/servers. Where that path does not suit the servers it is a link to a folder under /var/tmp instead:
# PostgreSQL refuses to run as root, so root runs it as the user "postgres", who cannot enter every checkout; and
# RabbitMQ's start scripts split paths at spaces.
#
# With SERVERS_IN_MEMORY set there are other servers, whose folder .dev/memory is a link to one under /dev/shm.

if [[ -n ${SERVERS_IN_MEMORY:-} ]]; then
    readonly STATE_LINK=$DEV_DIR/memory
    readonly STATE_ELSEWHERE=/dev/shm/postrider-$CHECKOUT_ID
else
    readonly STATE_LINK=$DEV_DIR/servers
    readonly STATE_ELSEWHERE=/var/tmp/postrider-$CHECKOUT_ID
fi
STATE_DIR=$STATE_LINK # its real path, once use_state has found it

# as_postgres COMMAND...: as the user that may run PostgreSQL, from a folder that every user can enter.
as_postgres() (
    cd /
    if ((EUID == 0)); then
        exec setpriv --reuid=postgres --regid=postgres --init-groups -- "$@"
    fi
    exec "$@"
)

path_suits_servers() {
    [[ -z ${SERVERS_IN_MEMORY:-} && $DEV_DIR =~ ^[A-Za-z0-9/._-]+$ ]] || return 1
    ((EUID != 0)) || setpriv --reuid=nobody --regid=nogroup --clear-groups -- test -x "$DEV_DIR"
}

# Everybody may write to these folders, so a folder found there is trusted only when it is a real one of our own;
# the sticky bit keeps others from replacing it later.
claim_state_elsewhere() {
    mkdir -m 0711 -- "$STATE_ELSEWHERE" 2>/dev/null || true
    [[ $(stat -c '%F:%u' -- "$STATE_ELSEWHERE") == "directory:$EUID" ]] ||
        die "$STATE_ELSEWHERE belongs to another user: remove it, or move this checkout"
    chmod 0711 -- "$STATE_ELSEWHERE"
}

# A link made for another path came with a copied or moved checkout: following it would reach the other's servers.
# A link that leads nowhere is not ours either: nothing is lost with it.
state_is_ours() {
    [[ -d $STATE_LINK ]] && { [[ ! -L $STATE_LINK ]] || [[ $(readlink -- "$STATE_LINK") == "$STATE_ELSEWHERE" ]]; }
}

# use_state: finds the folder; fails when there is none yet.
use_state() {
    state_is_ours || return 1
    STATE_DIR=$(cd -- "$STATE_LINK" && pwd -P)
}

make_state() {
    make_dev_dir
    if [[ -L $STATE_LINK ]] && ! state_is_ours; then
        rm -- "$STATE_LINK"
    fi
    if [[ -d $STATE_LINK && ! -L $STATE_LINK ]]; then
        path_suits_servers || die "the servers cannot use $STATE_LINK any more: stop them and remove it"
    elif [[ ! -L $STATE_LINK ]] && path_suits_servers; then
        mkdir -m 0711 -- "$STATE_LINK"
    else
        claim_state_elsewhere
        ln -sfn -- "$STATE_ELSEWHERE" "$STATE_LINK"
    fi
    use_state
}
