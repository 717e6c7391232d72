# Sourced after checkout.sh, process.sh and package.sh. Prometheus' own tool for checking rules; nothing of it is installed.

readonly PROMTOOL_DIR=$DEV_DIR/promtool
readonly PROMTOOL_HELP="Needed: promtool, of Prometheus 2.42 or newer, on the PATH or named by PROMTOOL.
Debian has it in the package prometheus, others at https://prometheus.io/download/ (Homebrew: brew install prometheus)."

# ensure_promtool: sets PROMTOOL to a promtool that runs.
ensure_promtool() {
    PROMTOOL=${PROMTOOL:-$(command -v promtool || true)}
    if [[ -z $PROMTOOL ]]; then
        lock promtool
        PROMTOOL=$PROMTOOL_DIR/usr/bin/promtool
        [[ -x $PROMTOOL ]] || unpack_promtool
    fi
    "$PROMTOOL" --version >/dev/null 2>&1 || {
        say "$PROMTOOL_HELP"
        die "$PROMTOOL does not run"
    }
}

# The package is only unpacked: installing it would bring a service that starts, which is not needed here.
unpack_promtool() {
    local log=$LOG_DIR/promtool.log
    if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
        say "$PROMTOOL_HELP"
        die "there is no promtool, and no apt-get to bring it"
    fi
    say "unpacking promtool from Debian's package prometheus"
    # A stale list names files that the mirror no longer has: one fresh list, one more try.
    if ! { download_promtool || { run_as_root apt-get -qq update && download_promtool; }; } >"$log" 2>&1; then
        show_log_tail "$log"
        say "$PROMTOOL_HELP"
        die "promtool could not be brought"
    fi
}

# Whole or not at all: an interrupted download leaves nothing that looks like a tool.
download_promtool() {
    local partial=$PROMTOOL_DIR.partial
    rm -rf -- "$partial" "$PROMTOOL_DIR" &&
        mkdir -p -- "$partial" &&
        (cd -- "$partial" && apt-get -qq -o Acquire::Retries=3 download prometheus) &&
        dpkg-deb --extract "$partial"/prometheus_*.deb "$partial" &&
        rm -f -- "$partial"/prometheus_*.deb "$partial/usr/bin/prometheus" &&
        mv -- "$partial" "$PROMTOOL_DIR"
}
