//! The book's pages of operators and of the array API standard's names, made of the tables: compared, or written if `PERPETUA_BLESS` is 1.

#![allow(clippy::unwrap_used, reason = "what fails in a helper fails a test")]

use std::fmt::Write;

use perpetua_tensor::table::{Composed, Meaning, composed, primitives, reading};

const PAGE: &str = "docs/book/src/tensor-operators.md";

fn page() -> Result<String, std::fmt::Error> {
    let mut text = String::from(
        "# Tensors: operators\n\nEvery operator of [tensors](tensors.md), as a method and as a function of `perpetua::tensor::functions`. The tables are made from \
         those that the library reads.\n\n## Primitives\n\nKernels compute these. Errors are in units in the last place at `f32`, against the correctly rounded \
         result; `f16` and `bf16` round the `f32` result,\nand `f64` is within one of its own. Primitives without an error are exact. A derivative names the \
         operands `x` and `y` and the result `r`, one for each operand.\n\n| operator | shape | type | error | derivative | meaning |\n|---|---|---|---|---|---|\n",
    );
    let cell = |text: &str| text.replace('|', "\\|");
    for row in primitives() {
        let error = row.exactness().words();
        let derivatives: Vec<String> = match row.meaning {
            Meaning::Own(sentences) => sentences.iter().map(|text| (*text).to_owned()).collect(),
            _ => row.gradient().iter().map(|text| format!("`{text}`")).collect(),
        };
        writeln!(
            text,
            "| `{}` | {} | {} | {error} | {} | {} |",
            row.name,
            cell(row.shape),
            cell(row.types),
            cell(&derivatives.join(", ")),
            cell(row.doc)
        )?;
    }
    text.push_str(
        "\n## Composed\n\nThese are recorded as others, so fusion, gradients and errors follow.\n\n| operator | is | meaning |\n|---|---|---|\n",
    );
    let rows = |text: &mut String, row: &Composed| {
        writeln!(
            text,
            "| `{}` | `{}` | {} |",
            row.name,
            cell(row.formula),
            cell(row.doc)
        )
    };
    composed().try_for_each(|row| rows(&mut text, row))?;
    text.push_str(
        "\n## Reading\n\nThe shape of what these give depends on values: they compute their operand, and wait for one number. In functions that `compile` or `vmap` takes they are errors.\n\n| operator | is | meaning |\n|---|---|---|\n",
    );
    reading().try_for_each(|row| rows(&mut text, row))?;
    Ok(text)
}

/// The page of the array API standard's names, each looked for among the rows of the tables and what else has a name.
fn standard() -> Result<String, std::fmt::Error> {
    const ELSEWHERE: &[&str] = &[
        include_str!("../src/create.rs"),
        include_str!("../src/dlpack.rs"),
        include_str!("../src/dtype.rs"),
        include_str!("../src/view.rs"),
    ];
    let known = |name: &str| {
        let mut rows = composed().chain(reading()).map(|row| row.name);
        let is_row = rows.any(|row| row == name) || primitives().any(|row| row.name == name);
        is_row
            || ELSEWHERE.iter().any(|text| {
                text.contains(&format!("pub fn {name}(")) || text.contains(&format!("pub fn {name}<"))
            })
    };
    let mut text = String::from(
        "# Tensors: the array API standard\n\nEach name of the [standard](https://data-apis.org/array-api/latest/), what has it here, and what differs. The names are looked for in the tables of \
         [operators](tensor-operators.md) when this page is made. Everywhere else types meet, and shapes, as the standard says.\n",
    );
    let mut counts = [0; 3];
    for line in include_str!("standard.txt").lines().skip(1) {
        if let Some(title) = line.strip_prefix("## ") {
            write!(
                text,
                "\n## {title}\n\n| name | here | what differs |\n|---|---|---|\n"
            )?;
            continue;
        }
        let mut parts = line.split('\t');
        let (name, here, note) = (
            parts.next().unwrap(),
            parts.next().unwrap(),
            parts.next().unwrap_or(""),
        );
        let here = match here {
            "=" => name,
            other => other,
        };
        assert_eq!(known(here), here != "-", "`{name}`: the list says `{here}`");
        assert!(
            here == name || !known(name),
            "`{name}` is there: the list says `{here}`"
        );
        assert!(here == name || !note.is_empty(), "`{name}`: why is it not there?");
        counts[usize::from(here != name) + usize::from(here == "-")] += 1;
        match here {
            "-" => writeln!(text, "| `{name}` | no | {note} |")?,
            here => writeln!(text, "| `{name}` | `{here}` | {note} |")?,
        }
    }
    let [same, other, none] = counts;
    writeln!(
        text,
        "\n{same} names are there, {other} under another one, {none} are not."
    )?;
    Ok(text)
}

#[test]
fn the_pages_are_the_tables() {
    for (path, new) in [
        (PAGE, page().unwrap()),
        ("docs/book/src/tensor-standard.md", standard().unwrap()),
    ] {
        hold(path, &new);
    }
}

fn hold(page: &str, new: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(page);
    if std::env::var_os("PERPETUA_BLESS").is_some_and(|v| v == "1") {
        std::fs::write(&path, new).unwrap();
    } else {
        let old = std::fs::read_to_string(&path).unwrap().replace("\r\n", "\n");
        assert!(old == new, "{page} is old: run `cargo xtask golden --bless`");
    }
}
