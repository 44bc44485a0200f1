# What the virtual machine does: a service manager, a service and a client, three processes.
cd /tmp
tar xf /bin/vectors.tar
rsb_hub --insecure-allow-all & manager=$!
sleep 1
kernel_binder serve & service=$!
sleep 2
echo "--- vectors by kernel binder"
kernel_binder vectors --paths all --filter "${FILTER:-add_}" || exit 1
echo "--- the contract by kernel binder"
kernel_binder --contract | grep -v kept || true
echo "--- a service that has died, and returned"
kill -9 $service
wait $service 2>/dev/null
kernel_binder vectors --filter add_ 2>&1 | tail -2
kernel_binder serve & service=$!
sleep 2
kernel_binder vectors --filter add_ || exit 1
kill $service $manager
exit 0
