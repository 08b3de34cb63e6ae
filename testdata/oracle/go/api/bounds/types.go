// Package bounds has every constraint on fields, on types and on both.
// +groupName=oracle.example.com
// +versionName=v1
package bounds

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Bound has every constraint.
type Bound struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec BoundSpec `json:"spec"`
}

// BoundSpec has every constraint, on fields and on types.
type BoundSpec struct {
	// +kubebuilder:validation:Minimum=-2
	// +kubebuilder:validation:Maximum=2
	// +kubebuilder:validation:MultipleOf=2
	IntWithValidations int `json:"intWithValidations"`
	// +kubebuilder:validation:Minimum=-2
	// +kubebuilder:validation:Maximum=2
	// +kubebuilder:validation:MultipleOf=2
	Int32WithValidations int32 `json:"int32WithValidations"`
	// +kubebuilder:validation:Minimum=-1.5
	// +kubebuilder:validation:Maximum=1.5
	// +kubebuilder:validation:MultipleOf=0.5
	FloatWithValidations float32 `json:"floatWithValidations"`
	// +kubebuilder:validation:Minimum=-1.5
	// +kubebuilder:validation:Maximum=1.5
	// +kubebuilder:validation:MultipleOf=0.5
	Float64WithValidations float64 `json:"float64WithValidations"`
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=true
	// +kubebuilder:validation:Maximum=10
	// +kubebuilder:validation:ExclusiveMaximum=true
	Exclusive int32 `json:"exclusive"`
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=false
	NotExclusive int32 `json:"notExclusive"`
	// +kubebuilder:validation:Maximum=1e3
	Exponent int64 `json:"exponent"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z]{1,3}(,[a-z]+)*$`
	Text string `json:"text"`
	// PatternObject is checked by a raw expression.
	// +kubebuilder:validation:Pattern=`^$|^((https):\/\/?)[^\s()<>]+(?:\([\w\d]+\)|([^[:punct:]\s]|\/?))$`
	PatternObject string `json:"patternObject"`
	// +kubebuilder:validation:Format=uuid
	Formatted string `json:"formatted"`
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5
	List []string `json:"list"`
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=5
	Map map[string]string `json:"map"`
	// MinMaxProperties is bounded by its type.
	MinMaxProperties MinMaxObject `json:"minMaxProperties"`
	Percent          Percent      `json:"percent"`
	Fraction         Fraction     `json:"fraction"`
	ShortText        ShortText    `json:"shortText"`
	FewWords         FewWords     `json:"fewWords"`
	FewLabels        FewLabels    `json:"fewLabels"`
	// TwoOfAKindPart0 takes its bound from the type.
	TwoOfAKindPart0 LongerString `json:"twoOfAKindPart0"`
	// TwoOfAKindPart1 adds a bound to that of the type.
	// +kubebuilder:validation:MinLength=10
	// +kubebuilder:validation:MaxLength=10
	TwoOfAKindPart1 LongerString `json:"twoOfAKindPart1"`
	// SameBound says what the type says.
	// +kubebuilder:validation:MinLength=4
	SameBound LongerString `json:"sameBound"`
	// LocallyBoundedInteger has a bound on the field, another on the type.
	// +kubebuilder:validation:Maximum=50
	LocallyBoundedInteger Percent `json:"locallyBoundedInteger"`
	// LocallyBoundedString has a pattern beside the type's length.
	// +kubebuilder:validation:Pattern=`^[a-z]+$`
	LocallyBoundedString ShortText `json:"locallyBoundedString"`
	// FieldLevelAliasOverride has looser bounds than its type: those of the type hold.
	// +kubebuilder:validation:Minimum=-10
	// +kubebuilder:validation:Maximum=1000
	FieldLevelAliasOverride Percent `json:"fieldLevelAliasOverride"`
	// FieldLevelLocalDeclarationOverride has one looser and one tighter bound.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=5
	FieldLevelLocalDeclarationOverride ShortText `json:"fieldLevelLocalDeclarationOverride"`
	// TwoPatterns has one of the type and one of its own.
	// +kubebuilder:validation:Pattern=`z$`
	TwoPatterns Lower `json:"twoPatterns"`
	// TwoFactors has one of the type and one of its own.
	// +kubebuilder:validation:MultipleOf=3
	TwoFactors Even `json:"twoFactors"`
	// LongerStringArray is a list of bounded texts.
	LongerStringArray []LongerString `json:"longerStringArray"`
	// StringPair has two items.
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=2
	StringPair    []string           `json:"stringPair"`
	PercentByName map[string]Percent `json:"percentByName"`
}

// MinMaxObject has one or two fields.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=2
type MinMaxObject struct {
	Foo string `json:"foo,omitempty"`
	Bar string `json:"bar,omitempty"`
	Baz string `json:"baz,omitempty"`
}

// Percent is a share of a hundred.
// +kubebuilder:validation:Minimum=0
// +kubebuilder:validation:Maximum=100
type Percent int32

// Fraction lies between two others.
// +kubebuilder:validation:Minimum=0.25
// +kubebuilder:validation:ExclusiveMinimum=true
// +kubebuilder:validation:Maximum=0.75
// +kubebuilder:validation:ExclusiveMaximum=true
// +kubebuilder:validation:MultipleOf=0.125
type Fraction float64

// ShortText is short.
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=9
type ShortText string

// FewWords are few.
// +kubebuilder:validation:MinItems=1
// +kubebuilder:validation:MaxItems=3
type FewWords []string

// FewLabels are few.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=3
type FewLabels map[string]string

// LongerString has a least length.
// +kubebuilder:validation:MinLength=4
type LongerString string

// Lower is in lower case.
// +kubebuilder:validation:Pattern=`^[a-z]+$`
type Lower string

// Even is even.
// +kubebuilder:validation:MultipleOf=2
type Even int64
