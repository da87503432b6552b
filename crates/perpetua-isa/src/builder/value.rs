//! What programs are built of: values, registers, memories and places, typed as in Rust. They belong to the builder that made them.

use std::marker::PhantomData;

use half::{bf16, f16};
use perpetua_ir::ir::{Axis, Scalar};

use super::draft::Arg;
use crate::instruction::{Operand, Special};

/// A type that registers can hold; `bool` is that of predicates.
pub trait Element: Copy + private::Sealed {
    /// As the programs' type.
    const TYPE: Scalar;
    /// Its bits, zero-extended.
    fn bits(self) -> u64;
}

mod private {
    pub trait Sealed {}
}

macro_rules! classes {
    ($($(#[$doc:meta])* $class:ident: $($ty:ty)*;)*) => { $(
        $(#[$doc])*
        pub trait $class: Element {}
        $(impl $class for $ty {})*
    )* };
}

classes! {
    /// Integers and floats.
    Number: i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64;
    /// Integers.
    Int: i8 i16 i32 i64 u8 u16 u32 u64;
    /// Integers and predicates.
    Bits: i8 i16 i32 i64 u8 u16 u32 u64 bool;
    /// Signed integers and floats.
    SignedNumber: i8 i16 i32 i64 f16 bf16 f32 f64;
    /// Floats.
    Float: f16 bf16 f32 f64;
    /// What counts: the types of lengths and of what the launch supplies.
    Count: u32 u64;
}

macro_rules! elements {
    ($($ty:ty: $scalar:ident, $value:ident => $bits:expr;)*) => { $(
        impl private::Sealed for $ty {}
        impl Element for $ty {
            const TYPE: Scalar = Scalar::$scalar;
            fn bits(self) -> u64 {
                let $value = self;
                $bits
            }
        }
    )* };
}

elements! {
    bool: Bool, v => v.into();
    i8: I8, v => (v as u8).into();
    i16: I16, v => (v as u16).into();
    i32: I32, v => (v as u32).into();
    i64: I64, v => v as u64;
    u8: U8, v => v.into();
    u16: U16, v => v.into();
    u32: U32, v => v.into();
    u64: U64, v => v;
    f16: F16, v => v.to_bits().into();
    bf16: BF16, v => v.to_bits().into();
    f32: F32, v => v.to_bits().into();
    f64: F64, v => v.to_bits();
}

/// What an instruction reads: a register, a constant, a parameter, a length, or what the launch supplies.
#[derive(Clone, Copy, Debug)]
pub struct Value<T>(pub(super) Arg, PhantomData<T>);

/// A register that holds values of one type. It has its place when the program is finished.
#[derive(Clone, Copy, Debug)]
pub struct Register<T>(pub(super) u32, PhantomData<T>);

/// A register that holds a condition.
pub type Predicate = Register<bool>;

/// Registers in a row, as reductions and tiles take them.
#[derive(Clone, Copy, Debug)]
pub struct Run<T> {
    pub(super) first: u32,
    pub(super) len: u32,
    ty: PhantomData<T>,
}

/// A memory of the program: a buffer, memory of the block, or a table of constants.
#[derive(Clone, Copy, Debug)]
pub struct Memory<T>(pub(super) u16, PhantomData<T>);

/// An element of a memory.
#[derive(Clone, Copy, Debug)]
pub struct Place<T> {
    pub(super) memory: u16,
    // What varies, with its type.
    pub(super) parts: [Option<(Arg, Scalar)>; 2],
    pub(super) offset: i64,
    ty: PhantomData<T>,
}

/// An index: a value of an integer type, or a constant.
#[derive(Clone, Copy, Debug)]
pub struct At {
    part: Option<(Arg, Scalar)>,
    offset: i64,
}

/// A place in the code.
#[derive(Clone, Copy, Debug)]
pub struct Label(pub(super) u32);

impl<T> Value<T> {
    pub(super) fn new(arg: Arg) -> Value<T> {
        Value(arg, PhantomData)
    }
}

impl<T> Register<T> {
    pub(super) fn new(number: u32) -> Register<T> {
        Register(number, PhantomData)
    }
}

impl<T: Element> From<T> for Value<T> {
    fn from(value: T) -> Value<T> {
        Value::new(Arg::Other(Operand::Immediate(value.bits())))
    }
}

impl<T> From<Register<T>> for Value<T> {
    fn from(register: Register<T>) -> Value<T> {
        Value::new(Arg::Register(register.0))
    }
}

impl<T> Run<T> {
    pub(super) fn new(first: u32, len: u32) -> Run<T> {
        Run {
            first,
            len,
            ty: PhantomData,
        }
    }

    /// One of the registers.
    pub fn get(&self, i: u32) -> Option<Register<T>> {
        (i < self.len).then(|| Register::new(self.first + i))
    }
}

impl<T: Element> Memory<T> {
    pub(super) fn new(number: u16) -> Memory<T> {
        Memory(number, PhantomData)
    }

    /// An element.
    pub fn at(self, index: impl Into<At>) -> Place<T> {
        let At { part, offset } = index.into();
        Place {
            memory: self.0,
            parts: [part, None],
            offset,
            ty: PhantomData,
        }
    }

    /// Number of elements.
    pub fn len<C: Count>(self) -> Value<C> {
        Value::new(Arg::Other(Operand::Length(self.0)))
    }
}

impl<T> Place<T> {
    /// The element so much further on; the sum wraps in the index's type. A second index that varies takes the place of an earlier one.
    pub fn plus(mut self, index: impl Into<At>) -> Place<T> {
        let At { part, offset } = index.into();
        match self.parts[0] {
            None => self.parts[0] = part,
            Some(_) => self.parts[1] = part.or(self.parts[1]),
        }
        self.offset = self.offset.wrapping_add(offset);
        self
    }
}

impl<T: Int> From<Register<T>> for At {
    fn from(register: Register<T>) -> At {
        Value::from(register).into()
    }
}

impl<T: Int> From<Value<T>> for At {
    fn from(value: Value<T>) -> At {
        match value.0 {
            Arg::Other(Operand::Immediate(bits)) => At {
                part: None,
                offset: bits as i64,
            },
            arg => At {
                part: Some((arg, T::TYPE)),
                offset: 0,
            },
        }
    }
}

macro_rules! offsets {
    ($($ty:ty)*) => { $(
        impl From<$ty> for At {
            fn from(offset: $ty) -> At {
                At { part: None, offset: offset.into() }
            }
        }
    )* };
}

offsets! { i32 u32 i64 }

/// What the launch supplies.
pub fn special<C: Count>(special: Special) -> Value<C> {
    Value::new(Arg::Other(Operand::Special(special)))
}

/// Index of the lane along x in the whole grid.
pub fn global_id<C: Count>() -> Value<C> {
    special(Special::GlobalId)
}

/// Index of the lane in its block.
pub fn thread_idx<C: Count>(axis: Axis) -> Value<C> {
    special(Special::ThreadIdx(axis))
}

/// Index of the block in the grid.
pub fn block_idx<C: Count>(axis: Axis) -> Value<C> {
    special(Special::BlockIdx(axis))
}

/// Lanes per block.
pub fn block_dim<C: Count>(axis: Axis) -> Value<C> {
    special(Special::BlockDim(axis))
}

/// Blocks in the grid.
pub fn grid_dim<C: Count>(axis: Axis) -> Value<C> {
    special(Special::GridDim(axis))
}
