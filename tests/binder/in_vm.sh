# What tests/binder/run runs in the virtual machine, behind steps.sh: a service manager, services and clients, each a process.
# shellcheck shell=sh

# Where rsbinder's service manager looks for binder.
mkdir -p /dev/binderfs
ln -s ../binder /dev/binderfs/binder
rsb_hub --insecure-allow-all >/dev/null 2>&1 &
sleep 2

if [ $suites != part ]; then
    serve() {
        kernel_binder serve 2>/tmp/service &
        service=$!
        await offering
    }
    serve

    if [ -n "$vectors" ] && [ $suites = sample ]; then
        try vectors 400 kernel_binder "$vectors" --paths all --suite $executed
    fi
    if [ $suites = all ]; then
        try contract 3600 kernel_binder --contract --check-seconds 300
    fi
    if [ -n "$vectors" ] && [ $suites = all ]; then
        try vectors 7200 kernel_binder "$vectors" --suite $executed,compliance,validation,timeout
        for path in asynchronous burst fenced chained device_memory cached; do
            try vectors-$path 7200 kernel_binder "$vectors" --paths $path --suite $executed
        done
    fi
    try overhead 300 kernel_binder overhead

    # A client that is killed during an execution ends that.
    kernel_binder endless >/dev/null 2>&1 &
    client=$!
    sleep 5
    try computes 30 busy $service
    kill -9 $client
    sleep 2
    stopped() { ! busy $service; }
    try stopped 30 stopped

    # A service that has died, and returned.
    kill -9 $service
    sleep 1
    try gone 60 sh -c '! kernel_binder --contract --filter dev_info >/dev/null 2>&1'
    serve
    try returned 120 kernel_binder --contract --filter DEV-INFO
    kill -9 $service
fi

if [ -n "$nnhal" ]; then
    serve() {
        nnhal service aidl --instance nnhal-offered --devices $1 2>/tmp/service &
        service=$!
        await offering
    }
    serve nnhal-cpu
    try_program aidl:nnhal-offered
fi

# What the kernel says of references that do not add up; of the manager's, 0, it does where there is none yet.
counted() { ! dmesg | grep "bad handle\|on invalid ref [1-9]"; }
try references 30 counted

[ -z "$failed" ]
