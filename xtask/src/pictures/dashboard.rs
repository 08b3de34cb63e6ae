//! The picture of a dashboard: its panels at their places, with curves that stand for values.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// The dashboard, as a test of the command holds it.
pub(super) const SOURCE: &str = "cli/tests/golden/grafana/controller-runtime-metrics.json";
pub(super) const NAME: &str = "dashboard";

/// Width and height of a unit of Grafana's grid, in inches.
const UNIT: (f64, f64) = (0.34, 0.15);
/// Space between panels, in inches.
const GAP: f64 = 0.06;
/// Headings of the dashboard in the picture; all would be twice as high as a page.
const SECTIONS: usize = 3;
/// Points of a curve.
const POINTS: u32 = 24;
const COLORS: [&str; 3] = ["0x2f6fdd", "0xc9ced6", "0x000000"];

/// Returns the picture in the language of Pikchr.
pub(super) fn draw(dashboard: &str) -> Result<String> {
    let dashboard: Value = serde_json::from_str(dashboard)?;
    let panels = dashboard["panels"]
        .as_array()
        .context("the dashboard has no panels")?;
    ensure!(!panels.is_empty(), "the dashboard has no panels");
    let mut source =
        "// The first panels of the dashboard of controllers, with curves that stand for values\n".to_owned();
    let mut sections = 0;
    for panel in panels {
        let is_row = panel["type"] == "row";
        sections += usize::from(is_row);
        if sections > SECTIONS {
            break;
        }
        let title = panel["title"].as_str().context("a panel has no title")?;
        let side = |name: &str| panel["gridPos"][name].as_f64().context("a panel has no place");
        let (left, top) = (side("x")? * UNIT.0, -side("y")? * UNIT.1);
        let (width, height) = (side("w")? * UNIT.0 - GAP, side("h")? * UNIT.1 - GAP);
        if is_row {
            let heading = format!(
                "box invis width {width:.2}in height {:.2}in \"{title}\" bold ljust",
                UNIT.1
            );
            writeln!(source, "{heading} with .nw at ({left:.2}in, {top:.2}in)")?;
            continue;
        }
        writeln!(
            source,
            "box width {width:.2}in height {height:.2}in fill 0xeef2f7 thickness 0 with .nw at ({left:.2}in, {top:.2}in)"
        )?;
        // Within a box: text beside one counts as if it were centred, and widens the picture.
        let heading = format!("box invis width {width:.2}in height 0.26in \"{title}\" small ljust");
        writeln!(source, "{heading} with .nw at ({left:.2}in, {top:.2}in)")?;
        let queries = panel["targets"].as_array().context("a panel has no queries")?;
        for (number, color) in COLORS.iter().enumerate().take(queries.len()) {
            let place = (left + 0.1, top - height + 0.12);
            source.push_str(&curve(title, number, place, (width - 0.2, height - 0.45), color));
        }
    }
    Ok(source)
}

/// Returns a curve, which depends on the title and the number of the query only. Later queries are higher, as quantiles are.
fn curve(title: &str, number: usize, place: (f64, f64), size: (f64, f64), color: &str) -> String {
    let seed = title
        .bytes()
        .fold(7_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let phase = f64::from(seed % 628) / 100.0;
    let speed = 0.25 + f64::from(seed / 628 % 10) / 25.0;
    let base = 0.2 + 0.3 * number as f64;
    let mut line = "line".to_owned();
    for point in 0..=POINTS {
        let at = f64::from(point);
        let value = base + 0.09 * (at * speed + phase).sin() + 0.05 * (at * 1.7 + phase * 2.0).sin();
        let x = place.0 + size.0 * at / f64::from(POINTS);
        let y = place.1 + size.1 * value.clamp(0.0, 1.0);
        let word = if point == 0 { "from" } else { "to" };
        line.push_str(&format!(" {word} ({x:.2}in, {y:.2}in)"));
    }
    format!("{line} color {color}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panel_is_a_box_with_a_curve_for_each_query() {
        let source = draw(
            r#"{"panels": [
                {"type": "row", "title": "Reconciles", "gridPos": {"x": 0, "y": 0, "w": 24, "h": 1}},
                {"type": "timeseries", "title": "Depth", "gridPos": {"x": 0, "y": 1, "w": 12, "h": 8}, "targets": [{}, {}]}
            ]}"#,
        )
        .unwrap();
        assert_eq!(source.matches("\nline from").count(), 2, "{source}");
        assert!(source.contains("\"Depth\" small ljust"), "{source}");
        assert!(super::super::draw(&source).is_ok());
    }

    #[test]
    fn a_dashboard_without_panels_is_an_error() {
        assert!(draw(r#"{"panels": []}"#).is_err());
        assert!(draw("{}").is_err());
    }
}
