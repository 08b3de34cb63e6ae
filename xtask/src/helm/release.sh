# Installs a chart, upgrades it (with a new version of a CRD), and uninstalls it again. This runs in
# the project's folder.

chart=charts/shop
in_shop='--namespace shop-system'
# These require cert-manager and the Prometheus Operator, which are not in the cluster.
values=webhooks.certManager.enabled=false,metrics.certManager.enabled=false
values=$values,metrics.serviceMonitor.enabled=false

# Checks that all objects of the release are in the cluster.
check_objects() {
    local objects count
    cp "$KUBECONFIG" ../release.kubeconfig
    kubectl --kubeconfig ../release.kubeconfig config set-context --current $in_shop
    objects=$(helm get manifest shop $in_shop |
        kubectl --kubeconfig ../release.kubeconfig get --output name --filename -)
    count=$(wc -l <<< "$objects")
    ((count > 20)) || fail "the release has $count objects only"
}

run kubectl create namespace infra
run kubectl create namespace users
unwarned helm install shop $in_shop --create-namespace --set $values $chart
check_objects

# Add a field here. We expect that it's also in the CRD of the cluster after the upgrade.
edit src/api/v1/shelf.rs 'pub struct ShelfSpec {' 'pub struct ShelfSpec {
    /// color of the shelf.
    pub color: Option<String>,'
run rbuilder helm
unwarned helm upgrade shop $in_shop --set $values,replicas=2 $chart
check_objects
schema='{.spec.versions[0].schema.openAPIV3Schema.properties'
prints string kubectl get crd shelves.cache.example.com \
    --output "jsonpath=$schema.spec.properties.color.type}"
prints 2 kubectl get deployment shop-controller-manager $in_shop --output 'jsonpath={.spec.replicas}'

notes=$(helm get notes shop $in_shop)
unwarned helm uninstall shop $in_shop
# Turn off the conversion by following the release notes. After that, all objects can be read even if
# there's no manager and the requested version isn't the stored one.
patch=$(grep '^ *kubectl patch ' <<< "$notes") || fail "no command turns conversions off: $notes"
run eval "$(head -n 1 <<< "$patch")"
run kubectl create --filename config/samples/cache_v2_cup.yaml
count=$(kubectl get cups.v1.cache.example.com --output name | wc -l)
((count == 1)) || fail "there is no Cup in the other version"
run kubectl delete --filename config/samples/cache_v2_cup.yaml
kept=$(kubectl get crd,clusterrole,mutatingwebhookconfiguration \
    --selector app.kubernetes.io/instance=shop --output name)
count=$(grep -c ^customresourcedefinition <<< "$kept")
((count == 2 && count == $(wc -l <<< "$kept"))) || fail "uninstalled, there are: $kept"

# The CRDs are still there. A new release adopts them, and removes them at the end because of
# `crds.keep=false`.
unwarned helm install shop $in_shop --create-namespace --set $values,crds.keep=false $chart
prints Webhook kubectl get crd cups.cache.example.com \
    --output 'jsonpath={.spec.conversion.strategy}'
unwarned helm uninstall shop $in_shop
prints '' kubectl get crd --output name

# Use values that are not the default. There is also a dot in the name of the release.
run kubectl create namespace a
run kubectl create namespace b
values=$values,watchNamespaces={a,b},healthProbe.port=9002,metrics.port=9000
values=$values,metrics.secure=false,webhooks.port=9001,hostNetwork=true
values=$values,dnsPolicy=ClusterFirstWithHostNet,webhooks.failurePolicy=Ignore
values=$values,webhooks.timeoutSeconds=3,webhooks.objectSelector.matchLabels.a=b
values=$values,deploymentAnnotations.a=b,networkPolicy.enabled=true
unwarned helm install shop.v1 --namespace other --create-namespace --set $values $chart
unwarned helm uninstall shop.v1 --namespace other
