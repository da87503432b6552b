//! Functions from source text: a `syn::ItemFn` alone, whose names mean nothing but its own, or a whole file
//! (`file`).

use std::ops::Range;
use std::sync::Arc;

use perpetua_syntax::{Function, FunctionKind, parse};

use super::resolve::{FunctionDef, Resolved};

/// Why source text is not a function of the kernel language: each refusal with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceError {
    /// The file; empty where unknown.
    pub file: String,
    /// At least one.
    pub refusals: Vec<SourceRefusal>,
}

/// What is refused, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRefusal {
    /// The line, 0 where unknown.
    pub line: u32,
    /// The bytes of the file; none where unknown.
    pub place: Range<usize>,
    /// What is refused.
    pub text: String,
}

impl std::fmt::Display for SourceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, SourceRefusal { line, text, .. }) in self.refusals.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            match (self.file.is_empty(), *line) {
                (true, 0) => {}
                (true, line) => write!(f, "line {line}: ")?,
                (false, 0) => write!(f, "{}: ", self.file)?,
                (false, line) => write!(f, "{}:{line}: ", self.file)?,
            }
            f.write_str(text)?;
        }
        Ok(())
    }
}

impl std::error::Error for SourceError {}

impl SourceError {
    /// The refusals of a reader.
    pub(super) fn of(error: &syn::Error, file: &str) -> SourceError {
        SourceError {
            file: file.to_owned(),
            refusals: error
                .clone()
                .into_iter()
                .map(|e| SourceRefusal {
                    line: e.span().start().line as u32,
                    place: e.span().byte_range(),
                    text: e.to_string(),
                })
                .collect(),
        }
    }
}

/// A function that stands alone.
///
/// # Errors
/// All that is outside the language.
pub fn read_item(item: &syn::ItemFn, kind: FunctionKind) -> Result<FunctionDef, SourceError> {
    let read = parse::read_function(item, kind, "").map_err(|e| SourceError::of(&e, ""))?;
    Ok(alone(Arc::new(read.tree)))
}

/// A function whose paths lead nowhere.
fn alone(tree: Arc<Function>) -> FunctionDef {
    let names = tree.clone();
    FunctionDef::from_source(tree, move |r| {
        for (i, path) in names.paths.iter().enumerate() {
            r.set(
                i as u32,
                Resolved::Refused {
                    cause: format!(
                        "`{}` leads out of `{}`, which is all there is",
                        path.text(),
                        names.name
                    ),
                    remedy:
                        "pass it as a parameter, or use `#[kernel]`, or put both into one file and use `emit`"
                            .into(),
                },
            );
        }
    })
}
