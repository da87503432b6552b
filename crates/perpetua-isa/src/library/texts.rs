//! Texts of programs that no rule writes.

use perpetua_ir::ir::{ReduceOp, Scalar};

use super::{Family, Text};

fn written(stem: &str, types: &[Scalar], doc: &str, text: &'static str) -> Family {
    Family {
        stem: stem.into(),
        types: types.to_vec(),
        doc: doc.into(),
        text: Text::Written(text),
    }
}

const COPY: &str = "\
.program {name}
.buffer a: {type} read
.buffer out: {type} readwrite
    setge.u64 p0, r255, len(out)
@p0 exit
    ldg.{type} r0, a[r255]
    stg.{type} out[r255], r0
";

const FILL: &str = "\
.program {name}
.buffer out: {type} readwrite
.param value: {type}
    setge.u64 p0, r255, len(out)
@p0 exit
    stg.{type} out[r255], value
";

macro_rules! example {
    ($name:literal) => {
        include_str!(concat!("../../programs/", $name, ".pasm"))
    };
}

pub(super) fn families() -> Vec<Family> {
    let numbers: Vec<Scalar> = Scalar::ALL.into_iter().filter(|ty| *ty != Scalar::Bool).collect();
    let mut families = vec![
        written(
            "atlas_memcpy",
            &[],
            "`out = a`, of bytes; of other types `atlas_copy`.",
            COPY,
        ),
        written("atlas_copy", &numbers, "`out = a`.", COPY),
        written(
            "atlas_fill",
            &numbers,
            "Sets `out` to the parameter `value`.",
            FILL,
        ),
    ];
    families.extend(reductions());
    let examples = [
        (
            "atlas_gemm_f32",
            "`c = alpha a b + beta c`, of `m` x `k` and `k` x `n` elements, in blocks of 16 x 16.",
            example!("gemm"),
        ),
        (
            "atlas_group_norm_f32",
            "Normalises groups of channels, a block a group; with `groups` and `size` 1, rows (layer norm).",
            example!("group_norm"),
        ),
        (
            "atlas_batch_norm_f32",
            "Normalises channels, by a mean and a variance that are given.",
            example!("batch_norm"),
        ),
        (
            "atlas_conv2d_f32",
            "Correlates pictures of several channels with `w`, and adds `bias`.",
            example!("conv2d"),
        ),
        (
            "atlas_nearest_upsample2d_f32",
            "Repeats each element of a picture `scale` times in both directions.",
            example!("nearest_upsample2d"),
        ),
        ("saxpy", "`y = a x + y`.", example!("saxpy")),
        (
            "dot",
            "`out[0]` grows by the dot product of `x` and `y`.",
            example!("dot"),
        ),
        (
            "softmax",
            "`y` = softmax of each row of `x`, a block a row of `columns` elements.",
            example!("softmax"),
        ),
        (
            "matmul",
            "`c = a b`, of `n` x `n` matrices, in blocks of 16 x 16.",
            example!("matmul"),
        ),
        (
            "histogram",
            "`bins[v]` grows by how often `v` is in `data`.",
            example!("histogram"),
        ),
        (
            "scan",
            "`y` = running sums of `x`; a block does all.",
            example!("scan"),
        ),
        (
            "nbody",
            "Accelerations of bodies that pull at each other.",
            example!("nbody"),
        ),
        (
            "mandelbrot",
            "How many steps each point of the plane stays near zero.",
            example!("mandelbrot"),
        ),
        ("sort", "Sorts `x` in place; a block does all.", example!("sort")),
    ];
    families.extend(examples.map(|(name, doc, text)| written(name, &[], doc, text)));
    families
}

macro_rules! reduction {
    ($op:literal, $start:literal) => {
        concat!(
            ".program {name}\n.buffer a: {type} read\n.buffer out: {type} readwrite\n",
            "    ",
            $start,
            "\n    mov.u64 r1, r255\n    mov.u64 r2, %ntid.x\n    mov.u64 r3, %nctaid.x\n    mul.u64 r2, r2, r3\n",
            "next:\n    setge.u64 p0, r1, len(a)\n@p0 bra done\n    ldg.{type} r4, a[r1]\n    ",
            $op,
            ".{type} r0, r0, r4\n    add.u64 r1, r1, r2\n    bra next\ndone:\n    grid_",
            $op,
            ".{type} out[0], r0\n"
        )
    };
}

// Where an element counts as often as one likes, lanes start with the first.
fn reductions() -> Vec<Family> {
    use Scalar::{F32, F64, I32, I64, U32, U64};
    let numbers = [I32, I64, U32, U64, F32, F64];
    let integers = [I32, I64, U32, U64];
    let family = |op: ReduceOp, types: &[Scalar], text| {
        let doc = format!(
            "`out[0]` is combined with all elements of `a` by `{}`, in any order of blocks.",
            op.name()
        );
        written(&format!("atlas_reduce_{}", op.name()), types, &doc, text)
    };
    vec![
        family(ReduceOp::Add, &numbers, reduction!("add", "mov.{type} r0, 0")),
        family(ReduceOp::Mul, &integers, reduction!("mul", "mov.{type} r0, 1")),
        family(ReduceOp::Min, &numbers, reduction!("min", "ldg.{type} r0, a[0]")),
        family(ReduceOp::Max, &numbers, reduction!("max", "ldg.{type} r0, a[0]")),
        family(ReduceOp::And, &integers, reduction!("and", "ldg.{type} r0, a[0]")),
        family(ReduceOp::Or, &integers, reduction!("or", "mov.{type} r0, 0")),
        family(ReduceOp::Xor, &integers, reduction!("xor", "mov.{type} r0, 0")),
    ]
}
