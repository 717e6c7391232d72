# Sourced after checkout.sh, process.sh and package.sh. A Python environment of this checkout, for tests against implementations
# that are not ours. Nothing of it is shipped.

readonly PYTHON_DIR=$DEV_DIR/python
readonly PYTHON_REQUIREMENTS=$CHECKOUT/scripts/dev/python-requirements.txt
readonly PYTHON_HELP="Needed: Python 3.9 or newer with venv and pip (Debian: apt-get install python3-venv), and what
$PYTHON_REQUIREMENTS lists, from PyPI or a mirror of it (pip's own settings apply, such as PIP_INDEX_URL)."

# has_python_packages PYTHON: it runs, and has what the tests import.
has_python_packages() { "$1" -c 'import flask, psycopg, standardwebhooks, vermin' 2>/dev/null; }

# The list that the environment was made from is kept in it.
python_environment_is_current() {
    cmp -s -- "$PYTHON_REQUIREMENTS" "$PYTHON_DIR/requirements.txt" && has_python_packages "$PYTHON_DIR/bin/python"
}

# Debian splits venv and pip off; elsewhere they come with Python.
ensure_python_installed() {
    python3 -c 'import venv, ensurepip' 2>/dev/null || install_package python3-venv "$PYTHON_HELP"
}

make_python_environment() {
    local log=$LOG_DIR/python.log
    ensure_python_installed
    say "making the Python environment $PYTHON_DIR"
    if ! {
        rm -rf -- "$PYTHON_DIR" &&
            python3 -m venv -- "$PYTHON_DIR" &&
            "$PYTHON_DIR/bin/python" -m pip --disable-pip-version-check install \
                --require-hashes --only-binary :all: --requirement "$PYTHON_REQUIREMENTS" &&
            has_python_packages "$PYTHON_DIR/bin/python"
    } >"$log" 2>&1; then
        show_log_tail "$log"
        say "$PYTHON_HELP"
        die "the Python environment could not be made"
    fi
    # Last, so that an environment that was left half made is made again.
    cp -- "$PYTHON_REQUIREMENTS" "$PYTHON_DIR/requirements.txt"
}

# ensure_python_packages REQUIREMENTS ENVIRONMENT MODULE [OPTION OF PIP...]: an environment of its own, as the other tests need none of
# its packages. MODULE is one of them, or a program that one of them brings.
ensure_python_packages() {
    local requirements=$1 environment=$2 module=$3 log=$LOG_DIR/$3-python.log
    shift 3
    if cmp -s -- "$requirements" "$environment/requirements.txt" &&
        { [[ -x $environment/bin/$module ]] || "$environment/bin/python" -c "import $module" 2>/dev/null; }; then
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
