//! CUDA C for NVRTC without headers, and for readers. Divisions, square roots and everything else that IEEE defines
//! are exact under NVRTC's own defaults, but for contraction: compile with `--fmad=false` unless the kernel allows
//! it.

mod atomics;
mod cpp_words;
mod dialect;
mod report;
mod resident;
mod subgroup;
mod words;

use super::c_like::c::{base_of, declarator, literal, type_name};
use super::c_like::{DEAD, Module, Names, Needs, body_text, c_functions, check_shared, prepare};
use super::{Capability, CudaAbi, RenderError, Source};
use crate::ir::{Access, ConstTable, Kernel, ParamKind, Scalar, Type};
use crate::verify::{Verified, require};
use dialect::Cuda;
pub(super) use dialect::native;

/// Most static shared memory of a kernel.
const SHARED_BYTES: u32 = 48 << 10;

/// Renders a kernel.
///
/// # Errors
/// [`RenderError::Unsupported`] for what the plain convention has no parameter for: lengths of buffers.
/// [`RenderError::Limit`] for more than 48 KiB of static shared memory.
pub(super) fn render(verified: &Verified, abi: CudaAbi) -> Result<Source, RenderError> {
    let plain = abi == CudaAbi::Plain;
    // What catches faults has to be told where they are numbered from.
    let capabilities = Capability::ALL.into_iter().filter(|c| {
        !matches!(c, Capability::Matrices | Capability::Stages) && (!plain || *c != Capability::Residency)
    });
    require(verified, &capabilities.collect(), "CUDA C")?;
    check_shared(verified.kernel(), SHARED_BYTES, "CUDA C")?;
    let prepared = prepare(
        verified,
        (&|_| true, &|operation| native(operation, plain)),
        !plain,
    );
    let kernel = &prepared.kernel;
    let target = if plain { "plain CUDA C" } else { "CUDA C" };
    // Text for people keeps their names.
    let names = match plain {
        true => Names::bare(cpp_words::CPP.iter().chain(words::CUDA).copied()),
        false => Names::marked(),
    };
    let m = Module::new(&prepared, target.into(), names);
    let d = Cuda::new(&m, plain);

    let functions = c_functions(&m, &d, "__device__", |needs| hidden(&m, &d, needs));
    let (_, body) = body_text(&m, &d, &kernel.body, &[], None);
    let entry = entry(&m, &d, &body);
    if let Some(error) = m.error() {
        return Err(error);
    }

    let mut parts = m.types();
    parts.extend(
        kernel
            .constants
            .iter()
            .enumerate()
            .map(|(i, c)| table(&m, &d, i, c)),
    );
    parts.extend(dynamic_shared(&m, &d));
    parts.extend(m.helpers());
    parts.extend(functions);
    parts.push(entry);
    Ok(Source {
        text: m.text(&parts),
        entry: m.entry.clone(),
        faults: prepared.faults,
        prints: if plain { Vec::new() } else { prepared.prints },
    })
}

/// What a function is passed behind the scenes: declaration and argument. (It cannot reach buffers or shared
/// variables.)
fn hidden(m: &Module<'_>, d: &Cuda, needs: &Needs) -> Vec<(String, String)> {
    let mut out = Vec::new();
    if d.plain {
        return out;
    }
    let mut add = |ty: &str, name: &str| out.push((format!("{ty} {name}"), name.to_owned()));
    if needs.dead {
        add("bool&", DEAD);
    }
    if needs.fault && m.catches {
        add("unsigned int&", "caught");
    }
    if needs.fault {
        add("unsigned int*", "fault_record");
    }
    if needs.fault || needs.print {
        add("unsigned int", "site_base");
    }
    if needs.print {
        add("unsigned int*", "print_ring");
    }
    out
}

fn pointer(m: &Module<'_>, d: &Cuda, element: &Type, access: Access, name: &str) -> String {
    let constant = if access == Access::Read { "const " } else { "" };
    format!("{constant}{}* {name}", d.type_name_of(m, element))
}

fn entry(m: &Module<'_>, d: &Cuda, body: &str) -> String {
    let mut params = Vec::new();
    for (i, p) in m.kernel.params.iter().enumerate() {
        let name = m.params.get(i).map_or("", String::as_str);
        match &p.kind {
            ParamKind::Buffer { element, access } => {
                params.push(pointer(m, d, element, *access, name));
                if !d.plain {
                    let length = d.lengths.get(i).map_or("", String::as_str);
                    params.push(format!("unsigned long long {length}"));
                }
            }
            ParamKind::Value(ty) => params.push(format!("{} {name}", d.type_name_of(m, ty))),
        }
    }
    if !d.plain {
        params.push("unsigned int* fault_record".to_owned());
        params.push("unsigned int site_base".to_owned());
        if m.entry_needs.print {
            params.push("unsigned int* print_ring".to_owned());
        }
    }
    let bounds = match m.kernel.block_size {
        Some([x, y, z]) => format!(
            "__launch_bounds__({}) ",
            u64::from(x) * u64::from(y) * u64::from(z)
        ),
        None => String::new(),
    };
    let mut start = String::new();
    for (i, var) in m.kernel.shared.iter().enumerate() {
        if !var.dynamic {
            let (name, ty, _, flat) = base_of(m, crate::ir::Base::Shared(i as u32));
            let declared = declarator(d, m, &ty, flat, &name);
            start.push_str(&format!("    __shared__ {declared};\n"));
        }
    }
    if m.entry_needs.dead && !d.plain {
        start.push_str(&format!("    bool {DEAD} = false;\n"));
    }
    if m.catches {
        start.push_str("    unsigned int caught = 0u;\n");
    }
    format!(
        "extern \"C\" __global__ void {bounds}{}({})\n{{\n{start}{body}}}\n",
        m.entry,
        params.join(", ")
    )
}

/// The declaration of dynamic shared memory, which stands outside the kernel.
fn dynamic_shared(m: &Module<'_>, d: &Cuda) -> Option<String> {
    let i = m.kernel.shared.iter().position(|s| s.dynamic)?;
    let (name, ty, ..) = base_of(m, crate::ir::Base::Shared(i as u32));
    let align = ty.align().max(16);
    let ty = type_name(d, m, &ty);
    Some(format!("extern __shared__ __align__({align}) {ty} {name}[];\n"))
}

/// Whether a table is kept as bits, because some element has no literal.
pub(super) fn is_bits(table: &ConstTable) -> bool {
    let infinite = |bits: &u64| match table.element {
        Scalar::F32 => !f32::from_bits(*bits as u32).is_finite(),
        Scalar::F64 => !f64::from_bits(*bits).is_finite(),
        _ => false,
    };
    table.data.iter().any(infinite)
}

/// Bytes of constant memory that all tables together may take; larger ones go to global memory.
const CONSTANT_BYTES: u64 = 48 << 10;

fn table(m: &Module<'_>, d: &Cuda, i: usize, table: &ConstTable) -> String {
    let s = if is_bits(table) {
        table.element.to_unsigned()
    } else {
        table.element
    };
    let space = if table_bytes(m.kernel) > CONSTANT_BYTES {
        "__device__ const"
    } else {
        "__constant__"
    };
    let name = m.constants.get(i).map_or("", String::as_str);
    let data: Vec<String> = table.data.iter().map(|bits| literal(d, s, *bits).text).collect();
    let ty = type_name(d, m, &s.into());
    format!(
        "{space} {ty} {name}[{}] = {{\n{}}};\n",
        data.len(),
        super::c_like::wrapped(&data)
    )
}

fn table_bytes(kernel: &Kernel) -> u64 {
    kernel
        .constants
        .iter()
        .map(|c| u64::from(c.element.size()) * c.data.len() as u64)
        .sum()
}
