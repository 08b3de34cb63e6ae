use rbuilder::rbac;

#[rbac(groups = "cache.example.com", resources = "memcacheds", verbs = "get;list;watch;create;update;patch;delete")]
#[rbac(groups = "cache.example.com", resources = "memcacheds/status", verbs = "get;update;patch")]
#[rbac(groups = "apps", resources = "deployments", verbs = ["get", "list", "watch", "create", "update", "patch", "delete"])]
#[rbac(groups = "core", resources = "events", verbs = "create;patch")]
pub async fn reconcile() -> Result<(), ()> {
    let text = "}";
    Err(())
}

struct Reconciler;

impl Reconciler {
    #[rbac(groups = "coordination.k8s.io", resources = "leases", verbs = "get;update", namespace = "system")]
    fn lead(&self) {}
}

#[cfg(test)]
mod tests {
    #[rbac(groups = "x", resources = "y", verbs = "get")]
    fn not_compiled() {}
}
