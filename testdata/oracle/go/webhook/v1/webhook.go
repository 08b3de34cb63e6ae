// Package v1 has a webhook whose name comes after one of another package.
package v1

// +kubebuilder:webhook:path=/b,mutating=false,failurePolicy=fail,sideEffects=None,groups=oracle.example.com,resources=fulls,verbs=create,versions=v1,name=order-b.oracle.example.com,admissionReviewVersions=v1
// +kubebuilder:webhook:path=/d,mutating=false,failurePolicy=fail,sideEffects=None,groups=oracle.example.com,resources=fulls,verbs=create,versions=v1,name=order-d.oracle.example.com,admissionReviewVersions=v1
