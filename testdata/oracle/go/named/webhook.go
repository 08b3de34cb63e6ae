// Package named has webhooks in configurations with names of their own.
package named

// +kubebuilder:webhookconfiguration:mutating=true,name=foo
// +kubebuilder:webhookconfiguration:mutating=false,name=bar

// +kubebuilder:webhook:path=/in-bar,mutating=false,failurePolicy=fail,sideEffects=None,groups=oracle.example.com,resources=fulls,verbs=create,versions=v1,name=in-bar.oracle.example.com,admissionReviewVersions=v1
// +kubebuilder:webhook:path=/in-foo,mutating=true,failurePolicy=fail,sideEffects=None,groups=oracle.example.com,resources=fulls,verbs=create,versions=v1,name=in-foo.oracle.example.com,admissionReviewVersions=v1
