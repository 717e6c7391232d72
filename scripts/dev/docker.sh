# Sourced after checkout.sh, process.sh and package.sh. Docker and Compose: those of this machine, or a private daemon that ends with the script.

readonly DOCKER_DIR=$DEV_DIR/docker
readonly DOCKER_HELP="Needed: a Docker daemon that this user reaches and Compose 2.20 or newer (https://docs.docker.com/engine/install/).
On Debian, root is enough: then Debian's docker.io and docker-compose are brought."

# ensure_docker: from here on, docker reaches a daemon and has Compose.
ensure_docker() {
    make_dev_dir
    mkdir -p -- "$DOCKER_DIR"
    docker info >/dev/null 2>&1 || start_docker
    docker compose version >/dev/null 2>&1 || use_brought_compose
}

# A daemon that knows nothing of another one on this machine: its images and volumes are in DOCKER_DIR.
start_docker() {
    command -v dockerd >/dev/null || install_package docker.io "$DOCKER_HELP"
    ((EUID == 0)) || {
        say "$DOCKER_HELP"
        die "no Docker daemon answers, and only root can start one"
    }
    export DOCKER_HOST=unix://$DOCKER_DIR/docker.sock
    say "starting a Docker daemon for this script"
    start_detached "$DOCKER_DIR/daemon.pid" "$LOG_DIR/docker.log" "$DOCKER_DIR" dockerd --host "$DOCKER_HOST" --data-root "$DOCKER_DIR/data" \
        --exec-root "$DOCKER_DIR/exec" --pidfile "$DOCKER_DIR/dockerd.pid"
    wait_until 60 docker info >/dev/null 2>&1 || {
        show_log_tail "$LOG_DIR/docker.log"
        die "the Docker daemon does not answer"
    }
}

# stop_docker: ends the daemon that start_docker started, if it did. Its images stay for the next time.
stop_docker() {
    local network=$DOCKER_DIR/exec/netns/default
    stop_process "$DOCKER_DIR/daemon.pid" "$DOCKER_DIR" dockerd TERM 60
    # The daemon leaves it behind, and then the folder could not be deleted.
    ! mountpoint --quiet -- "$network" || umount -- "$network"
}

# apt_of_trixie ARGUMENT...: apt-get with the packages of Debian 13. This machine's own lists and packages are not touched.
apt_of_trixie() {
    local apt=$DOCKER_DIR/apt
    mkdir -p -- "$apt/lists/partial" "$apt/cache/archives/partial"
    printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main\n' >"$apt/sources.list"
    apt-get -qq -o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$apt/lists" \
        -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root -o Acquire::Languages=none "$@"
}

use_brought_compose() {
    export DOCKER_CONFIG=$DOCKER_DIR/config
    [[ -x $DOCKER_CONFIG/cli-plugins/docker-compose ]] || bring_compose
}

# Debian 12 has Compose 1 alone. That of Debian 13 is one program that needs no library.
bring_compose() {
    local log=$LOG_DIR/compose.log plugins=$DOCKER_CONFIG/cli-plugins
    say "bringing Compose from a package of Debian 13"
    if ! {
        rm -rf -- "$DOCKER_DIR/package" &&
            mkdir -p -- "$DOCKER_DIR/package" "$plugins" &&
            apt_of_trixie update &&
            (cd -- "$DOCKER_DIR/package" && apt_of_trixie download docker-compose && dpkg-deb --extract ./*.deb .) &&
            mv -f -- "$DOCKER_DIR/package/usr/libexec/docker/cli-plugins/docker-compose" "$plugins/" &&
            rm -rf -- "$DOCKER_DIR/package"
    } >"$log" 2>&1; then
        show_log_tail "$log"
        say "$DOCKER_HELP"
        die "Compose could not be brought"
    fi
}
