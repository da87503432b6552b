//! Types and values of a launch's arguments: their bytes, and what a parameter takes of them. Must not know signatures.

use std::any::TypeId;
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use perpetua_ir::front::rust::{GpuType, TypeDesc};
use perpetua_ir::ir::{Scalar, Type};

use crate::layout::{self, Leaf, same_layout};

/// The type of an argument.
#[derive(Clone)]
pub struct ArgType(Known);

#[derive(Clone)]
enum Known {
    /// A Rust type: compared by its identity when that was seen before, else by its layout.
    Rust { id: TypeId, desc: fn() -> TypeDesc },
    /// A type that is known at run time only.
    Described(Arc<Type>),
}

impl ArgType {
    /// The type `T`.
    pub fn of<T: GpuType>() -> ArgType {
        ArgType(Known::Rust {
            id: TypeId::of::<T>(),
            desc: T::describe,
        })
    }

    /// Whether it is the type `T`.
    pub fn is<T: GpuType>(&self) -> bool {
        match &self.0 {
            Known::Rust { id, .. } => *id == TypeId::of::<T>(),
            Known::Described(ty) => same_layout(&T::describe(), ty),
        }
    }

    /// A type as kernels know it.
    pub(crate) fn described(ty: Arc<Type>) -> ArgType {
        ArgType(Known::Described(ty))
    }

    // Whether its values have the bytes that a parameter of type `expected` takes. The Rust type that matched first is
    // remembered in `seen`; another one with the same layout is compared each time.
    pub(crate) fn fits(&self, expected: &Type, seen: &OnceLock<TypeId>) -> bool {
        match &self.0 {
            Known::Rust { id, .. } if seen.get() == Some(id) => true,
            Known::Rust { id, desc } => {
                let fits = same_layout(&desc(), expected);
                if fits {
                    let _ = seen.set(*id);
                }
                fits
            }
            Known::Described(ty) => {
                **ty == *expected || ty.size() == expected.size() && ty.leaves() == expected.leaves()
            }
        }
    }

    // Whether `taken` has the same scalars, but for a `usize` or `isize` of fewer bits.
    pub(crate) fn narrows_to(&self, taken: &Type) -> bool {
        let (given, taken) = (self.leaves().unwrap_or_default(), taken.leaves());
        let alike = |(leaf, (scalar, _)): (&Leaf, &(Scalar, u32))| {
            leaf.scalar == *scalar || leaf.pointer_sized && scalar.bits() == 32
        };
        given.len() == taken.len() && given.iter().zip(&taken).all(alike)
    }

    /// The scalars of a Rust type.
    pub(crate) fn leaves(&self) -> Option<Vec<Leaf>> {
        match &self.0 {
            Known::Rust { desc, .. } => Some(layout::leaves(&desc())),
            Known::Described(_) => None,
        }
    }

    // Its only scalar, if there is one.
    pub(crate) fn scalar(&self) -> Option<Scalar> {
        match &self.0 {
            Known::Rust { desc, .. } => match layout::leaves(&desc())[..] {
                [leaf] => Some(leaf.scalar),
                _ => None,
            },
            Known::Described(ty) => match ty.leaves()[..] {
                [(scalar, _)] => Some(scalar),
                _ => None,
            },
        }
    }
}

/// Its name: Rust's, or the IR's.
impl fmt::Display for ArgType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Known::Rust { desc, .. } => write!(f, "{}", desc()),
            Known::Described(ty) => write!(f, "{ty}"),
        }
    }
}

impl fmt::Debug for ArgType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

const INLINE: usize = 64;

/// A value as an argument: up to 64 bytes in place, larger ones on the heap.
#[derive(Clone)]
pub struct ValueArg {
    bytes: ValueBytes,
    ty: ArgType,
}

#[derive(Clone)]
enum ValueBytes {
    Inline(Aligned, u8),
    Heap(Box<[u8]>),
}

// Aligned so that a backend may pass the address on to a driver that reads whole words.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct Aligned([u8; INLINE]);

impl ValueArg {
    pub(crate) fn new(bytes: &[u8], ty: ArgType) -> ValueArg {
        let bytes = if bytes.len() <= INLINE {
            let mut inline = [0; INLINE];
            inline[..bytes.len()].copy_from_slice(bytes);
            ValueBytes::Inline(Aligned(inline), bytes.len() as u8)
        } else {
            ValueBytes::Heap(bytes.into())
        };
        ValueArg { bytes, ty }
    }

    /// The value's bytes as in memory. A `usize` passed to a kernel whose `usize` has 32 bits is longer than
    /// its parameter: [`ValueArg::bytes_for`] gives what the parameter takes.
    pub fn bytes(&self) -> &[u8] {
        match &self.bytes {
            ValueBytes::Inline(bytes, len) => &bytes.0[..usize::from(*len)],
            ValueBytes::Heap(bytes) => bytes,
        }
    }

    /// The bytes that a parameter of type `ty` takes, once `Signature::check` has passed.
    pub fn bytes_for(&self, ty: &Type) -> Cow<'_, [u8]> {
        match self.bytes().len() == ty.size() as usize {
            true => self.bytes().into(),
            false => self.narrowed(ty).unwrap_or_default().into(),
        }
    }

    // The bytes of a `ty` of which each `usize` and `isize` has 32 bits, where the values fit.
    pub(crate) fn narrowed(&self, ty: &Type) -> Option<Vec<u8>> {
        let (given, taken) = (self.ty.leaves()?, ty.leaves());
        let mut bytes = vec![0; ty.size() as usize];
        for (leaf, (scalar, offset)) in given.iter().zip(&taken) {
            let value = self
                .bytes()
                .get(leaf.offset..)?
                .get(..leaf.scalar.size() as usize)?;
            if leaf.scalar != *scalar {
                let value = i64::from_le_bytes(value.try_into().ok()?);
                let fits = match (leaf.scalar, scalar) {
                    (Scalar::U64, Scalar::U32) => u32::try_from(value).is_ok(),
                    (Scalar::I64, Scalar::I32) => i32::try_from(value).is_ok(),
                    _ => false,
                };
                (fits && leaf.pointer_sized).then_some(())?;
            }
            let size = scalar.size() as usize;
            let place = bytes.get_mut(*offset as usize..)?.get_mut(..size)?;
            place.copy_from_slice(value.get(..size)?);
        }
        (given.len() == taken.len()).then_some(bytes)
    }

    /// Its type.
    pub fn ty(&self) -> &ArgType {
        &self.ty
    }
}

impl fmt::Debug for ValueArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:02x?}", self.ty, self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn narrowed<T: GpuType>(value: T, ty: &Type) -> Option<Vec<u8>> {
        let arg = layout::with_bytes(&[value], |bytes| ValueArg::new(bytes, ArgType::of::<T>()));
        let narrowed = arg.narrowed(ty);
        if let Some(bytes) = &narrowed {
            assert_eq!(*arg.bytes_for(ty), bytes[..]);
        }
        narrowed
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn a_usize_that_fits_has_32_bits_there() {
        let pair = |element| Type::Array(Arc::new(element), 2);
        assert_eq!(narrowed(7usize, &Type::U32), Some(vec![7, 0, 0, 0]));
        assert_eq!(narrowed(-2isize, &Type::I32), Some(vec![0xfe, 0xff, 0xff, 0xff]));
        assert_eq!(
            narrowed([1usize, 258], &pair(Type::U32)),
            Some(vec![1, 0, 0, 0, 2, 1, 0, 0])
        );
        // One that does not fit, one of another width, and another number of them.
        assert_eq!(narrowed([1usize, 1 << 32], &pair(Type::U32)), None);
        assert_eq!(narrowed([1u64, 2], &pair(Type::U32)), None);
        assert_eq!(narrowed([1usize, 2], &pair(Type::I32)), None);
        assert_eq!(narrowed([1usize, 2, 3], &pair(Type::U32)), None);
        // What is said of buffers.
        assert!(ArgType::of::<usize>().narrows_to(&Type::U32));
        assert!(ArgType::of::<[usize; 2]>().narrows_to(&pair(Type::U32)));
        assert!(!ArgType::of::<u64>().narrows_to(&Type::U32));
        assert!(!ArgType::of::<usize>().narrows_to(&pair(Type::U32)));
    }
}
