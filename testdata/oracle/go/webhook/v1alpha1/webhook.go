// Package v1alpha1 has a webhook whose name comes between two of another package.
package v1alpha1

// +kubebuilder:webhook:path=/c,mutating=false,failurePolicy=fail,sideEffects=None,groups=oracle.example.com,resources=fulls,verbs=create,versions=v1,name=order-c.oracle.example.com,admissionReviewVersions=v1
// +kubebuilder:webhook:path=/a,mutating=false,failurePolicy=fail,sideEffects=None,groups=oracle.example.com,resources=fulls,verbs=create,versions=v1,name=order-a.oracle.example.com,admissionReviewVersions=v1
