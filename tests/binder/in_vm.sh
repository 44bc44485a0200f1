# What tests/binder/run runs in the virtual machine, behind steps.sh: a service manager, services and clients, each a process.
# shellcheck shell=sh

# Where rsbinder's service manager looks for binder.
mkdir -p /dev/binderfs
ln -s ../binder /dev/binderfs/binder
rsb_hub --insecure-allow-all >/dev/null 2>&1 &
sleep 2

serve() {
    kernel_binder serve 2>/tmp/service &
    service=$!
    await offering
}
serve

executed="generated,dynamic_output_shape,short_output,quantization_coupling"
if [ -n "$vectors" ] && [ $suites = sample ]; then
    try vectors 400 kernel_binder /data --paths all --suite $executed
fi
if [ $suites = all ]; then
    try contract 3600 kernel_binder --contract --check-seconds 300
fi
if [ -n "$vectors" ] && [ $suites = all ]; then
    try vectors 7200 kernel_binder /data --suite $executed,compliance,validation,timeout
    for path in asynchronous burst fenced chained device_memory cached; do
        try vectors-$path 7200 kernel_binder /data --paths $path --suite $executed
    done
fi
try overhead 300 kernel_binder overhead

# A client that is killed during an execution ends that.
kernel_binder endless >/dev/null 2>&1 &
client=$!
busy() {
    before=$(cut -d' ' -f14 /proc/$service/stat)
    sleep 2
    after=$(cut -d' ' -f14 /proc/$service/stat)
    echo "$((after - before)) of 200 ticks"
    [ $((after - before)) -gt 60 ]
}
sleep 5
try computes 30 busy
kill -9 $client
sleep 2
stopped() { ! busy; }
try stopped 30 stopped

# A service that has died, and returned.
kill -9 $service
sleep 1
try gone 60 sh -c '! kernel_binder --contract --filter dev_info >/dev/null 2>&1'
serve
try returned 120 kernel_binder --contract --filter DEV-INFO

if [ -n "$nnhal" ]; then
    kill -9 $service
    nnhal service aidl --instance offered --devices nnhal-cpu 2>/tmp/service &
    service=$!
    await offering
    try program-devices 60 sh -c 'nnhal devices | grep aidl:offered'
    if [ -n "$vectors" ]; then
        try program-vectors 3600 nnhal conformance /data --device aidl:offered --suite $executed
    fi
    kill $service
fi

[ -z "$failed" ]
