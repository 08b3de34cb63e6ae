//! The colors and font of the pictures, on light and dark pages.
//!
//! Pikchr prints colors as numbers. They are replaced with the colors for light pages, and a style
//! sheet overrides them if the reader's color scheme is dark. One file therefore works for both,
//! and programs without style sheet support show the light colors. A picture has its own
//! background, so that it is also legible on a dark page if the reader's scheme is light.

use anyhow::{Context as _, Result, bail};

/// The colors of diagrams: as printed by Pikchr, on light pages and on dark pages.
const COLORS: &[(&str, &str, &str)] = &[
    // The default color of lines and text.
    ("rgb(0,0,0)", "#1f2328", "#e6edf3"),
    // 0xeef2f7: what exists without rbuilder, such as source, manifests and servers.
    ("rgb(238,242,247)", "#eef2f7", "#21262d"),
    // 0xd8e8ff: the subject of the picture.
    ("rgb(216,232,255)", "#cfe3ff", "#143d6b"),
    // 0xffe0d6: failures.
    ("rgb(255,224,214)", "#ffdcd0", "#6b2a17"),
    // 0x2f6fdd: highlighted bars.
    ("rgb(47,111,221)", "#2f6fdd", "#5b9bff"),
    // 0xc9ced6: bars for comparison.
    ("rgb(201,206,214)", "#c9ced6", "#484f58"),
];

/// The background on light and dark pages.
const GROUND: [&str; 2] = ["#ffffff", "#0d1117"];

/// Applies the guide's colors and font to a Pikchr drawing, and adds a title for screen readers.
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

/// Returns the style sheet with the font and the colors for dark pages. Its rules are marked
/// `!important` to override `style` attributes.
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
