// Package named has names of every sort.
// +groupName=oracle.example.com
// +versionName=v1
package named

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Full says all that can be said about a kind.
// +kubebuilder:resource:path=fulls,singular=fullone,shortName=fu;ful,categories=all;oracles,scope=Cluster
// +kubebuilder:metadata:annotations="oracle.example.com/about=everything";"oracle.example.com/empty=",labels="oracle.example.com/part=kind"
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`,description="How many are wanted",format=int32,priority=1
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name=Weight,type=number,JSONPath=.spec.weight
// +kubebuilder:printcolumn:name=Paused,type=boolean,JSONPath=.spec.paused,priority=0
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=.metadata.creationTimestamp
// +kubebuilder:selectablefield:JSONPath=`.spec.image`
// +kubebuilder:selectablefield:JSONPath=`.spec.replicas`
// +kubebuilder:storageversion
type Full struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec FullSpec `json:"spec"`

	Status FullStatus `json:"status,omitempty"`
}

// FullSpec is what is wanted.
type FullSpec struct {
	Replicas int32   `json:"replicas"`
	Image    string  `json:"image"`
	Weight   float64 `json:"weight"`
	Paused   *bool   `json:"paused,omitempty"`
}

// FullStatus is what is there.
type FullStatus struct {
	Replicas int32  `json:"replicas,omitempty"`
	Selector string `json:"selector,omitempty"`
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Scaled has a scale without a selector.
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.size,statuspath=.status.size
type Scaled struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ScaledSpec `json:"spec"`

	Status ScaledStatus `json:"status,omitempty"`
}

// ScaledSpec is what is wanted.
type ScaledSpec struct {
	Size int32 `json:"size"`
}

// ScaledStatus is what is there.
type ScaledStatus struct {
	Size int32 `json:"size"`
}

// TestQuota has a plural by rule.
type TestQuota struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ScaledSpec `json:"spec"`
}

// Proxy has a plural by rule.
type Proxy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ScaledSpec `json:"spec"`
}

// Gateway has a plural by rule.
type Gateway struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ScaledSpec `json:"spec"`
}

// Ingress has a plural by rule.
type Ingress struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ScaledSpec `json:"spec"`
}

// HTTPRoute has a plural by rule.
type HTTPRoute struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ScaledSpec `json:"spec"`
}

// Bare has no spec.
type Bare struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Word stands beside the metadata.
	Word   string `json:"word"`
	Number *int64 `json:"number,omitempty"`
}
