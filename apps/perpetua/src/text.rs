//! Texts as wide as the terminal, and columns that stand below each other. Must not know what they say.

/// Columns where nobody says.
const USUAL: usize = 100;
/// Narrower ones are not kept to.
const LEAST: usize = 20;
/// With less room than this, a text stands below its name.
const WIDE: usize = 60;

/// How many columns the output has: those of the terminal, or of `COLUMNS`.
pub(crate) fn columns() -> usize {
    let told = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    // Where nobody knows, some say 0.
    let told = told.filter(|columns| *columns > 0);
    let found = told.or_else(|| {
        let (_, columns) = console::Term::stdout().size_checked()?;
        Some(usize::from(columns))
    });
    found.unwrap_or(USUAL).max(LEAST)
}

/// A text that begins at a column, with its further lines there, too.
pub(crate) fn wrapped(text: &str, indent: usize, columns: usize) -> String {
    let room = columns.saturating_sub(indent);
    let mut out = String::new();
    let mut used = 0;
    for word in text.split(' ') {
        let width = console::measure_text_width(word);
        if used > 0 && used + 1 + width > room {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            used = 0;
        } else if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += width;
    }
    out
}

/// A name, and a text beside it that begins at a column; below it where there is little room.
pub(crate) fn entry(indent: usize, name: &str, column: usize, text: &str, columns: usize) -> String {
    let (before, between) = match columns < WIDE {
        true => (indent / 2, format!("\n{}", " ".repeat(indent / 2 + 2))),
        false => {
            let used = indent + console::measure_text_width(name);
            (indent, " ".repeat(column.saturating_sub(used).max(1)))
        }
    };
    let start = if columns < WIDE { before + 2 } else { column };
    let name = wrapped(name.trim_end(), before, columns);
    format!(
        "{}{name}{between}{}",
        " ".repeat(before),
        wrapped(text, start, columns)
    )
}

/// How often a second, with decimals where it is seldom.
pub(crate) fn rate(value: f64) -> String {
    let decimals = match value {
        ..1.0 => 3,
        ..10.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// How many times as much, with two digits at least.
pub(crate) fn ratio(value: f64) -> String {
    let decimals = match value {
        0.1.. => 2,
        0.01.. => 3,
        0.001.. => 4,
        _ => return format!("{value:.1e}"),
    };
    format!("{value:.decimals$}")
}

/// Rows with the columns below each other: the first to the left, the others to the right.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count)
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells
                .map(|cell| console::measure_text_width(cell))
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[column].saturating_sub(console::measure_text_width(cell)));
            let gap = if column == 0 { "" } else { "  " };
            line += &match column {
                0 => format!("{cell}{pad}"),
                _ => format!("{gap}{pad}{cell}"),
            };
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_keep_to_the_width() {
        let text = "one two three four five six seven eight nine ten eleven twelve";
        let shown = wrapped(text, 4, 44);
        assert_eq!(
            shown,
            "one two three four five six seven eight\n    nine ten eleven twelve"
        );
        assert_eq!(wrapped("short", 4, 44), "short");
        // A word stays whole.
        assert_eq!(wrapped("a longest b", 4, 8), "a\n    longest\n    b");
    }

    #[test]
    fn a_text_stands_beside_its_name_or_below_it() {
        assert_eq!(entry(4, "name", 12, "one two", 60), "    name    one two");
        assert_eq!(entry(4, "longname", 12, "one two", 60), "    longname one two");
        assert_eq!(
            entry(4, "name", 12, "one two three four", 20),
            "  name\n    one two three\n    four"
        );
    }

    #[test]
    fn what_is_seldom_is_not_told_as_never() {
        assert_eq!(
            [0.0419, 4.49, 35.4, 2e5].map(rate),
            ["0.042", "4.5", "35", "200000"]
        );
    }

    #[test]
    fn ratios_have_two_digits() {
        let shown = [12.345, 0.5, 0.0126, 0.00416, 0.000_02].map(ratio);
        assert_eq!(shown, ["12.35", "0.50", "0.013", "0.0042", "2.0e-5"]);
    }

    #[test]
    fn columns_stand_below_each_other() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let shown = table(&[
            row(["a", "b", "²"]),
            row(["long", "1", "22"]),
            row(["x", "333", ""]),
        ]);
        assert_eq!(shown, "a       b   ²\nlong    1  22\nx     333\n");
    }
}
