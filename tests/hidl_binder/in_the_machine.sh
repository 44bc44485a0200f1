# What tests/hidl_binder/run runs in the virtual machine, behind steps.sh.
# shellcheck shell=sh

hidl-binder-test manager &
sleep 1

if [ $suites != part ]; then
    hidl-binder-test service nnhal-reference >/dev/null 2>&1 &
    sleep 1
    for fault in base calls parcels notifications client stopped service many; do
        try $fault 120 hidl-binder-test faults $fault
    done
fi

judge="hidl-binder-test conformance nnhal-reference"
if [ -n "$vectors" ] && [ $suites = sample ]; then
    try vectors 400 $judge "$vectors" --paths all --suite $executed
fi
paths="asynchronous burst fenced chained device_memory cached"
if [ $suites = all ]; then
    try contract 3600 $judge --contract --check-seconds 300
fi
if [ -n "$vectors" ] && [ $suites = all ]; then
    try vectors 7200 $judge "$vectors" --suite $executed,compliance,validation,timeout
    for path in $paths; do
        try vectors-$path 7200 $judge "$vectors" --paths $path --suite $executed
    done
    try callbacks 3600 $judge --by-callback "$vectors" --suite $executed
fi
if [ $suites != part ]; then
    try overhead 300 hidl-binder-test overhead nnhal-reference
fi

if [ -n "$nnhal" ]; then
    serve() {
        nnhal service hidl --instance nnhal-offered --devices $1 2>/tmp/service &
        service=$!
        await registered
    }
    serve nnhal-cpu
    try_program hidl:nnhal-offered
fi

[ -z "$failed" ]
