// Package v1alpha0 is a version that is not in the CRD any more.
// +groupName=oracle.example.com
package v1alpha0

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// VersionedResource has versions.
// +kubebuilder:resource:shortName=vr
// +kubebuilder:skipversion
type VersionedResource struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec VersionedResourceSpec `json:"spec"`
}

// VersionedResourceSpec is that of v1alpha0.
type VersionedResourceSpec struct {
	Gone string `json:"gone"`
}
