//! A fast reader for Rust source. It reads items with their attributes, fields and types, and
//! records their locations in the text.
//!
//! Made for tools that look at the declarations in many files, such as generators, linters and
//! procedural macros. It doesn't build a syntax tree. Instead, a single pass creates a flat list of
//! [`token`]s, skipping function bodies. Readers walk the list with a [`Cursor`](token::Cursor),
//! borrow names from the text, and skip what they don't need. Conditional compilation (see the
//! module [`cfg`](mod@cfg)) is applied along the way.
//!
//! rbuilder uses it instead of `syn`, because reading source would dominate the run time of
//! `rbuilder manifests`, and is most of what the derives add to a build. `syn` takes nine times as
//! many instructions, mostly for parts of the syntax tree that are never used.
//!
//! Errors are reported for unbalanced delimiters, unterminated tokens, and malformed items, fields,
//! types and `use` declarations. Bodies aren't checked, as rustc does that.
//!
//! ```
//! use rbuilder_reader::grammar::{Body, ItemKind, Items};
//! use rbuilder_reader::Diagnostic;
//! use rbuilder_reader::token::lex;
//!
//! fn main() -> Result<(), Diagnostic> {
//!     let text = "#[derive(Clone)] struct Point { #[serde(rename = \"X\")] x: i32, y: Option<i32> }";
//!     let tokens = lex(text)?;
//!     let mut items = Items::new(tokens.cursor(), None);
//!     let mut found = Vec::new();
//!     while let Some(item) = items.read()? {
//!         if let ItemKind::Type(ty) = item.kind
//!             && let Body::Struct(fields) = &ty.body
//!         {
//!             for field in fields.list() {
//!                 let name = field.ident.map_or("", |ident| ident.text);
//!                 found.push((name, &text[field.ty.span.range()], field.attrs.len()));
//!             }
//!         }
//!     }
//!     assert_eq!(found, [("x", "i32", 1), ("y", "Option<i32>", 0)]);
//!     Ok(())
//! }
//! ```
//!
//! Interpreting attributes is up to the caller: [`Attribute`] provides the path and what follows
//! it, optionally parsed as [`Args`], the usual list of names, values and nested lists. [`Expr`]
//! reads the value after a `=`.

mod args;
mod attribute;
mod block;
pub mod cfg;
mod constant;
mod derives;
mod expr;
pub mod grammar;
mod json;
mod local;
mod span;
pub mod token;
mod types;

pub use args::{Arg, ArgValue, Args, Literal};
pub use attribute::{Attribute, Form, read_string};
pub use block::{Statement, read_block};
pub use constant::Unknown;
pub use derives::{has_derive, read_derives};
pub use expr::{Expr, ExprKind, Generic, Operator, StructExpr};
pub use json::Json;
pub use local::find_local_items;
pub use span::Span;
pub use types::{TypeKind, TypeRef, is_path};

/// Why a text can't be read, with the location. It's an error if the text isn't valid Rust, and a
/// warning if it's nested deeper than this crate supports ([`MAX_DEPTH`](token::MAX_DEPTH)).
pub type Diagnostic = rbuilder_diagnostic::Diagnostic<Span>;
