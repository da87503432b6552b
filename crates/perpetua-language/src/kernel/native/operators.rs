//! Operators, by the types that rustc finds: [`Operands`] that are numbers have methods of their own, all others those of a trait, which
//! rustc takes where the first do not fit. Both numbers have one type, so that literals take it as they do beside Rust's operators.
//!
//! What stands here for others than numbers is there only so that bodies with it compile: a kernel that applies operators to a user's
//! types or to references runs no native body, which lowering says (`lower_followed`).

use std::ops::{Add, AddAssign, Div, DivAssign, Index, IndexMut, Mul, MulAssign, Neg, Rem, RemAssign};
use std::ops::{Shl, ShlAssign, Shr, ShrAssign, Sub, SubAssign};

use super::number::{Integer, Number};
use super::stop::{Site, Stop};

/// The operands of an operator; `()` stands beside the only one.
pub struct Operands<T>(pub T);

macro_rules! methods {
    ($($means:ident $name:ident($($at:ident)?) -> $given:ty;)*) => { $(
        /// What the operator gives. Division of integers is an error by zero, and of MIN by -1.
        #[inline(always)]
        pub fn $name(self $(, $at: &'static Site)?) -> $given {
            let (a, b) = self.0;
            T::$means(a, b $(, $at)?)
        }
    )* };
}

#[allow(
    clippy::should_implement_trait,
    reason = "their signatures are not the traits'"
)]
impl<T: Number> Operands<(T, T)> {
    methods! {
        plus add() -> T;
        plus add_assign() -> T;
        minus sub() -> T;
        minus sub_assign() -> T;
        times mul() -> T;
        times mul_assign() -> T;
        quotient div(at) -> Result<T, Stop>;
        quotient div_assign(at) -> Result<T, Stop>;
        rest rem(at) -> Result<T, Stop>;
        rest rem_assign(at) -> Result<T, Stop>;
    }
}

impl<T: Integer, U: Integer> Operands<(T, U)> {
    methods! {
        left shl() -> T;
        left shl_assign() -> T;
        right shr() -> T;
        right shr_assign() -> T;
    }
}

#[allow(
    clippy::should_implement_trait,
    reason = "their signatures are not the traits'"
)]
impl<T: Number> Operands<(T, ())> {
    /// The number with the other sign.
    #[inline(always)]
    pub fn neg(self) -> T {
        self.0.0.negated()
    }
}

macro_rules! as_written {
    (
        [$($name:ident $of:ident $op:tt, $assign:ident $of_assign:ident $op_assign:tt;)*]
        [$($checked:ident $of_checked:ident $checked_op:tt, $checked_assign:ident $of_checked_assign:ident $checked_op_assign:tt;)*]
    ) => {
        /// Operators as plain Rust has them.
        #[allow(missing_docs, reason = "each is the operator's name")]
        pub trait AsWritten<A, B>: Sized {
            fn operands(self) -> (A, B);
            fn neg(self) -> A::Output where A: Neg {
                -self.operands().0
            }
            $(
                fn $name(self) -> A::Output where A: $of<B> {
                    let (a, b) = self.operands();
                    a $op b
                }
                fn $assign(self) -> A where A: $of_assign<B> {
                    let (mut a, b) = self.operands();
                    a $op_assign b;
                    a
                }
            )*
            $(
                fn $checked(self, _: &'static Site) -> Result<A::Output, Stop> where A: $of_checked<B> {
                    let (a, b) = self.operands();
                    Ok(a $checked_op b)
                }
                fn $checked_assign(self, _: &'static Site) -> Result<A, Stop> where A: $of_checked_assign<B> {
                    let (mut a, b) = self.operands();
                    a $checked_op_assign b;
                    Ok(a)
                }
            )*
        }
    };
}

as_written! {
    [
        add Add +, add_assign AddAssign +=;
        sub Sub -, sub_assign SubAssign -=;
        mul Mul *, mul_assign MulAssign *=;
        shl Shl <<, shl_assign ShlAssign <<=;
        shr Shr >>, shr_assign ShrAssign >>=;
    ]
    [
        div Div /, div_assign DivAssign /=;
        rem Rem %, rem_assign RemAssign %=;
    ]
}

impl<A, B> AsWritten<A, B> for Operands<(A, B)> {
    fn operands(self) -> (A, B) {
        self.0
    }
}

/// A user's type, which may have an index of its own.
pub trait Own {}

/// The index of a user's type, by the names that [`Elements`](super::methods::Elements) gives those of arrays.
#[allow(missing_docs, reason = "each is the index operator")]
pub trait Indexed: Own {
    fn __perpetua_native_at<I>(&self, index: I, _: &'static Site) -> Result<&<Self as Index<I>>::Output, Stop>
    where
        Self: Index<I>,
    {
        Ok(&self[index])
    }

    fn __perpetua_native_at_mut<I>(
        &mut self,
        index: I,
        _: &'static Site,
    ) -> Result<&mut <Self as Index<I>>::Output, Stop>
    where
        Self: IndexMut<I>,
    {
        Ok(&mut self[index])
    }
}

impl<T: Own> Indexed for T {}
