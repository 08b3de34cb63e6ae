// Package docs has comments of every form.
// +groupName=oracle.example.com
// +versionName=v1
package docs

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Doc has comments of every form.
// A second line.
//
// A second paragraph.
type Doc struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is wanted.
	Spec DocSpec `json:"spec"`

	// Status is what is there.
	Status DocStatus `json:"status,omitempty"`
}

// DocSpec is described by its type, which the field's words replace.
type DocSpec struct {
	// One line.
	OneLine string `json:"oneLine"`
	// Two lines,
	// joined by a line end.
	TwoLines string `json:"twoLines"`
	// Two paragraphs.
	//
	// With an empty line between.
	Paragraphs string `json:"paragraphs"`
	// Kept.
	// TODO: not for readers.
	// Kept too.
	Todo string `json:"todo"`
	// Kept.
	// ---
	// Not kept.
	Rule string `json:"rule"`
	// A fence:
	// ```
	// TODO stays here
	// --- and so does this
	// ```
	// after it.
	Fence string `json:"fence"`
	// ~~~
	// TODO stays here too
	// ~~~
	TildeFence string `json:"tildeFence"`
	// A list:
	//   - one
	//   - two
	//     more of two
	List string `json:"list"`
	/* A block comment. */
	Block string `json:"block"`
	/*
	   A block comment
	   of two lines.
	*/
	BlockLines string `json:"blockLines"`
	// It has: a colon, a "quote", a #hash and a 'quote'.
	Punctuation string `json:"punctuation"`
	// Ünïcödé — 漢字 🦀.
	Unicode string `json:"unicode"`
	// A long line, longer than the eighty columns after which a printer of YAML folds it if it is plain text without a line end.
	Long string `json:"long"`
	// The marker is not part of it.
	// +optional
	// What follows it is.
	AroundMarker string    `json:"aroundMarker,omitempty"`
	Undescribed  Described `json:"undescribed"`
	// The field's own words.
	Own             Described            `json:"own"`
	UndescribedText DescribedText        `json:"undescribedText"`
	UndescribedList []Described          `json:"undescribedList"`
	UndescribedMap  map[string]Described `json:"undescribedMap"`
	// The list's own words.
	OwnList []Described `json:"ownList"`
	Nothing string      `json:"nothing"`
}

// Described has words.
//
// And more of them.
type Described struct {
	// A is a field.
	A int32 `json:"a"`
}

// DescribedText has words.
type DescribedText string

// DocStatus is described by its type.
type DocStatus struct {
	// Phase is a word.
	Phase string `json:"phase,omitempty"`
}
