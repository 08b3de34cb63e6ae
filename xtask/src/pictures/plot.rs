//! Draws bar charts from the figures in a table.
//!
//! We don't want to repeat the figures, so they are only in the table. A plot contains the heading
//! above the table, and the rows and columns that should be compared.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};

/// Describes a plot of some of the cells in a table. There is a pair of bars for each.
pub(super) struct Plot {
    pub(super) name: &'static str,
    title: &'static str,
    pub(super) page: &'static str,
    /// The table comes after this line.
    after: &'static str,
    bars: &'static [Bar],
}

struct Bar {
    label: &'static str,
    /// The text of the first cells, which is used to find the row.
    row: &'static [&'static str],
    /// Index of the column that contains the figure.
    column: usize,
    is_ours: bool,
}

const fn bar(label: &'static str, row: &'static [&'static str], column: usize, is_ours: bool) -> Bar {
    Bar {
        label,
        row,
        column,
        is_ours,
    }
}

#[rustfmt::skip]
pub(super) const PLOTS: &[Plot] = &[
    Plot {
        name: "generating",
        title: "CPU time to generate the manifests of an API, with manifests present",
        page: "docs/performance.md",
        after: "## Comparison with controller-gen",
        bars: &[
            bar("controller-gen, 1 kind", &["1 kind", "present"], 2, false),
            bar("rbuilder", &["1 kind", "present"], 3, true),
            bar("controller-gen, 10 kinds", &["10 kinds", "present"], 2, false),
            bar("rbuilder", &["10 kinds", "present"], 3, true),
            bar("controller-gen, 50 kinds", &["50 kinds", "present"], 2, false),
            bar("rbuilder", &["50 kinds", "present"], 3, true),
            bar("controller-gen, CronJob", &["CronJob", "present"], 2, false),
            bar("rbuilder", &["CronJob", "present"], 3, true),
        ],
    },
    Plot {
        name: "operator-memory",
        title: "Memory of an operator with 10 000 objects after a warm start",
        page: "docs/performance.md",
        after: "With 10 000 objects; one cold start each",
        bars: &[
            bar("kubebuilder, as scaffolded", &["warm", "go"], 4, false),
            bar("kubebuilder, tuned", &["warm", "go-tuned"], 4, false),
            bar("rbuilder, as scaffolded", &["warm", "rust"], 4, true),
        ],
    },
    Plot {
        name: "operator-cpu",
        title: "CPU time of an operator that starts with 10 000 new objects",
        page: "docs/performance.md",
        after: "With 10 000 objects; one cold start each",
        bars: &[
            bar("kubebuilder, as scaffolded", &["cold", "go"], 3, false),
            bar("kubebuilder, tuned", &["cold", "go-tuned"], 3, false),
            bar("rbuilder, as scaffolded", &["cold", "rust"], 3, true),
        ],
    },
    Plot {
        name: "shards-received",
        title: "Received by each replica at a start with 50,000 objects",
        page: "docs/scaling.md",
        after: "With 50,000 objects, all of them reconciled",
        bars: &[
            bar("controller-runtime leader", &["controller-runtime", "a leader"], 3, false),
            bar("rbuilder leader", &["rbuilder", "a leader"], 3, true),
            bar("2 replicas, client filter", &["rbuilder", "client-side filter", "2"], 3, true),
            bar("4 replicas, client filter", &["rbuilder", "client-side filter", "4"], 3, true),
            bar("2 replicas, server shards", &["rbuilder", "shards", "2"], 3, true),
            bar("4 replicas, server shards", &["rbuilder", "shards", "4"], 3, true),
        ],
    },
];

/// Length of the longest bar (in inches).
const LONGEST: f64 = 4.0;

/// Width of the labels in front of the bars (in inches).
const LABELS: f64 = 2.0;

/// Width of the figure behind the longest bar (in inches).
const FIGURES: f64 = 0.8;

impl Plot {
    /// Returns a drawing for Pikchr. The figures are taken from the page.
    pub(super) fn draw(&self, page: &str) -> Result<String> {
        let rows = table_after(page, self.after)?;
        let figures: Vec<&str> = self
            .bars
            .iter()
            .map(|bar| find_figure(&rows, bar))
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
        for (position, ((bar, figure), length)) in self.bars.iter().zip(figures).zip(lengths).enumerate() {
            let color = if bar.is_ours { "0x2f6fdd" } else { "0xc9ced6" };
            let above = -0.32 * position as f64;
            // A box without any width would not be drawn.
            let width = (length / most * LONGEST).max(0.02);
            writeln!(
                source,
                "B{position}: box width {width:.2}in height 0.24in fill {color} thickness 0 with .w at (0, {above:.2}in)"
            )?;
            writeln!(
                source,
                "text \"{}\" small rjust at B{position}.w - (0.1in, 0)",
                bar.label
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

fn find_figure<'p>(rows: &[Vec<&'p str>], bar: &Bar) -> Result<&'p str> {
    let row = rows
        .iter()
        .find(|row| row.starts_with(bar.row))
        .with_context(|| format!("expected a row that begins with `{}`", bar.row.join(" | ")))?;
    row.get(bar.column)
        .copied()
        .with_context(|| format!("the row `{}` has no column {}", bar.row.join(" | "), bar.column))
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

    fn plot(bars: &'static [Bar]) -> Plot {
        Plot {
            name: "b",
            title: "B",
            page: "",
            after: "## B",
            bars,
        }
    }

    #[test]
    fn bar_lengths_are_proportional_to_figures() {
        const BARS: &[Bar] = &[
            bar("go", &["warm", "go"], 2, false),
            bar("rust", &["warm", "rust"], 2, true),
        ];
        let source = plot(BARS).draw(PAGE).unwrap();
        assert!(source.contains("B0: box width 4.00in"), "{source}");
        assert!(source.contains("B1: box width 2.00in"), "{source}");
        assert!(source.contains("\"2.2 s\""), "{source}");
    }

    #[test]
    fn missing_row_is_error() {
        const BARS: &[Bar] = &[bar("go", &["cold", "go"], 2, false)];
        let error = plot(BARS).draw(PAGE).unwrap_err();
        assert_eq!(error.to_string(), "expected a row that begins with `cold | go`");
    }
}
