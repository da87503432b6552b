//! Metal Shading Language 3.1 (3.2 where a kernel orders memory among the lanes of a block other than by
//! barriers). Compile without fast math; contraction is off in the text unless the kernel allows it.
//!
//! Buffers come first, `[[buffer(0)]]` on, as pointers to the start of their bindings; then the argument block as words
//! ([`ArgsLayout`]), then the fault record. Dynamic shared memory is `[[threadgroup(0)]]`.

mod atomics;
mod dialect;
mod report;
mod subgroup;

use super::c_like::c::{base_of, declarator, literal, type_name};
use super::c_like::{DEAD, Module, Names, Needs, body_text, c_functions, check_shared, prepare, wrapped};
use super::{ArgsLayout, Capabilities, Capability, RenderError, Source};
use crate::ir::{Access, Base, ConstTable, ParamKind, Scalar, Type};
use crate::verify::{Verified, require};
use dialect::Msl;
pub(super) use dialect::native;

/// What Metal has on every device.
pub(super) fn capabilities() -> Capabilities {
    Capabilities::from([
        Capability::Int64,
        Capability::Subgroups,
        Capability::BlockOrdering,
        Capability::DynamicShared,
    ])
}

/// Most static shared memory of a kernel on every device.
const SHARED_BYTES: u32 = 32 << 10;
/// Buffers that a kernel may be given, the two hidden ones included.
const BUFFERS: u32 = 31;

/// Renders a kernel.
///
/// # Errors
/// [`RenderError::Limit`] for more than 32 KiB of static shared memory, or more than 29 buffers.
pub(super) fn render(verified: &Verified) -> Result<Source, RenderError> {
    require(verified, &capabilities(), "MSL")?;
    check_shared(verified.kernel(), SHARED_BYTES, "MSL")?;
    let buffers = ArgsLayout::binding(verified.kernel()) + 2;
    if buffers > BUFFERS {
        return Err(RenderError::Limit {
            kernel: verified.kernel().name.clone(),
            what: "the number of buffers, with the hidden two,".into(),
            found: buffers.into(),
            limit: BUFFERS.into(),
            target: "MSL".into(),
        });
    }
    let prepared = prepare(verified, (&|_| true, &native), true);
    let kernel = &prepared.kernel;
    let m = Module::new(&prepared, "MSL".into(), Names::marked());
    let d = Msl::new(&m);

    let functions = c_functions(&m, &d, "static inline", hidden);
    let (_, body) = body_text(&m, &d, &kernel.body, &[], None);
    let entry = entry(&m, &d, &body);
    if let Some(error) = m.error() {
        return Err(error);
    }

    let contract = if kernel.contract { "fast" } else { "off" };
    let mut parts = vec![format!(
        "#include <metal_stdlib>\nusing namespace metal;\n#pragma METAL fp contract({contract})\n"
    )];
    parts.extend(m.types());
    parts.extend(
        kernel
            .constants
            .iter()
            .enumerate()
            .map(|(i, c)| table(&m, &d, i, c)),
    );
    parts.extend(m.helpers());
    parts.extend(functions);
    parts.push(entry);
    Ok(Source {
        text: m.text(&parts),
        entry: m.entry.clone(),
        faults: prepared.faults,
        prints: prepared.prints,
    })
}

/// Whether a buffer parameter is only read.
fn is_read_only(m: &Module<'_>, i: u32) -> bool {
    matches!(
        m.kernel.params.get(i as usize).map(|p| &p.kind),
        Some(ParamKind::Buffer {
            access: Access::Read,
            ..
        })
    )
}

fn pointer(m: &Module<'_>, d: &Msl, i: u32, element: &Type) -> String {
    let constant = if is_read_only(m, i) { "const " } else { "" };
    let name = m.params.get(i as usize).map_or("", String::as_str);
    format!("device {constant}{}* {name}", d.type_name_of(m, element))
}

/// Names, types and attributes of the positions that are needed.
fn positions(needs: &Needs) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    [
        (needs.thread_idx, "uint3", "tid", "thread_position_in_threadgroup"),
        (needs.block_idx, "uint3", "bid", "threadgroup_position_in_grid"),
        (needs.block_dim, "uint3", "bdim", "threads_per_threadgroup"),
        (needs.grid_dim, "uint3", "gdim", "threadgroups_per_grid"),
        (needs.lane, "uint", "simd_lane", "thread_index_in_simdgroup"),
        (needs.subgroup_size, "uint", "simd_size", "threads_per_simdgroup"),
    ]
    .into_iter()
    .filter(|(used, ..)| *used)
    .map(|(_, ty, name, attribute)| (ty, name, attribute))
}

/// What a function is passed behind the scenes: declaration and argument. (It cannot reach buffers or shared
/// variables.)
fn hidden(needs: &Needs) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let mut add = |ty: &str, name: &str| out.push((format!("{ty} {name}"), name.to_owned()));
    if needs.dead {
        add("thread bool&", DEAD);
    }
    if needs.fault {
        add("device atomic_uint*", "fault_record");
        add("uint", "site_base");
    }
    for (ty, name, _) in positions(needs) {
        add(ty, name);
    }
    out
}

/// A value at a byte offset of the argument block.
fn value_at(m: &Module<'_>, d: &Msl, ty: &Type, first: u32, offset: u32) -> String {
    let word = |at: u32| format!("args[{}]", first + at / 4);
    match ty {
        Type::Scalar(s) if s.size() == 8 => {
            let bits = format!("((ulong){} << 32 | (ulong){})", word(offset + 4), word(offset));
            match s {
                Scalar::U64 => bits,
                _ => format!("({}){bits}", type_name(d, m, ty)),
            }
        }
        Type::Scalar(Scalar::U32) => word(offset),
        Type::Scalar(Scalar::F32) => format!("as_type<float>({})", word(offset)),
        Type::Scalar(s) => {
            let shift = offset % 4 * 8;
            let moved = if shift == 0 {
                word(offset)
            } else {
                format!("({} >> {shift})", word(offset))
            };
            if *s == Scalar::Bool {
                format!("({moved} & 0xffu) != 0u")
            } else {
                format!("({}){moved}", type_name(d, m, ty))
            }
        }
        _ => {
            let parts: Vec<String> = (0..ty.component_count())
                .filter_map(|i| {
                    let (c, o) = (ty.component(i)?, ty.component_offset(i)?);
                    Some(value_at(m, d, &c, first, offset + o))
                })
                .collect();
            let (name, list) = (type_name(d, m, ty), parts.join(", "));
            match ty {
                Type::Array(..) => format!("{name}{{{{{list}}}}}"),
                Type::Vector(..) => format!("{name}({list})"),
                _ => format!("{name}{{{list}}}"),
            }
        }
    }
}

fn entry(m: &Module<'_>, d: &Msl, body: &str) -> String {
    let layout = ArgsLayout::of(m.kernel);
    let needs = &m.entry_needs;
    let mut params = Vec::new();
    let mut start = String::new();
    for (i, p) in m.kernel.params.iter().enumerate() {
        let index = i as u32;
        let name = m.params.get(i).map_or("", String::as_str);
        let word = layout.params.get(i).copied().unwrap_or(0);
        match &p.kind {
            ParamKind::Buffer { element, .. } => {
                params.push(format!(
                    "{} [[buffer({})]]",
                    pointer(m, d, index, element),
                    params.len()
                ));
                if needs.lengths.contains(&index) {
                    let length = d.lengths.get(i).map_or("", String::as_str);
                    start.push_str(&format!("    const uint {length} = args[{word}];\n"));
                }
                if needs.buffers.contains(&index) {
                    start.push_str(&format!("    {name} += args[{}];\n", word + 1));
                }
            }
            ParamKind::Value(ty) => {
                if needs.params.contains(&index) {
                    start.push_str(&format!(
                        "    const {} {name} = {};\n",
                        d.type_name_of(m, ty),
                        value_at(m, d, ty, word, 0)
                    ));
                }
            }
        }
    }
    let slot = params.len();
    params.push(format!("constant uint* args [[buffer({slot})]]"));
    params.push(format!(
        "device atomic_uint* fault_record [[buffer({})]]",
        slot + 1
    ));
    for (i, var) in m.kernel.shared.iter().enumerate() {
        let (name, ty, _, flat) = base_of(m, Base::Shared(i as u32));
        if var.dynamic {
            let bytes = m.global_name(&format!("{name}_bytes"));
            params.push(format!("threadgroup uchar* {bytes} [[threadgroup(0)]]"));
            let ty_name = type_name(d, m, &ty);
            start.push_str(&format!(
                "    threadgroup {ty_name}* {name} = (threadgroup {ty_name}*){bytes};\n"
            ));
            if needs.shared_length
                && let Some(word) = layout.dynamic_shared
            {
                start.push_str(&format!(
                    "    const uint shared_len = args[{word}] / {}u;\n",
                    ty.size()
                ));
            }
        } else {
            start.push_str(&format!(
                "    threadgroup {};\n",
                declarator(d, m, &ty, flat, &name)
            ));
        }
    }
    if needs.fault {
        start.push_str(&format!(
            "    const uint site_base = args[{}];\n",
            ArgsLayout::SITE_BASE
        ));
    }
    if needs.dead {
        start.push_str(&format!("    bool {DEAD} = false;\n"));
    }
    for (ty, name, attribute) in positions(needs) {
        params.push(format!("{ty} {name} [[{attribute}]]"));
    }
    format!(
        "kernel void {}(\n    {})\n{{\n{start}{body}}}\n",
        m.entry,
        params.join(",\n    ")
    )
}

/// Whether a table is kept as bits, because some element has no literal.
fn is_bits(table: &ConstTable) -> bool {
    let infinite = |bits: &u64| table.element == Scalar::F32 && !f32::from_bits(*bits as u32).is_finite();
    table.data.iter().any(infinite)
}

fn table(m: &Module<'_>, d: &Msl, i: usize, table: &ConstTable) -> String {
    let s = if is_bits(table) {
        table.element.to_unsigned()
    } else {
        table.element
    };
    let name = m.constants.get(i).map_or("", String::as_str);
    let data: Vec<String> = table.data.iter().map(|bits| literal(d, s, *bits).text).collect();
    format!(
        "constant {} {name}[{}] = {{\n{}}};\n",
        type_name(d, m, &s.into()),
        data.len(),
        wrapped(&data)
    )
}
