// Package rbac asks for permissions in every way.
package rbac

// Verbs of two resources stay apart.
// +kubebuilder:rbac:groups=batch.io,resources=cronjobs,verbs=get;watch;create
// +kubebuilder:rbac:groups=batch.io,resources=cronjobs/status,verbs=get;update;patch

// What is said twice is written once.
// +kubebuilder:rbac:groups=batch;batch;batch,resources=jobs/status,verbs=watch
// +kubebuilder:rbac:groups=batch,resources=jobs/status,verbs=watch;watch

// The order of a list says nothing.
// +kubebuilder:rbac:groups=batch;cron,resources=jobs/status,verbs=create;get
// +kubebuilder:rbac:groups=cron;batch,resources=jobs/status,verbs=get;create

// Names of objects set a rule apart.
// +kubebuilder:rbac:groups=batch.io,resources=cronjobs,resourceNames=foo;bar;baz,verbs=get;watch

// Verbs of one resource are joined.
// +kubebuilder:rbac:groups=dedup-verbs,resources=some,verbs=get;list
// +kubebuilder:rbac:groups=dedup-verbs,resources=some,verbs=get
// +kubebuilder:rbac:groups=dedup-verbs,resources=some,verbs=list

// Resources with the same verbs are joined.
// +kubebuilder:rbac:groups=dedup-resources,resources=one,verbs=create
// +kubebuilder:rbac:groups=dedup-resources,resources=two,verbs=create
// +kubebuilder:rbac:groups=dedup-resources,resources=three,verbs=create

// Groups with the same resources and verbs are joined.
// +kubebuilder:rbac:groups=groups1,resources=foo,verbs=patch
// +kubebuilder:rbac:groups=groups2,resources=foo,verbs=patch
// +kubebuilder:rbac:groups=groups3,resources=foo,verbs=patch

// All of it at once.
// +kubebuilder:rbac:groups=dedup-all,resources=foo;bar,verbs=get;list
// +kubebuilder:rbac:groups=dedup-all,resources=foo,verbs=get
// +kubebuilder:rbac:groups=dedup-all,resources=bar,verbs=list
// +kubebuilder:rbac:groups=dedup-all-other,resources=foo;bar,verbs=get;list

// A star is all verbs.
// +kubebuilder:rbac:groups=groups4,resources=xyz,verbs=get;update;patch
// +kubebuilder:rbac:groups=groups4,resources=xyz,verbs=*

// What differs stays apart.
// +kubebuilder:rbac:groups=not-dedup-resources,resources=some,verbs=get
// +kubebuilder:rbac:groups=not-dedup-resources,resources=another,verbs=list
// +kubebuilder:rbac:groups=not-dedup-groups1,resources=some,verbs=get
// +kubebuilder:rbac:groups=not-dedup-groups2,resources=some,verbs=list

// Addresses outside the resources.
// +kubebuilder:rbac:urls=/url-to-duplicate,verbs=get
// +kubebuilder:rbac:urls=/another/url-to-duplicate,verbs=get

// The core group has two names.
// +kubebuilder:rbac:groups=core,resources=deduplicate,verbs=list
// +kubebuilder:rbac:groups="",resources=me,verbs=list
// +kubebuilder:rbac:groups=core;"";some-other,resources=me,verbs=list;get

// Roles of namespaces.
// +kubebuilder:rbac:groups=wave,namespace=zoo,resources=jobs,verbs=get
// +kubebuilder:rbac:groups=art,namespace=zoo,resources=jobs,verbs=get
// +kubebuilder:rbac:groups=art,namespace=park,resources=jobs,verbs=get
// +kubebuilder:rbac:groups=batch,namespace=here,resources=abc,verbs=get
// +kubebuilder:rbac:groups=batch,namespace=here,resources=abc,verbs=*

// Roles with names.
// +kubebuilder:rbac:groups=apps,namespace=infrastructure,roleName=infra-deployment-manager,resources=deployments,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=apps,namespace=infrastructure,roleName=infra-deployment-manager,resources=statefulsets,verbs=get;list
// +kubebuilder:rbac:groups="",namespace=users,roleName=user-secrets-reader,resources=secrets,verbs=get
// +kubebuilder:rbac:groups="",namespace=observability,resources=pods,verbs=get;list
// +kubebuilder:rbac:groups=apps,roleName=second-role,resources=daemonsets,verbs=get

// Reconcile does nothing.
func Reconcile() {}
