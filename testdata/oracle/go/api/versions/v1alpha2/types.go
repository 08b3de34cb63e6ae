// Package v1alpha2 is a version that is going, without a word about it.
// +groupName=oracle.example.com
package v1alpha2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// VersionedResource has versions.
// +kubebuilder:resource:shortName=vr
// +kubebuilder:deprecatedversion
type VersionedResource struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec VersionedResourceSpec `json:"spec"`
}

// VersionedResourceSpec is that of v1alpha2.
type VersionedResourceSpec struct {
	Older string `json:"older"`
}
