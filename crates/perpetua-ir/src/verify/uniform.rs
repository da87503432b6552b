//! Uniformity: every barrier stands in control flow that is the same for all lanes of its block. Relies on
//! right types and structure.
//!
//! Each value, variable and point of control flow carries a *taint*: why it may differ between lanes, or on which
//! parameters of its function that depends. A variable has the taint of what is stored in it, joined where branches meet and at
//! the head of a loop; what is stored where lanes have parted differs. Taints of values and of loops' heads only grow, so a body is walked until
//! nothing changes. A function is analysed once, before its callers: its summary says on which parameters its barriers and its result depend.
//!
//! What `&[T]` holds is taken for constant during a launch. A launch may bind the same memory to a `&mut [T]`, so taints
//! carry those buffers too, and the analysis tells on which of them its barriers rely: launches must keep them constant.
//!
//! A load of the block's memory at a constant place that stands right between two barriers gives all lanes one value
//! ([`Block::met_loads`]): a sum to which all lanes have brought their part may decide whether all of them go on.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::Verified;
use super::error::{Cause, Divergence, Parting, Site, VerifyErrors};
use super::taint::{Flow, Point, SHARED_BIT, Taint, buffer_bit};
use crate::ir::*;
use crate::ops::Meeting;

/// What callers need to know of a function.
#[derive(Clone, Default)]
struct Summary {
    /// Line of its first barrier, its callees' included; `None` when it has none.
    barrier: Option<u32>,
    /// Parameters that must be uniform for its barriers, as bits.
    needs: u128,
    result: Taint,
}

/// A break, continue or return on its way out: number of enclosing constructs around its target (0: the body),
/// whether it goes round again, its flow, and the variables that its target stores to.
struct Escape {
    target: usize,
    again: bool,
    flow: Flow,
    locals: Vec<Taint>,
}

struct Analysis<'a, 'e> {
    kernel: &'a Kernel,
    site: Site<'a>,
    errors: &'e mut VerifyErrors,
    /// Buffers that barriers rely on, as in [`Taint`].
    relied: u128,
    reasons: Vec<Divergence>,
    summaries: Vec<Summary>,
    // For the body at hand:
    values: Vec<Taint>,
    /// Which values are constants.
    constant: Vec<bool>,
    /// The value that tells teams of lanes apart, and whether others wait for those that come to the statement at hand: in a team's code, where as
    /// far as the team's own lanes go, they come to it together; and before it where the block is one of a pair.
    parts_teams: Option<Value>,
    awaited: bool,
    /// Variables, where the walk is.
    locals: Vec<Taint>,
    /// Whether nobody comes to where the walk is.
    ended: bool,
    /// By number of a statement: the variables that the blocks in it store to.
    stored: Vec<Rc<[u32]>>,
    /// By number of a loop: those variables at its head.
    heads: Vec<Vec<Taint>>,
    /// Numbers of the loops and labelled blocks around the statement at hand.
    around: Vec<u32>,
    /// By number of a statement that stores to a variable: whether that differs then, as in `flow`.
    stores: Vec<(bool, u128)>,
    /// By number of a loop: flow with which lanes leave it, which is how they differ in the next turn.
    exits: Vec<Flow>,
    /// By number of a statement: index of the reason that it gives, so that repetition adds none.
    sources: Vec<Option<usize>>,
    /// By number of a statement: whether lanes may come to it apart for a reason that is no parameter, and the buffers that
    /// must not change for them to come together, as in [`Taint`].
    flow: Vec<(bool, u128)>,
    /// By number of a statement: whether others wait.
    awaits: Vec<bool>,
    summary: Summary,
    partings: Vec<(u32, Divergence)>,
    number: u32,
    /// Whether the statement at hand is one of its block's [`Block::met_loads`].
    met: bool,
    changed: bool,
    report: bool,
}

/// What of a kernel's own body is the same for all lanes of a block.
#[derive(Clone, Debug, Default)]
// Passes read it; without them the verifier alone fills it.
#[cfg_attr(not(feature = "pass"), allow(dead_code))]
pub(crate) struct Uniformity {
    /// Whether each value may differ between the lanes of a block.
    differing_values: Vec<bool>,
    /// By number of a statement that stores to a variable: whether that may differ then.
    differing_stores: Vec<bool>,
    /// By number of the statement in pre-order: whether lanes may come to it apart.
    parted_flow: Vec<bool>,
    /// By number of the statement: whether other teams of the block, or a block beside it, wait for those that come to it.
    awaited: Vec<bool>,
    /// Numbers of the parameters, all of them `&[T]`, that launches must keep constant for the barriers to be met by all
    /// lanes. What depends on other buffers counts as different.
    constant_buffers: Vec<u32>,
    /// Whether barriers rely on what lanes have written to the block's memory.
    relies_on_shared: bool,
    /// Choices on what differs between lanes, by their lines, with why; those in functions too.
    partings: Vec<(u32, Divergence)>,
}

/// Where lanes of a block choose by what differs between them, by source line, with why: in the order of the text, functions first.
pub fn partings(kernel: &Verified) -> Vec<(u32, Divergence)> {
    match &kernel.facts().uniformity {
        Some(known) => known.partings.clone(),
        None => check(kernel.kernel(), &mut VerifyErrors::of(kernel.kernel())).partings,
    }
}

#[cfg_attr(not(feature = "pass"), allow(dead_code))]
impl Uniformity {
    /// Looks at a kernel that was made of a verified one. Launches keep the buffers `constant` as they are.
    pub(crate) fn of(kernel: &Kernel, constant: &[u32]) -> Uniformity {
        analyse(kernel, &mut VerifyErrors::of(kernel), Some(constant))
    }

    /// Buffers whose constancy barriers rely on.
    pub(super) fn constant_buffers(&self) -> &[u32] {
        &self.constant_buffers
    }

    /// Whether what lanes have written to the block's memory decides which barriers they come to, and how often.
    pub(crate) fn relies_on_shared(&self) -> bool {
        self.relies_on_shared
    }

    /// Whether a value is the same for all lanes that compute it together.
    pub(crate) fn value(&self, v: Value) -> bool {
        !self.differing_values.get(v.0 as usize).copied().unwrap_or(false)
    }

    /// Whether a variable is the same for all lanes behind this statement, which stores to it.
    pub(crate) fn store(&self, statement: usize) -> bool {
        !self.differing_stores.get(statement).copied().unwrap_or(false)
    }

    /// Whether all lanes of a block come to this statement together; or, in the code of a team, all lanes of the team.
    pub(crate) fn flow(&self, statement: usize) -> bool {
        !self.parted_flow.get(statement).copied().unwrap_or(false)
    }

    /// Whether others than those that come to this statement may wait for them.
    pub(crate) fn is_awaited(&self, statement: usize) -> bool {
        !self.flow(statement) || self.awaited.get(statement).copied().unwrap_or(false)
    }
}

/// Checks all barriers of a kernel.
pub(super) fn check(kernel: &Kernel, errors: &mut VerifyErrors) -> Uniformity {
    analyse(kernel, errors, None)
}

/// Without `constant`, launches keep constant what barriers rely on.
fn analyse(kernel: &Kernel, errors: &mut VerifyErrors, constant: Option<&[u32]>) -> Uniformity {
    let site = Site {
        kernel,
        function: None,
        body: &kernel.body,
    };
    let mut analysis = Analysis {
        kernel,
        site,
        errors,
        relied: 0,
        reasons: Vec::new(),
        summaries: Vec::new(),
        values: Vec::new(),
        constant: Vec::new(),
        parts_teams: None,
        awaited: false,
        awaits: Vec::new(),
        locals: Vec::new(),
        ended: false,
        stored: Vec::new(),
        heads: Vec::new(),
        around: Vec::new(),
        stores: Vec::new(),
        exits: Vec::new(),
        sources: Vec::new(),
        flow: Vec::new(),
        summary: Summary::default(),
        partings: Vec::new(),
        number: 0,
        met: false,
        changed: false,
        report: false,
    };
    for function in &kernel.functions {
        let site = Site {
            kernel,
            function: Some(&function.name),
            body: &function.body,
        };
        let summary = analysis.body(site, function.params.len());
        analysis.summaries.push(summary);
    }
    analysis.body(site, 0);
    let constant = constant.map_or_else(|| relied_on(kernel, analysis.relied), <[u32]>::to_vec);
    let trusted = constant.iter().fold(SHARED_BIT, |bits, i| bits | buffer_bit(*i));
    let apart = |why: bool, buffers: u128| why || buffers & !trusted != 0;
    let values = analysis.values.iter();
    let statements = |all: &[(bool, u128)]| {
        let each = all.iter();
        each.map(|(why, buffers)| apart(*why, *buffers)).collect()
    };
    Uniformity {
        differing_values: values
            .map(|taint| apart(taint.why.is_some(), taint.buffers))
            .collect(),
        differing_stores: statements(&analysis.stores),
        parted_flow: statements(&analysis.flow),
        awaited: analysis.awaits,
        constant_buffers: constant,
        relies_on_shared: analysis.relied & SHARED_BIT != 0,
        partings: analysis.partings,
    }
}

/// The parameters that these bits stand for.
fn relied_on(kernel: &Kernel, relied: u128) -> Vec<u32> {
    (0u32..)
        .zip(&kernel.params)
        .filter(|(i, param)| is_read_only(param) && relied & buffer_bit(*i) != 0)
        .map(|(i, _)| i)
        .collect()
}

fn is_read_only(param: &Param) -> bool {
    matches!(
        param.kind,
        ParamKind::Buffer {
            access: Access::Read,
            ..
        }
    )
}

/// Appends, for each statement of a block in pre-order, the variables that the blocks in it store to; gives those of the block.
fn stored(block: &Block, all: &mut Vec<Rc<[u32]>>) -> BTreeSet<u32> {
    let mut own = BTreeSet::new();
    for stmt in &block.0 {
        if let Inst::Do(Effect::Store(place, ..)) = &stmt.inst
            && let Base::Local(id) = place.base
        {
            own.insert(id.0);
        }
        let number = all.len();
        all.push(Rc::default());
        let mut inside = BTreeSet::new();
        for block in stmt.inst.blocks() {
            inside.append(&mut stored(block, all));
        }
        if let Some(slot) = all.get_mut(number) {
            *slot = inside.iter().copied().collect();
        }
        own.append(&mut inside);
    }
    own
}

/// Joins the taints of the same variables; gives whether that changed anything.
fn join(taints: &mut Vec<Taint>, others: &[Taint]) -> bool {
    taints.resize(others.len(), Taint::default());
    let pairs = taints.iter_mut().zip(others);
    pairs.fold(false, |changed, (taint, other)| taint.join(*other) || changed)
}

impl<'a> Analysis<'a, '_> {
    fn body(&mut self, site: Site<'a>, params: usize) -> Summary {
        let mut statements = 0;
        site.body.block.walk(&mut |_| statements += 1);
        self.site = site;
        self.values = vec![Taint::default(); site.body.values.len()];
        self.constant = vec![false; site.body.values.len()];
        for (i, value) in self.values.iter_mut().take(params).enumerate() {
            value.params = 1 << (i % 128);
        }
        self.stored.clear();
        stored(&site.body.block, &mut self.stored);
        self.heads = vec![Vec::new(); statements];
        self.stores = vec![(false, 0); statements];
        self.exits = vec![Flow::default(); statements];
        self.sources = vec![None; statements];
        self.parts_teams = None;
        self.flow = vec![(false, 0); statements];
        self.awaits = vec![false; statements];
        self.summary = Summary::default();
        self.report = false;
        loop {
            self.changed = false;
            self.number = 0;
            self.locals = vec![Taint::default(); site.body.locals.len()];
            self.ended = false;
            let stages = self.kernel.stages.as_ref();
            self.awaited = site.function.is_none() && stages.is_some_and(|stages| stages.pairs);
            self.block(&site.body.block, 0, Flow::default());
            if self.report {
                return std::mem::take(&mut self.summary);
            }
            self.report = !self.changed;
        }
    }

    /// Walks a block inside `level` loops and labelled blocks; gives what leaves it.
    fn block(&mut self, block: &'a Block, level: usize, mut flow: Flow) -> Vec<Escape> {
        let mut escapes = Vec::new();
        let mut met = block.met_loads(&self.site.body.values).into_iter().peekable();
        for (i, stmt) in block.0.iter().enumerate() {
            let number = self.number;
            self.number += 1;
            self.met = met.next_if_eq(&i).is_some();
            if let Some((apart, buffers)) = self.flow.get_mut(number as usize) {
                *apart |= flow.parting.is_some();
                *buffers |= flow.buffers;
            }
            if let Some(awaited) = self.awaits.get_mut(number as usize) {
                *awaited = self.awaited;
            }
            let left = self.statement(number, stmt, level, flow);
            // Where some lanes have left, the others go on without them.
            for escape in &left {
                flow.join(escape.flow);
            }
            escapes.extend(left);
        }
        escapes
    }

    fn statement(&mut self, number: u32, stmt: &'a Stmt, level: usize, flow: Flow) -> Vec<Escape> {
        let point = |how| Point {
            how,
            line: stmt.line,
            number,
        };
        match &stmt.inst {
            Inst::Let(v, op) => {
                if let Some(constant) = self.constant.get_mut(v.0 as usize) {
                    *constant = matches!(op, Op::Const(..));
                }
                if let Op::Device(DeviceOp::Stage(StageOp::Produces), _) = op {
                    self.parts_teams = Some(*v);
                }
                let taint = self.op(number, stmt, op, flow);
                if let Some(value) = self.values.get_mut(v.0 as usize) {
                    self.changed |= value.join(taint);
                }
                Vec::new()
            }
            Inst::Do(effect) => {
                self.effect(number, stmt, effect, flow);
                Vec::new()
            }
            // What follows asks for no lanes that meet, as `stages` has checked.
            Inst::If(v, ..) if self.parts_teams == Some(*v) => {
                self.awaited = true;
                let left = self.branches(number, stmt, level, flow);
                self.awaited = false;
                left
            }
            Inst::If(v, ..) => {
                self.parts(stmt.line, *v);
                let inner = flow.split(self.value(*v), point(Parting::If));
                self.branches(number, stmt, level, inner)
            }
            Inst::Switch { selector, .. } => {
                self.parts(stmt.line, *selector);
                let inner = flow.split(self.value(*selector), point(Parting::Switch));
                self.branches(number, stmt, level, inner)
            }
            Inst::Loop(block) => {
                let mut inner = flow;
                if let Some(exit) = self.exits.get(number as usize) {
                    inner.join(*exit);
                }
                let before = self.locals_of(number);
                self.comes_round(number, &before);
                self.set_locals(
                    number,
                    &self.heads.get(number as usize).cloned().unwrap_or_default(),
                );
                let (mut left, end) = self.inside(number, block, level, inner);
                if let Some(end) = end {
                    self.comes_round(number, &end);
                }
                for escape in &left {
                    if escape.again && escape.target == level + 1 {
                        self.comes_round(number, &escape.locals);
                    } else if let Some(exit) = self.exits.get_mut(number as usize) {
                        self.changed |= exit.join(escape.flow);
                    }
                }
                self.meet(number, level, None, &left);
                left.retain(|e| e.target <= level);
                left
            }
            Inst::Labeled(block) => {
                let (mut left, end) = self.inside(number, block, level, flow);
                self.meet(number, level, end, &left);
                left.retain(|e| e.target <= level);
                left
            }
            Inst::Break(depth) => {
                let target = level.saturating_sub(*depth as usize);
                vec![self.escape(target, false, flow.leaving(Parting::Break, stmt, number))]
            }
            Inst::Continue(depth) => {
                let target = level.saturating_sub(*depth as usize);
                vec![self.escape(target, true, flow.leaving(Parting::Continue, stmt, number))]
            }
            Inst::Return(v) => {
                let mut taint = flow.taint();
                if let Some(v) = v {
                    taint.join(self.value(*v));
                }
                self.changed |= self.summary.result.join(taint);
                vec![self.escape(0, false, flow.leaving(Parting::Return, stmt, number))]
            }
        }
    }

    /// Walks the blocks of which a lane takes one; behind them variables have what any of them has left there.
    fn branches(&mut self, number: u32, stmt: &'a Stmt, level: usize, flow: Flow) -> Vec<Escape> {
        let (before, ended) = (self.locals_of(number), self.ended);
        let (mut left, mut after) = (Vec::new(), None);
        for block in stmt.inst.blocks() {
            self.set_locals(number, &before);
            self.ended = ended;
            left.extend(self.block(block, level, flow));
            if !self.ended {
                join(after.get_or_insert_default(), &self.locals_of(number));
            }
        }
        self.ended = after.is_none();
        self.set_locals(number, &after.unwrap_or(before));
        left
    }

    /// Walks the block of a loop or a label; gives what leaves it, and the variables at its end where somebody comes there.
    fn inside(
        &mut self,
        number: u32,
        block: &'a Block,
        level: usize,
        flow: Flow,
    ) -> (Vec<Escape>, Option<Vec<Taint>>) {
        self.around.push(number);
        let left = self.block(block, level + 1, flow);
        self.around.pop();
        let end = (!self.ended).then(|| self.locals_of(number));
        (left, end)
    }

    /// Variables with which lanes come to a loop's head.
    fn comes_round(&mut self, number: u32, locals: &[Taint]) {
        if let Some(head) = self.heads.get_mut(number as usize) {
            self.changed |= join(head, locals);
        }
    }

    /// Goes on behind a loop or a label: from its end, if there is one, and from what breaks out of it.
    fn meet(&mut self, number: u32, level: usize, mut end: Option<Vec<Taint>>, left: &[Escape]) {
        for escape in left.iter().filter(|e| !e.again && e.target == level + 1) {
            join(end.get_or_insert_default(), &escape.locals);
        }
        self.ended = end.is_none();
        self.set_locals(number, &end.unwrap_or_default());
    }

    fn escape(&mut self, target: usize, again: bool, flow: Flow) -> Escape {
        let number = target.checked_sub(1).and_then(|i| self.around.get(i)).copied();
        let locals = number.map_or_else(Vec::new, |number| self.locals_of(number));
        self.ended = true;
        Escape {
            target,
            again,
            flow,
            locals,
        }
    }

    /// The variables that the blocks in a statement store to.
    fn locals_of(&self, number: u32) -> Vec<Taint> {
        let stored = self.stored.get(number as usize).map_or(&[][..], |stored| stored);
        let local = |id: &u32| self.locals.get(*id as usize).copied().unwrap_or_default();
        stored.iter().map(local).collect()
    }

    fn set_locals(&mut self, number: u32, taints: &[Taint]) {
        let stored = self.stored.get(number as usize).cloned().unwrap_or_default();
        for (id, taint) in stored.iter().zip(taints) {
            if let Some(local) = self.locals.get_mut(*id as usize) {
                *local = *taint;
            }
        }
    }

    fn value(&self, v: Value) -> Taint {
        self.values.get(v.0 as usize).copied().unwrap_or_default()
    }

    /// Notes a choice that lanes make differently.
    fn parts(&mut self, line: u32, decides: Value) {
        if let (true, Some(why)) = (self.report, self.value(decides).why) {
            self.partings.push((line, self.reason(why)));
        }
    }

    /// The taint of something that differs by itself.
    fn source(&mut self, number: u32, stmt: &Stmt, what: impl FnOnce() -> String) -> Taint {
        let known = self.sources.get(number as usize).copied().flatten();
        let why = known.unwrap_or_else(|| {
            self.reasons.push(Divergence {
                what: what(),
                line: stmt.line,
                settles: false,
            });
            let index = self.reasons.len() - 1;
            if let Some(slot) = self.sources.get_mut(number as usize) {
                *slot = Some(index);
            }
            index
        });
        Taint {
            why: Some(why),
            ..Taint::default()
        }
    }

    /// Whether a place's indices are constants: only of such a place WGSL can be told that all lanes load one value.
    fn is_constant(&self, place: &Place) -> bool {
        let mut constant = true;
        place.operands(&mut |v| constant &= self.constant.get(v.0 as usize).copied().unwrap_or(false));
        constant
    }

    fn op(&mut self, number: u32, stmt: &Stmt, op: &Op, flow: Flow) -> Taint {
        let kernel = self.kernel;
        match op {
            Op::Builtin(Builtin::ThreadIdx(axis)) => self.source(number, stmt, || {
                format!("`thread_idx.{}` is each lane's own", axis.name())
            }),
            Op::Builtin(Builtin::SubgroupLane) => {
                self.source(number, stmt, || "`subgroup_lane` is each lane's own".into())
            }
            Op::Atomic(..) | Op::CompareExchange { .. } => self.source(number, stmt, || {
                "an atomic operation gives each lane its own result".into()
            }),
            Op::Load(place, sync) => {
                let mut taint = Taint::default();
                let name = match place.base {
                    Base::Buffer(i) => match kernel.params.get(i as usize) {
                        Some(param) if sync.is_none() && is_read_only(param) => {
                            taint.buffers = buffer_bit(i);
                            None
                        }
                        param => param.map(|p| p.name.as_str()),
                    },
                    Base::Shared(_) if self.met && self.is_constant(place) => {
                        taint.buffers = SHARED_BIT;
                        None
                    }
                    Base::Shared(i) => kernel.shared.get(i as usize).map(|s| s.name.as_str()),
                    Base::Local(id) => {
                        taint = self.locals.get(id.0 as usize).copied().unwrap_or_default();
                        None
                    }
                    Base::Constant(_) => None,
                };
                if let Some(name) = name {
                    let taint = self.source(number, stmt, || {
                        format!("`{name}` may change between the lanes' loads of it")
                    });
                    let settles = matches!(place.base, Base::Shared(_)) && self.is_constant(place);
                    if let Some(why) = taint.why.and_then(|why| self.reasons.get_mut(why)) {
                        why.settles = settles;
                    }
                    return taint;
                }
                place.operands(&mut |v| {
                    taint.join(self.value(v));
                });
                taint
            }
            Op::Call(f, args) => self.call(number, stmt, *f as usize, args, flow),
            Op::Device(op, _) if op.row().meeting == Meeting::Block => {
                self.meets(number, stmt, flow);
                match op.row().same.apart() {
                    Some(why) => self.source(number, stmt, || why.into()),
                    None => flow.taint(),
                }
            }
            _ if let Some(why) = stmt.inst.device().and_then(|op| op.row().same.apart()) => {
                self.source(number, stmt, || why.into())
            }
            _ => {
                let mut taint = Taint::default();
                op.operands(&mut |v| {
                    taint.join(self.value(v));
                });
                taint
            }
        }
    }

    fn effect(&mut self, number: u32, stmt: &Stmt, effect: &Effect, flow: Flow) {
        match effect {
            Effect::Store(place, v, _) => {
                if let Base::Local(id) = place.base {
                    let mut taint = self.value(*v);
                    place.operands(&mut |v| {
                        taint.join(self.value(v));
                    });
                    taint.join(flow.taint());
                    if let Some(local) = self.locals.get_mut(id.0 as usize) {
                        if !place.path.is_empty() {
                            taint.join(*local);
                        }
                        *local = taint;
                    }
                    if let Some((apart, buffers)) = self.stores.get_mut(number as usize) {
                        *apart |= taint.why.is_some();
                        *buffers |= taint.buffers;
                    }
                }
            }
            Effect::Device(op, _) if op.row().meeting == Meeting::Block => self.meets(number, stmt, flow),
            Effect::Device(..) | Effect::Print(..) | Effect::Fault(..) | Effect::Panic(..) => {}
        }
    }

    /// All lanes of the block must come here.
    fn meets(&mut self, number: u32, stmt: &Stmt, flow: Flow) {
        self.summary.barrier.get_or_insert(stmt.line);
        self.summary.needs |= flow.params;
        self.relied |= flow.buffers;
        self.divergent(number, stmt, flow, None);
    }

    fn call(&mut self, number: u32, stmt: &Stmt, f: usize, args: &[Value], flow: Flow) -> Taint {
        let Some(summary) = self.summaries.get(f).cloned() else {
            return Taint::default();
        };
        let mut result = Taint {
            params: 0,
            ..summary.result
        };
        let mut need = Taint::default();
        let mut blamed = None;
        for (i, arg) in args.iter().enumerate() {
            let taint = self.value(*arg);
            if summary.result.params >> (i % 128) & 1 == 1 {
                result.join(taint);
            }
            if summary.needs >> (i % 128) & 1 == 1 {
                if taint.why.is_some() {
                    blamed = blamed.or(Some(i));
                }
                need.join(taint);
            }
        }
        if let Some(line) = summary.barrier {
            self.summary.barrier.get_or_insert(line);
            self.summary.needs |= flow.params | need.params;
            self.relied |= flow.buffers | need.buffers;
            let function = self.kernel.functions.get(f);
            let name = function.map_or("", |f| f.name.as_str());
            self.divergent(number, stmt, flow, Some((name, line)));
            if let (true, Some(why), Some(i)) = (self.report, need.why, blamed) {
                let param = function
                    .and_then(|f| f.params.get(i))
                    .map_or("", |p| p.0.as_str());
                let cause = Cause::BarrierArgument {
                    function: name.into(),
                    barrier: line,
                    param: param.into(),
                    why: self.reason(why),
                };
                self.errors.statement(self.site, number, stmt, cause);
            }
        }
        result
    }

    fn reason(&self, why: usize) -> Divergence {
        self.reasons.get(why).cloned().unwrap_or_else(|| Divergence {
            what: String::new(),
            line: 0,
            settles: false,
        })
    }

    /// Reports a barrier, or the call of a function with one, in divergent flow.
    fn divergent(&mut self, number: u32, stmt: &Stmt, flow: Flow, callee: Option<(&str, u32)>) {
        let (true, Some((point, why))) = (self.report, flow.parting) else {
            return;
        };
        let cause = Cause::DivergentBarrier {
            callee: callee.map(|(name, line)| (name.to_owned(), line)),
            parting: point.how,
            line: point.line,
            number: point.number,
            why: self.reason(why),
        };
        self.errors.statement(self.site, number, stmt, cause);
    }
}
