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
