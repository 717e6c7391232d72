# Sourced after checkout.sh, process.sh, package.sh and python.sh. What the tests of Web Push with programs that are not ours share.

# Builds autoconnect and autoendpoint with PROFILE (dev unless set otherwise); BIN becomes the folder that they are in.
build_programs() {
    local profile=${PROFILE:-dev} folder
    folder=$profile
    [[ $folder != dev ]] || folder=debug
    # Of the whole workspace, so that what was built for the tests serves.
    say "building autoconnect and autoendpoint, profile $profile"
    (close_inherited_descriptors && cargo build --profile "$profile" --workspace --bin autoconnect --bin autoendpoint >&2)
    BIN=$(cd -- "${CARGO_TARGET_DIR:-target}" && pwd -P)/$folder
    export BIN
}

# ensure_python_packages REQUIREMENTS ENVIRONMENT MODULE [OPTION OF PIP...]: an environment of its own, as the other tests need none of
# its packages. MODULE is one of them.
ensure_python_packages() {
    local requirements=$1 environment=$2 module=$3 log=$LOG_DIR/$3-python.log
    shift 3
    if cmp -s -- "$requirements" "$environment/requirements.txt" && "$environment/bin/python" -c "import $module" 2>/dev/null; then
        return
    fi
    ensure_python_installed
    say "making the Python environment $environment"
    if ! {
        rm -rf -- "$environment" &&
            python3 -m venv -- "$environment" &&
            "$environment/bin/python" -m pip --disable-pip-version-check install \
                --require-hashes --only-binary :all: "$@" --requirement "$requirements"
    } >"$log" 2>&1; then
        show_log_tail "$log"
        die "$module could not be installed: it needs Python 3.10 or newer, and PyPI or a mirror of it (pip's own settings apply)"
    fi
    cp -- "$requirements" "$environment/requirements.txt"
}
