# What the scripts of virtual machines share. Before it stand `suites`, `vectors`, `nnhal` and `steps`.
# shellcheck shell=sh
failed=""

# try STEP SECONDS COMMAND...: its output only if it fails, else its last line.
try() {
    step=$1 limit=$2
    shift 2
    if [ -n "$steps" ] && ! echo " $steps " | grep -q " $step "; then return; fi
    since=$(cut -d. -f1 /proc/uptime)
    status=0
    # A function of the script has its own end.
    if [ -x "$(command -v "$1")" ]; then
        timeout -s KILL "$limit" "$@" >/tmp/out 2>/tmp/errors || status=$?
    else
        "$@" >/tmp/out 2>/tmp/errors || status=$?
    fi
    took=$(($(cut -d. -f1 /proc/uptime) - since))
    if [ $status -eq 0 ]; then
        # Of vectors the sum, behind which is said why some were skipped.
        echo "ok      $step: $(grep "^all .* passed" /tmp/out || tail -n 1 /tmp/out) ($took s)"
    else
        if [ $status -eq 137 ]; then status="not in $limit s"; fi
        echo "FAILED  $step ($status)"
        tail -n 30 /tmp/out
        tr '\r' '\n' </tmp/errors | tail -n 5
        failed=yes
    fi
}

# await WORD: until the service has said it.
await() {
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        grep -q "$1" /tmp/service && return
        sleep 1
    done
    cat /tmp/service
}
