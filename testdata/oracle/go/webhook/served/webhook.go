// Package served has webhooks that answer elsewhere.
package served

// +kubebuilder:webhook:url="https://anothersomewhere:9443/validate-full",mutating=false,failurePolicy=fail,sideEffects=None,groups=oracle.example.com,resources=fulls,verbs=create;update,versions=v1,name=url.oracle.example.com,admissionReviewVersions=v1
// +kubebuilder:webhook:serviceName=service,serviceNamespace=namespace,servicePort=1234,path=/served,mutating=false,failurePolicy=fail,sideEffects=None,groups=oracle.example.com,resources=fulls,verbs=create;update,versions=v1,name=service.oracle.example.com,admissionReviewVersions=v1
// +kubebuilder:webhook:serviceName=other,path=/mutate-served,mutating=true,failurePolicy=fail,sideEffects=None,groups=oracle.example.com,resources=fulls,verbs=create;update,versions=v1,name=other.oracle.example.com,admissionReviewVersions=v1
