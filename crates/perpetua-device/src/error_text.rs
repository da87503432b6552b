//! How errors print in `Debug`, and what they say of parameters. Must not know any of them.

use perpetua_ir::ir::{Access, Param, ParamKind};

/// `Debug` as `Display`: what `fn main() -> Result<(), Error>`, `unwrap` and `expect` print is for people, with cause and remedy. The
/// values are fields all the same.
#[doc(hidden)]
#[macro_export]
macro_rules! debug_as_display {
    ($error:ty) => {
        impl ::core::fmt::Debug for $error {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::fmt::Display::fmt(self, f)
            }
        }
    };
}

/// A parameter as its kernel's text has it.
pub(crate) fn describe(param: &Param) -> String {
    let name = &param.name;
    match &param.kind {
        ParamKind::Buffer { element, access } => match access {
            Access::Read => format!("{name}: &[{element}]"),
            Access::ReadWrite => format!("{name}: &mut [{element}]"),
        },
        ParamKind::Value(ty) => format!("{name}: {ty}"),
    }
}
