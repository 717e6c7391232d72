# Sourced after checkout.sh, process.sh and package.sh. libfaketime, with which the fault harness sets clocks wrong, one process at a time.

faketime_is_there() { compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' >/dev/null; }

ensure_faketime_installed() {
    faketime_is_there && return
    make_dev_dir
    install_package libfaketime
    faketime_is_there || die "the package libfaketime brought no library"
}
