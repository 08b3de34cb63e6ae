// Package rules has CEL rules.
// +groupName=oracle.example.com
// +versionName=v1
package rules

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Rule has CEL rules.
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) < 40",message="the name is too long"
type Rule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec RuleSpec `json:"spec"`
}

// RuleSpec has rules with all their arguments.
// +kubebuilder:validation:XValidation:rule="self.low <= self.high",message="low is above high",fieldPath=".low",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="self.low > -100"
type RuleSpec struct {
	Low  int32 `json:"low"`
	High int32 `json:"high"`
	// StringWithEvenLength has two rules.
	// +kubebuilder:validation:XValidation:rule="self.size() % 2 == 0",message="the length must be even"
	// +kubebuilder:validation:XValidation:rule="true"
	StringWithEvenLength string `json:"stringWithEvenLength"`
	// StringWithEvenLengthAndMessageExpression makes its message.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.size() % 2 == 0",messageExpression="self + ' has an odd length'"
	StringWithEvenLengthAndMessageExpression *string `json:"stringWithEvenLengthAndMessageExpression,omitempty"`
	// StringWithEvenLengthAndGoodPrefix adds a rule to those of its type.
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.startsWith('good-')",message="the prefix must be good-"
	StringWithEvenLengthAndGoodPrefix EvenLength `json:"stringWithEvenLengthAndGoodPrefix"`
	// ForbiddenInt must not be there.
	// +kubebuilder:validation:XValidation:rule="!has(self.forbidden)",message="forbidden must not be set",fieldPath=".forbidden",reason=FieldValueForbidden
	ForbiddenInt Forbidding `json:"forbiddenInt"`
	// +kubebuilder:validation:XValidation:rule="self != 1",reason=FieldValueRequired
	ReasonRequired int32 `json:"reasonRequired"`
	// +kubebuilder:validation:XValidation:rule="self != 1",reason=FieldValueDuplicate
	ReasonDuplicate int32 `json:"reasonDuplicate"`
	// OnlyAllowSettingOnUpdate cannot be set when the object is made.
	// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self == 0",optionalOldSelf=true,message="cannot be set on create"
	OnlyAllowSettingOnUpdate int32 `json:"onlyAllowSettingOnUpdate"`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",optionalOldSelf=false
	NotOptional int32   `json:"notOptional"`
	Unions      Unions  `json:"unions"`
	Ordered     Ordered `json:"ordered"`
	// MaybeUnions are unions that may be absent.
	MaybeUnions *Unions `json:"maybeUnions,omitempty"`
	Fixed       Fixed   `json:"fixed"`
}

// EvenLength has an even length.
// +kubebuilder:validation:XValidation:rule="self.size() % 2 == 0",message="the length must be even"
type EvenLength string

// Forbidding has a field that must not be set.
type Forbidding struct {
	Forbidden *int32 `json:"forbidden,omitempty"`
}

// Unions has one of each.
// +kubebuilder:validation:AtMostOneOf=foo;bar
// +kubebuilder:validation:ExactlyOneOf=left;right
// +kubebuilder:validation:AtLeastOneOf=here;there
// +kubebuilder:validation:AtLeastOneOf=foo;here
type Unions struct {
	Foo   *string `json:"foo,omitempty"`
	Bar   *string `json:"bar,omitempty"`
	Left  *string `json:"left,omitempty"`
	Right *string `json:"right,omitempty"`
	Here  *string `json:"here,omitempty"`
	There string  `json:"there,omitempty"`
}

// Ordered has a rule of its own before those of its unions.
// +kubebuilder:validation:AtLeastOneOf=a;b;c
// +kubebuilder:validation:ExactlyOneOf=a;b
// +kubebuilder:validation:AtMostOneOf=b;c
// +kubebuilder:validation:XValidation:rule="true",message="first"
type Ordered struct {
	A *int32 `json:"a,omitempty"`
	B *int32 `json:"b,omitempty"`
	C *int32 `json:"c,omitempty"`
}

// Fixed has fields that stay as they are.
type Fixed struct {
	// Required is set once.
	// +k8s:immutable
	RequiredString string `json:"requiredString"`
	// +k8s:immutable
	OptionalString *string `json:"optionalString,omitempty"`
	// +k8s:immutable
	RequiredStruct FixedPart `json:"requiredStruct"`
	// +k8s:immutable
	OptionalStruct *FixedPart `json:"optionalStruct,omitempty"`
	// +k8s:immutable
	RequiredList []string `json:"requiredList"`
	// +k8s:immutable
	OptionalList []string `json:"optionalList,omitempty"`
	// +k8s:immutable
	RequiredMap map[string]string `json:"requiredMap"`
	// +k8s:immutable
	OptionalMap map[string]string `json:"optionalMap,omitempty"`
	// Free may change.
	Free *string `json:"free,omitempty"`
}

// FixedPart is a struct.
type FixedPart struct {
	A int32 `json:"a"`
}
