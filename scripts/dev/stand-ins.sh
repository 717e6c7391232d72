# Sourced after checkout.sh, process.sh, package.sh and docker.sh. The images that docker-compose.yml and the Dockerfile name: the real ones where
# they are here or a registry is reached, else stand-ins, made of Debian's packages.
#
# A stand-in has an image's name only while the script runs, so that it is never taken for the real one afterwards.

readonly STAND_IN=postrider-stand-in

borrowed_tags=()
stood_in=()

image_id() { docker image inspect --format '{{.Id}}' "$1" 2>/dev/null; }

# tag_for_now NAME IMAGE: IMAGE has this name until return_tags.
tag_for_now() {
    borrowed_tags+=("$1 $(image_id "$1" || true)")
    docker image tag "$2" "$1"
}

return_tags() {
    local tag name id
    for tag in "${borrowed_tags[@]}"; do
        read -r name id <<<"$tag"
        docker image rm --no-prune "$name" >/dev/null || true
        [[ -z $id ]] || docker image tag "$id" "$name"
    done
    borrowed_tags=()
}

# ensure_image NAME COMMAND...: the image of this name, or what COMMAND makes as STAND_IN:TAG, of which it prints the tag.
ensure_image() {
    local name=$1 tag
    shift
    image_id "$name" >/dev/null && return
    timeout 300 docker pull --quiet "$name" >/dev/null 2>&1 && return
    tag=$("$@")
    tag_for_now "$name" "$STAND_IN:$tag"
    stood_in+=("$name")
}

# import_debian SUITE: the smallest Debian of that name.
import_debian() {
    local suite=$1 log=$LOG_DIR/debootstrap.log root
    if ! image_id "$STAND_IN:$suite" >/dev/null; then
        command -v debootstrap >/dev/null || install_package debootstrap "$DOCKER_HELP"
        say "making an image of Debian $suite"
        root=$(mktemp -d -- "$DOCKER_DIR/$suite.XXXXXX")
        if ! run_as_root debootstrap --variant=minbase "$suite" "$root" http://deb.debian.org/debian >"$log" 2>&1; then
            show_log_tail "$log"
            run_as_root rm -rf -- "$root"
            die "debootstrap failed"
        fi
        run_as_root tar --numeric-owner --directory "$root" --exclude='./var/cache/apt/archives/*.deb' --create . |
            docker import --change 'CMD ["bash"]' - "$STAND_IN:$suite" >/dev/null
        run_as_root rm -rf -- "$root"
    fi
    printf '%s\n' "$suite"
}

# build_stand_in SERVER: of testing/compose/SERVER.
build_stand_in() {
    local server=$1
    import_debian trixie >/dev/null
    say "making a stand-in for the image of $server"
    build_image --build-arg "BASE=$STAND_IN:trixie" --tag "$STAND_IN:$server" "$CHECKOUT/testing/compose/$server"
    printf '%s\n' "$server"
}

# build_image ARGUMENT...: in the network of this machine, since that of a container may not have a resolver that answers.
build_image() {
    local log=$LOG_DIR/images.log
    docker build --network host "$@" >"$log" 2>&1 || {
        show_log_tail "$log"
        die "an image could not be built"
    }
}

# build_last_stage PROGRAM DOCS: STAND_IN:postrider, the image of the Dockerfile's last stage, for which the stages before it are not run: PROGRAM and the
# folder DOCS are in their place.
build_last_stage() {
    local context
    context=$(mktemp -d -- "$DOCKER_DIR/context.XXXXXX")
    mkdir -- "$context/out"
    cp -- "$1" "$context/out/postrider"
    cp -R -- "$2" "$context/out/docs"
    printf 'FROM scratch\nCOPY out /out\n' >"$context/Dockerfile"
    build_image --tag "$STAND_IN:outside" "$context"
    rm -rf -- "$context"
    {
        printf 'FROM %s:outside AS %s\n' "$STAND_IN" build "$STAND_IN" docs
        awk '/^FROM / { stage = "" } { stage = stage $0 "\n" } END { printf "%s", stage }' "$CHECKOUT/Dockerfile"
    } | build_image --tag "$STAND_IN:postrider" -
}

# Those of the servers and of Debian stay for the next time.
drop_last_stage() { docker image rm "$STAND_IN:postrider" "$STAND_IN:outside" >/dev/null 2>&1 || true; }
