# Sourced after checkout.sh, process.sh and package.sh. PgBouncer, which tests of the store start by themselves.

readonly PGBOUNCER=/usr/sbin/pgbouncer

ensure_pgbouncer_installed() {
    [[ -x $PGBOUNCER ]] && return
    make_dev_dir
    install_package pgbouncer
    [[ -x $PGBOUNCER ]] || die "the package pgbouncer brought no $PGBOUNCER"
}
