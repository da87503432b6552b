//! Rows of what neither computes each element by itself nor combines along axes. Their methods stand with their rules.

use super::{Meaning, Row};

const fn row(
    name: &'static str,
    shape: &'static str,
    types: &'static str,
    gradient: &'static [&'static str],
    doc: &'static str,
) -> Row {
    Row {
        name,
        meaning: Meaning::Own(gradient),
        shape,
        types,
        doc,
    }
}

const SAME: &str = "the operand's";

pub(super) const ROWS: &[Row] = &[
    row(
        "full",
        "given",
        "given",
        &[],
        "One value everywhere; `zeros`, `ones` and numbers as operands, too.",
    ),
    row(
        "coordinates",
        "given",
        "`i32`",
        &[],
        "The index along an axis; `arange`, `linspace` and `eye` are made of it.",
    ),
    row(
        "random",
        "given",
        "`u32`",
        &[],
        "Random bits: Philox of seed, stream and index; uniform and normal numbers are made of it.",
    ),
    row(
        "where",
        "all three, repeated to meet",
        "the common type of the two",
        &["the gradient where it was taken, else 0"],
        "The second where the first is true, else the third.",
    ),
    row(
        "cast",
        SAME,
        "given",
        &["the gradient, cast back; none from or to integers"],
        "The same elements as another type: as Rust's `as`; as floats of one byte the nearest one, of two the even one.",
    ),
    row(
        "detach",
        SAME,
        SAME,
        &[],
        "The same elements, through which no gradient can be asked for.",
    ),
    row(
        "tracked",
        SAME,
        SAME,
        &["where gradients are asked for"],
        "The same elements, with which tracking begins.",
    ),
    row(
        "with_hook",
        SAME,
        SAME,
        &["what the function gives"],
        "The same elements, whose gradient a function sees, and may change.",
    ),
    row(
        "checkpoint",
        "the function's",
        "the function's",
        &["the function's, recorded again"],
        "A function's value, of whose operations none is kept for gradients: they are computed again.",
    ),
    row(
        "function",
        "the function's",
        "the function's",
        &["the function's, if it has one"],
        "A function with a kernel of its own.",
    ),
    row(
        "reshape",
        "given, of as many elements",
        SAME,
        &["reshape"],
        "The same elements in the same order.",
    ),
    row(
        "permute",
        "the operand's extents in the new order",
        SAME,
        &["permute back"],
        "Axes in another order; `transpose`.",
    ),
    row(
        "expand",
        "given",
        SAME,
        &["the sum along what was repeated"],
        "Axes of extent 1 repeated.",
    ),
    row(
        "slice",
        "what the slices leave",
        SAME,
        &["pad with zeros"],
        "Every n-th element of parts of axes.",
    ),
    row("flip", SAME, SAME, &["flip"], "Backwards along axes."),
    row(
        "pad",
        "the operand's and the widths",
        SAME,
        &["slice"],
        "A value around, and between, the elements.",
    ),
    row(
        "gather",
        "the index', the other axes repeated to meet",
        SAME,
        &["the gradient, added up at the index"],
        "Elements by their index along an axis.",
    ),
    row(
        "segments",
        "a run an element of the first axis",
        "that of the combination",
        &[
            "of a sum the run's gradient; of an extreme shared evenly by the elements that are it; of a product none",
        ],
        "Combinations of runs along the first axis, one after the other; `scatter_add` and its kin, and the gradient of `gather`, are made of it.",
    ),
    row(
        "matmul",
        "the matrix product's; axes in front repeated to meet",
        "the common type",
        &["products with the other operand, transposed"],
        "Matrix products over the last two axes. An element is summed in the order of the inner axis, half floats in f32.",
    ),
];
