# What tests/hidl_binder/run runs in the virtual machine. Before it stand `suites`, `vectors` and `nnhal`.
# shellcheck shell=sh
failed=""

# try NAME COMMAND...: its output only if it fails, else its last line.
try() {
    name=$1
    shift
    if "$@" >/tmp/out 2>/tmp/errors; then
        echo "ok      $name: $(tail -n 1 /tmp/out)"
    else
        echo "FAILED  $name"
        tail -n 30 /tmp/out
        tr '\r' '\n' </tmp/errors | tail -n 5
        failed=yes
    fi
}

hidl-binder-test manager &
hidl-binder-test service nnhal-reference >/dev/null 2>&1 &
sleep 1

for fault in base calls parcels client service many; do
    try "$fault" hidl-binder-test faults $fault
done

judge="hidl-binder-test conformance nnhal-reference"
if [ -n "$vectors" ] && [ $suites = sample ]; then
    # Not the mutants of their models, each of which is a call of its own.
    executed="generated,dynamic_output_shape,short_output,quantization_coupling"
    try "a few vectors, by all paths" $judge /data --paths all --suite $executed
elif [ -n "$vectors" ]; then
    try "vectors, by all paths" $judge /data --paths all
    try "vectors, by callbacks" $judge --by-callback /data
fi
if [ $suites = all ]; then
    try "the contract" $judge --contract
fi

if [ -n "$nnhal" ]; then
    nnhal service hidl --instance offered --devices nnhal-reference 2>/tmp/service &
    service=$!
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        grep -q registered /tmp/service && break
        sleep 1
    done
    try "nnhal devices lists it" sh -c 'nnhal devices | grep hidl:offered'
    if [ -n "$vectors" ]; then
        try "nnhal conformance" nnhal conformance /data --device hidl:offered --suite generated
    fi
    kill $service
    # What is killed is gone.
    sleep 1
    try "and it is gone" sh -c '! nnhal devices | grep hidl:offered'
fi

[ -z "$failed" ]
