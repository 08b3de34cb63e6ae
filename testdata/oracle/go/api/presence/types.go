// Package presence decides which fields may be absent, and which may be null.
// +groupName=oracle.example.com
// +versionName=v1
package presence

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Presence decides which fields may be absent.
// +kubebuilder:subresource:status
type Presence struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PresenceSpec `json:"spec"`

	Status PresenceStatus `json:"status,omitempty"`
}

// PresenceSpec has a field for each way to say it.
type PresenceSpec struct {
	// Plain is required: nothing says otherwise.
	Plain string `json:"plain"`
	// Omitted is left out when it is empty.
	Omitted string `json:"omitted,omitempty"`
	// Zeroed is left out when it is zero.
	Zeroed int32 `json:"zeroed,omitzero"`
	// Pointer points nowhere, perhaps.
	Pointer *string `json:"pointer,omitempty"`
	// SliceOmitted is left out when it is empty.
	SliceOmitted []string `json:"sliceOmitted,omitempty"`
	// MapOmitted is left out when it is empty.
	MapOmitted map[string]string `json:"mapOmitted,omitempty"`
	// StructOmitted is left out when it points nowhere.
	StructOmitted *Inner `json:"structOmitted,omitempty"`
	// This tests that explicitly optional kubebuilder fields are not required.
	// +kubebuilder:validation:Optional
	ExplicitlyOptionalKubebuilder string `json:"explicitlyOptionalKubebuilder"`
	// This tests that explicitly optional kubernetes fields are not required.
	// +optional
	ExplicitlyOptionalKubernetes string `json:"explicitlyOptionalKubernetes"`
	// This tests that explicitly optional k8s fields are not required.
	// +k8s:optional
	ExplicitlyOptionalK8s string `json:"explicitlyOptionalK8s"`
	// This tests that explicitly required kubebuilder fields are required.
	// +kubebuilder:validation:Required
	ExplicitlyRequiredKubebuilder *string `json:"explicitlyRequiredKubebuilder,omitempty"`
	// This tests that explicitly required kubernetes fields are required.
	// +required
	ExplicitlyRequiredKubernetes *string `json:"explicitlyRequiredKubernetes,omitempty"`
	// This tests that explicitly required k8s fields are required.
	// +k8s:required
	ExplicitlyRequiredK8s *string `json:"explicitlyRequiredK8s,omitempty"`
	// CanBeNull keeps a null.
	// +nullable
	CanBeNull string `json:"canBeNull"`
	// CanBeNullOrAbsent may be both.
	// +nullable
	// +optional
	CanBeNullOrAbsent *string `json:"canBeNullOrAbsent,omitempty"`
	// Relaxed has fields that may all be absent.
	Relaxed Relaxed `json:"relaxed,omitempty"`
	// Defaulted is required and has a default all the same.
	// +kubebuilder:default=here
	Defaulted string `json:"defaulted"`
	// DefaultedOptional may be absent, and is then filled in.
	// +kubebuilder:default=there
	DefaultedOptional string `json:"defaultedOptional,omitempty"`
}

// Inner is a struct in a field.
type Inner struct {
	A int32  `json:"a"`
	B *int32 `json:"b,omitempty"`
}

// Relaxed has fields that may all be absent.
type Relaxed struct {
	First  string `json:"first,omitempty"`
	Second int32  `json:"second,omitempty"`
	// +required
	Third bool `json:"third,omitempty"`
}

// PresenceStatus says what was seen.
type PresenceStatus struct {
	// ObservedGeneration is the generation that was seen.
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
	// Seen is required in a status that is there.
	Seen bool `json:"seen"`
}
