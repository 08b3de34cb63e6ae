//! Draws bar charts from the figures in a table.
//!
//! We don't want to repeat the figures, so they are only in the table. A plot contains the heading
//! above the table, and the rows and columns that should be compared.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

/// A row of plots.yaml.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plot {
    pub(super) name: String,
    title: String,
    pub(super) page: String,
    after: String,
    bars: Vec<(String, Vec<String>, usize, bool)>,
}

pub(super) fn plots() -> Result<Vec<Plot>> {
    Ok(serde_saphyr::from_str(include_str!("plots.yaml"))?)
}

/// Length of the longest bar (in inches).
const LONGEST: f64 = 4.0;

/// Width of the labels in front of the bars (in inches).
const LABELS: f64 = 2.0;

/// Width of the figure behind the longest bar (in inches).
const FIGURES: f64 = 0.8;

impl Plot {
    /// Returns a drawing for Pikchr. The figures are taken from the page.
    pub(super) fn draw(&self, page: &str) -> Result<String> {
        let rows = table_after(page, &self.after)?;
        let figures: Vec<&str> = self
            .bars
            .iter()
            .map(|(_, row, column, _)| find_figure(&rows, row, *column))
            .collect::<Result<_>>()?;
        let lengths: Vec<f64> = figures.iter().copied().map(number).collect::<Result<_>>()?;
        let most = lengths.iter().copied().fold(0.0, f64::max);
        ensure!(most > 0.0, "all figures are 0");
        let mut source = format!("// {}\n", self.title);
        // The box around the picture is necessary because Pikchr underestimates justified text, it
        // assumes just half of the actual width.
        writeln!(
            source,
            "box invis width {:.2}in height 0.1in with .w at (-{LABELS:.2}in, 0)",
            LABELS + LONGEST + FIGURES
        )?;
        let bars = self.bars.iter().zip(figures).zip(lengths);
        for (position, (((label, _, _, is_ours), figure), length)) in bars.enumerate() {
            let color = if *is_ours { "0x2f6fdd" } else { "0xc9ced6" };
            let above = -0.32 * position as f64;
            // A box without any width would not be drawn.
            let width = (length / most * LONGEST).max(0.02);
            writeln!(
                source,
                "B{position}: box width {width:.2}in height 0.24in fill {color} thickness 0 with .w at (0, {above:.2}in)"
            )?;
            writeln!(
                source,
                "text \"{label}\" small rjust at B{position}.w - (0.1in, 0)"
            )?;
            writeln!(
                source,
                "text \"{figure}\" small ljust at B{position}.e + (0.1in, 0)"
            )?;
        }
        Ok(source)
    }
}

fn table_after<'p>(page: &'p str, line: &str) -> Result<Vec<Vec<&'p str>>> {
    let (_, below) = page
        .split_once(line)
        .with_context(|| format!("expected the line `{line}`"))?;
    let rows = below
        .lines()
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'));
    let rows: Vec<_> = rows
        .map(|row| row.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    ensure!(!rows.is_empty(), "expected a table after `{line}`");
    Ok(rows)
}

fn find_figure<'p>(rows: &[Vec<&'p str>], start: &[String], column: usize) -> Result<&'p str> {
    let begins =
        |row: &&Vec<&str>| row.iter().zip(start).filter(|(cell, text)| cell == text).count() == start.len();
    let shown = start.join(" | ");
    let row = rows.iter().find(begins);
    let row = row.with_context(|| format!("expected a row that begins with `{shown}`"))?;
    let cell = row.get(column).copied();
    cell.with_context(|| format!("the row `{shown}` has no column {column}"))
}

/// Returns the number at the start of a figure. For example, this is 283 for `283 MB`.
fn number(figure: &str) -> Result<f64> {
    let end = figure.find(|c: char| !c.is_ascii_digit() && c != '.');
    figure[..end.unwrap_or(figure.len())]
        .parse()
        .with_context(|| format!("expected a number, found `{figure}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "## A\n\n| x |\n|---|\n| 1 |\n\n## B\n\ntext\n\n| start | who | CPU |\n|---|---|---:|\n| warm | go | 4.4 s |\n| warm | rust | 2.2 s |\n";

    fn plot(bars: &[(&str, &[&str], usize)]) -> Plot {
        let bar = |(label, row, column): &(&str, &[&str], usize)| {
            let row = row.iter().map(ToString::to_string).collect();
            ((*label).to_owned(), row, *column, false)
        };
        Plot {
            name: "b".to_owned(),
            title: "B".to_owned(),
            page: String::new(),
            after: "## B".to_owned(),
            bars: bars.iter().map(bar).collect(),
        }
    }

    #[test]
    fn bar_lengths_are_proportional_to_figures() {
        let bars: &[(&str, &[&str], usize)] = &[("go", &["warm", "go"], 2), ("rust", &["warm", "rust"], 2)];
        let source = plot(bars).draw(PAGE).unwrap();
        assert!(source.contains("B0: box width 4.00in"), "{source}");
        assert!(source.contains("B1: box width 2.00in"), "{source}");
        assert!(source.contains("\"2.2 s\""), "{source}");
    }

    #[test]
    fn missing_row_is_error() {
        let error = plot(&[("go", &["cold", "go"], 2)]).draw(PAGE).unwrap_err();
        assert_eq!(error.to_string(), "expected a row that begins with `cold | go`");
    }
}
