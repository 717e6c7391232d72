# Sourced after checkout.sh and process.sh. Makes sure that programs, most of them servers', are on the machine.

readonly SELF_HELP="Needed: Linux with PostgreSQL 15 or newer and RabbitMQ 3.10 or newer installed (they need not run).
Other ways: set DATABASE_URL and AMQP_URL to servers you have, or let 'docker compose up' bring everything."

require_linux() {
    [[ $OSTYPE == linux* ]] && return
    say "$SELF_HELP"
    die "private servers need Linux, this is $OSTYPE"
}

# run_as_root COMMAND...: directly, or through sudo; asks for a password only where a person can type one.
run_as_root() {
    if ((EUID == 0)); then
        "$@"
    elif ! command -v sudo >/dev/null; then
        return 1
    elif sudo -n true 2>/dev/null; then
        sudo -n -- "$@"
    elif [[ -t 0 && -t 2 ]]; then
        sudo -- "$@"
    else
        return 1
    fi
}

# install_package PACKAGE [HELP]: through apt, without starting or changing any server of the system. HELP says what is needed when
# that fails; it is about servers unless given.
install_package() {
    local package=$1 help=${2:-$SELF_HELP} log=$LOG_DIR/apt.log
    if ! command -v apt-get >/dev/null; then
        say "$help"
        die "$package is not installed, and there is no apt-get to install it with"
    fi
    say "installing $package with apt: usually half a minute"
    if ! run_as_root "$CHECKOUT/scripts/dev/install-package" "$package" >"$log" 2>&1; then
        show_log_tail "$log"
        say "$help"
        die "could not install $package; as root: apt-get install $package"
    fi
}
