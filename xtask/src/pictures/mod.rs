//! `cargo xtask pictures`: generates the pictures of the guide. Their source is always text.
//!
//! There are two types. A diagram is a file in docs/pictures/ for Pikchr, which starts with a
//! comment that contains its title. A plot shows the figures from a table on one of the pages, and
//! is described in plots.yaml. Both are converted to SVG. The results are in the same
//! folder.

mod plot;
mod theme;

use anyhow::{Context as _, Result, anyhow};
use pikchr::{Pikchr, PikchrFlags};

use crate::committed::{Check, list_files, update_file};
use crate::repo;

const FOLDER: &str = "docs/pictures";

/// Generates all pictures. They are either written or compared with the existing ones.
pub(crate) fn update_pictures(args: &Check) -> Result<()> {
    for path in list_files(&repo::root().join(FOLDER), "pikchr")? {
        let source = fs_err::read_to_string(&path)?;
        let name = path.file_stem().context("a diagram has no name")?;
        update_picture(&name.to_string_lossy(), &source, args.check)?;
    }
    for plot in plot::plots()? {
        let page = fs_err::read_to_string(repo::root().join(&plot.page))?;
        let source = plot
            .draw(&page)
            .with_context(|| format!("cannot draw {} from {}", plot.name, plot.page))?;
        update_picture(&plot.name, &source, args.check)?;
    }
    Ok(())
}

fn update_picture(name: &str, source: &str, is_check: bool) -> Result<()> {
    let picture = draw(source).with_context(|| format!("cannot draw {name}"))?;
    let path = format!("{FOLDER}/{name}.svg");
    update_file(&path, picture.as_bytes(), is_check, "pictures")
}

/// Converts a diagram to SVG. This uses the colors of the guide.
fn draw(source: &str) -> Result<String> {
    let title = source
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("// "))
        .context("expected `// ` and the title in the first line")?;
    let picture = Pikchr::render(source, None, PikchrFlags::default()).map_err(|error| anyhow!(error))?;
    theme::apply_theme(picture.rendered(), title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diagram_without_title_is_error() {
        assert!(draw("box \"a\"").is_err());
        let picture = draw("// A box\nbox \"a\"").unwrap();
        assert!(picture.contains("<title>A box</title>"), "{picture}");
    }

    #[test]
    fn invalid_diagram_is_error() {
        let error = draw("// A box\nbax \"a\"").unwrap_err();
        assert!(error.to_string().contains("syntax error"), "{error}");
    }
}
