//! `cargo xtask book`: builds a book in target/book/. It consists of the guide (built with mdBook)
//! and the API reference of the library (built with rustdoc).
//!
//! The pages are copied from docs/. We only have to modify their links. If a link refers to a file
//! that is not in docs/, it is replaced with its text because there is no such file in the book.
//! Links to the API reference on docs.rs become links to the API reference of this checkout, which
//! is part of the book. We also add a link to it at the end of every page. All other links are
//! checked by `cargo xtask tidy`.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use crate::committed::{list_files, write_file};
use crate::sh::Cmd;
use crate::{repo, tools};

pub(crate) const PUBLISHED_REFERENCE: &str = "https://docs.rs/rbuilder-runtime/latest/";

/// Features to enable for the API reference. Keep in sync with `package.metadata.docs.rs` in
/// crates/runtime/Cargo.toml.
const FEATURES: &str = "envtest,fake,http2,opentelemetry,simulation,testing";

const REFERENCE: &str = "rustdoc/";

const FIRST_PAGE: &str = "rbuilder/index.html";

/// Builds the book. Prints the path of its first page.
pub(crate) fn build_book() -> Result<()> {
    let mdbook = tools::ensure_tool("mdbook")?;
    let folder = repo::target_folder().join("book");
    let reference = build_reference(&folder.join("reference"))?;
    let source = folder.join("source");
    if source.exists() {
        fs_err::remove_dir_all(&source)?;
    }
    copy_pages(&repo::root().join("docs"), &source, &reference)?;
    let book = folder.join("html");
    let build = Cmd::program(mdbook).arg("build").arg(&source);
    build.arg("--dest-dir").arg(&book).run()?;
    // This must come last, because mdBook removes everything from the folder.
    Cmd::new("cp -R")
        .arg(&reference)
        .arg(book.join(REFERENCE))
        .run()?;
    println!("{}", book.join("index.html").display());
    Ok(())
}

/// Builds the API reference of the library, without the dependencies. Returns the folder.
fn build_reference(target: &Path) -> Result<PathBuf> {
    if target.exists() {
        fs_err::remove_dir_all(target)?;
    }
    Cmd::new("cargo doc --no-deps --package rbuilder-runtime --features")
        .arg(FEATURES)
        .dir(repo::root())
        // The pages of other packages might be in the usual folder. They would appear in the search
        // as well.
        .env("CARGO_TARGET_DIR", target)
        .env("CARGO_BUILD_BUILD_DIR", repo::target_folder())
        .run()?;
    let pages = target.join("doc");
    ensure!(
        pages.join(FIRST_PAGE).is_file(),
        "rustdoc has not written {}",
        pages.join(FIRST_PAGE).display()
    );
    Ok(pages)
}

fn copy_pages(from: &Path, to: &Path, reference: &Path) -> Result<()> {
    for path in list_files(from, "")? {
        let target = to.join(path.strip_prefix(from)?);
        if path.extension().is_none_or(|extension| extension != "md") {
            write_file(&target, &fs_err::read(path)?)?;
            continue;
        }
        let page = fs_err::read_to_string(&path)?;
        for item in linked_items(&page) {
            ensure!(
                reference.join(item).is_file(),
                "{} links to {PUBLISHED_REFERENCE}{item}, which the reference of this checkout does not have",
                path.display()
            );
        }
        let page = without_outer_links(&page.replace(PUBLISHED_REFERENCE, REFERENCE));
        // Nothing can be appended to the list of chapters, since mdBook would take the link for a
        // chapter.
        let end = if path.ends_with("SUMMARY.md") {
            ""
        } else {
            END_OF_PAGE
        };
        write_file(&target, (page + end).as_bytes())?;
    }
    Ok(())
}

const END_OF_PAGE: &str = "\n---\n\n[Reference of the library](rustdoc/rbuilder/index.html)\n";

/// Returns the paths in the API reference to which a page links.
fn linked_items(page: &str) -> impl Iterator<Item = &str> {
    page.split(PUBLISHED_REFERENCE).skip(1).map(|rest| {
        let end = rest.find(|c: char| matches!(c, ')' | '#' | '>' | '"') || c.is_whitespace());
        &rest[..end.unwrap_or(rest.len())]
    })
}

/// Replaces all links to files that are not in docs/ with their text.
fn without_outer_links(page: &str) -> String {
    let mut result = String::new();
    let mut rest = page;
    while let Some(place) = rest.find("](../") {
        let (before, link) = rest.split_at(place);
        // It isn't a link unless there are both brackets.
        let (Some(text), Some(end)) = (before.rfind('['), link.find(')')) else {
            result.push_str(before);
            result.push_str("](../");
            rest = &link["](../".len()..];
            continue;
        };
        result.push_str(&before[..text]);
        result.push_str(&before[text + 1..]);
        rest = &link[end + 1..];
    }
    result.push_str(rest);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_outer_links_with_text() {
        let check = |page, expected| assert_eq!(without_outer_links(page), expected);
        check("a [b](c.md) d", "a [b](c.md) d");
        check("a [b](../c.md) d [e](../f)", "a b d e");
        check("[`a`](b.md), [`c`](../d).", "[`a`](b.md), `c`.");
        check("a](../b", "a](../b");
    }

    #[test]
    fn finds_links_to_api_reference() {
        let check = |page: &str, expected: &[&str]| {
            assert_eq!(linked_items(page).collect::<Vec<_>>(), expected, "{page}");
        };
        let item = |name: &str| format!("{PUBLISHED_REFERENCE}rbuilder/{name}");
        check("[a](https://docs.rs/kube)", &[]);
        check(&format!("[a]({})", item("index.html")), &["rbuilder/index.html"]);
        check(
            &format!(
                "[a]: {}\n[b]: {}",
                item("struct.A.html#method.b"),
                item("fn.b.html")
            ),
            &["rbuilder/struct.A.html", "rbuilder/fn.b.html"],
        );
    }

    #[test]
    fn reference_has_features_of_docs_rs() {
        let manifest = fs_err::read_to_string(repo::root().join("crates/runtime/Cargo.toml")).unwrap();
        let features: Vec<_> = FEATURES
            .split(',')
            .map(|feature| format!("\"{feature}\""))
            .collect();
        assert!(
            manifest.contains(&format!("features = [{}, ", features.join(", "))),
            "package.metadata.docs.rs in crates/runtime/Cargo.toml lists other features"
        );
    }
}
