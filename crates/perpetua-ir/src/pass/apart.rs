//! Long straight code with many returns, in parts. Mesa nests what stands behind a return in a condition, and llvmpipe keeps 80 masks
//! of conditions: accesses behind the 79th check were lost without a word. A part is a loop that runs once, which its returns break;
//! behind it stands one return for all of them. Values that later parts read pass through variables.

use std::collections::{HashMap, HashSet};

use super::levels::exits;
use super::statements::{Code, new_local};
use crate::ir::{Block, Body, Effect, Inst, LocalId, Op, Place, Scalar, Stmt, Type, Value};

/// Returns in a row that stay as they are.
const MOST: usize = 48;

/// Returns of a part, at most.
const PART: usize = 32;

/// The body with many returns in parts. Exits concern the innermost loop, before and after.
pub(crate) fn returns_apart(body: &mut Body) {
    let mut block = std::mem::take(&mut body.block);
    inside(&mut block, body);
    body.block = block;
}

fn inside(block: &mut Block, body: &mut Body) {
    for stmt in &mut block.0 {
        for inner in stmt.inst.blocks_mut() {
            inside(inner, body);
        }
    }
    if block.0.iter().map(returns).sum::<usize>() > MOST {
        block.0 = taken_apart(std::mem::take(&mut block.0), body);
    }
}

/// Returns without a value that a break out of a loop around the statement can stand for.
fn returns(stmt: &Stmt) -> usize {
    match &stmt.inst {
        Inst::Return(None) => 1,
        Inst::If(_, then, otherwise) => then.0.iter().chain(&otherwise.0).map(returns).sum(),
        _ => 0,
    }
}

fn taken_apart(statements: Vec<Stmt>, body: &mut Body) -> Vec<Stmt> {
    let line = statements.first().map_or(0, |stmt| stmt.line);
    let (mut parts, mut met) = (vec![Vec::new()], 0);
    for stmt in statements {
        let own = returns(&stmt);
        if met + own > PART && met > 0 {
            parts.push(Vec::new());
            met = 0;
        }
        met += own;
        if let Some(part) = parts.last_mut() {
            part.push(stmt);
        }
    }
    let left = new_local(body, "left", Type::BOOL);
    let mut code = Code(Vec::new(), line);
    let no = code.constant(body, Scalar::Bool, 0);
    code.push(Inst::Do(Effect::Store(Place::local(left), no, None)));

    let read: Vec<HashSet<Value>> = parts.iter().map(|part| values_of(part)).collect();
    let mut kept: HashMap<Value, Kept> = HashMap::new();
    let last = parts.len() - 1;
    for (n, mut part) in parts.into_iter().enumerate() {
        let mut own = Code(Vec::new(), line);
        let mut names = HashMap::new();
        let mut needed: Vec<_> = read[n].iter().filter_map(|v| Some((*v, kept.get(v)?))).collect();
        needed.sort_by_key(|(v, _)| v.0);
        for (v, how) in needed {
            let ty = body.values[v.0 as usize].clone();
            let op = match how {
                Kept::Again(op) => op.clone(),
                Kept::In(local) => Op::Load(Place::local(*local), None),
            };
            names.insert(v, own.let_(body, op, ty));
        }
        part.iter_mut().for_each(|stmt| rename(stmt, &names));
        let exit = exits(&Block(part.clone()), 0);
        if n == last || exit.breaks || exit.continues {
            code.0.extend(own.0);
            code.0.extend(part);
            continue;
        }
        let later: HashSet<Value> = read[n + 1..].iter().flatten().copied().collect();
        for mut stmt in part {
            break_for_return(&mut stmt, left, body);
            let made = match &stmt.inst {
                Inst::Let(v, op) if later.contains(v) => Some((*v, op.clone())),
                _ => None,
            };
            own.0.push(stmt);
            if let Some((v, op)) = made {
                if matches!(
                    op,
                    Op::Const(..) | Op::Zero(_) | Op::Param(_) | Op::Builtin(_) | Op::Len(..)
                ) {
                    kept.insert(v, Kept::Again(op));
                    continue;
                }
                let ty = body.values[v.0 as usize].clone();
                let local = new_local(body, "kept", ty);
                own.push(Inst::Do(Effect::Store(Place::local(local), v, None)));
                kept.insert(v, Kept::In(local));
            }
        }
        own.push(Inst::Break(0));
        code.push(Inst::Loop(Block(own.0)));
        let gone = code.let_(body, Op::Load(Place::local(left), None), Type::BOOL);
        let leave = Stmt {
            line,
            inst: Inst::Return(None),
        };
        code.push(Inst::If(gone, Block(vec![leave]), Block::default()));
    }
    code.0
}

/// How a later part comes by a value.
enum Kept {
    /// It is computed again.
    Again(Op),
    /// It lies in a variable.
    In(LocalId),
}

fn values_of(part: &[Stmt]) -> HashSet<Value> {
    fn visit(stmt: &Stmt, found: &mut HashSet<Value>) {
        stmt.inst.operands(&mut |v| {
            found.insert(v);
        });
        for inner in stmt.inst.blocks().into_iter().flat_map(|b| &b.0) {
            visit(inner, found);
        }
    }
    let mut found = HashSet::new();
    part.iter().for_each(|stmt| visit(stmt, &mut found));
    found
}

fn rename(stmt: &mut Stmt, names: &HashMap<Value, Value>) {
    stmt.inst
        .operands_mut(&mut |v| *v = names.get(v).copied().unwrap_or(*v));
    for inner in stmt.inst.blocks_mut().into_iter().flat_map(|b| &mut b.0) {
        rename(inner, names);
    }
}

/// Returns become breaks that say so.
fn break_for_return(stmt: &mut Stmt, left: LocalId, body: &mut Body) {
    let Inst::If(_, then, otherwise) = &mut stmt.inst else {
        return;
    };
    for block in [then, otherwise] {
        let mut code = Vec::with_capacity(block.0.len());
        for mut inner in std::mem::take(&mut block.0) {
            if matches!(inner.inst, Inst::Return(None)) {
                let mut gone = Code(Vec::new(), inner.line);
                let yes = gone.constant(body, Scalar::Bool, 1);
                gone.push(Inst::Do(Effect::Store(Place::local(left), yes, None)));
                gone.push(Inst::Break(0));
                code.extend(gone.0);
            } else {
                break_for_return(&mut inner, left, body);
                code.push(inner);
            }
        }
        block.0 = code;
    }
}
