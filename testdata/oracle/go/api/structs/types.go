// Package structs has structs in structs.
// +groupName=oracle.example.com
// +versionName=v1
package structs

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rbuilder.dev/oracle/go/shared"
)

// Structure has structs in structs.
type Structure struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec StructureSpec `json:"spec"`
}

// StructureSpec has structs, some of them among its own fields.
type StructureSpec struct {
	Inlined       `json:",inline"`
	Outer         `json:",inline"`
	*Pointed      `json:",inline"`
	shared.Common `json:",inline"`

	// Plain is a struct in a field.
	Plain       Part `json:"plain"`
	Undescribed Part `json:"undescribed"`
	// JustNestedObject points at a type of a type.
	JustNestedObject *JustNestedObject `json:"justNestedObject,omitempty"`
	// Deep is three levels down.
	Deep Level1 `json:"deep"`
	// Foreign comes from another package.
	Foreign     shared.Part   `json:"foreign"`
	ForeignList []shared.Part `json:"foreignList"`
	ForeignName shared.Name   `json:"foreignName"`
	// AliasFromPackage is a name of another package, named again.
	AliasFromPackage shared.NameAlias `json:"aliasFromPackage"`
	// StringAlias is a text with a name.
	StringAlias StringAlias `json:"stringAlias"`
	// StringAliasPtr may be absent.
	StringAliasPtr   *StringAlias `json:"stringAliasPtr,omitempty"`
	UndescribedAlias StringAlias  `json:"undescribedAlias"`
	NumberAlias      NumberAlias  `json:"numberAlias"`
	// Empty has no fields.
	Empty Empty `json:"empty"`
}

// Inlined has fields that stand among those of its parent.
type Inlined struct {
	// Near is from the inlined struct.
	Near         string `json:"near"`
	NearOptional *int32 `json:"nearOptional,omitempty"`
}

// Outer inlines a struct that inlines a struct.
type Outer struct {
	Middle `json:",inline"`
	// OuterField stands one level up.
	OuterField string `json:"outerField"`
}

// Middle is between.
type Middle struct {
	// MiddleField stands two levels up.
	MiddleField bool `json:"middleField"`
}

// Pointed is inlined through a pointer.
type Pointed struct {
	// PointedField may stand among the fields.
	PointedField string `json:"pointedField,omitempty"`
}

// Part is a part.
type Part struct {
	// Foo is a field.
	Foo string `json:"foo"`
	Bar bool   `json:"bar"`
}

// JustNestedObject is a type of a type.
type JustNestedObject NestedObject

// NestedObject is what another type is made of.
type NestedObject struct {
	Foo string `json:"foo"`
	Bar bool   `json:"bar"`
}

// Level1 holds Level2.
type Level1 struct {
	Level2 Level2 `json:"level2"`
}

// Level2 holds Level3.
type Level2 struct {
	Level3 []Level3 `json:"level3"`
}

// Level3 is the bottom.
type Level3 struct {
	Bottom string `json:"bottom"`
}

// StringAlias is a text with a name of its own.
type StringAlias string

// NumberAlias is a number with a name of its own.
type NumberAlias int32

// Empty has no fields.
type Empty struct{}
