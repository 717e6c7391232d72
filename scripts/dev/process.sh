# Sourced after checkout.sh. Background processes: started free of the caller, recognised again, stopped.
#
# A process id alone proves nothing after a reboot or in a copied checkout, so every process is recognised by its
# pid file together with its working folder and its program's name.

# Daemons must not hold the caller's lock, the job pipes of make, or the pipe of a caller that captures output.
close_inherited_descriptors() {
    local descriptor
    for descriptor in "/proc/$BASHPID/fd/"*; do
        descriptor=${descriptor##*/}
        if ((descriptor > 2 && descriptor != 255)); then
            eval "exec $descriptor>&-"
        fi
    done
}

# lock NAME: waits until no other script of this checkout does NAME; held until this script ends.
lock() {
    local descriptor
    make_dev_dir
    exec {descriptor}>"$DEV_DIR/$1.lock"
    flock "$descriptor"
}

# start_detached PIDFILE LOG DIR COMMAND...: runs COMMAND in DIR, in a session of its own.
start_detached() {
    local pid_file=$1 log=$2 dir=$3
    shift 3
    (
        cd -- "$dir"
        exec </dev/null >>"$log" 2>&1
        close_inherited_descriptors
        exec setsid -- "$@"
    ) &
    printf '%s\n' "$!" >"$pid_file"
    # Until then the process has this shell's name, and a process that looks for it would take it for dead.
    wait_until 10 is_past_the_shell "$!"
}

is_past_the_shell() { [[ $(cat "/proc/$1/comm" 2>/dev/null) != @(bash|setsid) ]]; }

# owned_pid PIDFILE DIR NAME: prints the pid when the process of that pid file is alive and is ours.
owned_pid() {
    local pid_file=$1 dir=$2 name=$3 pid
    [[ -r $pid_file ]] || return 1
    read -r pid <"$pid_file" || return 1
    [[ $pid =~ ^[0-9]+$ ]] || return 1
    [[ $(readlink -- "/proc/$pid/cwd" 2>/dev/null) == "$dir" ]] || return 1
    [[ $(cat "/proc/$pid/comm" 2>/dev/null) == "${name:0:15}" ]] || return 1
    printf '%s\n' "$pid"
}

# wait_until SECONDS COMMAND...: repeats COMMAND until it succeeds; fails when the time is over.
wait_until() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < deadline)) || return 1
        sleep 0.1
    done
}

# no_process_in DIR: no process works in DIR, not even a child that outlived its server.
no_process_in() {
    local cwd
    for cwd in /proc/[0-9]*/cwd; do
        [[ $(readlink -- "$cwd" 2>/dev/null) != "$1" ]] || return 1
    done
}

is_gone() { ! owned_pid "$@" >/dev/null; }

# stop_process PIDFILE DIR NAME SIGNAL SECONDS: asks with SIGNAL, and insists with SIGKILL when the time is over.
stop_process() {
    local pid_file=$1 dir=$2 name=$3 signal=$4 seconds=$5 pid
    if pid=$(owned_pid "$pid_file" "$dir" "$name"); then
        kill -s "$signal" -- "$pid" 2>/dev/null || true
        if ! wait_until "$seconds" is_gone "$pid_file" "$dir" "$name"; then
            say "$name (pid $pid) did not stop within $seconds s: killing it"
            kill -s KILL -- "$pid" 2>/dev/null || true
            wait_until 10 is_gone "$pid_file" "$dir" "$name" || die "$name (pid $pid) cannot be killed"
        fi
    fi
    rm -f -- "$pid_file"
}

# show_log_tail LOG: the end of a log, for a failure that it explains.
show_log_tail() {
    say "--- the end of $1"
    tail -n 30 -- "$1" >&2 2>/dev/null || true
    say "---"
}
