//! Puts values of a launch's scalar arguments into the kernel. Knows nothing of what follows from them: compilers do.

use crate::ir::{Block, Inst, Kernel, Op, ParamKind, Scalar, Stages, Type};
use crate::verify::Verified;

/// The kernel for launches whose scalar arguments of these names have these values (their bits, zero-extended): code that they rule out is no more in it when it
/// is compiled. Its parameters stay, and what a launch gives for the named ones is not read; but those that describe matrices which
/// are multiplied in stages, launches read, and they are not bound. Names that no scalar parameter has do nothing.
pub fn bind_scalars(verified: &Verified, values: &[(&str, u64)]) -> Verified {
    let mut kernel = verified.kernel().clone();
    let factors = kernel.stages.iter().flat_map(Stages::factors);
    let described: Vec<u32> = factors.flat_map(|factor| factor.shape).collect();
    let constants: Vec<Option<(Scalar, u64)>> = (0u32..)
        .zip(&kernel.params)
        .map(|(i, param)| match param.kind {
            ParamKind::Value(Type::Scalar(scalar)) if !described.contains(&i) => {
                let named = values.iter().find(|(name, _)| *name == param.name);
                named.map(|(_, bits)| (scalar, *bits))
            }
            _ => None,
        })
        .collect();
    let Kernel { functions, body, .. } = &mut kernel;
    let bodies = functions.iter_mut().map(|function| &mut function.body);
    bodies
        .chain([body])
        .for_each(|body| bind(&mut body.block, &constants));
    verified.with_kernel(kernel)
}

fn bind(block: &mut Block, constants: &[Option<(Scalar, u64)>]) {
    for stmt in &mut block.0 {
        if let Inst::Let(_, op @ Op::Param(_)) = &mut stmt.inst
            && let Op::Param(index) = *op
            && let Some(Some((scalar, bits))) = constants.get(index as usize)
        {
            *op = Op::Const(*scalar, *bits);
        }
        for inner in stmt.inst.blocks_mut() {
            bind(inner, constants);
        }
    }
}
