// Package basic has webhooks with the arguments that most have.
package basic

// +kubebuilder:webhook:path=/validate-oracle-example-com-v1-full,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,groups=oracle.example.com,resources=fulls,verbs=create;update,versions=v1,name=validation.full.oracle.example.com,admissionReviewVersions=v1;v1beta1,timeoutSeconds=10
// +kubebuilder:webhook:path=/validate-again,mutating=false,failurePolicy=ignore,matchPolicy=exact,sideEffects=NoneOnDryRun,groups=oracle.example.com,resources=fulls,verbs=create;update;delete;connect,versions=v1,name=again.full.oracle.example.com,admissionReviewVersions=v1
// +kubebuilder:webhook:path=/mutate-oracle-example-com-v1-full,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,groups=oracle.example.com,resources=fulls,verbs=create;update,versions=v1,name=mfull-v1.kb.io,admissionReviewVersions=v1,reinvocationPolicy=IfNeeded
// +kubebuilder:webhook:path=/mutate--v1-pod,mutating=true,failurePolicy=fail,sideEffects=None,groups=core,resources=pods,verbs=create,versions=v1,name=mpod-v1.kb.io,admissionReviewVersions=v1,reinvocationPolicy=Never
// +kubebuilder:webhook:path=/any,mutating=false,failurePolicy=fail,sideEffects=None,groups="*",resources="*/*",verbs="*",versions="*",name=any.oracle.example.com,admissionReviewVersions=v1
