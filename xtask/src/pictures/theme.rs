//! Defines the colors of the pictures for light and dark pages, and their font.
//!
//! Since Pikchr only prints numbers for colors, we replace them with the colors for light pages.
//! There's also a style sheet, which overrides these if the reader prefers a dark color scheme.
//! This means that we only need one file for both, and that the colors for light pages are used by
//! programs which don't support style sheets. The pictures have their own background. Otherwise,
//! they would be hard to read on a dark page if the color scheme of the reader is light.

use anyhow::{Context as _, Result, bail};

/// Colors in diagrams. The first value is what Pikchr prints, followed by the colors for light and
/// for dark pages.
const COLORS: &[(&str, &str, &str)] = &[
    // Default for lines and text.
    ("rgb(0,0,0)", "#1f2328", "#e6edf3"),
    // 0xeef2f7 is for things that would also exist without rbuilder, e.g. source, manifests and
    // servers.
    ("rgb(238,242,247)", "#eef2f7", "#21262d"),
    // 0xd8e8ff is for what the picture is about.
    ("rgb(216,232,255)", "#cfe3ff", "#143d6b"),
    // 0xffe0d6 is for failures.
    ("rgb(255,224,214)", "#ffdcd0", "#6b2a17"),
    // 0x2f6fdd is for bars that should be highlighted.
    ("rgb(47,111,221)", "#2f6fdd", "#5b9bff"),
    // 0xc9ced6 is for the other bars.
    ("rgb(201,206,214)", "#c9ced6", "#484f58"),
];

/// Background of the pictures on light and on dark pages.
const GROUND: [&str; 2] = ["#ffffff", "#0d1117"];

/// Replaces the colors in a drawing of Pikchr, sets the font, and adds a title for screen readers.
pub(super) fn apply_theme(picture: &str, title: &str) -> Result<String> {
    let start = picture.find("viewBox=").context("the picture has no viewBox")?;
    let (head, content) = picture[start..]
        .split_once('>')
        .context("the picture has no content")?;
    let mut content = content.replace(" fill=\"rgb(0,0,0)\"", "");
    for (printed, light, _) in COLORS {
        content = content.replace(printed, light);
    }
    if let Some(place) = content.find("rgb(") {
        let color = content[place..].split_inclusive(')').next().unwrap_or_default();
        bail!("expected a color of xtask/src/pictures/theme.rs, found `{color}`");
    }
    let title = title.replace('&', "&amp;").replace('<', "&lt;");
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" {head}>\n<title>{title}</title>\n{}<rect class=\"ground\" width=\"100%\" height=\"100%\" fill=\"{}\"/>\n{}\n",
        style(),
        GROUND[0],
        content.trim()
    ))
}

/// Returns the style sheet, which contains the font and all colors for dark pages. We have to use
/// `!important` because there are `style` attributes.
fn style() -> String {
    let (_, ink, dark_ink) = COLORS[0];
    let dark: String = COLORS
        .iter()
        .flat_map(|(_, light, dark)| {
            ["fill", "stroke"].map(|name| format!("[style*=\"{name}:{light}\"]{{{name}:{dark}!important}}\n"))
        })
        .collect();
    format!(
        "<style>\nsvg{{font:16px system-ui,-apple-system,\"Segoe UI\",\"DejaVu Sans\",sans-serif}}\n\
         text{{fill:{ink}}}\n\
         @media (prefers-color-scheme:dark){{\n.ground{{fill:{}}}\ntext{{fill:{dark_ink}}}\n{dark}}}\n</style>\n",
        GROUND[1],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn light_colors_work_without_style_sheet() {
        let picture =
            "<svg viewBox=\"0 0 1 1\">\n<path style=\"fill:rgb(216,232,255);stroke:rgb(0,0,0);\"/>\n</svg>";
        let themed = apply_theme(picture, "A & B").unwrap();
        assert!(
            themed.contains("style=\"fill:#cfe3ff;stroke:#1f2328;\""),
            "{themed}"
        );
        assert!(
            themed.contains("[style*=\"fill:#cfe3ff\"]{fill:#143d6b!important}"),
            "{themed}"
        );
        assert!(!themed.contains("var("), "{themed}");
        assert!(themed.contains("<title>A &amp; B</title>"), "{themed}");
    }

    #[test]
    fn unknown_color_is_error() {
        let error = apply_theme(
            "<svg viewBox=\"0 0 1 1\"><path style=\"fill:rgb(1,2,3)\"/></svg>",
            "",
        )
        .unwrap_err();
        assert!(error.to_string().contains("`rgb(1,2,3)`"), "{error}");
    }
}
