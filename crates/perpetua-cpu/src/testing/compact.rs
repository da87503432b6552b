//! Drops what a shrunk kernel no longer uses: functions, variables and numbers of values.

use std::collections::HashMap;

use perpetua_ir::ir::*;

/// The same kernel without functions that nobody calls, variables that nobody reaches and values that nobody
/// defines; what stays is numbered anew.
pub(super) fn compact(kernel: &Kernel) -> Kernel {
    let mut kernel = kernel.clone();
    drop_functions(&mut kernel);
    for function in &mut kernel.functions {
        compact_body(&mut function.body, function.params.len());
    }
    compact_body(&mut kernel.body, 0);
    kernel
}

fn drop_functions(kernel: &mut Kernel) {
    // Functions call only earlier ones: from the end, each is judged after all that may call it.
    for f in (0..kernel.functions.len()).rev() {
        let mut called = false;
        let later = kernel.functions.iter().skip(f + 1).map(|f| &f.body);
        for body in later.chain([&kernel.body]) {
            body.block.walk(&mut |stmt| {
                called |= matches!(&stmt.inst, Inst::Let(_, Op::Call(to, _)) if *to as usize == f);
            });
        }
        if called {
            continue;
        }
        kernel.functions.remove(f);
        for later in kernel.functions.iter_mut().skip(f) {
            shift_calls(&mut later.body.block, f);
        }
        shift_calls(&mut kernel.body.block, f);
    }
}

fn shift_calls(block: &mut Block, removed: usize) {
    for stmt in &mut block.0 {
        if let Inst::Let(_, Op::Call(to, _)) = &mut stmt.inst
            && *to as usize > removed
        {
            *to -= 1;
        }
        for inner in stmt.inst.blocks_mut() {
            shift_calls(inner, removed);
        }
    }
}

/// New numbers of what a body uses.
#[derive(Default)]
struct Numbers {
    values: HashMap<Value, Value>,
    locals: HashMap<LocalId, LocalId>,
}

fn compact_body(body: &mut Body, params: usize) {
    let mut numbers = Numbers::default();
    let mut values = Vec::new();
    let mut locals = Vec::new();
    let mut define = |v: Value, values: &mut Vec<Type>| {
        if let Some(ty) = body.values.get(v.0 as usize) {
            numbers.values.insert(v, Value(values.len() as u32));
            values.push(ty.clone());
        }
    };
    (0..params as u32).for_each(|i| define(Value(i), &mut values));
    body.block.walk(&mut |stmt| {
        if let Inst::Let(v, _) = &stmt.inst {
            define(*v, &mut values);
        }
        let place = match &stmt.inst {
            Inst::Let(_, op) => op.place(),
            Inst::Do(Effect::Store(place, ..)) => Some(place),
            _ => None,
        };
        if let Some(Base::Local(id)) = place.map(|p| p.base)
            && !numbers.locals.contains_key(&id)
            && let Some(local) = body.locals.get(id.0 as usize)
        {
            numbers.locals.insert(id, LocalId(locals.len() as u32));
            locals.push(local.clone());
        }
    });
    renumber(&mut body.block, &numbers);
    body.values = values;
    body.locals = locals;
}

fn renumber(block: &mut Block, numbers: &Numbers) {
    let value = |v: &mut Value| *v = numbers.values.get(v).copied().unwrap_or(*v);
    for stmt in &mut block.0 {
        stmt.inst.operands_mut(&mut |v| value(v));
        let place = match &mut stmt.inst {
            Inst::Let(v, op) => {
                value(v);
                op.place_mut()
            }
            Inst::Do(Effect::Store(place, ..)) => Some(place),
            _ => None,
        };
        if let Some(place) = place
            && let Base::Local(id) = &mut place.base
        {
            *id = numbers.locals.get(id).copied().unwrap_or(*id);
        }
        for inner in stmt.inst.blocks_mut() {
            renumber(inner, numbers);
        }
    }
}
