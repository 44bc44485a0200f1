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
        grep -q "$1" /tmp/service 2>/dev/null && return
        sleep 1
    done
    cat /tmp/service
}

# What vectors execute, without the mutants of their models, each of which is a call of its own.
executed="generated,dynamic_output_shape,short_output,quantization_coupling"

# busy PROCESS: whether a process computes: half of two seconds of a processor.
busy() {
    # User-Mode Linux counts what a process computes as the system's.
    spent() { awk '{print $14 + $15}' /proc/$1/stat; }
    before=$(spent $1)
    sleep 2
    after=$(spent $1)
    echo "$((after - before)) of 200 ticks"
    [ $((after - before)) -gt 60 ]
}

# idle PROCESS: that no thread of a process wakes in 30 s, and what it holds.
idle() {
    woken() { cat /proc/$1/task/*/status | grep "ctxt_switches" | awk '{sum += $2} END {print sum}'; }
    sleep 5
    before=$(woken $1)
    sleep 30
    after=$(woken $1)
    awk -v woken=$((after - before)) '/^Threads|^VmRSS|^RssAnon/ {found = found " " $1 " " $2 " " $3} END {
        print "woken " woken " times in 30 s," found}' /proc/$1/status
    [ $after -eq $before ]
}

# try_program DEVICE: the program `nnhal` as a client of one that `serve` has started.
try_program() {
    device=$1
    try program-idle 60 idle $service
    try program-devices 60 sh -c "nnhal devices | grep $device"
    try program-model 120 sh -c "nnhal run /data/digits/digits_float32.tflite --input /data/digits/digit_7.png \
        --labels /data/digits/labels.txt --device $device | grep '7  7'"
    try program-idle-after 60 idle $service
    if [ -n "$vectors" ]; then
        try program-vectors 14000 nnhal conformance "$vectors" --device $device --paths all --suite $executed
    fi
    if [ $suites = all ]; then
        try program-contract 3600 nnhal conformance --contract --check-seconds 300 --device $device
    fi
    # What is killed is gone, and what returns is found.
    kill -9 $service
    sleep 1
    try program-gone 60 sh -c "! nnhal devices | grep $device"
    serve nnhal-cpu
    try program-returned 60 sh -c "nnhal devices | grep $device"
    kill $service
}
