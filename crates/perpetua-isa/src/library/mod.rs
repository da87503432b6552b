//! Programs that are there under a name: an element-wise program for each operator and type, the kernels that hologram lists, the
//! examples. Their texts are written when they are asked for; `texts` has those that are not written by a rule.

mod texts;

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::LazyLock;

use perpetua_ir::ir::Scalar;
use perpetua_ir::nearest::nearest;
use perpetua_ir::ops::TernaryOp;

use crate::error::{Error, Result};
use crate::hologram::{hint, program};
use crate::opcode::{Meaning, Opcode, Slot, Ty};
use crate::program::Program;
use crate::text::{Assembler, scalar};

/// Programs of the library that differ in the type of their elements alone.
pub struct Family {
    /// The name, or what stands in front of `_` and the type.
    pub stem: String,
    /// The types that there are; none where the stem is the name.
    pub types: Vec<Scalar>,
    /// What the programs do.
    pub doc: String,
    text: Text,
}

enum Text {
    // The opcode in each lane: element `i` of `out` from element `i` of `a`, `b` and `c`.
    Elementwise(Opcode),
    // A text in which `{name}` and `{type}` are replaced: by bytes where the program has its name alone.
    Written(&'static str),
}

/// The library, in the order of the instruction set, then what is made of several instructions, then examples.
pub fn families() -> &'static [Family] {
    &LIBRARY.families
}

/// The library's program of this name, such as `atlas_add_f32` or `saxpy`.
///
/// Element-wise programs read buffers `a`, `b` and `c`, as many as the operator takes, and write all elements of the buffer `out`, a
/// lane each; launch at least as many lanes. hologram's instructions that are programs here are found by their own names, too (`Gemm`, `LayerNorm`).
///
/// ```
/// use perpetua_isa::{LaunchConfig, library, new_executor};
/// let executor = new_executor()?;
/// let [a, b, out] = [[1.0f32, 2.0], [3.0, 4.0], [0.0; 2]].map(|values| {
///     let handle = executor.allocate_buffer(8)?;
///     executor.write_buffer(handle, 0, &values)?;
///     Ok::<u64, perpetua_isa::Error>(handle)
/// });
/// let out = out?;
/// let mut add = library("atlas_add_f32")?;
/// for (name, handle) in [("a", a?), ("b", b?), ("out", out)] {
///     add = add.with_buffer(name, handle)?;
/// }
/// executor.execute_program(&add, &LaunchConfig::linear(2, 256))?;
/// assert_eq!(executor.read_buffer::<f32>(out, 0, 2)?, [4.0, 6.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`Error::NoProgram`].
pub fn library(name: &str) -> Result<Program> {
    let name = program(name).unwrap_or(name);
    let typed = || {
        let (stem, ty) = name.rsplit_once('_')?;
        let (family, ty) = (LIBRARY.family(stem)?, scalar(ty)?);
        family.types.contains(&ty).then_some((family, Some(ty)))
    };
    let plain = || {
        let family = LIBRARY.family(name)?;
        family.types.is_empty().then_some((family, None))
    };
    let (family, ty) = plain().or_else(typed).ok_or_else(|| missing(name))?;
    let text = match (&family.text, ty) {
        (Text::Elementwise(opcode), Some(ty)) => elementwise(name, *opcode, ty),
        (Text::Written(text), ty) => {
            let text = text.replace("{name}", name);
            text.replace("{type}", ty.unwrap_or(Scalar::U8).name())
        }
        (Text::Elementwise(_), None) => return Err(missing(name)),
    };
    Ok(Assembler::new().assemble(name, &text)?)
}

fn missing(name: &str) -> Error {
    let typed = LIBRARY.families.iter().find(|family| {
        let rest = name.strip_prefix(family.stem.as_str());
        !family.types.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    });
    let help = match (typed, hint(name)) {
        (Some(family), _) => {
            let types: Vec<&str> = family.types.iter().map(|ty| ty.name()).collect();
            format!("`{}_TYPE` is there, of {}", family.stem, types.join(", "))
        }
        (None, Some(hint)) => hint.into(),
        (None, None) => {
            let names = || {
                let typed = |family: &'static Family| {
                    let names = family.types.iter().map(|ty| format!("{}_{ty}", family.stem));
                    names.chain(family.types.is_empty().then(|| family.stem.clone()))
                };
                LIBRARY.families.iter().flat_map(typed).collect::<Vec<String>>()
            };
            let names = names();
            let near = nearest(name, names.iter().map(String::as_str));
            near.unwrap_or_else(|| "`perpetua isa list` has all names".into())
        }
    };
    Error::NoProgram {
        name: name.chars().take(64).collect(),
        help,
    }
}

struct Library {
    families: Vec<Family>,
    stems: HashMap<String, usize>,
}

impl Library {
    fn family(&self, stem: &str) -> Option<&Family> {
        self.families.get(*self.stems.get(stem)?)
    }
}

static LIBRARY: LazyLock<Library> = LazyLock::new(|| {
    let mut families = Vec::new();
    for opcode in Opcode::all() {
        let row = opcode.row();
        let types: Vec<Scalar> = match row.types {
            Some(domain) if is_elementwise(opcode) => {
                let numbers = Scalar::ALL.into_iter().filter(|ty| *ty != Scalar::Bool);
                numbers.filter(|ty| domain.contains(*ty)).collect()
            }
            _ => continue,
        };
        for name in std::iter::once(&row.name).chain(&row.aliases) {
            families.push(Family {
                stem: format!("atlas_{name}"),
                types: types.clone(),
                doc: row.doc.clone(),
                text: Text::Elementwise(opcode),
            });
        }
    }
    families.extend(texts::families());
    let stems = families.iter().enumerate();
    let stems = stems.map(|(i, family)| (family.stem.clone(), i)).collect();
    Library { families, stems }
});

/// Whether an opcode makes a number of numbers.
fn is_elementwise(opcode: Opcode) -> bool {
    let row = opcode.row();
    let computes = match row.meaning {
        Meaning::Ternary(op) => op != TernaryOp::Select,
        Meaning::Unary(_) | Meaning::Binary(_) | Meaning::Activation(_) | Meaning::MultiplyAdd => true,
        _ => false,
    };
    computes && !row.operands.contains(&Slot::Write(Ty::Fixed(Scalar::Bool)))
}

fn elementwise(name: &str, opcode: Opcode, ty: Scalar) -> String {
    let row = opcode.row();
    let mut text = format!(".program {name}\n");
    let (mut loads, mut operands, mut result) = (String::new(), String::new(), ty);
    let mut inputs = ["a", "b", "c"].into_iter().enumerate();
    for slot in &row.operands {
        match slot {
            Slot::Write(written) => result = written.of(Some(ty), None).unwrap_or(ty),
            Slot::Read(read) => {
                let (Some((i, input)), Some(read)) = (inputs.next(), read.of(Some(ty), None)) else {
                    continue;
                };
                // Writing to a string does not fail.
                let _ = writeln!(text, ".buffer {input}: {read} read");
                let _ = writeln!(loads, "    ldg.{read} r{i}, {input}[r255]");
                let _ = write!(operands, ", r{i}");
            }
            _ => {}
        }
    }
    let _ = write!(
        text,
        ".buffer out: {result} readwrite\n    setge.u64 p0, r255, len(out)\n@p0 exit\n{loads}    {}.{ty} \
         r3{operands}\n    stg.{result} out[r255], r3\n",
        row.name
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::{Options, lower};
    use crate::verify::verify;

    fn names() -> impl Iterator<Item = String> {
        families().iter().flat_map(|family| {
            let typed = family.types.iter().map(|ty| format!("{}_{ty}", family.stem));
            typed.chain(family.types.is_empty().then(|| family.stem.clone()))
        })
    }

    #[test]
    fn every_program_is_right() {
        for name in names() {
            let program = library(&name).unwrap_or_else(|error| panic!("{error}"));
            assert!(program.name == name && !program.is_empty(), "{name}");
            let verified = verify(&program).unwrap_or_else(|error| panic!("{error}"));
            lower(&verified, Options::default()).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    #[test]
    fn stems_are_unique_and_said_what_they_do() {
        assert_eq!(LIBRARY.stems.len(), LIBRARY.families.len());
        for family in families() {
            assert!(
                !family.doc.is_empty() && !family.doc.contains('\n'),
                "{}",
                family.stem
            );
        }
    }

    #[test]
    fn what_is_not_there_is_told_with_what_is() {
        for (name, help) in [
            ("atlas_add_f31", "`atlas_add_TYPE` is there, of i8, i16"),
            ("atlas_exp_i32", "`atlas_exp_TYPE` is there, of f16, bf16, f32"),
            ("atlas_add", "`atlas_add_TYPE` is there"),
            ("atlas_ad_f32", "did you mean `atlas_a"),
            ("saxpi", "did you mean `saxpy`?"),
            ("../../etc/passwd", "`perpetua isa list`"),
            ("", "`perpetua isa list`"),
        ] {
            let error = library(name).expect_err(name).to_string();
            assert!(error.contains(help) && error.contains(name), "{error}");
        }
    }
}
