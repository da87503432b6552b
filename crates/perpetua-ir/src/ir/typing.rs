//! Types of operations: what an [`Op`] gives for given operands, or why it is ill-typed. The one place that knows;
//! the builder and the verifier both ask here.

use super::kernel::*;
use super::operation::*;
use super::types::{Scalar, Type};
use crate::fault::record::OPERANDS;
use crate::ops::{Domain, Result as OpResult, Row, Second, Stands};

/// Why an operation, effect or place is ill-typed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypeError {
    /// A value index past the body's values.
    #[error("value %{0} does not exist")]
    NoSuchValue(u32),
    /// An index into one of the kernel's tables is too large.
    #[error("{what} {index} does not exist (there are {count})")]
    NoSuch {
        /// What was looked up.
        what: &'static str,
        /// The index.
        index: u32,
        /// How many there are.
        count: usize,
    },
    /// An operand has the wrong type.
    #[error("{what} has type {found}, expected {expected}")]
    Mismatch {
        /// Which operand.
        what: String,
        /// What was expected, in words or as a type.
        expected: String,
        /// The operand's type.
        found: String,
    },
    /// A wrong number of operands.
    #[error("{what} takes {expected} operands, found {found}")]
    Arity {
        /// Which operation.
        what: String,
        /// How many it takes.
        expected: usize,
        /// How many it got.
        found: usize,
    },
    /// Something that cannot be done at all.
    #[error("{0}")]
    Invalid(String),
}

type Result<T> = std::result::Result<T, TypeError>;

/// The declarations that operations refer to.
#[derive(Clone, Copy)]
pub struct Declarations<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// The body whose values and locals are meant.
    pub body: &'a Body,
}

fn mismatch<T>(what: impl Into<String>, expected: impl ToString, found: &Type) -> Result<T> {
    Err(TypeError::Mismatch {
        what: what.into(),
        expected: expected.to_string(),
        found: found.to_string(),
    })
}

fn get<'t, T>(table: &'t [T], index: u32, what: &'static str) -> Result<&'t T> {
    table.get(index as usize).ok_or(TypeError::NoSuch {
        what,
        index,
        count: table.len(),
    })
}

/// What a place leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceType {
    /// Type of the place.
    pub ty: Type,
    /// Whether it may be stored to.
    pub writable: bool,
}

/// Whether a type is a struct of four words that lies where one access of 16 bytes can reach it.
pub fn is_four_words(ty: &Type) -> bool {
    let word = |s: Scalar| s.size() == 4;
    matches!(ty, Type::Struct(s) if s.size == 16 && s.align == 16)
        && ty.leaf_count() == 4
        && ty.leaves().iter().all(|(s, _)| word(*s))
}

impl<'a> Declarations<'a> {
    /// Type of a value.
    pub fn value(&self, v: Value) -> Result<&'a Type> {
        self.body
            .values
            .get(v.0 as usize)
            .ok_or(TypeError::NoSuchValue(v.0))
    }

    /// Scalar type of a value, or an error naming `what`.
    pub fn scalar(&self, v: Value, what: &str) -> Result<Scalar> {
        let ty = self.value(v)?;
        ty.as_scalar().map_or_else(|| mismatch(what, "a scalar", ty), Ok)
    }

    fn expect(&self, v: Value, expected: &Type, what: &str) -> Result<()> {
        let ty = self.value(v)?;
        if ty == expected {
            Ok(())
        } else {
            mismatch(what, expected, ty)
        }
    }

    /// Type that a place leads to.
    pub fn place(&self, place: &Place) -> Result<PlaceType> {
        let mut steps = place.path.iter();
        let (mut ty, writable) = match place.base {
            Base::Local(id) => (get(&self.body.locals, id.0, "local")?.ty.clone(), true),
            Base::Shared(i) => {
                let var = get(&self.kernel.shared, i, "shared variable")?;
                if var.dynamic {
                    self.index_step(steps.next(), "dynamic shared memory")?;
                }
                (var.ty.clone(), true)
            }
            Base::Buffer(i) => match &get(&self.kernel.params, i, "parameter")?.kind {
                ParamKind::Buffer { element, access } => {
                    self.index_step(steps.next(), "a buffer")?;
                    (element.clone(), *access == Access::ReadWrite)
                }
                ParamKind::Value(_) => {
                    return Err(TypeError::Invalid(format!(
                        "parameter {i} is a value, not a buffer"
                    )));
                }
            },
            Base::Constant(i) => {
                let table = get(&self.kernel.constants, i, "constant table")?;
                self.index_step(steps.next(), "a constant table")?;
                (table.element.into(), false)
            }
        };
        for step in steps {
            ty = match (step, &ty) {
                (Step::Index(v), Type::Array(element, _)) => {
                    self.index_value(*v)?;
                    (**element).clone()
                }
                (Step::Index(_), other) => return mismatch("indexed place", "an array", other),
                (Step::Field(i), other) => other.component(*i).ok_or(TypeError::NoSuch {
                    what: "component",
                    index: *i,
                    count: other.component_count() as usize,
                })?,
            };
        }
        Ok(PlaceType { ty, writable })
    }

    fn index_step(&self, step: Option<&Step>, what: &str) -> Result<()> {
        match step {
            Some(Step::Index(v)) => self.index_value(*v),
            _ => Err(TypeError::Invalid(format!(
                "the path into {what} must begin with an index"
            ))),
        }
    }

    fn index_value(&self, v: Value) -> Result<()> {
        let s = self.scalar(v, "index")?;
        if s.is_int() {
            Ok(())
        } else {
            mismatch("index", "an integer", &s.into())
        }
    }

    fn operator(&self, row: &Row, a: Value, b: Option<Value>) -> Result<Type> {
        let s = self.scalar(a, "operand 0")?;
        if !row.domain.contains(s) {
            return mismatch(
                format!("operand 0 of `{}`", row.name),
                row.domain.describe(),
                &s.into(),
            );
        }
        if let Some(b) = b {
            let t = self.scalar(b, "operand 1")?;
            let (fits, expected) = match row.second {
                Second::Same => (t == s, s.name()),
                Second::Amount => (t.is_int(), "an integer"),
            };
            if !fits {
                return mismatch(format!("operand 1 of `{}`", row.name), expected, &t.into());
            }
        }
        Ok(match row.result {
            OpResult::Same | OpResult::Second => s.into(),
            OpResult::Bool => Type::BOOL,
            OpResult::U32 => Type::U32,
            OpResult::Unsigned => s.to_unsigned().into(),
        })
    }

    /// Checks a place of a read-modify-write.
    fn atomic_place(&self, place: &Place, what: &str) -> Result<Scalar> {
        let at = self.place(place)?;
        if !at.writable {
            return Err(TypeError::Invalid(format!("{what} on read-only memory")));
        }
        self.atomic_access(place, &at, what)
    }

    /// Checks a place of any atomic access: one scalar of 32 or 64 bits in memory that lanes share.
    fn atomic_access(&self, place: &Place, at: &PlaceType, what: &str) -> Result<Scalar> {
        if !matches!(place.base, Base::Buffer(_) | Base::Shared(_)) {
            return Err(TypeError::Invalid(format!(
                "{what} on memory that no other lane sees"
            )));
        }
        match at.ty.as_scalar() {
            Some(s) if s.size() >= 4 => Ok(s),
            _ => mismatch(
                format!("place of {what}"),
                "i32, u32, i64, u64, f32 or f64",
                &at.ty,
            ),
        }
    }

    /// Checks a place that an atomic load or store moves: a scalar, or four words at once in a buffer.
    fn moved_whole(&self, place: &Place, at: &PlaceType, sync: Sync, what: &str) -> Result<()> {
        if is_four_words(&at.ty) && matches!(place.base, Base::Buffer(_)) {
            if sync.order != MemOrder::Relaxed {
                return Err(TypeError::Invalid(format!(
                    "{what} of four words can only be relaxed"
                )));
            }
            return Ok(());
        }
        self.atomic_access(place, at, what).map(|_| ())
    }

    /// Type of the value that `op` gives; `None` for a call of a function without result.
    pub fn op(&self, op: &Op) -> Result<Option<Type>> {
        Ok(Some(match op {
            Op::Const(s, bits) => {
                if s.bits() < 64 && bits >> s.bits() != 0 {
                    return Err(TypeError::Invalid(format!("constant {bits:#x} does not fit {s}")));
                }
                (*s).into()
            }
            Op::Zero(ty) => ty.clone(),
            Op::Param(i) => match &get(&self.kernel.params, *i, "parameter")?.kind {
                ParamKind::Value(ty) => ty.clone(),
                ParamKind::Buffer { .. } => {
                    return Err(TypeError::Invalid(format!(
                        "parameter {i} is a buffer, not a value"
                    )));
                }
            },
            Op::Builtin(_) => Type::U32,
            Op::Unary(op, a) => self.operator(op.row(), *a, None)?,
            Op::Binary(op, a, b) => self.operator(op.row(), *a, Some(*b))?,
            Op::Ternary(op, a, b, c) => {
                if op.row().domain == Domain::Bool {
                    self.expect(*a, &Type::BOOL, "condition of `select`")?;
                    let ty = self.value(*b)?;
                    self.expect(*c, ty, "operand 2 of `select`")?;
                    ty.clone()
                } else {
                    let ty = self.operator(op.row(), *a, Some(*b))?;
                    self.expect(*c, &ty, "operand 2")?;
                    ty
                }
            }
            Op::Cast(to, a) => {
                let from = self.scalar(*a, "cast operand")?;
                let ok = match (from, *to) {
                    (a, b) if a == b => true,
                    (_, Scalar::Bool) => false,
                    (Scalar::Bool, to) => to.is_int(),
                    _ => true,
                };
                if !ok {
                    return mismatch(
                        format!("operand of a cast to {to}"),
                        "a type that `as` accepts",
                        &from.into(),
                    );
                }
                (*to).into()
            }
            Op::Bitcast(to, a) => {
                let from = self.scalar(*a, "bitcast operand")?;
                if from.bits() != to.bits() {
                    return mismatch(
                        "bitcast operand",
                        format!("a scalar of {} bits", to.bits()),
                        &from.into(),
                    );
                }
                (*to).into()
            }
            Op::Compose(ty, parts) => {
                let n = ty.component_count();
                if n == 0 || parts.len() != n as usize {
                    return Err(TypeError::Arity {
                        what: format!("composing {ty}"),
                        expected: n as usize,
                        found: parts.len(),
                    });
                }
                for (i, part) in parts.iter().enumerate() {
                    if let Some(expected) = ty.component(i as u32) {
                        self.expect(*part, &expected, &format!("component {i} of {ty}"))?;
                    }
                }
                ty.clone()
            }
            Op::Extract(v, i) => self.component(*v, *i)?,
            Op::Insert(v, i, part) => {
                let expected = self.component(*v, *i)?;
                self.expect(*part, &expected, "inserted component")?;
                self.value(*v)?.clone()
            }
            Op::Load(place, sync) => {
                let at = self.place(place)?;
                if let Some(sync) = sync {
                    self.moved_whole(place, &at, *sync, "an atomic load")?;
                    if matches!(sync.order, MemOrder::Release | MemOrder::AcqRel) {
                        return Err(TypeError::Invalid("a load cannot release".into()));
                    }
                }
                at.ty
            }
            Op::Len(base, s) => {
                let ok = match base {
                    Base::Buffer(i) => {
                        matches!(
                            get(&self.kernel.params, *i, "parameter")?.kind,
                            ParamKind::Buffer { .. }
                        )
                    }
                    Base::Shared(i) => get(&self.kernel.shared, *i, "shared variable")?.dynamic,
                    _ => false,
                };
                if !ok || !matches!(s, Scalar::U32 | Scalar::U64) {
                    return Err(TypeError::Invalid(
                        "`len` takes a buffer or dynamic shared memory and gives u32 or u64".into(),
                    ));
                }
                (*s).into()
            }
            Op::Atomic(op, place, v, _) => {
                let s = self.atomic_place(place, "an atomic operation")?;
                let bitwise = matches!(op, AtomicOp::And | AtomicOp::Or | AtomicOp::Xor);
                if bitwise && s.is_float() {
                    return mismatch(
                        format!("place of atomic `{}`", op.name()),
                        "i32, u32, i64 or u64",
                        &s.into(),
                    );
                }
                self.expect(*v, &s.into(), "operand of an atomic operation")?;
                s.into()
            }
            Op::CompareExchange {
                place, expected, new, ..
            } => {
                let s = self.atomic_place(place, "compare-exchange")?;
                if s.is_float() {
                    return mismatch("place of compare-exchange", "i32, u32, i64 or u64", &s.into());
                }
                self.expect(*expected, &s.into(), "expected value")?;
                self.expect(*new, &s.into(), "new value")?;
                s.into()
            }
            Op::Device(op, args) => match self.device(*op, args)? {
                Some(ty) => ty,
                None => {
                    return Err(TypeError::Invalid(format!(
                        "`{}` gives no value",
                        op.row().word()
                    )));
                }
            },
            Op::Call(f, args) => {
                let f = get(&self.kernel.functions, *f, "function")?;
                if f.params.len() != args.len() {
                    return Err(TypeError::Arity {
                        what: format!("function `{}`", f.name),
                        expected: f.params.len(),
                        found: args.len(),
                    });
                }
                for ((name, ty), arg) in f.params.iter().zip(args) {
                    self.expect(*arg, ty, &format!("argument `{name}` of `{}`", f.name))?;
                }
                return Ok(f.result.clone());
            }
        }))
    }

    fn component(&self, v: Value, i: u32) -> Result<Type> {
        let ty = self.value(v)?;
        ty.component(i).ok_or(TypeError::NoSuch {
            what: "component",
            index: i,
            count: ty.component_count() as usize,
        })
    }

    /// Checks what is asked of the device against its row; gives the result's type.
    fn device(&self, op: DeviceOp, args: &[Value]) -> Result<Option<Type>> {
        let row = op.row();
        if row.operands.len() != args.len() {
            return Err(TypeError::Arity {
                what: format!("`{}{}`", row.name.0, row.name.1),
                expected: row.operands.len(),
                found: args.len(),
            });
        }
        for ((takes, what), v) in row.operands.iter().zip(args) {
            let ty = self.value(*v)?;
            if !takes.contains(ty) {
                let what = match row.name.1 {
                    "" => (*what).into(),
                    attribute => format!("{what} `{attribute}`"),
                };
                return mismatch(what, takes.describe(), ty);
            }
        }
        if row.stands == Stands::ExplicitChecks && self.kernel.checks != Checks::Explicit {
            let needs = format!("`{}` needs explicit checks", row.word());
            return Err(TypeError::Invalid(needs));
        }
        let first = args.first().map_or(Ok(&Type::U32), |v| self.value(*v))?;
        Ok(row.gives.ty(first))
    }

    /// Checks the operands of an effect.
    pub fn effect(&self, effect: &Effect) -> Result<()> {
        match effect {
            Effect::Store(place, v, sync) => {
                let at = self.place(place)?;
                if !at.writable {
                    return Err(TypeError::Invalid("store to read-only memory".into()));
                }
                if let Some(sync) = sync {
                    self.moved_whole(place, &at, *sync, "an atomic store")?;
                    if matches!(sync.order, MemOrder::Acquire | MemOrder::AcqRel) {
                        return Err(TypeError::Invalid("a store cannot acquire".into()));
                    }
                }
                self.expect(*v, &at.ty, "stored value")
            }
            Effect::Device(op, args) => match self.device(*op, args)? {
                Some(_) => Err(TypeError::Invalid(format!("`{}` gives a value", op.row().word()))),
                None => Ok(()),
            },
            Effect::Print(pieces, args) | Effect::Panic(pieces, args) => {
                let panics = matches!(effect, Effect::Panic(..));
                let what = if panics { "panic" } else { "print" };
                if panics && args.len() > OPERANDS {
                    let needs = format!("a panic shows {OPERANDS} values at most, found {}", args.len());
                    return Err(TypeError::Invalid(needs));
                }
                let wanted = pieces.iter().filter(|p| matches!(p, PrintPiece::Arg(_))).count();
                if wanted != args.len() {
                    return Err(TypeError::Arity {
                        what: what.into(),
                        expected: wanted,
                        found: args.len(),
                    });
                }
                args.iter()
                    .try_for_each(|a| self.scalar(*a, "printed value").map(|_| ()))
            }
            Effect::Fault(.., operands) => {
                if operands.len() > 2 {
                    return Err(TypeError::Arity {
                        what: "fault".into(),
                        expected: 2,
                        found: operands.len(),
                    });
                }
                operands.iter().try_for_each(|v| self.index_value(*v))
            }
        }
    }
}
