// Package shared has types that APIs of other packages use.
package shared

// Part comes from another package.
type Part struct {
	// Shared is a field of the other package.
	// +kubebuilder:validation:MaxLength=8
	Shared string `json:"shared"`
	// Count is another.
	// +optional
	Count *int32 `json:"count,omitempty"`
}

// Common has fields for many parents.
type Common struct {
	// Owner is who to ask.
	Owner string `json:"owner,omitempty"`
}

// Name is a name by the rules of the other package.
// +kubebuilder:validation:MinLength=2
type Name string

// NameAlias is that name under another.
type NameAlias = Name
