# Sourced after checkout.sh, process.sh and package.sh. Packages for Node.js, for tests against implementations that are not ours.
# Nothing of it is shipped.

readonly JAVASCRIPT_DIR=$DEV_DIR/javascript
readonly JAVASCRIPT_SOURCE=$CHECKOUT/sdks/interop/javascript
readonly JAVASCRIPT_HELP="Needed: Node.js 18 or newer with npm (Debian: apt-get install nodejs npm), and what
$JAVASCRIPT_SOURCE/package-lock.json lists, from npm's registry or a mirror of it (npm's own settings apply)."

ensure_node_installed() {
    command -v node >/dev/null || install_package nodejs "$JAVASCRIPT_HELP"
    command -v npm >/dev/null || install_package npm "$JAVASCRIPT_HELP"
}

# The list that the packages were installed from is kept with them.
javascript_packages_are_current() { cmp -s -- "$JAVASCRIPT_SOURCE/package-lock.json" "$JAVASCRIPT_DIR/installed.json"; }

# ensure_javascript_packages: sets NODE_PATH to where they are.
ensure_javascript_packages() {
    local log=$LOG_DIR/javascript.log
    ensure_node_installed
    lock javascript
    if ! javascript_packages_are_current; then
        say "installing packages for Node.js into $JAVASCRIPT_DIR"
        if ! {
            rm -rf -- "$JAVASCRIPT_DIR" &&
                mkdir -p -- "$JAVASCRIPT_DIR" &&
                cp -- "$JAVASCRIPT_SOURCE"/package*.json "$JAVASCRIPT_DIR" &&
                npm ci --prefix "$JAVASCRIPT_DIR" --ignore-scripts --no-audit --no-fund
        } >"$log" 2>&1; then
            show_log_tail "$log"
            say "$JAVASCRIPT_HELP"
            die "the packages for Node.js could not be installed"
        fi
        # Last, so that what was left half installed is installed again.
        cp -- "$JAVASCRIPT_SOURCE/package-lock.json" "$JAVASCRIPT_DIR/installed.json"
    fi
    export NODE_PATH=$JAVASCRIPT_DIR/node_modules
}
