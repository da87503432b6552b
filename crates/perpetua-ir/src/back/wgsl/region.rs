//! How buffers and workgroup variables lie in WGSL's memory: as arrays of what they hold where WGSL has that, else as
//! `u32` words. What is touched atomically anywhere is atomic everywhere.

use super::super::c_like::array_levels;
use super::scalar;
use crate::ir::{Base, Effect, Inst, Kernel, Op, ParamKind, Place, Scalar, Type, Value};

/// How a buffer or workgroup variable is declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Region {
    /// As values of its own type.
    Plain,
    /// As atomics, one for each scalar.
    Atomic,
    /// As words that hold its bytes, plain or atomic.
    Words {
        /// Whether the words are atomics.
        atomic: bool,
    },
}

/// Regions of all buffers (by parameter) and workgroup variables.
pub(super) struct Regions {
    buffers: Vec<Region>,
    shared: Vec<Region>,
}

impl Regions {
    pub(super) fn of(kernel: &Kernel) -> Regions {
        let buffers = kernel.params.iter().enumerate().map(|(i, p)| match &p.kind {
            ParamKind::Buffer { element, .. } => {
                let uses = Uses::of(kernel, Base::Buffer(i as u32), element);
                match element {
                    Type::Scalar(s) if s.size() >= 4 && uses.atomic => Region::Atomic,
                    Type::Scalar(s) | Type::Vector(s, _) if s.size() >= 4 && !uses.atomic => {
                        // Vectors of 64-bit elements would be aligned otherwise than ours.
                        if s.size() == 8 && element.as_scalar().is_none() {
                            Region::Words { atomic: false }
                        } else {
                            Region::Plain
                        }
                    }
                    _ => Region::Words {
                        atomic: uses.atomic || uses.parts_of_words,
                    },
                }
            }
            ParamKind::Value(_) => Region::Plain,
        });
        let buffers = buffers.collect();
        let shared = kernel.shared.iter().enumerate().map(|(i, var)| {
            // NVIDIA's Vulkan driver (580.159) loses what lanes store to arrays of `bool` in workgroup memory.
            if var.ty.leaves().iter().any(|(s, _)| *s == Scalar::Bool) {
                return Region::Words { atomic: true };
            }
            let uses = Uses::of(kernel, Base::Shared(i as u32), &var.ty);
            if !uses.atomic {
                return Region::Plain;
            }
            let mut ty = &var.ty;
            for _ in 0..array_levels(&var.ty) {
                if let Type::Array(element, _) = ty {
                    ty = element;
                }
            }
            match ty {
                Type::Scalar(_) if !uses.several => Region::Atomic,
                _ => Region::Words { atomic: true },
            }
        });
        Regions {
            shared: shared.collect(),
            buffers,
        }
    }

    pub(super) fn get(&self, base: Base) -> &Region {
        let found = match base {
            Base::Buffer(i) => self.buffers.get(i as usize),
            Base::Shared(i) => self.shared.get(i as usize),
            Base::Local(_) | Base::Constant(_) => None,
        };
        found.unwrap_or(&Region::Plain)
    }
}

/// What a kernel does to one base.
#[derive(Default)]
struct Uses {
    atomic: bool,
    /// Stores less than a word somewhere, so that the word's other bytes must be kept.
    parts_of_words: bool,
    /// Loads or stores several scalars at a time somewhere.
    several: bool,
}

impl Uses {
    fn of(kernel: &Kernel, base: Base, ty: &Type) -> Uses {
        let mut uses = Uses::default();
        let bodies = kernel.functions.iter().map(|f| &f.body).chain([&kernel.body]);
        for body in bodies {
            let is_scalar = |v: &Value| matches!(body.values.get(v.0 as usize), Some(Type::Scalar(_)));
            body.block.walk(&mut |stmt| match &stmt.inst {
                Inst::Let(v, op) => {
                    let atomic = matches!(
                        op,
                        Op::Atomic(..) | Op::CompareExchange { .. } | Op::Load(_, Some(_))
                    );
                    let here = op.place().is_some_and(|p| p.base == base);
                    uses.atomic |= atomic && here;
                    uses.several |= here && matches!(op, Op::Load(..)) && !is_scalar(v);
                }
                Inst::Do(Effect::Store(place, v, sync)) if place.base == base => {
                    uses.atomic |= sync.is_some();
                    uses.several |= !is_scalar(v);
                    if let Some(stored) = body.values.get(v.0 as usize) {
                        uses.parts_of_words |= !covers_words(stored, starts_word(ty, place));
                    }
                }
                _ => {}
            });
        }
        uses
    }
}

/// Whether what a place leads to always starts a word.
fn starts_word(ty: &Type, place: &Place) -> bool {
    let mut ty = ty.clone();
    let mut aligned = ty.size().is_multiple_of(4);
    // The first step of a run chooses an element.
    for step in place.path.iter().skip(1) {
        let (offset, next) = match step {
            crate::ir::Step::Field(i) => (ty.component_offset(*i), ty.component(*i)),
            // Any element: aligned if the stride is.
            crate::ir::Step::Index(_) => (ty.component(0).map(|c| c.size()), ty.component(0)),
        };
        aligned &= offset.is_some_and(|o| o.is_multiple_of(4));
        match next {
            Some(next) => ty = next,
            None => break,
        }
    }
    aligned
}

/// Most scalars that a store writes word by word in one piece of code.
pub(super) const MOST_LEAVES: usize = 32;

/// Whether a store of a value of this type, starting at a word or not, writes whole words only. `false` where a part of it
/// is stored by a loop over narrow elements.
pub(super) fn covers_words(ty: &Type, starts_word: bool) -> bool {
    match ty {
        Type::Scalar(s) => s.size() >= 4,
        _ if !starts_word || !ty.size().is_multiple_of(4) => ty.leaves().iter().all(|(s, _)| s.size() >= 4),
        _ if ty.leaf_count() <= MOST_LEAVES => true,
        Type::Vector(..) => true,
        Type::Array(element, _) => element.size().is_multiple_of(4) && covers_words(element, true),
        Type::Struct(s) => s
            .fields
            .iter()
            .all(|f| covers_words(&f.ty, f.offset.is_multiple_of(4)) && f.offset.is_multiple_of(4)),
    }
}

/// The name of the type of an atomic that holds a scalar.
pub(super) const fn atomic_scalar(s: Scalar) -> Scalar {
    match s {
        Scalar::F32 | Scalar::Bool => Scalar::U32,
        Scalar::F64 => Scalar::U64,
        other => scalar::held(other),
    }
}
