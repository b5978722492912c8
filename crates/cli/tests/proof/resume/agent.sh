# An agent with a plan of seven steps. Doing a step twice, or half of it, gives another world: it adds lines, rows and counts.
#
# BACKOUT is the program, KILL_CALL the number of the call that is aborted at its crash point KILL_POINT, after which the agent
# dies too; POINTS, if set, is a directory that gets the points of each call.
set -eu
calls=0
ask() {
    calls=$((calls + 1))
    if [ "$calls" = "${KILL_CALL:-0}" ]; then
        BACKOUT_CRASH_AT="$KILL_POINT" "$BACKOUT" "$@" || true
        kill -9 $$
    elif [ -n "${POINTS:-}" ]; then
        BACKOUT_CRASH_LOG="$POINTS/$calls" "$BACKOUT" "$@"
    else
        "$BACKOUT" "$@"
    fi
}
mine() { ask --agent robin --task plan "$@" >/dev/null; }
reached() { mine checkpoint "step-$1" --step "$1/7" --state "{\"next\": $(($1 + 1))}" --decision "did $1"; }

if ask --agent robin resume plan >answer 2>complaint; then
    next=$(sed -n 's/^go on at step \([0-9]*\) of 7 .*/\1/p' answer)
    next=${next:-8}
elif grep -q 'there is no task' complaint; then
    mine task begin plan
    reached 0
    next=1
elif grep -q 'no checkpoint to go on from' complaint; then
    reached 0
    next=1
elif grep -q 'has ended' complaint; then
    exit 0
else
    cat complaint
    exit 1
fi

count() { sed -n "s/^$1 = \([0-9]*\).*/\1/p" app.toml; }
while [ "$next" -le 7 ]; do
    case $next in
    1) mine write --append notes --text "one
" ; mine set app.toml count "$(($(count count) + 1))" ;;
    2) mine sql --db app.db "INSERT INTO t (word) VALUES ('two')" ; mine write --append notes --text "two
" ;;
    3) mine set app.toml port "$(($(count port) + 1))" ; mine set app.toml count "$(($(count count) + 1))" ;;
    4) mine sql --db app.db "UPDATE t SET word = word || '+'" ; mine rm old ;;
    5) mine mkdir made ; mine write made/five --text "five" ; mine mv other made/other ;;
    6) mine run -- sh -c 'echo six >>notes; echo six >made/six' ; mine set app.toml port "$(($(count port) + 1))" ;;
    7) mine sql --db app.db "INSERT INTO t (word) VALUES ('seven')" ; mine edit notes --search one --replace "$(tr '\n' ' ' <notes)" ;;
    esac
    reached "$next"
    next=$((next + 1))
done
ask --agent robin commit plan >/dev/null
