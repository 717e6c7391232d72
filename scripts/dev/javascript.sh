# Sourced after checkout.sh, process.sh and package.sh. Packages for Node.js, for tests against implementations that are not ours.
# Nothing of it is shipped.

readonly JAVASCRIPT_HELP="Needed: Node.js 18 or newer with npm (Debian: apt-get install nodejs npm), and what
package-lock.json lists, from npm's registry or a mirror of it (npm's own settings apply)."

ensure_node_installed() {
    command -v node >/dev/null || install_package nodejs "$JAVASCRIPT_HELP"
    command -v npm >/dev/null || install_package npm "$JAVASCRIPT_HELP"
}

# Sets CHROMIUM to the browser that tests and measurements drive, unless it is set.
ensure_chromium_installed() {
    CHROMIUM=${CHROMIUM:-$(command -v chromium || true)}
    if [[ -z $CHROMIUM ]]; then
        install_package chromium "Needed: Chromium, or CHROMIUM as the path of a browser that is made of it."
        CHROMIUM=$(command -v chromium)
    fi
    export CHROMIUM
}

# ensure_javascript_packages SOURCE DIR: installs what SOURCE/package-lock.json lists into DIR, unless it is there, and sets NODE_PATH
# to it. The list that the packages were installed from is kept with them.
ensure_javascript_packages() {
    local source=$1 dir=$2 log=$LOG_DIR/javascript.log
    ensure_node_installed
    lock javascript
    if ! cmp -s -- "$source/package-lock.json" "$dir/installed.json"; then
        say "installing packages for Node.js into $dir"
        if ! {
            rm -rf -- "$dir" &&
                mkdir -p -- "$dir" &&
                cp -- "$source"/package*.json "$dir" &&
                npm ci --prefix "$dir" --ignore-scripts --no-audit --no-fund
        } >"$log" 2>&1; then
            show_log_tail "$log"
            say "$JAVASCRIPT_HELP"
            die "the packages for Node.js could not be installed"
        fi
        # Last, so that what was left half installed is installed again.
        cp -- "$source/package-lock.json" "$dir/installed.json"
    fi
    export NODE_PATH=$dir/node_modules
}
