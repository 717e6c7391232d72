# Sourced. A database for one script, on a server that is there.

run_sql() { psql --no-psqlrc --quiet --output=/dev/null --set=ON_ERROR_STOP=1 "$@"; }

# with_database NAME URL: the same server's other database.
with_database() {
    local name=$1 url=$2 query=
    if [[ $url == *\?* ]]; then
        query="?${url#*\?}"
        url=${url%%\?*}
    fi
    printf '%s/%s%s\n' "${url%/*}" "$name" "$query"
}
