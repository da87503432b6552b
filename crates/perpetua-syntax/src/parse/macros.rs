//! Macros inside functions: `gpu_println!`, those that panic (`panic`), and why there are no others.

use super::Refusal;
use super::format::PrintArgs;
use super::panic::is_panic;
use super::path::segment_names;
use super::reader::Reader;
use crate::ast::ExprKind;

impl Reader {
    /// A macro's call, as an expression or as a statement.
    pub(super) fn read_macro(&mut self, mac: &syn::Macro) -> ExprKind {
        let name = segment_names(&mac.path).pop().unwrap_or_default();
        let refusal = match name.as_str() {
            "gpu_println" | "println" => match mac.parse_body::<PrintArgs>() {
                Ok(args) => return self.read_print(&args),
                Err(error) => {
                    let message = format!("{error}: write `gpu_println!(\"x = {{}}\", x)`");
                    self.error(&mac.path, message);
                    return ExprKind::Tuple(Vec::new());
                }
            },
            "matches" => return self.read_matches(mac),
            name if is_panic(name) => return self.read_panic(name, mac),
            "print" | "eprintln" | "eprint" | "dbg" | "write" | "writeln" => Refusal::PrintMacro,
            "format" | "format_args" | "concat" | "stringify" => Refusal::FormatMacro,
            "vec" => Refusal::VecMacro,
            _ => Refusal::OtherMacro,
        };
        self.refuse_named(mac, refusal, &name);
        ExprKind::Tuple(Vec::new())
    }

    fn read_print(&mut self, print: &PrintArgs) -> ExprKind {
        let (pieces, args) = self.read_format("gpu_println", print);
        ExprKind::Print { pieces, args }
    }
}
