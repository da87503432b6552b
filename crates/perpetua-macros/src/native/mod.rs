//! The native bodies of kernels and device functions: the user's function a second time, in terms of the facade's module
//! `kernel::native`, which says what it is for and what the parts mean.
//!
//! In the order of the data: [`lane`] is the body of one lane (expressions in [`expr`], calls in [`call`], what is
//! stored to in [`place`]), [`program`] and [`sibling`] put them where they are found. What they need to know of names is in
//! [`scope`] and [`hygiene`], of generic parameters in [`generics`], of the language's functions in [`language`].
//!
//! A function that native code cannot run gets no native body; its kernel runs as machine code, or in the interpreter. Nothing here may
//! make a function fail to compile that rustc accepts without.

pub(crate) mod language;

mod hygiene;

pub(crate) mod generics;
mod scope;

mod lane;

mod call;
mod expr;
mod place;

pub(crate) mod program;
pub(crate) mod sibling;
