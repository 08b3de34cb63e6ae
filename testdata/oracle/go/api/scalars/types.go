// Package scalars has a field of every scalar type.
// +groupName=oracle.example.com
// +versionName=v1
package scalars

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Scalar has a field of every scalar type.
type Scalar struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ScalarSpec `json:"spec"`
}

// ScalarSpec says what a Scalar should be.
type ScalarSpec struct {
	Truth    bool    `json:"truth"`
	Text     string  `json:"text"`
	Letter   rune    `json:"letter"`
	Int8     int8    `json:"int8"`
	Int16    int16   `json:"int16"`
	Int32    int32   `json:"int32"`
	Int64    int64   `json:"int64"`
	IntSize  int     `json:"intSize"`
	Uint8    uint8   `json:"uint8"`
	Uint16   uint16  `json:"uint16"`
	Uint32   uint32  `json:"uint32"`
	Uint64   uint64  `json:"uint64"`
	UintSize uint    `json:"uintSize"`
	Float32  float32 `json:"float32"`
	Float64  float64 `json:"float64"`
	Bytes    []byte  `json:"bytes"`
	// MaybeTruth may be absent.
	MaybeTruth *bool `json:"maybeTruth,omitempty"`
	// MaybeText may be absent.
	MaybeText    *string  `json:"maybeText,omitempty"`
	MaybeInt32   *int32   `json:"maybeInt32,omitempty"`
	MaybeInt64   *int64   `json:"maybeInt64,omitempty"`
	MaybeUint16  *uint16  `json:"maybeUint16,omitempty"`
	MaybeFloat64 *float64 `json:"maybeFloat64,omitempty"`
	MaybeBytes   []byte   `json:"maybeBytes,omitempty"`
	// FieldDotted has a name with a dot.
	FieldDotted string `json:"field.dotted"`
	// NotOnTheWire is for the program only.
	NotOnTheWire string `json:"-"`
	hidden       string
}
