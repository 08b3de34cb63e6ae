// Package selectors has webhooks that are asked about all objects: it takes a patch to choose.
package selectors

// +kubebuilder:webhook:path=/namespaces,mutating=false,failurePolicy=fail,sideEffects=None,groups=oracle.example.com,resources=fulls,verbs=create,versions=v1,name=namespaces.oracle.example.com,admissionReviewVersions=v1
// +kubebuilder:webhook:path=/objects,mutating=true,failurePolicy=fail,sideEffects=None,groups=oracle.example.com,resources=fulls,verbs=create,versions=v1,name=objects.oracle.example.com,admissionReviewVersions=v1
// +kubebuilder:webhook:path=/conditions,mutating=false,failurePolicy=fail,sideEffects=None,groups=oracle.example.com,resources=fulls,verbs=create,versions=v1,name=conditions.oracle.example.com,admissionReviewVersions=v1
