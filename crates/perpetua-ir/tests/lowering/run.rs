//! From source text to a run in the interpreter.

use perpetua_cpu::interp::{Arg, InterpError, Interpreter, LaunchConfig};
use perpetua_ir::front::rust::{Instantiation, kernels_in_file, lower};
use perpetua_ir::ir::Kernel;
use perpetua_ir::verify::{Verified, verify};

/// The kernel called `name` of a source text, or the text of the error.
pub(crate) fn lowered(text: &str, name: &str, how: &Instantiation) -> Result<Kernel, String> {
    let kernels = kernels_in_file(text, "program.rs").map_err(|e| e.to_string())?;
    let kernel = kernels
        .into_iter()
        .find(|kernel| kernel.name == name)
        .ok_or_else(|| format!("there is no kernel `{name}`"))?;
    lower(&kernel.function, how).map_err(|e| e.to_string())
}

/// The verified kernel called `name` of a source text.
pub(crate) fn kernel(text: &str, name: &str, how: &Instantiation) -> Verified {
    let kernel = lowered(text, name, how).unwrap_or_else(|e| panic!("{e}"));
    let shown = kernel.to_string();
    let bodies = kernel.functions.iter().map(|f| &f.body).chain([&kernel.body]);
    for body in bodies {
        body.block
            .walk(&mut |stmt| assert!(stmt.line > 0, "a statement has no line\n{shown}"));
    }
    verify(kernel).unwrap_or_else(|e| panic!("{e}\n{shown}"))
}

/// Runs a kernel, with races looked for.
pub(crate) fn launch(
    kernel: &Verified,
    grid: [u32; 3],
    block: [u32; 3],
    args: &[Arg<'_>],
) -> Result<(), InterpError> {
    let mut config = LaunchConfig::new(grid, block, args);
    config.dynamic_shared_bytes = 1024;
    Interpreter::new(kernel)?.launch(&config)
}
