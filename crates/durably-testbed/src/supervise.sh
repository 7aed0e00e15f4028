# Watches one private database server, and removes it when it is not used any more. Started by supervisor.rs, which
# says in the environment what to run; the arguments are settings of the server.
#
#   KIND       postgres or mysql
#   MODE       shared: until nobody holds a lock on $FOLDER/users.lock, and then for $LINGER seconds more
#              owned: until the end of the input, which has an order in each line
#   FOLDER     everything lies here; the server's data in $FOLDER/data
#   RUN_AS     the user to run the server as, or nothing
#   INIT, SERVE, ASK   the programs
#   PORT, PASSWORD     of the server; its user is durably
#   ORIGIN     the server whose data it begins with: for postgres how to connect to it; or nothing
#   ONCE       an argument for its first start alone, or nothing
#
# Answers on its output, a line each: ready, failed, stopped.

set -u
umask 077
# Whoever started us may be killed, and its terminal closed: that is when we are needed.
trap '' HUP INT PIPE
server=
hurry=
users=

case $KIND in
    # Not KILL: it would leave a segment of shared memory behind.
    postgres) immediate=QUIT gentle=INT ;;
    mysql) immediate=KILL gentle=TERM ;;
esac

# Becomes a command that runs as the server's user, without our locks, and that dies when we do. Only in a subshell.
become() {
    if [ -n "$RUN_AS" ]; then
        set -- --reuid="$RUN_AS" --regid="$RUN_AS" --init-groups -- "$@"
    else
        set -- -- "$@"
    fi
    trap - HUP INT PIPE
    export TMPDIR="$FOLDER/tmp"
    exec setpriv --pdeathsig="$immediate" "$@" </dev/null 8<&- 9<&-
}

give() {
    [ -z "$RUN_AS" ] || chown "$RUN_AS:" "$1"
}

# A program beside the one that makes a data folder.
beside() {
    echo "${INIT%/*}/$1"
}

init_postgres() {
    if [ -n "$ORIGIN" ]; then
        (become "$(beside pg_basebackup)" -D "$FOLDER/data" -d "$ORIGIN" --checkpoint=fast --write-recovery-conf --no-sync)
        return
    fi
    printf '%s\n' "$PASSWORD" >"$FOLDER/password"
    give "$FOLDER/password"
    # The password goes over the loopback in the clear, since hashing it takes a debug build longer than most tests.
    (become "$INIT" -D "$FOLDER/data" -U durably --pwfile="$FOLDER/password" --auth=password \
        --encoding=UTF8 --locale=C --no-sync)
}

serve_postgres() {
    become "$SERVE" -D "$FOLDER/data" -p "$PORT" -c listen_addresses=127.0.0.1 -c unix_socket_directories= "$@"
}

ask_postgres() {
    (become "$ASK" -q -h 127.0.0.1 -p "$PORT" -U durably -d postgres)
}

init_mysql() {
    # A node of a cluster has the users of the others.
    [ -n "$ORIGIN" ] || users=$FOLDER/users.sql
    cat >"$FOLDER/users.sql" <<END
ALTER USER root@localhost IDENTIFIED BY '$PASSWORD';
CREATE USER IF NOT EXISTS durably@'127.0.0.1' IDENTIFIED BY '$PASSWORD';
GRANT ALL ON *.* TO durably@'127.0.0.1' WITH GRANT OPTION;
END
    give "$FOLDER/users.sql"
    (become "$INIT" --no-defaults --datadir="$FOLDER/data" --auth-root-authentication-method=normal \
        --skip-test-db --skip-name-resolve --innodb-log-file-size=32M)
}

serve_mysql() {
    become "$SERVE" --no-defaults --datadir="$FOLDER/data" --port="$PORT" --bind-address=127.0.0.1 \
        --socket="$FOLDER/data/socket" --pid-file="$FOLDER/data/pid" \
        --skip-name-resolve --character-set-server=utf8mb4 ${users:+--init-file="$users"} "$@"
}

# How far a node of a cluster had come: where it is only behind, the others send what it lacks.
recovered() {
    (become "$SERVE" --no-defaults --datadir="$FOLDER/data" --pid-file="$FOLDER/data/pid" "$@" --wsrep-recover) 2>&1 \
        | sed -n 's/.*Recovered position: *//p' | tail -n 1
}

ask_mysql() {
    (become "$ASK" --no-defaults --protocol=socket --socket="$FOLDER/data/socket" ping)
}

init() {
    mkdir "$FOLDER/data" "$FOLDER/tmp" && give "$FOLDER/data" && give "$FOLDER/tmp" && "init_$KIND" >>"$FOLDER/server.log" 2>&1
}

# A server that ended is still there as a zombie, until we wait for it.
alive() {
    read -r state <"/proc/$server/stat" || return 1
    case $state in
        *') Z '*) return 1 ;;
    esac
}

start() {
    "serve_$KIND" "$@" >>"$FOLDER/server.log" 2>&1 &
    server=$!
    asked=0
    while alive; do
        "ask_$KIND" >/dev/null 2>&1 && alive && return 0
        asked=$((asked + 1))
        [ "$asked" -lt 1200 ] || break
        sleep 0.05 9<&-
    done
    stop "$immediate"
    return 1
}

# stop <signal>
stop() {
    [ -n "$server" ] || return 0
    kill -s "$1" "$server"
    wait "$server"
    server=
}

# What is being removed must not be found half removed by the next that looks for it.
remove() {
    mv "$FOLDER" "$FOLDER.gone.$$" && rm -rf "$FOLDER.gone.$$"
}

begin() {
    if init && start "$@" ${ONCE:+"$ONCE"}; then echo ready; else echo failed; fi
    users=
}

again() {
    case $* in
        *--wsrep_on=*) start "$@" --wsrep_start_position="$(recovered "$@")" ;;
        *) start "$@" ;;
    esac
}

# follow <port> <settings>: begins anew as a standby of the server there, which took its place.
follow() {
    ORIGIN="host=127.0.0.1 port=$1 user=durably password=$PASSWORD"
    shift
    rm -rf "$FOLDER/data" "$FOLDER/tmp" && init && start "$@"
}

# Without a word. PostgreSQL would leave a segment of shared memory behind, whose number stands in its file.
slay() {
    segment=$(sed -n '7s/.* //p' "$FOLDER/data/postmaster.pid" 2>/dev/null)
    stop KILL
    [ -z "$segment" ] || ipcrm -m "$segment"
}

# Somebody may have removed our folder, and another supervisor be at home there.
at_home() {
    [ "$FOLDER/users.lock" -ef "/proc/$$/fd/8" ]
}

linger() {
    [ -z "$hurry" ] || return 0
    sleep "$LINGER" 8<&- 9<&- &
    wait $!
    kill $!
}

share() {
    exec 9>"$FOLDER/supervisor.lock" 8<>"$FOLDER/users.lock"
    flock -n 9 || exit 1
    trap 'hurry=yes' TERM
    echo $$ >"$FOLDER/supervisor.pid"
    begin "$@"
    exec >/dev/null
    # After a failure the next that needs a server may try again.
    [ -n "$server" ] || exec 9<&-
    while :; do
        flock 8 9<&- && flock -u 8
        linger
        flock -n 8 && break
        hurry=
    done
    stop "$immediate"
    if at_home; then remove; fi
}

own() {
    mkdir "$FOLDER" && chmod 711 "$FOLDER" && exec 2>>"$FOLDER/supervisor.log" || exit 1
    begin "$@"
    while read -r order port; do
        case $order in
            start) if again "$@"; then echo ready; else echo failed; fi ;;
            follow) if follow "$port" "$@"; then echo ready; else echo failed; fi ;;
            kill) slay && echo stopped ;;
            stop) stop "$gentle" && echo stopped ;;
            stop-immediate) stop "$immediate" && echo stopped ;;
        esac
    done
    stop "$immediate"
    remove
}

case $MODE in
    shared)
        exec 2>>"$FOLDER/supervisor.log"
        share "$@"
        ;;
    owned) own "$@" ;;
esac
