//! Checks that types are sane: no zero sizes, no absurd ones, structs laid out as `#[repr(C)]`, one struct a name.
//! Everything after this may take sizes, offsets and leaf counts without fear of overflow.

use std::collections::HashMap;
use std::sync::Arc;

use crate::ir::{Scalar, StructType, Type};

/// Largest value, local variable or buffer element, in bytes.
pub const MAX_PRIVATE_BYTES: u64 = 64 << 10;

/// Most shared memory of fixed size, in bytes, all variables together; also the most for one constant table.
pub const MAX_SHARED_BYTES: u64 = 1 << 20;

/// Deepest nesting of a type: a scalar has depth 1.
pub const MAX_TYPE_DEPTH: usize = 15;

/// Largest alignment of a struct, in bytes.
const MAX_ALIGN: u64 = 256;

/// Size, alignment and depth of a sane type.
#[derive(Clone, Copy)]
struct Measure {
    size: u64,
    align: u64,
    depth: usize,
}

/// The checked types of one kernel.
#[derive(Default)]
pub(super) struct Types<'a> {
    /// Structs by address: a type is mostly shared, not copied.
    measured: HashMap<*const StructType, Measure>,
    named: HashMap<&'a str, &'a Arc<StructType>>,
    /// Names of structs that differ from one of the same name.
    pub(super) twins: Vec<String>,
}

/// Whether this is the type of a call that gives no value.
pub(super) fn is_unit(ty: &Type) -> bool {
    matches!(ty, Type::Struct(s) if s.fields.is_empty() && s.name == "tuple" && s.size == 0 && s.align == 1)
}

/// Whether `name` can be written as an identifier by every target (keywords aside, which renderers avoid).
pub(super) fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && name != "_"
}

/// Whether the text form reads `name` as a scalar or vector type.
fn is_builtin_type(name: &str) -> bool {
    let stem = name
        .strip_suffix("x2")
        .or_else(|| name.strip_suffix("x3"))
        .or_else(|| name.strip_suffix("x4"));
    Scalar::from_name(stem.unwrap_or(name)).is_some()
}

impl<'a> Types<'a> {
    /// Checks a type; gives its size in bytes, which is at least 1 and at most `limit`.
    pub(super) fn check(&mut self, ty: &'a Type, limit: u64) -> Result<u64, String> {
        // Nearly every type is one of these.
        if let Type::Scalar(s) = ty {
            return Ok(s.size().into());
        }
        let size = self.measure(ty, limit, 1)?.size;
        if size > limit {
            return Err(format!("{ty} has {size} bytes, at most {limit} are allowed"));
        }
        Ok(size)
    }

    fn measure(&mut self, ty: &'a Type, limit: u64, depth: usize) -> Result<Measure, String> {
        if depth > MAX_TYPE_DEPTH {
            return Err(format!("it is nested more than {MAX_TYPE_DEPTH} deep"));
        }
        match ty {
            Type::Scalar(s) => Ok(Measure {
                size: s.size().into(),
                align: s.size().into(),
                depth: 1,
            }),
            Type::Vector(s, n) => {
                if *s == Scalar::Bool {
                    return Err("vectors of bool do not exist".into());
                }
                if !(2..=4).contains(n) {
                    return Err(format!("a vector has 2, 3 or 4 elements, not {n}"));
                }
                let size = u64::from(s.size()) * if *n == 3 { 4 } else { u64::from(*n) };
                Ok(Measure {
                    size,
                    align: size,
                    depth: 2,
                })
            }
            Type::Array(element, n) => {
                if *n == 0 {
                    return Err("an array has at least one element".into());
                }
                let inner = self.measure(element, limit, depth + 1)?;
                // No overflow: the element is at most `limit` + 2^32, and so is the product before the check.
                let size = inner.size.saturating_mul((*n).into());
                if size > limit {
                    return Err(format!("an array has {size} bytes, at most {limit} are allowed"));
                }
                Ok(Measure {
                    size,
                    align: inner.align,
                    depth: inner.depth + 1,
                })
            }
            Type::Struct(s) => self.structure(s, limit, depth),
        }
    }

    fn structure(&mut self, s: &'a Arc<StructType>, limit: u64, depth: usize) -> Result<Measure, String> {
        if let Some(known) = self.measured.get(&Arc::as_ptr(s)) {
            return if depth + known.depth - 1 > MAX_TYPE_DEPTH {
                Err(format!("it is nested more than {MAX_TYPE_DEPTH} deep"))
            } else {
                Ok(*known)
            };
        }
        let name = &s.name;
        if !is_identifier(name) {
            return Err(format!("the struct's name `{name}` is not an identifier"));
        }
        if is_builtin_type(name) {
            return Err(format!(
                "a struct cannot be called `{name}`, which is a type already"
            ));
        }
        if s.fields.is_empty() {
            return Err(format!("struct `{name}` has no fields"));
        }
        let (mut size, mut align, mut inner_depth) = (0u64, 1u64, 0);
        for (i, field) in s.fields.iter().enumerate() {
            let number = field.name.parse::<usize>();
            if !is_identifier(&field.name) && number != Ok(i) {
                return Err(format!(
                    "the name `{}` of field {i} of struct `{name}` is neither an identifier nor its number",
                    field.name
                ));
            }
            if s.fields.iter().take(i).any(|f| f.name == field.name) {
                return Err(format!("struct `{name}` has two fields `{}`", field.name));
            }
            let inner = self.measure(&field.ty, limit, depth + 1)?;
            size = size.next_multiple_of(inner.align);
            if size != u64::from(field.offset) {
                return Err(format!(
                    "field `{}` of struct `{name}` is at byte {}, repr(C) puts it at {size}",
                    field.name, field.offset
                ));
            }
            size += inner.size;
            align = align.max(inner.align);
            inner_depth = inner_depth.max(inner.depth);
            if size > limit {
                return Err(format!(
                    "struct `{name}` has more than the {limit} bytes that are allowed"
                ));
            }
        }
        let declared = u64::from(s.align);
        if !declared.is_power_of_two() || declared < align || declared > MAX_ALIGN {
            return Err(format!(
                "struct `{name}` is aligned to {declared}, a power of two from {align} to {MAX_ALIGN} is expected"
            ));
        }
        let padded = size.next_multiple_of(declared);
        if padded != u64::from(s.size) {
            return Err(format!(
                "struct `{name}` has {} bytes, repr(C) makes it {padded}",
                s.size
            ));
        }
        match self.named.get(name.as_str()) {
            Some(other) if *other != s => self.twins.push(name.clone()),
            Some(_) => {}
            None => {
                self.named.insert(name, s);
            }
        }
        let measure = Measure {
            size: padded,
            align: declared,
            depth: inner_depth + 1,
        };
        self.measured.insert(Arc::as_ptr(s), measure);
        Ok(measure)
    }
}
