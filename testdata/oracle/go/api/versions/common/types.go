// Package common has what the versions share.
package common

// Shared is in every version.
type Shared struct {
	// Common is a field in every version.
	// +kubebuilder:validation:MaxLength=16
	Common string `json:"common"`
}
