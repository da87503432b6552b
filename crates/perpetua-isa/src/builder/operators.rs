//! The builder's methods for operators: one a row of the table, under the row's name.

use super::ProgramBuilder;
use super::value::{Bits, Element, Float, Int, Number, Register, SignedNumber, Value};

macro_rules! operators {
    ($($bound:ident: $($name:ident($($operand:ident),*))*;)*) => {
        impl ProgramBuilder {
            $($(
                #[doc = concat!("`", stringify!($name), "` of the instruction set.")]
                #[track_caller]
                pub fn $name<T: $bound>(&mut self, $($operand: impl Into<Value<T>>),*) -> Register<T> {
                    self.computed(stringify!($name), T::TYPE, None, vec![$($operand.into().0),*])
                }
            )*)*
        }

        #[cfg(test)]
        const SAME: &[(&str, &str)] = &[$($((stringify!($name), stringify!($bound)),)*)*];
    };
}

operators! {
    SignedNumber: neg(a) abs(a) signum(a);
    Bits: not(a) and(a, b) or(a, b) xor(a, b);
    Float: floor(a) ceil(a) trunc(a) round(a) round_ties_even(a) fract(a) sqrt(a) rsqrt(a) recip(a) to_degrees(a) to_radians(a)
        copysign(a, b) fma(a, b, c)
        exp(a) exp2(a) exp_m1(a) ln(a) ln_1p(a) log2(a) log10(a) sin(a) cos(a) tan(a) asin(a) acos(a) atan(a) sinh(a) cosh(a)
        tanh(a) asinh(a) acosh(a) atanh(a) cbrt(a) erf(a) erfc(a) lgamma(a) pow(a, b) atan2(a, b) hypot(a, b);
    Float: relu(a) sigmoid(a) silu(a) gelu(a) softplus(a) softsign(a) elu(a) hard_sigmoid(a);
    Int: reverse_bits(a) swap_bytes(a) mul_high(a, b) saturating_add(a, b) saturating_sub(a, b);
    Number: add(a, b) sub(a, b) mul(a, b) div(a, b) rem(a, b) min(a, b) max(a, b) mad(a, b, c) clamp(a, b, c)
        group_add(a) group_mul(a) group_min(a) group_max(a);
}

macro_rules! others {
    ($($bound:ident $name:ident($($operand:ident: $ty:ty),*) -> $result:ty;)*) => {
        impl ProgramBuilder {
            $(
                #[doc = concat!("`", stringify!($name), "` of the instruction set.")]
                #[track_caller]
                pub fn $name<T: $bound>(&mut self, $($operand: impl Into<Value<$ty>>),*) -> Register<$result> {
                    self.computed(stringify!($name), T::TYPE, None, vec![$($operand.into().0),*])
                }
            )*
        }

        #[cfg(test)]
        const OTHER: &[(&str, &str)] = &[$((stringify!($name), stringify!($bound)),)*];
    };
}

others! {
    Float is_nan(a: T) -> bool;
    Float is_infinite(a: T) -> bool;
    Float is_finite(a: T) -> bool;
    Float is_sign_negative(a: T) -> bool;
    Int count_ones(a: T) -> u32;
    Int leading_zeros(a: T) -> u32;
    Int trailing_zeros(a: T) -> u32;
    Int shl(a: T, amount: u32) -> T;
    Int shr(a: T, amount: u32) -> T;
    Int rotate_left(a: T, amount: u32) -> T;
    Int rotate_right(a: T, amount: u32) -> T;
    Element select(condition: bool, a: T, b: T) -> T;
    Element seteq(a: T, b: T) -> bool;
    Element setne(a: T, b: T) -> bool;
    Number setlt(a: T, b: T) -> bool;
    Number setle(a: T, b: T) -> bool;
    Number setgt(a: T, b: T) -> bool;
    Number setge(a: T, b: T) -> bool;
    Int setltu(a: T, b: T) -> bool;
    Int setleu(a: T, b: T) -> bool;
    Int setgtu(a: T, b: T) -> bool;
    Int setgeu(a: T, b: T) -> bool;
    Int group_and(a: T) -> T;
    Int group_or(a: T) -> T;
    Int group_xor(a: T) -> T;
}

impl ProgramBuilder {
    /// `abs_diff` of the instruction set; `U` is the unsigned type of `T`'s width.
    #[track_caller]
    pub fn abs_diff<T: Int, U: Int>(
        &mut self,
        a: impl Into<Value<T>>,
        b: impl Into<Value<T>>,
    ) -> Register<U> {
        let result = self.computed("abs_diff", T::TYPE, None, vec![a.into().0, b.into().0]);
        if U::TYPE != T::TYPE.to_unsigned() {
            self.fail(
                "abs_diff",
                format!("the result's type is {}, not {}", T::TYPE.to_unsigned(), U::TYPE),
            );
        }
        result
    }

    /// Rust's `as`.
    #[track_caller]
    pub fn cvt<To: Number, From: Element>(&mut self, a: impl Into<Value<From>>) -> Register<To> {
        let a = self.in_register("mov", a.into());
        self.computed("cvt", To::TYPE, Some(From::TYPE), vec![a])
    }

    /// The same bits at another type of the same width.
    #[track_caller]
    pub fn bitcast<To: Number, From: Number>(&mut self, a: impl Into<Value<From>>) -> Register<To> {
        let a = self.in_register("mov", a.into());
        self.computed("bitcast", To::TYPE, Some(From::TYPE), vec![a])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opcode::{Meaning, Opcode};
    use perpetua_ir::ops::Domain;

    // Each operator of the table has its method, bound as the table says.
    #[test]
    fn methods_are_the_tables_rows() {
        let methods = || SAME.iter().chain(OTHER);
        for (name, _) in methods() {
            assert!(Opcode::from_name(name).is_some(), "{name}");
        }
        for opcode in Opcode::all() {
            let row = opcode.row();
            let operator = matches!(
                row.meaning,
                Meaning::Unary(_)
                    | Meaning::Binary(_)
                    | Meaning::Ternary(_)
                    | Meaning::Activation(_)
                    | Meaning::Compare(..)
                    | Meaning::MultiplyAdd
                    | Meaning::Group(_)
            );
            if !operator || row.name == "abs_diff" {
                continue;
            }
            let found = methods().find(|(name, _)| *name == row.name);
            let (_, bound) = found.unwrap_or_else(|| panic!("no method {}", row.name));
            let expected = match row.types {
                Some(Domain::Int) => "Int",
                Some(Domain::Float) => "Float",
                Some(Domain::Number) => "Number",
                Some(Domain::SignedNumber) => "SignedNumber",
                Some(Domain::Bits) => "Bits",
                Some(Domain::Any) => "Element",
                other => panic!("{}: {other:?}", row.name),
            };
            assert_eq!(*bound, expected, "{}", row.name);
        }
    }
}
