# Sourced. Where this checkout keeps what it makes for development, and how the scripts speak to people.

CHECKOUT=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
DEV_DIR=$CHECKOUT/.dev
LOG_DIR=$DEV_DIR/log

# A number that differs between checkouts on one machine: names nodes and folders, and spreads ports.
CHECKOUT_ID=$(printf '%s' "$CHECKOUT" | cksum | cut -d' ' -f1)

say() { printf '%s\n' "$*" >&2; }

die() {
    say "error: $*"
    exit 1
}

# The default toolchain serves when it is of the version in rust-toolchain.toml, whatever its name: nothing is downloaded for a name.
use_toolchain_at_hand() {
    local wanted
    [[ -z ${RUSTUP_TOOLCHAIN:-} ]] && command -v rustup >/dev/null || return 0
    wanted=$(sed -n 's/^channel = "\(.*\)"$/\1/p' "$CHECKOUT/rust-toolchain.toml" 2>/dev/null || true)
    [[ -n $wanted ]] && ! rustup toolchain list | grep "^$wanted-" >/dev/null || return 0
    # From a folder to which rust-toolchain.toml does not apply.
    if [[ $(cd / && rustc --version 2>/dev/null) == "rustc $wanted "* ]]; then
        RUSTUP_TOOLCHAIN=$(cd / && rustup show active-toolchain | cut -d' ' -f1)
        export RUSTUP_TOOLCHAIN
    fi
}
use_toolchain_at_hand

# Folders others may pass through, whatever the caller's umask: a server under its own user needs to.
make_dev_dir() {
    [[ -d $DEV_DIR ]] || mkdir -m 0755 -- "$DEV_DIR"
    [[ -d $LOG_DIR ]] || mkdir -m 0755 -- "$LOG_DIR"
}

random_secret() {
    od -An -N20 -tx1 /dev/urandom | tr -d ' \n'
    printf '\n'
}

# write_private FILE: standard input becomes FILE, whole or not at all, for its owner's eyes only.
write_private() {
    local file=$1 partial
    partial=$(mktemp -- "$file.XXXXXX")
    cat >"$partial"
    mv -f -- "$partial" "$file"
}

# shell_line NAME VALUE: one NAME='value' line that any shell reads back unchanged.
shell_line() {
    local quote="'\\''"
    printf "%s='%s'\n" "$1" "${2//\'/$quote}"
}

# export_lines LINES: evaluates NAME='value' lines and exports the names.
export_lines() {
    set -a
    eval "$1"
    set +a
}
