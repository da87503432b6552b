//! Machine code for kernels that come as IR: puts it where it may be executed. The memory is written first and made executable then,
//! and never both at once.

use perpetua_ir::interp::Interpreter;
use perpetua_ir::verify::Verified;

/// Gives the interpreter machine code of its kernel; or tells why it has none.
#[cfg(target_arch = "x86_64")]
pub(super) fn install(interpreter: &mut Interpreter, kernel: &Verified) -> Result<(), String> {
    use perpetua_ir::interp::MachineCode;
    use perpetua_ir::interp::{Refusal, Width};

    let width = Width::detect()
        .last()
        .ok_or_else(|| Refusal::Processor.to_string())?;
    let code = MachineCode::generate(kernel, *width).map_err(|refusal| refusal.to_string())?;
    let executable = |bytes: &[u8]| {
        let mut memory = memmap2::MmapMut::map_anon(bytes.len())?;
        memory.copy_from_slice(bytes);
        memory.make_exec()
    };
    let memory =
        executable(code.bytes()).map_err(|e| format!("the system gives no memory to execute: {e}"))?;
    let entry = memory.as_ptr();
    // SAFETY: the mapping is a copy of the code, nobody can write to it, and it goes with the interpreter; the width is one that the
    // processor was found to have.
    unsafe { interpreter.install(code, entry, Box::new(memory)) };
    Ok(())
}

/// There is a generator for x86-64 alone.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn install(_: &mut Interpreter, _: &Verified) -> Result<(), String> {
    Err("there is no machine code for this kind of processor".into())
}
