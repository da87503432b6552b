//! Turns a kernel into a [`Program`]: values become registers, places become addresses, structure becomes jumps.
//! Here: control flow. In `ops` operations and effects, in `place` memory. Knows nothing of launches.

mod liveness;
mod merge;
mod ops;
mod place;
mod registers;

use super::program::*;
use liveness::Liveness;
use perpetua_ir::ir::*;
use registers::Registers;

type Result<T> = std::result::Result<T, TypeError>;

/// A jump target whose operation is not known yet: an index into [`Flattener::labels`].
type Label = u32;

/// A loop or labelled block around a statement.
struct Frame {
    broken: Mask,
    continued: Option<Mask>,
}

/// A device function that is flattened already.
struct Callee {
    entry: Pc,
    returned: Mask,
    params: Vec<Vec<Reg>>,
    result: Vec<Reg>,
}

/// What belongs to the body in work.
struct Context<'a> {
    declarations: Declarations<'a>,
    liveness: Liveness,
    /// Registers of each value; empty before its definition.
    values: Vec<Vec<Reg>>,
    /// Registers of each local variable.
    locals: Vec<Vec<Reg>>,
    /// Where returning lanes wait.
    returned: Mask,
    /// Where results go.
    result: Vec<Reg>,
    frames: Vec<Frame>,
    /// The end of the construct around the current statement.
    skip: Label,
    /// Number of the current statement.
    number: u32,
    line: u32,
}

pub(super) struct Flattener<'a> {
    kernel: &'a Kernel,
    program: Program,
    registers: Registers,
    callees: Vec<Callee>,
    /// Operation of each label.
    labels: Vec<Pc>,
    /// Masks in use at this point.
    masks: Mask,
    /// Region of each parameter, shared variable and constant table.
    regions: Regions,
}

#[derive(Default)]
struct Regions {
    params: Vec<u32>,
    shared: Vec<u32>,
    constants: Vec<u32>,
}

/// Flattens a verified kernel.
///
/// # Errors
/// What the verifier would have found.
pub(super) fn flatten(kernel: &Kernel) -> Result<Program> {
    let mut f = Flattener {
        kernel,
        program: Program {
            name: kernel.name.clone(),
            source: kernel.source.clone(),
            checks: kernel.checks,
            block_size: kernel.block_size,
            params: Vec::new(),
            code: Vec::new(),
            skips: Vec::new(),
            lines: Vec::new(),
            entry: 0,
            registers: Vec::new(),
            fills: Vec::new(),
            masks: 0,
            regions: Vec::new(),
            constants: Vec::new(),
            shared_bytes: 0,
            dynamic_align: 1,
            accesses: Vec::new(),
            privates: Vec::new(),
            sites: Vec::new(),
            statement_sites: Vec::new(),
            prints: Vec::new(),
            synchronises: false,
            stays: false,
            stages: kernel.stages.clone(),
            ends_together: false,
            mergeable: merge::is_mergeable(kernel),
        },
        registers: Registers::default(),
        callees: Vec::new(),
        labels: Vec::new(),
        masks: 0,
        regions: Regions::default(),
    };
    f.declare();
    for function in &kernel.functions {
        f.function(function)?;
    }
    f.entry()?;
    Ok(f.finish())
}

/// Whether `size` is that of a scalar, and which registers take.
fn leaf_sizes(ty: &Type) -> Vec<u32> {
    ty.leaves().into_iter().map(|(s, _)| s.size()).collect()
}

impl<'a> Flattener<'a> {
    fn label(&mut self) -> Label {
        self.labels.push(0);
        self.labels.len() as Label - 1
    }

    /// The next operation is what `label` stands for.
    fn place_label(&mut self, label: Label) {
        let here = self.program.code.len() as Pc;
        if let Some(at) = self.labels.get_mut(label as usize) {
            *at = here;
        }
    }

    fn mask(&mut self) -> Mask {
        self.masks += 1;
        self.program.masks = self.program.masks.max(self.masks);
        self.masks - 1
    }

    /// Appends an operation. Jump targets in it and its skip are labels until [`Flattener::finish`].
    fn emit(&mut self, cx: &Context<'a>, code: Code) {
        self.program.code.push(code);
        self.program.skips.push(cx.skip);
        self.program.lines.push(cx.line);
    }

    fn context(&mut self, body: &'a Body, skip: Label) -> Context<'a> {
        let locals = body
            .locals
            .iter()
            .map(|local| {
                let sizes = leaf_sizes(&local.ty);
                sizes.into_iter().map(|size| self.registers.keep(size)).collect()
            })
            .collect();
        let returned = self.mask();
        Context {
            declarations: Declarations {
                kernel: self.kernel,
                body,
            },
            liveness: Liveness::of(body),
            values: vec![Vec::new(); body.values.len()],
            locals,
            returned,
            result: Vec::new(),
            frames: Vec::new(),
            skip,
            number: 0,
            line: 0,
        }
    }

    fn function(&mut self, function: &'a Function) -> Result<()> {
        let end = self.label();
        let mut cx = self.context(&function.body, end);
        let entry = self.program.code.len() as Pc;
        let mut params = Vec::new();
        for (i, (_, ty)) in function.params.iter().enumerate() {
            let regs: Vec<Reg> = leaf_sizes(ty)
                .into_iter()
                .map(|s| self.registers.keep(s))
                .collect();
            if let Some(value) = cx.values.get_mut(i) {
                value.clone_from(&regs);
            }
            params.push(regs);
        }
        let result = function.result.iter().flat_map(leaf_sizes);
        cx.result = result.map(|size| self.registers.keep(size)).collect();
        self.block(&mut cx, &function.body.block)?;
        self.place_label(end);
        self.emit(
            &cx,
            Code::Return {
                returned: cx.returned,
            },
        );
        self.registers.end_body();
        // The masks in use stay so: the function's are its own.
        self.masks = self.program.masks;
        self.callees.push(Callee {
            entry,
            returned: cx.returned,
            params,
            result: cx.result,
        });
        Ok(())
    }

    fn entry(&mut self) -> Result<()> {
        let end = self.label();
        let kernel = self.kernel;
        let mut cx = self.context(&kernel.body, end);
        self.program.entry = self.program.code.len() as Pc;
        self.block(&mut cx, &kernel.body.block)?;
        self.place_label(end);
        self.emit(&cx, Code::End);
        Ok(())
    }

    fn finish(mut self) -> Program {
        let labels = self.labels;
        let at = |label: &mut Pc| {
            if let Some(pc) = labels.get(*label as usize) {
                *label = *pc;
            }
        };
        self.program.skips.iter_mut().for_each(at);
        for code in &mut self.program.code {
            match code {
                Code::IfThen { end: to, .. }
                | Code::IfElse { otherwise: to, .. }
                | Code::Else { end: to, .. }
                | Code::Case { next: to, .. }
                | Code::Default { next: to, .. }
                | Code::Repeat { start: to, .. } => at(to),
                _ => {}
            }
        }
        (self.program.registers, self.program.fills) = self.registers.finish();
        self.program
    }

    fn block(&mut self, cx: &mut Context<'a>, block: &'a Block) -> Result<()> {
        for stmt in &block.0 {
            cx.number += 1;
            cx.line = stmt.line;
            self.statement(cx, &stmt.inst)?;
            self.registers.done(cx.number);
        }
        Ok(())
    }

    /// A block whose lanes go to `end` when none is left.
    fn inner(&mut self, cx: &mut Context<'a>, block: &'a Block, end: Label) -> Result<()> {
        let (outer, line) = (std::mem::replace(&mut cx.skip, end), cx.line);
        let done = self.block(cx, block);
        cx.skip = outer;
        cx.line = line;
        done
    }

    fn statement(&mut self, cx: &mut Context<'a>, inst: &'a Inst) -> Result<()> {
        let masks = self.masks;
        match inst {
            Inst::Let(v, op) => self.let_(cx, *v, op)?,
            Inst::Do(effect) => self.effect(cx, effect)?,
            Inst::If(condition, then, otherwise) => {
                self.if_(cx, *condition, then, otherwise)?;
                cx.number += 1;
            }
            Inst::Switch {
                selector,
                cases,
                default,
            } => {
                self.switch(cx, *selector, cases, default)?;
                cx.number += 1;
            }
            Inst::Loop(block) => {
                let (broken, continued) = (self.mask(), self.mask());
                let (start, end) = (self.label(), self.label());
                self.emit(cx, Code::Clear { mask: broken });
                self.emit(cx, Code::Clear { mask: continued });
                self.place_label(start);
                cx.frames.push(Frame {
                    broken,
                    continued: Some(continued),
                });
                self.inner(cx, block, end)?;
                cx.frames.pop();
                self.place_label(end);
                self.emit(
                    cx,
                    Code::Repeat {
                        continued,
                        broken,
                        start,
                    },
                );
                cx.number += 1;
            }
            Inst::Labeled(block) => {
                let (broken, end) = (self.mask(), self.label());
                self.emit(cx, Code::Clear { mask: broken });
                cx.frames.push(Frame {
                    broken,
                    continued: None,
                });
                self.inner(cx, block, end)?;
                cx.frames.pop();
                self.place_label(end);
                self.emit(cx, Code::Join { of: broken });
                cx.number += 1;
            }
            Inst::Break(depth) => {
                let into = frame(cx, *depth)?.broken;
                self.emit(cx, Code::Leave { into });
            }
            Inst::Continue(depth) => {
                let into = frame(cx, *depth)?.continued;
                let into = into.ok_or_else(|| TypeError::Invalid("`continue` of a labelled block".into()))?;
                self.emit(cx, Code::Leave { into });
            }
            Inst::Return(value) => {
                if let Some(v) = value {
                    let from = self.value(cx, *v)?;
                    let to = cx.result.clone();
                    let sizes = leaf_sizes(cx.declarations.value(*v)?);
                    for ((from, to), size) in from.into_iter().zip(to).zip(sizes) {
                        let last = false;
                        self.emit(cx, Code::Assign { size, from, to, last });
                    }
                }
                self.emit(cx, Code::Leave { into: cx.returned });
            }
        }
        self.masks = masks;
        Ok(())
    }

    fn if_(
        &mut self,
        cx: &mut Context<'a>,
        condition: Value,
        then: &'a Block,
        otherwise: &'a Block,
    ) -> Result<()> {
        let condition = self.scalar(cx, condition)?;
        let (rest, end) = (self.mask(), self.label());
        if otherwise.0.is_empty() {
            let join = self.label();
            self.emit(cx, Code::IfThen { condition, rest, end });
            self.inner(cx, then, join)?;
            self.place_label(join);
            self.emit(cx, Code::Join { of: rest });
            self.place_label(end);
            return Ok(());
        }
        let (done, other, between) = (self.mask(), self.label(), self.label());
        self.emit(
            cx,
            Code::IfElse {
                condition,
                rest,
                done,
                otherwise: other,
            },
        );
        self.inner(cx, then, between)?;
        self.place_label(between);
        self.emit(cx, Code::Else { rest, done, end });
        self.place_label(other);
        self.inner(cx, otherwise, end)?;
        self.place_label(end);
        self.emit(cx, Code::Join { of: done });
        Ok(())
    }

    fn switch(
        &mut self,
        cx: &mut Context<'a>,
        selector: Value,
        cases: &'a [(Vec<u64>, Block)],
        default: &'a Block,
    ) -> Result<()> {
        let size = cx.declarations.scalar(selector, "the selector")?.size();
        let selector = self.scalar(cx, selector)?;
        let (rest, done) = (self.mask(), self.mask());
        self.emit(cx, Code::Switch { rest, done });
        for (labels, block) in cases {
            let (end, next) = (self.label(), self.label());
            let labels = labels.clone();
            self.emit(
                cx,
                Code::Case {
                    selector,
                    size,
                    labels,
                    rest,
                    next,
                },
            );
            self.inner(cx, block, end)?;
            self.place_label(end);
            self.emit(cx, Code::EndCase { done });
            self.place_label(next);
        }
        let next = self.label();
        self.emit(cx, Code::Default { rest, next });
        self.inner(cx, default, next)?;
        self.place_label(next);
        self.emit(cx, Code::Join { of: done });
        Ok(())
    }
}

fn frame<'c>(cx: &'c Context<'_>, depth: u32) -> Result<&'c Frame> {
    let found = cx.frames.len();
    let frame = cx.frames.iter().rev().nth(depth as usize);
    frame.ok_or(TypeError::NoSuch {
        what: "enclosing loop or block",
        index: depth,
        count: found,
    })
}
