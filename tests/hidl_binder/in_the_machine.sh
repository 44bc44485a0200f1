# What tests/hidl_binder/run runs in the virtual machine, behind steps.sh.
# shellcheck shell=sh

hidl-binder-test manager &
hidl-binder-test service nnhal-reference >/dev/null 2>&1 &
sleep 1

for fault in base calls parcels notifications client stopped service many; do
    try $fault 120 hidl-binder-test faults $fault
done

# What vectors execute, without the mutants of their models, each of which is a call of its own.
executed="generated,dynamic_output_shape,short_output,quantization_coupling"
judge="hidl-binder-test conformance nnhal-reference"
if [ -n "$vectors" ] && [ $suites = sample ]; then
    try vectors 400 $judge /data --paths all --suite $executed
fi
paths="asynchronous burst fenced chained device_memory cached"
if [ $suites = all ]; then
    try contract 3600 $judge --contract --check-seconds 300
fi
if [ -n "$vectors" ] && [ $suites = all ]; then
    try vectors 7200 $judge /data --suite $executed,compliance,validation,timeout
    for path in $paths; do
        try vectors-$path 7200 $judge /data --paths $path --suite $executed
    done
    try callbacks 3600 $judge --by-callback /data --suite $executed
fi
try overhead 300 hidl-binder-test overhead nnhal-reference

if [ -n "$nnhal" ]; then
    serve() {
        nnhal service hidl --instance offered --devices $1 2>/tmp/service &
        service=$!
        await registered
    }
    serve nnhal-cpu
    try program-devices 60 sh -c 'nnhal devices | grep hidl:offered'
    if [ -n "$vectors" ] && [ $suites = sample ]; then
        try program-vectors 400 nnhal conformance /data --device hidl:offered --suite $executed
    elif [ -n "$vectors" ]; then
        for path in $paths; do
            try program-$path 7200 nnhal conformance /data --device hidl:offered --paths $path --suite $executed
        done
    fi
    if [ $suites = all ]; then
        try program-contract 3600 nnhal conformance --contract --check-seconds 300 --device hidl:offered
    fi
    kill $service
    # What is killed is gone.
    sleep 1
    try program-gone 60 sh -c '! nnhal devices | grep hidl:offered'
fi

[ -z "$failed" ]
