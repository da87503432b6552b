//! Functions of the standard library that a `use` brings by their names alone, `use std::cmp::{max, min};`: what they are in
//! kernels. The names are those of types, so that rustc's own mean the functions.

#![allow(non_camel_case_types, reason = "they are named as the functions are")]

/// The functions themselves.
pub mod functions {
    use crate::device;

    /// `std::cmp::min`.
    #[device]
    pub fn min<T: Ord>(a: T, b: T) -> T {
        if b < a { b } else { a }
    }

    /// `std::cmp::max`.
    #[device]
    pub fn max<T: Ord>(a: T, b: T) -> T {
        if b < a { a } else { b }
    }

    /// `std::mem::swap`.
    #[device]
    pub fn swap<T>(a: &mut T, b: &mut T) {
        core::mem::swap(a, b)
    }

    /// `std::mem::replace`.
    #[device]
    pub fn replace<T>(place: &mut T, value: T) -> T {
        core::mem::replace(place, value)
    }

    /// `std::mem::take`.
    #[device]
    pub fn take<T: Default>(place: &mut T) -> T {
        core::mem::take(place)
    }
}

/// `std::cmp::min`.
pub type min = functions::min;
/// `std::cmp::max`.
pub type max = functions::max;
/// `std::mem::swap`.
pub type swap = functions::swap;
/// `std::mem::replace`.
pub type replace = functions::replace;
/// `std::mem::take`.
pub type take = functions::take;
