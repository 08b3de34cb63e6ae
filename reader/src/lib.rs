//! A fast reader of Rust source: items with their attributes, fields and types, each with its place in the text.
//!
//! It is for tools that look at the declarations of many files: generators, linters, procedural macros. In place of a
//! syntax tree there is a flat list of [`token`]s, read in one pass, without the bodies of functions; readers walk it
//! with a [`Cursor`](token::Cursor), borrow names from the text and pass over what they do not need. Conditional
//! compilation (the module [`cfg`](mod@cfg)) is applied on the way. A text that is not Rust is reported where tokens
//! do not match or end, or an item, field, type or `use` is not formed as one; bodies are for rustc to check.
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
//! What an attribute means is the caller's business. [`Attribute`] gives its path and what follows it, [`Arg`] reads
//! the usual list of names, values and nested lists, and [`Expr`] what stands behind a `=`.

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

pub use args::{Arg, ArgValue, Literal};
pub use attribute::{Attribute, Form, read_string};
pub use block::{Statement, read_block};
pub use constant::Unknown;
pub use derives::{has_derive, read_derives};
pub use expr::{Expr, ExprKind, Generic, Operator, StructExpr};
pub use json::Json;
pub use local::find_local_items;
pub use span::Span;
pub use types::{TypeKind, TypeRef, is_path};

/// The reason why a text cannot be read, with its place: an error where the text is not Rust, a warning where it may be
/// but is nested deeper than this crate reads ([`MAX_DEPTH`](token::MAX_DEPTH)).
pub type Diagnostic = rbuilder_diagnostic::Diagnostic<Span>;
