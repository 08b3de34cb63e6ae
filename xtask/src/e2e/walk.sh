# Runs `make test-e2e` with and without a manager, and then `rbuilder undeploy` in a namespace that
# is shared. This runs in the project's folder.

programs=$PWD/../programs
log=$PWD/../log
test=$PWD/../test
kubectl=$(command -v kubectl)
cluster=$KUBECONFIG
# The test gets the kubeconfig from kind.
unset KUBECONFIG

# Writes a script that replaces a program.
stand_in() {
    mkdir -p "$programs"
    printf '#!/bin/sh\n%s\n' "$2" > "$programs/$1"
    chmod +x "$programs/$1"
}

stand_in docker ''
stand_in kind "case \"\$*\" in 'get kubeconfig'*) cat '$cluster' ;; esac"
# Without a kubelet, we can't forward a port.
stand_in kubectl "case \" \$* \" in
*' port-forward '*) echo 'Forwarding from $METRICS -> 8443'; exec sleep 600 ;;
*) exec '$kubectl' \"\$@\" ;;
esac"
PATH=$programs:$PATH

in_cluster() {
    KUBECONFIG=$cluster "$@"
}

# Checks that all texts are in the output of the test.
tested() {
    local part
    for part in "$@"; do
        grep --quiet --fixed-strings -- "$part" "$test" || {
            cat "$test" "$log"
            fail "\`make test-e2e\` does not print \`$part\`"
        }
    done
}

# The manager must be a process because there are no containers. It gets the ID of cargo, so don't
# start it with a function.
run in_cluster make install
run cargo build --quiet --bin manager
KUBECONFIG=$cluster cargo run --quiet --bin manager -- --health-probe-bind-address=0 \
    --metrics-bind-address="$METRICS" > "$log" 2>&1 &
manager=$!
trap 'kill $manager 2> /dev/null || true' EXIT

if ! run make test-e2e > "$test" 2>&1; then
    cat "$test" "$log"
    fail '`make test-e2e` failed'
fi
tested 'successfully rolled out' \
    'waiting for the status of Memcached.v1alpha1.example.com/memcached-sample' \
    'namespace "memcached-operator-system" deleted' \
    'test result: ok. 1 passed'

kill $manager
wait $manager || true
if run make test-e2e > "$test" 2>&1; then
    cat "$test"
    fail '`make test-e2e` passed without a manager'
fi
tested 'a client without a token must be refused' \
    'kubectl --namespace memcached-operator-system describe deployments,pods' \
    'Image:         example.com/memcached-operator:e2e' \
    'kubectl --namespace memcached-operator-system get events' \
    'test result: FAILED'
echo '`make test-e2e` passed beside a manager, and failed with a report without one'

# `rbuilder undeploy` must not remove a namespace which is shared, or objects of other users in it.
export KUBECONFIG=$cluster
edit config/default/kustomization.yaml 'namespace: memcached-operator-system' 'namespace: team'
run kubectl create namespace team
run kubectl label namespace team app.kubernetes.io/managed-by=platform
run kubectl create configmap precious --namespace team --from-literal=a=b
run rbuilder deploy --image example.com/memcached-operator:e2e
run kubectl wait --for=condition=established --timeout=60s crd/memcacheds.example.com
run kubectl apply --namespace team -f config/samples/v1alpha1_memcached.yaml
prints platform kubectl get namespace team \
    --output 'jsonpath={.metadata.labels.app\.kubernetes\.io/managed-by}'
# The deployment of the failed test is still there. Remove it first.
run rbuilder undeploy
run kubectl get clusterrole memcached-operator-manager-role
run kubectl get memcached memcached-sample --namespace team
run kubectl delete namespace memcached-operator-system
run rbuilder deploy --image example.com/memcached-operator:e2e

# There must be a message if an object can't be removed because of a finalizer. The manager must be
# there until all of its finalizers are removed.
finalize() {
    run kubectl patch memcached memcached-sample --namespace team --type merge \
        --patch "{\"metadata\":{\"finalizers\":$1}}"
}
finalize '["example.com/busy"]'
refuses 'Memcached team/memcached-sample (finalizer example.com/busy)' rbuilder undeploy --timeout 3
run kubectl get deployment memcached-operator-controller-manager --namespace team
finalize null
run rbuilder undeploy
run kubectl get configmap precious --namespace team
echo '`rbuilder undeploy` left a namespace of others as it was'
