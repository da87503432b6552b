//! README and the book as documentation tests: each sample is compiled and run. Exists for them alone.

#[doc = include_str!("../../../README.md")]
pub struct Readme;

#[doc = include_str!("../../../docs/book/src/glossary.md")]
pub struct Glossary;
