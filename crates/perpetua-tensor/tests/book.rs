//! The book's page of operators, made of the tables: compared, or written if `PERPETUA_BLESS` is 1.

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

#[test]
fn the_page_is_the_tables() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(PAGE);
    let new = page().unwrap();
    if std::env::var_os("PERPETUA_BLESS").is_some_and(|v| v == "1") {
        std::fs::write(&path, new).unwrap();
    } else {
        let old = std::fs::read_to_string(&path).unwrap().replace("\r\n", "\n");
        assert!(old == new, "{PAGE} is old: run `cargo xtask golden --bless`");
    }
}
