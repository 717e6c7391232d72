# Sourced after checkout.sh and process.sh. A binary of an earlier version, built from the history.

readonly PREVIOUS_DIR=$DEV_DIR/previous
readonly PREVIOUS_POSTRIDER=$PREVIOUS_DIR/target/debug/postrider
readonly MEASURED_DIR=$PREVIOUS_DIR/measured

# A line for each migration of the checkout, and of a revision: what it holds, and its name.
migrations_here() { paste -d' ' <(git hash-object -- migrations/*.sql) <(printf '%s\n' migrations/*.sql) | sort; }
migrations_of() { git ls-tree -r --format='%(objectname) %(path)' "$1" -- migrations | sort; }

# has_older_schema REVISION: its migrations are some of those that are here, and not all.
has_older_schema() {
    local here its
    here=$(migrations_here)
    its=$(migrations_of "$1")
    [[ -n $its && $its != "$here" ]] && [[ -z $(comm -13 <(printf '%s\n' "$here") <(printf '%s\n' "$its")) ]]
}

# known_revision NAME: its full identifier, if it is in the history.
known_revision() { [[ -n $1 ]] && git rev-parse --verify --quiet "$1^{commit}"; }

# The last version before the schema changed; nothing when the history does not reach so far.
previous_revision() {
    local changed candidate
    if has_older_schema HEAD; then
        echo HEAD
        return
    fi
    while read -r changed; do
        candidate=$(known_revision "$changed^") || continue
        if has_older_schema "$candidate"; then
            printf '%s\n' "$candidate"
            return
        fi
    done < <(git log --format=%H -- migrations)
}

# unpack REVISION: its files, unless they are there. Files are as new as their unpacking, because cargo goes by that. They
# are no worktree, since that would leave its mark on the repository.
unpack() {
    local revision=$1 source=$PREVIOUS_DIR/source
    [[ $(cat -- "$PREVIOUS_DIR/revision" 2>/dev/null) != "$revision" ]] || return 0
    rm -rf -- "$source" "$PREVIOUS_DIR/revision"
    mkdir -p -- "$source"
    git archive --format=tar "$revision" | tar --extract --touch --directory="$source"
    printf '%s\n' "$revision" >"$PREVIOUS_DIR/revision"
}

# build_previous REVISION: makes PREVIOUS_POSTRIDER. Everything but the workspace's own crates has been built for the checkout
# already, if the lock file says the same, and is used again. The binary alone has a folder of its own, since it is named as
# that of the checkout is. Asking for examples, of which there are none, makes cargo choose the features of dependencies as for
# 'cargo test --workspace', and compiles nothing.
#
# Cargo tells the crates of two workspaces apart by their paths within them alone, and would go on with those of the earlier
# version for the checkout. An amount of debug information that nothing else is built with gives them names of their own; the
# manifest keeps dependencies without any.
build_previous() {
    local revision=$1 shared
    make_dev_dir
    lock previous
    unpack "$revision"
    say "building the version of ${revision:0:7}"
    shared=$(realpath -m -- "${CARGO_TARGET_DIR:-target}")
    (
        close_inherited_descriptors
        cd -- "$PREVIOUS_DIR/source"
        SQLX_OFFLINE=true CARGO_INCREMENTAL=0 \
            CARGO_PROFILE_DEV_DEBUG=line-directives-only CARGO_PROFILE_TEST_DEBUG=line-directives-only \
            CARGO_TARGET_DIR=$PREVIOUS_DIR/target CARGO_BUILD_BUILD_DIR=$shared \
            cargo build --locked --workspace --bin postrider --examples >&2
    )
    [[ -x $PREVIOUS_POSTRIDER ]] || die "$PREVIOUS_POSTRIDER was not built"
}

# build_previous_to_measure REVISION PROFILE: makes PREVIOUS_TO_MEASURE, with the flags that the checkout's own program is built
# with. It shares nothing with the checkout: what tells the crates of the two apart above would be a flag more for one of them.
build_previous_to_measure() {
    local revision=$1 profile=$2 folder
    make_dev_dir
    lock previous
    unpack "$revision"
    say "building the version of ${revision:0:7}, profile $profile: the first time as long as everything takes, then what differs"
    (
        close_inherited_descriptors
        cd -- "$PREVIOUS_DIR/source"
        SQLX_OFFLINE=true CARGO_TARGET_DIR=$MEASURED_DIR CARGO_BUILD_BUILD_DIR=$MEASURED_DIR \
            cargo build --locked --profile "$profile" --package cli >&2
    )
    folder=$profile
    [[ $folder != dev ]] || folder=debug
    PREVIOUS_TO_MEASURE=$MEASURED_DIR/$folder/postrider
    [[ -x $PREVIOUS_TO_MEASURE ]] || die "$PREVIOUS_TO_MEASURE was not built"
}
