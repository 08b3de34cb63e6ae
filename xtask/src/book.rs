//! `cargo xtask book`: builds the guide as a book with mdBook, in target/book/.
//!
//! The pages of docs/ are the book's as they are, except for links to files elsewhere in the repository, which a book does
//! not have: of these the words stay. `cargo xtask tidy` holds all links to what exists.

use std::path::Path;

use anyhow::Result;

use crate::sh::Cmd;
use crate::{repo, tools};

/// Builds the book and prints the path of its first page.
pub(crate) fn build_book() -> Result<()> {
    let mdbook = tools::ensure_tool(&tools::MDBOOK)?;
    let folder = repo::target_folder().join("book");
    let source = folder.join("source");
    if source.exists() {
        fs_err::remove_dir_all(&source)?;
    }
    copy_pages(&repo::root().join("docs"), &source)?;
    let book = folder.join("html");
    Cmd::program(mdbook)
        .arg("build")
        .arg(&source)
        .arg("--dest-dir")
        .arg(&book)
        .run()?;
    println!("{}", book.join("index.html").display());
    Ok(())
}

fn copy_pages(from: &Path, to: &Path) -> Result<()> {
    fs_err::create_dir_all(to)?;
    for entry in fs_err::read_dir(from)? {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        let target = to.join(name);
        if path.is_dir() {
            copy_pages(&path, &target)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            fs_err::write(target, without_outer_links(&fs_err::read_to_string(&path)?))?;
        } else {
            fs_err::copy(path, target)?;
        }
    }
    Ok(())
}

/// Returns a page whose links to files above docs/ are plain text.
fn without_outer_links(page: &str) -> String {
    let mut result = String::new();
    let mut rest = page;
    while let Some(place) = rest.find("](../") {
        let (before, link) = rest.split_at(place);
        // Without both brackets it is not a link.
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
    fn links_to_files_elsewhere_become_text() {
        let check = |page, expected| assert_eq!(without_outer_links(page), expected);
        check("a [b](c.md) d", "a [b](c.md) d");
        check("a [b](../c.md) d [e](../f)", "a b d e");
        check("[`a`](b.md), [`c`](../d).", "[`a`](b.md), `c`.");
        check("a](../b", "a](../b");
    }
}
