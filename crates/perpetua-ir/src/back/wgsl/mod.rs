//! WGSL for wgpu (naga) and browsers. 64-bit types and atomics are naga's extensions, used where the device has
//! them; everything else is the standard language.
//!
//! - Every buffer is bound `read_write`, since parts of one allocation may be bound twice; buffers of 32-bit scalars
//!   (64-bit ones where the device has them) and vectors of those are arrays of their type, all others are arrays of
//!   `u32` words. What is touched atomically anywhere is an array of atomics.
//! - A dispatch may be folded: work-group `(x, y, z)` of a dispatch of `(X, Y, Z)` has the number `x + X * (y + Y * z)`. The
//!   logical grid's groups are numbered likewise; a work-group whose number the grid has not returns at once, which is
//!   uniform.
//! - The language allows fused and loosely divided floats: nothing in the text can forbid it.
//! - Subgroup operations need [`BROWSER_SUBGROUPS`] in front in browsers; naga takes the text as it is.

mod dialect;
mod memory;
mod order;
mod region;
mod report;
mod scalar;
mod subgroup;
mod wide;
mod words_memory;

use super::c_like::{Expr, Module, Names, Needs, body_text, prepare, wrapped};
use super::{ArgsLayout, Capabilities, Capability, RenderError, Source};
use crate::ir::{Base, Block, Body, ConstTable, Kernel, ParamKind, Scalar, Type};
use crate::ops::TernaryOp;
use crate::pass::{Operation, returns_apart};
use crate::verify::{Verified, require};
use dialect::Wgsl;
pub(super) use dialect::native;
use region::{Region, Regions, atomic_scalar};

/// Stands before the text of a kernel with subgroup operations where the browser compiles it. (naga accepts subgroup
/// operations without it, and refuses the first line.)
pub const BROWSER_SUBGROUPS: &str = "enable subgroups;\ndiagnostic(off, subgroup_uniformity);\n";

/// Most braces within each other in a function, its own among them.
const MAX_BRACES: i32 = 127;

/// The launches that a text is for.
pub(super) struct Launch {
    /// Lanes of a work-group.
    pub(super) block: [u32; 3],
    /// Bytes of dynamic workgroup memory.
    pub(super) dynamic_shared: u32,
    /// Whether no two buffers share bytes.
    pub(super) distinct: bool,
}

/// Renders a kernel; with `exact_fma` for devices whose `fma` rounds once.
///
/// # Errors
/// [`RenderError::Unsupported`] for 64-bit atomics inside structs.
pub(super) fn render(
    verified: &Verified,
    capabilities: &Capabilities,
    launch: Launch,
    exact_fma: bool,
) -> Result<Source, RenderError> {
    require(verified, capabilities, "WGSL")?;
    let in_kernels =
        |operation: &Operation| exact_fma || !matches!(operation, Operation::Ternary(TernaryOp::Fma, _));
    let mut prepared = prepare(verified, (&in_kernels, &native), true);
    for function in &mut prepared.kernel.functions {
        returns_apart(&mut function.body);
    }
    returns_apart(&mut prepared.kernel.body);
    let kernel = &prepared.kernel;
    let m = Module::new(&prepared, "WGSL".into(), Names::marked());
    let fields = args_fields(&m);
    let in_args = |n: usize| {
        let field = |f: &Vec<String>| f.get(n).map_or(String::new(), |f| format!("args.{f}"));
        fields.iter().map(field).collect::<Vec<_>>()
    };
    let d = Wgsl {
        regions: Regions::of(kernel),
        wide: has_int64(kernel),
        block: kernel.block_size.unwrap_or(launch.block),
        dynamic: dynamic_elements(kernel, launch.dynamic_shared),
        orders_buffers: order::orders_buffers(kernel, launch.distinct),
        length: in_args(0),
        first: in_args(1),
        fields,
    };

    let mut functions = Vec::new();
    for (i, f) in kernel.functions.iter().enumerate() {
        let (names, body) = body_text(&m, &d, &f.body, &f.params, f.result.as_ref());
        check_nesting(&m, &f.body, &body);
        let mut params: Vec<String> = f
            .params
            .iter()
            .zip(&names)
            .map(|((_, ty), name)| format!("{name}: {}", d.type_name_of(&m, ty)))
            .collect();
        if let Some(needs) = m.needs.get(i) {
            params.extend(hidden(needs).into_iter().map(|(declared, _)| declared.to_owned()));
        }
        let result = f
            .result
            .as_ref()
            .map_or(String::new(), |ty| format!(" -> {}", d.type_name_of(&m, ty)));
        let name = m.functions.get(i).map_or("", String::as_str);
        functions.push(format!("fn {name}({}){result} {{\n{body}}}\n", params.join(", ")));
    }
    let (_, body) = body_text(&m, &d, &kernel.body, &[], None);
    check_nesting(&m, &kernel.body, &body);
    let (kept, entry) = entry(&m, &d, &body);
    if let Some(error) = m.error() {
        return Err(error);
    }

    let bindings = bindings(&m, &d);
    let mut parts = m.types();
    parts.push(args_struct(&m, &d));
    parts.push(bindings);
    parts.extend(kept);
    parts.extend(kernel.constants.iter().enumerate().map(|(i, c)| table(&m, i, c)));
    parts.extend(m.helpers());
    parts.extend(functions);
    parts.push(entry);
    let text = m.text(&parts);
    // Checks and expansions may have brought in types that the kernel itself does not need.
    if !capabilities.contains(&Capability::Int64) && mentions_int64(&text) {
        return Err(RenderError::Lacks {
            kernel: verified.kernel().name.clone(),
            line: 0,
            capability: Capability::Int64,
            target: "WGSL".into(),
        });
    }
    Ok(Source {
        text,
        entry: m.entry.clone(),
        faults: prepared.faults,
        prints: prepared.prints,
    })
}

/// That a function's text keeps to the language's limit of braces within each other; the deepest statement is named where not.
fn check_nesting(m: &Module<'_>, body: &Body, text: &str) {
    let (mut open, mut deepest) = (1, 0);
    for byte in text.bytes() {
        match byte {
            b'{' => open += 1,
            b'}' => open -= 1,
            _ => {}
        }
        deepest = deepest.max(open);
    }
    if deepest > MAX_BRACES {
        let what = format!(
            "loops and conditions that come to {deepest} braces within each other, {MAX_BRACES} are allowed: move the inner ones to a function"
        );
        m.unsupported(deepest_line(&body.block, 0).1, what);
    }
}

// How deep the deepest statement lies, and its line.
fn deepest_line(block: &Block, depth: usize) -> (usize, u32) {
    let all = block.0.iter().map(|stmt| {
        let inner = stmt
            .inst
            .blocks()
            .into_iter()
            .map(|block| deepest_line(block, depth + 1));
        let inner = inner.max_by_key(|(depth, _)| *depth);
        match inner {
            Some((deeper, line)) if line > 0 => (deeper, line),
            Some((deeper, _)) => (deeper, stmt.line),
            None => (depth, stmt.line),
        }
    });
    all.max_by_key(|(depth, _)| *depth).unwrap_or((depth, 0))
}

/// Whether a body computes with 64-bit integers.
fn has_int64(kernel: &Kernel) -> bool {
    let bodies = kernel.functions.iter().map(|f| &f.body).chain([&kernel.body]);
    bodies
        .flat_map(|body| &body.values)
        .any(|ty| matches!(ty, Type::Scalar(Scalar::I64 | Scalar::U64)))
}

/// Whether a text has 64-bit integers.
fn mentions_int64(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .any(|word| matches!(word, "i64" | "u64"))
}

fn dynamic_elements(kernel: &Kernel, bytes: u32) -> u32 {
    let size = kernel
        .shared
        .iter()
        .find(|s| s.dynamic)
        .map_or(1, |s| s.ty.size());
    bytes / size.max(1)
}

/// What a function is passed behind the scenes: declaration and argument. Everything else is seen by all.
fn hidden(needs: &Needs) -> Vec<(&'static str, &'static str)> {
    let mut out = Vec::new();
    if needs.thread_idx {
        out.push(("tid: vec3<u32>", "tid"));
    }
    if needs.block_idx {
        out.push(("bid: vec3<u32>", "bid"));
    }
    if needs.lane {
        out.push(("subgroup_lane: u32", subgroup::LANE));
    }
    if needs.subgroup_size {
        out.push(("subgroup_size: u32", subgroup::SIZE));
    }
    out
}

/// For each parameter, the names of its fields in the argument block: length and first element of a buffer, the value
/// itself where a field can hold it, else its words.
fn args_fields(m: &Module<'_>) -> Vec<Vec<String>> {
    let fields = m
        .kernel
        .params
        .iter()
        .zip(&m.params)
        .map(|(p, name)| match &p.kind {
            ParamKind::Buffer { .. } => ["len", "first"]
                .map(|suffix| m.global_name(&format!("{name}_{suffix}")))
                .into(),
            ParamKind::Value(ty) if ty.size() <= 4 => vec![name.clone()],
            ParamKind::Value(ty) => (0..super::value_words(ty))
                .map(|word| m.global_name(&format!("{name}_word{word}")))
                .collect(),
        });
    fields.collect()
}

/// The argument block, laid out as [`ArgsLayout`] says.
fn args_struct(m: &Module<'_>, d: &Wgsl) -> String {
    let mut text = String::from("    grid: vec3<u32>,\n    site_base: u32,\n");
    for (p, fields) in m.kernel.params.iter().zip(&d.fields) {
        let ty = match &p.kind {
            ParamKind::Value(Type::Scalar(s @ (Scalar::F32 | Scalar::I32))) => scalar::name(*s),
            _ => "u32",
        };
        for field in fields {
            text.push_str(&format!("    {field}: {ty},\n"));
        }
    }
    if m.kernel.shared.iter().any(|s| s.dynamic) {
        text.push_str("    dynamic_bytes: u32,\n");
    }
    format!("struct Args {{\n{text}}}\n")
}

/// A value parameter out of the argument block.
fn param_value(d: &Wgsl, m: &Module<'_>, index: u32, ty: &Type) -> Expr {
    let fields = d.fields.get(index as usize).map_or(&[][..], Vec::as_slice);
    let word = |at: u32| {
        let field = fields.get(at as usize).map_or("", String::as_str);
        format!("args.{field}")
    };
    if let Type::Scalar(Scalar::F32 | Scalar::I32 | Scalar::U32) = ty {
        return Expr::whole(word(0));
    }
    // `bool` and the like bind loosely.
    Expr::new(value_at(d, m, ty, 0, &word), super::c_like::Bind::Bits)
}

/// A value at a byte offset of words.
fn value_at(d: &Wgsl, m: &Module<'_>, ty: &Type, offset: u32, word: &dyn Fn(u32) -> String) -> String {
    match ty {
        Type::Scalar(s) if s.size() == 8 => {
            let bits = format!(
                "(u64({}) << 32u) | u64({})",
                word(offset / 4 + 1),
                word(offset / 4)
            );
            match s {
                Scalar::U64 => bits,
                _ => format!("bitcast<{}>({bits})", scalar::name(*s)),
            }
        }
        Type::Scalar(s) => {
            let shift = offset % 4 * 8;
            let shift = (shift != 0).then(|| format!("{shift}u"));
            words_memory::unpacked(*s, &word(offset / 4), shift.as_deref())
        }
        _ => {
            let parts: Vec<String> = (0..ty.component_count())
                .filter_map(|i| {
                    let (c, o) = (ty.component(i)?, ty.component_offset(i)?);
                    Some(value_at(d, m, &c, offset + o, word))
                })
                .collect();
            format!("{}({})", d.type_name_of(m, ty), parts.join(", "))
        }
    }
}

/// Buffers, argument block, fault record, workgroup variables and the lane's flag.
fn bindings(m: &Module<'_>, d: &Wgsl) -> String {
    let mut out = String::new();
    let mut binding = 0;
    for (i, p) in m.kernel.params.iter().enumerate() {
        let ParamKind::Buffer { element, .. } = &p.kind else {
            continue;
        };
        let ty = match d.regions.get(Base::Buffer(i as u32)) {
            Region::Plain => d.type_name_of(m, element),
            Region::Atomic => atomic_type(element),
            Region::Words { atomic: true } => "atomic<u32>".to_owned(),
            Region::Words { atomic: false } => "u32".to_owned(),
        };
        let name = m.params.get(i).map_or("", String::as_str);
        out.push_str(&format!(
            "@group(0) @binding({binding}) var<storage, read_write> {name}: array<{ty}>;\n"
        ));
        binding += 1;
    }
    debug_assert_eq!(binding, ArgsLayout::binding(m.kernel));
    out.push_str(&format!(
        "@group(0) @binding({binding}) var<uniform> args: Args;\n"
    ));
    out.push_str(&format!(
        "@group(0) @binding({}) var<storage, read_write> fault_record: array<atomic<u32>, {}>;\n",
        binding + 1,
        crate::fault::record::WORDS
    ));
    for (i, var) in m.kernel.shared.iter().enumerate() {
        let name = m.shared.get(i).map_or("", String::as_str);
        let region = d.regions.get(Base::Shared(i as u32));
        let element = match region {
            Region::Plain => d.type_name_of(m, &var.ty),
            Region::Atomic => atomic_type(&var.ty),
            Region::Words { .. } => String::new(),
        };
        let ty = match region {
            Region::Words { .. } => {
                let count = if var.dynamic { d.dynamic.max(1) } else { 1 };
                let words = (var.ty.size() * count).div_ceil(4);
                format!("array<atomic<u32>, {words}>")
            }
            // An array must have an element, even where the launch gives none.
            _ if var.dynamic => format!("array<{element}, {}>", d.dynamic.max(1)),
            _ => element,
        };
        out.push_str(&format!("var<workgroup> {name}: {ty};\n"));
    }
    if m.entry_needs.dead {
        out.push_str("// Whether this lane has faulted.\nvar<private> dead: bool;\n");
    }
    out
}

/// The type of atomics for an array of scalars.
fn atomic_type(ty: &Type) -> String {
    match ty {
        Type::Array(element, n) => format!("array<{}, {n}>", atomic_type(element)),
        other => format!(
            "atomic<{}>",
            scalar::name(atomic_scalar(other.as_scalar().unwrap_or(Scalar::U32)))
        ),
    }
}

/// Whether a table is kept as bits, because some element has no literal.
fn is_bits(table: &ConstTable) -> bool {
    let has_literal = |bits: &u64| match table.element {
        Scalar::F32 => {
            let v = f32::from_bits(*bits as u32);
            v.is_finite() && !v.is_subnormal() && (v != 0.0 || v.is_sign_positive())
        }
        Scalar::F64 => {
            let v = f64::from_bits(*bits);
            v.is_finite() && !v.is_subnormal() && (v != 0.0 || v.is_sign_positive())
        }
        // Its literal is a difference, which naga does not compute in 64 bits.
        Scalar::I64 => *bits != i64::MIN as u64,
        _ => true,
    };
    !table.data.iter().all(has_literal)
}

fn table(m: &Module<'_>, i: usize, table: &ConstTable) -> String {
    let s = if is_bits(table) {
        table.element.to_unsigned()
    } else {
        table.element
    };
    let name = m.constants.get(i).map_or("", String::as_str);
    let data: Vec<String> = table
        .data
        .iter()
        .map(|bits| scalar::literal(m, s, *bits).text)
        .collect();
    format!(
        "const {name} = array<{}, {}>(\n{});\n",
        scalar::name(s),
        data.len(),
        wrapped(&data)
    )
}

/// What a lane keeps of its fault, and the entry point. Where a lane can fault, the kernel's body is a function of its own, so that all its
/// ends meet where the fault is reported.
fn entry(m: &Module<'_>, d: &Wgsl, body: &str) -> (Option<String>, String) {
    let needs = &m.entry_needs;
    let mut block = d.block;
    let mut params = String::new();
    let mut start = String::new();
    // naga has subgroup lanes in work-groups of one dimension only: those of more are counted in one.
    if needs.lane && (block[1] > 1 || block[2] > 1) {
        let [x, y, z] = block;
        block = [x * y * z, 1, 1];
        if needs.thread_idx {
            params.push_str("    @builtin(local_invocation_index) thread: u32,\n");
            start.push_str(&format!(
                "    let tid = vec3<u32>(thread % {x}u, thread / {x}u % {y}u, thread / {}u);\n",
                x * y
            ));
        }
    } else if needs.thread_idx {
        params.push_str("    @builtin(local_invocation_id) tid: vec3<u32>,\n");
    }
    params.push_str("    @builtin(workgroup_id) group: vec3<u32>,\n");
    params.push_str("    @builtin(num_workgroups) groups: vec3<u32>,\n");
    if needs.lane {
        params.push_str("    @builtin(subgroup_invocation_id) subgroup_lane: u32,\n");
    }
    if needs.subgroup_size {
        params.push_str("    @builtin(subgroup_size) subgroup_size: u32,\n");
    }
    let grid = "args.grid";
    start.push_str(&format!(
        "    let number = group.x + groups.x * (group.y + groups.y * group.z);\n    if (number >= {grid}.x * {grid}.y * {grid}.z) {{\n        return;\n    }}\n"
    ));
    let [x, y, z] = block;
    if needs.block_idx {
        start.push_str(&format!(
            "    let bid = vec3<u32>(number % {grid}.x, number / {grid}.x % {grid}.y, number / ({grid}.x * {grid}.y));\n"
        ));
    }
    let head = format!(
        "@compute @workgroup_size({x}, {y}, {z})\nfn {}(\n{params}) {{\n{start}",
        m.entry
    );
    let Some((kept, end)) = report::at_end(m) else {
        return (None, format!("{head}{body}}}\n"));
    };
    let (params, args): (Vec<_>, Vec<_>) = hidden(needs).into_iter().unzip();
    let name = m.global_name("lane");
    let text = format!(
        "fn {name}({}) {{\n{body}}}\n\n{head}    {name}({});\n{end}}}\n",
        params.join(", "),
        args.join(", ")
    );
    (Some(kept), text)
}
