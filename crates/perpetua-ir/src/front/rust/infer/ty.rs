//! Types during inference, and their unification. Knows nothing of expressions.

use std::cmp::Ordering;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use perpetua_syntax::Scalar;

use crate::front::rust::describe::GenericStruct;
use crate::front::rust::describe::{EnumDesc, StructDesc, TypeDesc};
use crate::front::rust::gpu_type::GpuType;

/// A type, possibly with parts that are not known yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ty {
    /// Not known yet: an index into the unifier's table.
    Var(u32),
    /// The type of what never gives a value.
    Never,
    /// A scalar.
    Scalar(Scalar),
    /// A tuple; the empty one is `()`.
    Tuple(Rc<[Ty]>),
    /// `[T; N]`.
    Array(Rc<Ty>, Len),
    /// `[T]`, behind a reference only.
    Slice(Rc<Ty>),
    /// `&T`, `&mut T` (where the first is true).
    Ref(bool, Rc<Ty>),
    /// A struct, or an enum with data.
    Struct(Arc<StructDesc>),
    /// A generic struct whose arguments are not all known yet.
    Instance(Arc<GenericStruct>, Rc<[Generic]>),
    /// An enum without data.
    Enum(Arc<EnumDesc>),
    /// Which variant a value of these is; the emitter's alone.
    Tag(Arc<StructDesc>),
    /// A stencil's position.
    GridPos,
    /// A closure.
    Closure(Rc<ClosureTy>),
    /// `Option<T>`.
    Option(Rc<Ty>),
    /// `Result<T, E>`.
    Result(Rc<Ty>, Rc<Ty>),
}

/// A closure's type: each closure has its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClosureTy {
    /// Which closure.
    pub(crate) id: u32,
    pub(crate) params: Vec<Ty>,
    pub(crate) ret: Ty,
}

/// A generic argument.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Generic {
    /// A type.
    Type(Ty),
    /// A const parameter of type `usize`.
    Len(Len),
    /// Any other const parameter: the value (`bool`: 0 or 1).
    Value(i128),
}

/// An array's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Len {
    /// Known.
    Known(u64),
    /// Not known yet.
    Var(u32),
}

impl Ty {
    /// `()`.
    pub(crate) fn unit() -> Ty {
        Ty::Tuple(Rc::from([]))
    }

    /// Whether this is `()`.
    pub(crate) fn is_unit(&self) -> bool {
        matches!(self, Ty::Tuple(e) if e.is_empty())
    }

    /// `bool`.
    pub(crate) const BOOL: Ty = Ty::Scalar(Scalar::Bool);
    /// `usize`.
    pub(crate) const USIZE: Ty = Ty::Scalar(Scalar::Usize);
    /// `u32`.
    pub(crate) const U32: Ty = Ty::Scalar(Scalar::U32);
    /// `i32`.
    pub(crate) const I32: Ty = Ty::Scalar(Scalar::I32);

    /// The type that a description describes.
    pub(crate) fn from_desc(desc: &TypeDesc) -> Ty {
        match desc {
            TypeDesc::Scalar(s) => Ty::Scalar(*s),
            TypeDesc::Array(element, len) => {
                Ty::Array(Rc::new(Ty::from_desc(element)), Len::Known(*len as u64))
            }
            TypeDesc::Struct(s) => Ty::Struct(s.clone()),
            TypeDesc::Enum(e) => Ty::Enum(e.clone()),
            TypeDesc::Tuple(elements) => Ty::Tuple(elements.iter().map(Ty::from_desc).collect()),
            TypeDesc::Option(some) => Ty::Option(Rc::new(Ty::from_desc(some))),
            TypeDesc::Result(both) => {
                Ty::Result(Rc::new(Ty::from_desc(&both[0])), Rc::new(Ty::from_desc(&both[1])))
            }
        }
    }

    /// The description of a type that has one.
    pub(crate) fn to_desc(&self) -> Option<TypeDesc> {
        Some(match self {
            Ty::Scalar(s) => TypeDesc::Scalar(*s),
            Ty::Array(element, Len::Known(len)) => {
                TypeDesc::Array(Arc::new(element.to_desc()?), usize::try_from(*len).ok()?)
            }
            Ty::Struct(s) => TypeDesc::Struct(s.clone()),
            Ty::Enum(e) => TypeDesc::Enum(e.clone()),
            Ty::Tuple(elements) => TypeDesc::Tuple(elements.iter().map(Ty::to_desc).collect::<Option<_>>()?),
            Ty::Option(some) => TypeDesc::Option(Arc::new(some.to_desc()?)),
            Ty::Result(ok, err) => TypeDesc::Result(Arc::new([ok.to_desc()?, err.to_desc()?])),
            _ => return None,
        })
    }
}

/// What a variable may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Anything.
    General,
    /// An integer: the type of an integer literal.
    Int,
    /// A float: the type of a float literal.
    Float,
}

#[derive(Clone, Debug)]
struct Slot {
    kind: Kind,
    bound: Option<Ty>,
}

/// Types that do not agree: expected and found.
#[derive(Clone, Debug)]
pub(crate) struct Mismatch;

/// The variables of one function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unifier {
    slots: Vec<Slot>,
    lens: Vec<Option<Len>>,
}

impl Unifier {
    /// A new variable.
    pub(crate) fn var(&mut self, kind: Kind) -> Ty {
        self.slots.push(Slot { kind, bound: None });
        Ty::Var(self.slots.len() as u32 - 1)
    }

    /// A new array length.
    pub(crate) fn len_var(&mut self) -> Len {
        self.lens.push(None);
        Len::Var(self.lens.len() as u32 - 1)
    }

    /// Whether an argument is made of at most `left` types, as `TypeArg::is_within` has it.
    pub(crate) fn argument_is_within(&self, argument: &Generic, left: &mut usize) -> bool {
        match argument {
            Generic::Type(ty) => self.is_within(ty, left),
            Generic::Len(_) | Generic::Value(_) => true,
        }
    }

    /// The same of a type.
    pub(crate) fn is_within(&self, ty: &Ty, left: &mut usize) -> bool {
        let Some(rest) = left.checked_sub(1) else {
            return false;
        };
        *left = rest;
        match ty {
            Ty::Var(v) => match self.slots.get(*v as usize).and_then(|slot| slot.bound.as_ref()) {
                Some(bound) => self.is_within(bound, left),
                None => true,
            },
            Ty::Tuple(parts) => parts.iter().all(|part| self.is_within(part, left)),
            Ty::Array(part, _) | Ty::Slice(part) | Ty::Ref(_, part) | Ty::Option(part) => {
                self.is_within(part, left)
            }
            Ty::Result(some, other) => self.is_within(some, left) && self.is_within(other, left),
            Ty::Instance(_, arguments) => arguments.iter().all(|arg| self.argument_is_within(arg, left)),
            Ty::Struct(desc) => desc.is_within(left),
            Ty::Closure(closure) => {
                let mut params = closure.params.iter();
                params.all(|part| self.is_within(part, left)) && self.is_within(&closure.ret, left)
            }
            Ty::Never | Ty::Scalar(_) | Ty::Enum(_) | Ty::Tag(_) | Ty::GridPos => true,
        }
    }

    /// The type with its outermost variable replaced by what it is bound to.
    pub(crate) fn shallow(&self, ty: &Ty) -> Ty {
        let mut ty = ty;
        while let Ty::Var(v) = ty {
            match self.slots.get(*v as usize).and_then(|s| s.bound.as_ref()) {
                Some(bound) => ty = bound,
                None => break,
            }
        }
        match ty {
            Ty::Instance(of, args) => self.instance(of, args, false),
            ty => ty.clone(),
        }
    }

    /// The kind of an unbound variable.
    pub(crate) fn kind(&self, ty: &Ty) -> Option<Kind> {
        match self.shallow(ty) {
            Ty::Var(v) => self.slots.get(v as usize).map(|s| s.kind),
            _ => None,
        }
    }

    /// The length, as far as it is known.
    pub(crate) fn len(&self, len: Len) -> Len {
        let mut len = len;
        while let Len::Var(v) = len {
            match self.lens.get(v as usize).copied().flatten() {
                Some(bound) => len = bound,
                None => break,
            }
        }
        len
    }

    /// The type with all bound variables replaced, and the defaults of literals where `defaults`.
    pub(crate) fn deep(&self, ty: &Ty, defaults: bool) -> Ty {
        match self.shallow(ty) {
            Ty::Var(v) => match self.slots.get(v as usize).map(|s| s.kind) {
                Some(Kind::Int) if defaults => Ty::I32,
                Some(Kind::Float) if defaults => Ty::Scalar(Scalar::F64),
                _ => Ty::Var(v),
            },
            Ty::Tuple(elements) => Ty::Tuple(elements.iter().map(|e| self.deep(e, defaults)).collect()),
            Ty::Array(element, len) => Ty::Array(Rc::new(self.deep(&element, defaults)), self.len(len)),
            Ty::Slice(element) => Ty::Slice(Rc::new(self.deep(&element, defaults))),
            Ty::Ref(mutable, target) => Ty::Ref(mutable, Rc::new(self.deep(&target, defaults))),
            Ty::Option(some) => Ty::Option(Rc::new(self.deep(&some, defaults))),
            Ty::Result(ok, err) => Ty::Result(
                Rc::new(self.deep(&ok, defaults)),
                Rc::new(self.deep(&err, defaults)),
            ),
            Ty::Instance(of, args) => self.instance(&of, &args, defaults),
            Ty::Closure(closure) => Ty::Closure(Rc::new(ClosureTy {
                id: closure.id,
                params: closure.params.iter().map(|ty| self.deep(ty, defaults)).collect(),
                ret: self.deep(&closure.ret, defaults),
            })),
            other => other,
        }
    }

    /// Makes two types equal.
    pub(crate) fn unify(&mut self, a: &Ty, b: &Ty) -> Result<(), Mismatch> {
        let (a, b) = (self.shallow(a), self.shallow(b));
        match (&a, &b) {
            (Ty::Var(x), Ty::Var(y)) if x == y => Ok(()),
            (Ty::Var(x), Ty::Var(y)) => {
                let (kx, ky) = (self.slots[*x as usize].kind, self.slots[*y as usize].kind);
                match (kx, ky) {
                    (Kind::General, _) => self.slots[*x as usize].bound = Some(b),
                    (_, Kind::General) => self.slots[*y as usize].bound = Some(a),
                    _ if kx == ky => self.slots[*x as usize].bound = Some(b),
                    _ => return Err(Mismatch),
                }
                Ok(())
            }
            (Ty::Var(x), _) => self.bind(*x, b),
            (_, Ty::Var(y)) => self.bind(*y, a),
            (Ty::Tuple(x), Ty::Tuple(y)) if x.len() == y.len() => {
                x.iter().zip(y.iter()).try_for_each(|(x, y)| self.unify(x, y))
            }
            (Ty::Array(x, n), Ty::Array(y, m)) => {
                self.unify(x, y)?;
                self.unify_len(*n, *m)
            }
            (Ty::Slice(x), Ty::Slice(y)) => self.unify(x, y),
            (Ty::Ref(m, x), Ty::Ref(n, y)) if m == n => self.unify(x, y),
            (Ty::Option(x), Ty::Option(y)) => self.unify(x, y),
            (Ty::Result(x, e), Ty::Result(y, f)) => {
                self.unify(x, y)?;
                self.unify(e, f)
            }
            (Ty::Closure(x), Ty::Closure(y)) if x.id == y.id => Ok(()),
            _ if a == b => Ok(()),
            (Ty::Instance(..), _) | (_, Ty::Instance(..)) => self.unify_instances(&a, &b),
            _ => Err(Mismatch),
        }
    }

    /// Makes two lengths equal.
    pub(crate) fn unify_len(&mut self, a: Len, b: Len) -> Result<(), Mismatch> {
        match (self.len(a), self.len(b)) {
            (a, b) if a == b => Ok(()),
            (Len::Var(v), other) | (other, Len::Var(v)) => {
                if let Some(slot) = self.lens.get_mut(v as usize) {
                    *slot = Some(other);
                }
                Ok(())
            }
            _ => Err(Mismatch),
        }
    }

    fn bind(&mut self, var: u32, ty: Ty) -> Result<(), Mismatch> {
        let fits = match (self.slots[var as usize].kind, &ty) {
            (Kind::General, _) => !self.occurs(var, &ty),
            (Kind::Int, Ty::Scalar(s)) => s.is_integer(),
            (Kind::Float, Ty::Scalar(s)) => s.is_float(),
            _ => false,
        };
        if !fits {
            return Err(Mismatch);
        }
        self.slots[var as usize].bound = Some(ty);
        Ok(())
    }

    fn occurs(&self, var: u32, ty: &Ty) -> bool {
        match self.shallow(ty) {
            Ty::Var(v) => v == var,
            Ty::Tuple(elements) => elements.iter().any(|e| self.occurs(var, e)),
            Ty::Array(t, _) | Ty::Slice(t) | Ty::Ref(_, t) | Ty::Option(t) => self.occurs(var, &t),
            Ty::Result(t, e) => self.occurs(var, &t) || self.occurs(var, &e),
            Ty::Instance(_, args) => args.iter().any(|arg| match arg {
                Generic::Type(ty) => self.occurs(var, ty),
                Generic::Len(_) | Generic::Value(_) => false,
            }),
            Ty::Closure(closure) => closure
                .params
                .iter()
                .chain([&closure.ret])
                .any(|t| self.occurs(var, t)),
            _ => false,
        }
    }

    /// The type as text for a message.
    pub(crate) fn show(&self, ty: &Ty) -> String {
        Shown(self, ty).to_string()
    }
}

struct Shown<'a>(&'a Unifier, &'a Ty);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |ty| Shown(self.0, ty);
        match &self.0.shallow(self.1) {
            Ty::Var(v) => f.write_str(match self.0.slots.get(*v as usize).map(|s| s.kind) {
                Some(Kind::Int) => "{integer}",
                Some(Kind::Float) => "{float}",
                _ => "_",
            }),
            Ty::Never => f.write_str("!"),
            Ty::Scalar(s) => f.write_str(s.name()),
            Ty::Tuple(elements) => {
                f.write_str("(")?;
                for (i, e) in elements.iter().enumerate() {
                    write!(f, "{}{}", if i > 0 { ", " } else { "" }, show(e))?;
                }
                f.write_str(if elements.len() == 1 { ",)" } else { ")" })
            }
            Ty::Array(element, len) => match self.0.len(*len) {
                Len::Known(n) => write!(f, "[{}; {n}]", show(element)),
                Len::Var(_) => write!(f, "[{}; _]", show(element)),
            },
            Ty::Slice(element) => write!(f, "[{}]", show(element)),
            Ty::Ref(mutable, target) => {
                write!(f, "&{}{}", if *mutable { "mut " } else { "" }, show(target))
            }
            Ty::Struct(s) | Ty::Tag(s) => f.write_str(&s.name),
            Ty::Instance(of, args) => {
                write!(f, "{}<", of.name)?;
                for (i, arg) in args.iter().enumerate() {
                    f.write_str(if i > 0 { ", " } else { "" })?;
                    match arg {
                        Generic::Type(ty) => write!(f, "{}", show(ty))?,
                        Generic::Len(len) => match self.0.len(*len) {
                            Len::Known(n) => write!(f, "{n}")?,
                            Len::Var(_) => f.write_str("_")?,
                        },
                        Generic::Value(value) => write!(f, "{value}")?,
                    }
                }
                f.write_str(">")
            }
            Ty::Enum(e) => f.write_str(&e.name),
            Ty::GridPos => f.write_str("GridPos"),
            Ty::Closure(_) => f.write_str("closure"),
            Ty::Option(some) => write!(f, "Option<{}>", show(some)),
            Ty::Result(ok, err) => write!(f, "Result<{}, {}>", show(ok), show(err)),
        }
    }
}

/// A type without unknown parts as text.
pub(crate) fn show(ty: &Ty) -> String {
    Unifier::default().show(ty)
}

/// `Ordering`.
pub(crate) fn ordering() -> Ty {
    Ty::from_desc(&Ordering::describe())
}
