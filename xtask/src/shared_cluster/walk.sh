# Deploys the project and removes it again. This runs in a folder with two checkouts, green and shop.
# Everything except for `platform` runs as the user of the project.

here=$PWD
group=cache.example.com
manager='deployment workshop-controller-manager --namespace green'

platform() {
    KUBECONFIG=$here/admin.kubeconfig kubectl "$@"
}

# Runs a command in one of the checkouts.
at() {
    (cd "$1" && "${@:2}")
}

deploy_green() {
    at green rbuilder deploy --manifests=false --image "example.com/shop:$1"
}

deploy_shop() {
    at shop rbuilder deploy --manifests=false --image example.com/shop:v1
}

wait_for_managers() {
    run platform rollout status $manager --timeout=60s
    run platform rollout status deployment prod-shop-controller-manager --namespace blue --timeout=60s
}

# Deploys the project with kustomize and with Helm, drains the nodes, and upgrades both.
deploy() {
    run at green rbuilder install --manifests=false
    run platform wait --for=condition=Established crd/cups.$group
    # There's already a custom resource. It was created by a user of the operator.
    run platform create --filename - << END
apiVersion: $group/v1
kind: Cup
metadata: {name: cup, namespace: apps}
spec: {foo: bar}
END
    run deploy_green v1
    # We don't need the CRDs, since they are installed already.
    run helm install prod-shop shop/charts/shop --namespace blue --set crds.enabled=false
    wait_for_managers

    # Evict all of the Pods. The managers must be able to start again, although the webhook for Pods
    # doesn't respond.
    local node
    node=$(platform get nodes --output name)
    run platform drain "$node" --ignore-daemonsets --delete-emptydir-data --timeout=60s
    run platform uncordon "$node"
    wait_for_managers

    # One of the deployments has been scaled by another user.
    run platform scale $manager --replicas=3
    mentions 'taking over fields from other managers:
  Deployment green/workshop-controller-manager
    .spec.replicas from `kubectl`' deploy_green v2
    run helm upgrade prod-shop shop/charts/shop --namespace blue \
        --set crds.enabled=false,replicas=2,image.tag=v2
    wait_for_managers
    prints 1/example.com/shop:v2 platform get $manager \
        --output 'jsonpath={.spec.replicas}/{.spec.template.spec.containers[0].image}'

    # The checkout for this has other names than any of the deployments.
    run at shop rbuilder install --manifests=false
    local service=.spec.conversion.webhook.clientConfig.service
    prints green/workshop-webhook-service platform get crd cups.$group \
        --output "jsonpath={$service.namespace}/{$service.name}"
}

finalize() {
    run platform patch cups.v1.$group cup --namespace apps --type merge \
        --patch "{\"metadata\":{\"finalizers\":$1}}"
}

remove() {
    # The release must not be affected by the removal of the deployment with kustomize.
    local printed part
    printed=$(at green rbuilder undeploy 2>&1) || fail "\`rbuilder undeploy\` failed: $printed"
    for part in "CustomResourceDefinition cups.$group stay, because Deployment blue/prod-shop-" \
        "warning: the Service that converts cups.$group is deleted"; do
        [[ $printed == *"$part"* ]] || fail "\`rbuilder undeploy\` does not say \`$part\`: $printed"
    done
    run platform get cups.v1.$group cup --namespace apps
    run platform get deployment prod-shop-controller-manager --namespace blue
    run helm uninstall prod-shop --namespace blue

    # There's a finalizer, which isn't removed by the manager at first.
    run deploy_green v2
    finalize '["example.com/busy"]'
    refuses 'Cup apps/cup (finalizer example.com/busy)' at green rbuilder undeploy --timeout 3
    # Nobody except for the manager removes the finalizer.
    run platform get $manager
    finalize null
    run at green rbuilder undeploy
    omits $group platform get crd --output name

    # The namespace must not be removed as long as another user has an object there.
    run deploy_shop
    run platform create configmap precious --namespace shop-system
    run at shop rbuilder undeploy
    run platform delete configmap precious --namespace shop-system
    run deploy_shop
    run at shop rbuilder undeploy
    omits shop-system platform get namespaces --output name
}
