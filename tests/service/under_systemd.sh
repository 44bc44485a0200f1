# What tests/service/systemd runs in the virtual machine, as a unit of systemd.
# shellcheck shell=sh
export PATH=/bin:/usr/bin
socket=/run/nnhal/nnhal.sock
failed=""

try() {
    step=$1
    shift
    if "$@" >/tmp/out 2>&1; then
        echo "ok      $step: $(tail -n 1 /tmp/out)"
    else
        echo "FAILED  $step"
        tail -n 20 /tmp/out
        failed=yes
    fi
}
state() { [ "$(systemctl is-active nnhald.service)" = "$1" ]; }
main() { systemctl show -p MainPID --value nnhald.service; }
status() { timeout 120 nnhal service status --socket $socket; }
until_state() {
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        state "$1" && return 0
        sleep 1
    done
    return 1
}

mkdir -p /tmp
try "the group is made" sh -c 'systemd-sysusers && grep ^nnhal: /etc/group'
try "the socket is opened" systemctl start nnhald.socket
try "with its mode and group" sh -c "stat -c '%a %G' $socket | grep '660 nnhal'"
try "the service is not there yet" state inactive
try "the first connection starts it" status
try "it is there" state active
try "as no one" sh -c "stat -c %u /proc/$(main) | grep -v '^0$'"
# With its reason, so that nothing else keeps it away.
refused() {
    /usr/bin/setpriv --reuid=65534 --regid=65534 --clear-groups nnhal service status --socket $socket 2>&1 | tee /dev/stderr |
        grep -q Permission
}
try "others may not connect" refused
if [ -d /data/vectors ]; then
    try "vectors" timeout 300 nnhal conformance /data/vectors --device unix:$socket --paths all \
        --suite generated,dynamic_output_shape,short_output,quantization_coupling
fi
before=$(main)
try "settings are read again" systemctl reload nnhald.service
try "by the same process" [ "$(main)" = "$before" ]
kill -9 "$before"
sleep 2
try "what is killed is started again" until_state active
try "and serves" status
try "an orderly end" systemctl stop nnhald.service
try "it is gone" state inactive
try "the next connection starts it" status
systemctl stop nnhald.socket nnhald.service
try "the socket is removed" test ! -e $socket

[ -z "$failed" ]
echo "VM-EXIT $?"
poweroff -f
