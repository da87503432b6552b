//! Layouts of the types that buffers and arguments hold: how a Rust type's bytes compare with a kernel's parameter, and
//! how values become bytes and back. The types are [`GpuType`]s. Must not know buffers or backends.

use std::mem::{MaybeUninit, size_of};

use perpetua_ir::front::rust::{GpuType, TypeDesc};
use perpetua_ir::ir::{Scalar, Type};

use crate::backend::Content;
use crate::error::{Error, Result};

/// A scalar inside a value: its type, and its offset in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// Its type; `usize` and `isize` are the host's width.
    pub scalar: Scalar,
    /// Whether it is `usize` or `isize`.
    pub pointer_sized: bool,
    /// Offset from the start of the value, in bytes.
    pub offset: usize,
}

/// The scalars that make up a value, in order of declaration.
pub fn leaves(desc: &TypeDesc) -> Vec<Leaf> {
    fn walk(desc: &TypeDesc, offset: usize, out: &mut Vec<Leaf>) {
        match desc {
            TypeDesc::Scalar(s) => out.extend(leaf(s.name(), offset)),
            TypeDesc::Enum(e) => out.extend(leaf(e.repr.name(), offset)),
            TypeDesc::Array(element, len) => {
                let size = element.host_layout().map_or(0, |(size, _)| size);
                (0..*len).for_each(|i| walk(element, offset + i * size, out));
            }
            TypeDesc::Struct(s) => s.fields.iter().for_each(|f| walk(&f.ty, offset + f.offset, out)),
            // These have no layout in memory and are no `GpuType`s.
            TypeDesc::Tuple(_) | TypeDesc::Option(_) | TypeDesc::Result(_) => {}
        }
    }
    fn leaf(name: &str, offset: usize) -> Vec<Leaf> {
        let wide = size_of::<usize>() == 8;
        let (name, pointer_sized) = match (name, wide) {
            ("usize", true) => ("u64", true),
            ("usize", false) => ("u32", true),
            ("isize", true) => ("i64", true),
            ("isize", false) => ("i32", true),
            // Two words in kernels.
            ("i128" | "u128", _) => return [leaf("u64", offset), leaf("u64", offset + 8)].concat(),
            (other, _) => (other, false),
        };
        let leaf = Scalar::from_name(name).map(|scalar| Leaf {
            scalar,
            pointer_sized,
            offset,
        });
        leaf.into_iter().collect()
    }
    let mut out = Vec::new();
    walk(desc, 0, &mut out);
    out
}

/// Whether values described by `desc` have the same bytes as `ty`: equal size, and the same scalars at the same
/// offsets. So `[f32; 4]` matches a vector of four and a struct of four fields, and an enum its integer.
pub fn same_layout(desc: &TypeDesc, ty: &Type) -> bool {
    if let (TypeDesc::Scalar(s), Type::Scalar(t)) = (desc, ty)
        && s.name() == t.name()
    {
        return true;
    }
    desc.host_layout().map(|(size, _)| size) == Some(ty.size() as usize)
        && leaves(desc)
            .iter()
            .map(|l| (l.scalar, l.offset as u32))
            .eq(ty.leaves())
}

/// Whether some of a type's bytes belong to no scalar.
pub fn has_padding<T: GpuType>() -> bool {
    let desc = T::describe();
    // Every launch with a number as argument asks this: no list is built for those.
    if matches!(desc, TypeDesc::Scalar(_)) {
        return false;
    }
    let scalars: usize = leaves(&desc).iter().map(|l| l.scalar.size() as usize).sum();
    scalars != size_of::<T>()
}

/// What `len` elements equal to `value` are in memory, given to `use_content`; `None` where they have no bytes.
pub fn with_repeated<T: GpuType, R>(
    value: T,
    len: usize,
    use_content: impl FnOnce(Option<Content<'_>>) -> R,
) -> R {
    with_bytes(&[value], |bytes| {
        let is_uniform = bytes.iter().all(|b| Some(b) == bytes.first());
        match bytes.len() {
            0 => use_content(None),
            _ if is_uniform => use_content(Some(Content::Pattern(&bytes[..1]))),
            1 | 2 | 4 | 8 | 16 => use_content(Some(Content::Pattern(bytes))),
            _ => use_content(Some(Content::Bytes(&bytes.repeat(len)))),
        }
    })
}

/// The bytes of `values`, padding as zeros, given to `use_bytes`. Types without padding are not copied.
pub fn with_bytes<T: GpuType, R>(values: &[T], use_bytes: impl FnOnce(&[u8]) -> R) -> R {
    if !has_padding::<T>() {
        // SAFETY: every byte of a `T` belongs to a scalar (checked above; `GpuType` promises that the description is
        // true), so all `size_of_val(values)` bytes are initialised; u8 has no alignment; the borrow keeps them alive.
        return use_bytes(unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) });
    }
    let mut bytes = vec![0u8; size_of_val(values)];
    let leaves = leaves(&T::describe());
    for (value, out) in values.iter().zip(bytes.chunks_exact_mut(size_of::<T>())) {
        for leaf in &leaves {
            let len = leaf.scalar.size() as usize;
            // SAFETY: the leaf lies inside the value (`GpuType`'s promise), its bytes are initialised because it is a
            // scalar, and `out` has `size_of::<T>()` bytes, hence room at the same offset.
            unsafe {
                let from = std::ptr::from_ref(value).cast::<u8>().add(leaf.offset);
                std::ptr::copy_nonoverlapping(from, out[leaf.offset..].as_mut_ptr(), len);
            }
        }
    }
    use_bytes(&bytes)
}

/// Fails unless each `size_of::<T>()` bytes of `bytes` are a value of `T`. Free for types whose every bit pattern is one.
pub fn check_values<T: GpuType>(bytes: &[u8]) -> Result<()> {
    let desc = T::describe();
    if desc.any_bits() || size_of::<T>() == 0 {
        return Ok(());
    }
    for (i, value) in bytes.chunks_exact(size_of::<T>()).enumerate() {
        desc.check_bytes(value).map_err(|e| Error::InvalidValue {
            element: i as u64,
            ty: desc.to_string(),
            message: e.to_string(),
        })?;
    }
    Ok(())
}

/// `len` values filled in by `fill`, which gets their memory as zeroed bytes. Fails when it does, or when what it wrote
/// is not `len` values.
pub fn collect<T: GpuType>(len: usize, fill: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<Vec<T>> {
    let mut values: Vec<MaybeUninit<T>> = Vec::new();
    let bytes = len * size_of::<T>();
    values.try_reserve_exact(len).map_err(|_| {
        let memory = crate::host::memory_info();
        Error::OutOfMemory {
            backend: crate::info::BackendKind::Cpu,
            memory: crate::ptr::MemoryKind::Device,
            requested: bytes as u64,
            free: memory.free,
            total: memory.total,
        }
    })?;
    // SAFETY: the capacity is `len` elements, that is `bytes` bytes, all of which are written here, so the slice made
    // of them is initialised; nothing else refers to them while it lives.
    unsafe { std::ptr::write_bytes(values.as_mut_ptr().cast::<u8>(), 0, bytes) };
    // SAFETY: as above.
    let slice = unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast::<u8>(), bytes) };
    fill(slice)?;
    check_values::<T>(slice)?;
    let mut values = std::mem::ManuallyDrop::new(values);
    // SAFETY: pointer and capacity come from a Vec of `MaybeUninit<T>`, which has `T`'s layout; the first `len`
    // elements are initialised, and valid `T`s by `check_values`.
    Ok(unsafe { Vec::from_raw_parts(values.as_mut_ptr().cast::<T>(), len, values.capacity()) })
}

#[cfg(test)]
mod tests {
    use perpetua_ir::front::rust::{ConstValue, FieldDesc, GpuConst, GpuValue};

    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    #[repr(C)]
    struct Padded {
        a: u8,
        b: u32,
    }
    // SAFETY: the fields and offsets are the struct's.
    unsafe impl GpuType for Padded {
        fn describe() -> TypeDesc {
            let field = |name: &str, ty: TypeDesc, offset: usize| FieldDesc {
                name: name.into(),
                ty,
                offset,
            };
            let fields = vec![
                field("a", u8::describe(), std::mem::offset_of!(Self, a)),
                field("b", u32::describe(), std::mem::offset_of!(Self, b)),
            ];
            TypeDesc::of_struct::<Self>("Padded", false, fields)
        }
    }
    impl GpuValue for Padded {
        const ZEROED: Self = Padded { a: 0, b: 0 };
    }
    impl GpuConst for Padded {
        fn to_const(&self) -> ConstValue {
            ConstValue::of_struct(&Self::describe(), vec![self.a.to_const(), self.b.to_const()])
        }
        fn const_type() -> Option<TypeDesc> {
            Some(Self::describe())
        }
    }

    #[test]
    fn layouts_match_by_their_bytes() {
        let check = |a: TypeDesc, b: Type, same: bool| assert_eq!(same_layout(&a, &b), same, "{a} {b}");
        check(f32::describe(), Type::F32, true);
        check(f32::describe(), Type::U32, false);
        check(half::bf16::describe(), Type::Scalar(Scalar::BF16), true);
        check(usize::describe(), Type::U64, size_of::<usize>() == 8);
        check(<[f32; 4]>::describe(), Type::Vector(Scalar::F32, 4), true);
        check(<[f32; 3]>::describe(), Type::Vector(Scalar::F32, 3), false);
        check(
            Padded::describe(),
            Type::tuple(vec![Type::Scalar(Scalar::U8), Type::U32]),
            true,
        );
    }

    #[test]
    fn padding_becomes_zeros_and_values_come_back() -> Result<()> {
        let values = [Padded { a: 1, b: 2 }, Padded { a: 3, b: 4 }];
        let bytes = with_bytes(&values, <[u8]>::to_vec);
        assert_eq!(bytes, [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0]);
        let back = collect::<Padded>(2, |out| {
            out.copy_from_slice(&bytes);
            Ok(())
        })?;
        assert_eq!(back, values);
        Ok(())
    }

    #[test]
    fn bytes_that_are_no_value_are_an_error() {
        let read = |byte: u8| {
            collect::<bool>(2, |out| {
                out[1] = byte;
                Ok(())
            })
        };
        assert_eq!(read(1), Ok(vec![false, true]));
        assert!(matches!(read(2), Err(Error::InvalidValue { element: 1, .. })));
    }
}
