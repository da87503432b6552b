//! Writes one body: decides what becomes an expression and what a name, where variables are declared, and keeps the
//! text. Statements are in `statement`, loops in `repeat`.

use std::collections::{HashMap, HashSet};

use super::dialect::Dialect;
use super::effects::{is_pure, op_reads, writes};
use super::expr::{Expr, Reads};
use super::module::Module;
use super::names::Names;
use super::uses::{Range, Uses};
use crate::ir::{Axis, Base, Body, Builtin, Effect, Inst, Op, Place, Scalar, Step, Stmt, Type, Value};
use crate::ops::BinaryOp;

/// Longest expression that is written inside another.
const LONGEST_INLINE: usize = 64;

/// An enclosing loop, or the labelled body of a counting one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Frame {
    Loop,
    Next,
}

/// One step into memory.
#[derive(Clone, Debug)]
pub(crate) enum SpotStep {
    /// An index of an integer type.
    Index(Expr, Scalar),
    /// A constant component.
    Field(u32),
}

/// A place, with its indices as expressions.
#[derive(Clone, Debug)]
pub(crate) struct Spot {
    pub(crate) base: Base,
    pub(crate) steps: Vec<SpotStep>,
    /// Type at the end of the path.
    pub(crate) ty: Type,
}

impl Spot {
    /// The scalar at the end of the path.
    pub(crate) fn scalar(&self) -> Scalar {
        self.ty.as_scalar().unwrap_or(Scalar::U32)
    }
}

/// A body being written.
pub(crate) struct Writer<'m> {
    pub(crate) m: &'m Module<'m>,
    pub(crate) d: &'m dyn Dialect,
    pub(super) body: &'m Body,
    pub(super) uses: Uses,
    /// What each value is written as, once it is defined.
    exprs: Vec<Option<Expr>>,
    /// Values that wait for their one use, in order of definition.
    pending: Vec<u32>,
    /// The operation of each value.
    pub(super) definitions: Vec<Option<&'m Op>>,
    names: Names,
    pub(super) locals: Vec<String>,
    /// Of each variable's array levels, how many every access steps through.
    flat: Vec<u32>,
    /// Values that are the first elements of plain arrays.
    pub(super) fillings: HashMap<u32, u32>,
    /// Statements that do nothing but store a value in a variable, or return it.
    takers: HashSet<u32>,
    /// How often each variable is stored to.
    pub(super) stores: Vec<u32>,
    /// Variables to declare before a statement.
    declarations: HashMap<u32, Vec<u32>>,
    pub(super) out: String,
    pub(super) depth: usize,
    pub(super) frames: Vec<Frame>,
    /// The variable whose declaration is the last thing in `out`, and where it begins.
    pub(super) last_declared: Option<(u32, usize)>,
    /// The source line of the statement being written.
    pub(crate) line: u32,
}

impl<'m> Writer<'m> {
    /// Prepares to write `body`, whose first values are parameters called `params`.
    pub(crate) fn new(m: &'m Module<'m>, d: &'m dyn Dialect, body: &'m Body) -> Writer<'m> {
        let uses = Uses::of(body, &m.effects);
        let mut w = Writer {
            m,
            d,
            body,
            exprs: vec![None; body.values.len()],
            pending: Vec::new(),
            definitions: vec![None; body.values.len()],
            names: m.local_names(),
            locals: Vec::new(),
            flat: vec![u32::MAX; body.locals.len()],
            fillings: HashMap::new(),
            takers: HashSet::new(),
            stores: vec![0; body.locals.len()],
            declarations: HashMap::new(),
            out: String::new(),
            depth: 1,
            frames: Vec::new(),
            last_declared: None,
            line: 0,
            uses,
        };
        body.block.walk(&mut |stmt| w.survey(stmt));
        w
    }

    /// Notes what a statement means for variables and values.
    fn survey(&mut self, stmt: &'m Stmt) {
        if let Inst::Let(v, op) = &stmt.inst
            && let Some(slot) = self.definitions.get_mut(v.0 as usize)
        {
            *slot = Some(op);
        }
        if self.uses.is_dead(stmt, &self.m.effects) {
            return;
        }
        let takes = match &stmt.inst {
            Inst::Do(Effect::Store(place, _, None)) => {
                matches!(place.base, Base::Local(_)) && place.path.is_empty()
            }
            Inst::Return(v) => v.is_some(),
            _ => false,
        };
        if takes {
            self.takers.insert(self.uses.range(stmt).start);
        }
        let (place, stores) = match &stmt.inst {
            Inst::Let(_, op) => (op.place(), false),
            Inst::Do(Effect::Store(place, ..)) => (Some(place), true),
            _ => (None, false),
        };
        let Some((place, id)) = place.and_then(|p| match p.base {
            Base::Local(id) => Some((p, id)),
            _ => None,
        }) else {
            return;
        };
        let mut levels = place.path.len().min(
            self.body
                .locals
                .get(id.0 as usize)
                .map_or(0, |l| array_levels(&l.ty) as usize),
        );
        if self.fills(stmt, id.0) {
            levels = usize::MAX;
            if let Inst::Do(Effect::Store(_, v, _)) = &stmt.inst {
                self.fillings.insert(v.0, id.0);
            }
        }
        if let Some(flat) = self.flat.get_mut(id.0 as usize) {
            *flat = (*flat).min(u32::try_from(levels).unwrap_or(u32::MAX));
        }
        if let Some(n) = self.stores.get_mut(id.0 as usize) {
            *n += u32::from(stores);
        }
    }

    /// Whether `stmt` stores a list of elements to an array variable where that is declared: a plain array can begin
    /// so, and in no other way be stored as a whole.
    pub(super) fn fills(&self, stmt: &Stmt, local: u32) -> bool {
        let Inst::Do(Effect::Store(place, v, None)) = &stmt.inst else {
            return false;
        };
        let listed = match self.definitions.get(v.0 as usize).copied().flatten() {
            Some(Op::Zero(ty)) => array_levels(ty) > 0,
            Some(Op::Compose(ty, _)) => array_levels(ty) == 1,
            _ => false,
        } && self.uses.count_of(v.0) == 1
            && self.d.list(&[]).is_some();
        let here = self.uses.range(stmt).start;
        listed && is_whole(place, local) && self.uses.life(local).is_some_and(|l| l.from == here)
    }

    /// Whether value `v` is only written as the first elements of a plain array.
    pub(super) fn is_filling(&self, v: Value) -> bool {
        self.fillings
            .get(&v.0)
            .is_some_and(|local| self.flat_levels(*local) > 0)
    }

    /// Gives a name to something of this body.
    pub(crate) fn name(&mut self, wanted: &str) -> String {
        self.m.local_name(&mut self.names, wanted)
    }

    /// Names the parameters, which are the body's first values.
    pub(crate) fn parameters(&mut self, params: &[(String, Type)]) -> Vec<String> {
        params
            .iter()
            .enumerate()
            .map(|(i, (name, _))| {
                let name = self.name(name);
                if let Some(slot) = self.exprs.get_mut(i) {
                    *slot = Some(Expr::whole(name.clone()));
                }
                name
            })
            .collect()
    }

    /// Writes the statements.
    pub(crate) fn run(&mut self) {
        for (i, local) in self.body.locals.iter().enumerate() {
            let life = self.uses.life(i as u32);
            let name = match life {
                Some(_) => self.name(&local.name),
                None => String::new(),
            };
            self.locals.push(name);
            if let Some(life) = life {
                self.declarations.entry(life.from).or_default().push(i as u32);
            }
        }
        let block = &self.body.block;
        self.block(block);
    }

    pub(super) fn local_name(&self, local: u32) -> &str {
        self.locals.get(local as usize).map_or("", String::as_str)
    }

    /// Array levels of a variable that are never touched as a whole.
    pub(super) fn flat_levels(&self, local: u32) -> u32 {
        match self.flat.get(local as usize) {
            Some(&n) if n != u32::MAX => n,
            // Touched in no other way than by its first elements, or not at all.
            _ => 0,
        }
    }

    /// Appends a line.
    pub(crate) fn write(&mut self, text: &str) {
        self.last_declared = None;
        for line in text.lines() {
            self.out.push_str(&indent(self.depth));
            self.out.push_str(line);
            self.out.push('\n');
        }
    }

    pub(crate) fn type_of(&self, v: Value) -> &'m Type {
        self.body.values.get(v.0 as usize).unwrap_or(&Type::U32)
    }

    pub(crate) fn scalar_of(&self, v: Value) -> Scalar {
        self.type_of(v).as_scalar().unwrap_or(Scalar::U32)
    }

    /// What a value is written as, at a use of it.
    pub(super) fn take(&mut self, v: Value) -> Expr {
        if let Some(at) = self.pending.iter().position(|p| *p == v.0) {
            self.pending.remove(at);
        }
        self.exprs
            .get(v.0 as usize)
            .cloned()
            .flatten()
            // Only a kernel that no verifier has seen comes here.
            .unwrap_or_else(|| Expr::whole(format!("undefined_{}", v.0)))
    }

    /// The expression as a name, so that it may be written several times.
    pub(crate) fn named(&mut self, ty: &Type, e: Expr, hint: &str) -> Expr {
        if e.is_atom() && !e.unsigned {
            return e;
        }
        let name = self.name(hint);
        let text = self.d.constant(self.m, ty, &name, &e.text);
        self.write(&text);
        Expr::whole(name)
    }

    /// Defines value `v` as `e`, which `op` gave.
    pub(super) fn define(&mut self, v: Value, op: &Op, mut e: Expr) {
        if !self.loads_constant(op) {
            let reads = op_reads(op, &self.m.effects);
            e.reads.add(&reads);
        }
        let count = self.uses.count_of(v.0);
        let movable = is_pure(op, &self.m.effects);
        if count == 0 {
            let text = self.d.discard(self.type_of(v), &e);
            if !e.is_atom() {
                self.write(&text);
            }
            return;
        }
        let known_place = match op {
            Op::Load(
                Place {
                    base: Base::Local(id),
                    path,
                },
                None,
            ) => path.is_empty() && self.type_of(v).as_scalar().is_some() && self.uses.keeps(id.0, v.0),
            _ => false,
        };
        let cheap = (e.is_atom() || e.cheap) && movable;
        // What acts may still stand in the statement right after it.
        let taken_next =
            count == 1 && self.takers.contains(&self.uses.position_of(v.0)) && self.uses.is_next(v.0);
        if self.is_filling(v) || cheap || known_place || !movable && taken_next {
            self.keep(v, e);
        } else if count == 1 && movable && e.text.len() <= LONGEST_INLINE {
            self.keep(v, e);
            self.pending.push(v.0);
        } else {
            self.settle(v, e);
        }
    }

    /// Whether `op` reads a variable that is stored to once: it never changes after its declaration.
    fn loads_constant(&self, op: &Op) -> bool {
        matches!(op, Op::Load(Place { base: Base::Local(id), path }, None)
            if path.is_empty() && self.stores.get(id.0 as usize) == Some(&1))
    }

    fn keep(&mut self, v: Value, e: Expr) {
        if let Some(slot) = self.exprs.get_mut(v.0 as usize) {
            *slot = Some(e);
        }
    }

    /// Gives `v` a name of its own.
    pub(super) fn settle(&mut self, v: Value, e: Expr) {
        let hint = self.hint(v);
        let name = self.name(&hint);
        let text = self.d.constant(self.m, self.type_of(v), &name, &e.text);
        self.write(&text);
        self.keep(v, Expr::whole(name));
    }

    /// Names the waiting values that `moves` says cannot wait any longer.
    fn settle_where(&mut self, moves: impl Fn(&Self, u32, &Expr) -> bool) {
        let waiting = std::mem::take(&mut self.pending);
        for v in waiting {
            let e = self.exprs.get(v as usize).cloned().flatten();
            match e {
                Some(e) if moves(self, v, &e) => self.settle(Value(v), e),
                _ => self.pending.push(v),
            }
        }
    }

    /// Before something is written to: names waiting values that read it.
    pub(super) fn settle_reads(&mut self, written: &Reads) {
        if !written.is_empty() {
            self.settle_where(|_, _, e| e.reads.meets(written));
        }
    }

    /// Before a statement with blocks: names waiting values that its blocks would disturb, and those that a loop would
    /// compute again and again.
    pub(super) fn settle_before(&mut self, inst: &Inst, range: Range) {
        let written = writes(inst, &self.m.effects);
        let repeats = matches!(inst, Inst::Loop(_));
        self.settle_where(|w, v, e| e.reads.meets(&written) || repeats && range.holds(w.uses.position_of(v)));
    }

    /// Declares the variables that live from statement `at` on. If the statement itself stores all of one, that one
    /// is left to it and given back.
    pub(super) fn declare(&mut self, at: u32, inst: &Inst) -> Option<u32> {
        let mut left = None;
        for local in self.declarations.remove(&at).unwrap_or_default() {
            if matches!(inst, Inst::Do(Effect::Store(place, _, None)) if is_whole(place, local)) {
                left = Some(local);
                continue;
            }
            let Some(ty) = self.body.locals.get(local as usize).map(|l| &l.ty) else {
                continue;
            };
            let text = self
                .d
                .variable(self.m, ty, self.flat_levels(local), self.local_name(local), None);
            self.write(&format!("{text};"));
        }
        left
    }

    /// A place with its indices written.
    pub(super) fn spot(&mut self, place: &Place) -> Spot {
        let mut ty = self.base_type(place.base);
        let mut steps = Vec::with_capacity(place.path.len());
        for (i, step) in place.path.iter().enumerate() {
            // The first index into a buffer, a table or dynamic memory chooses an element, not a component.
            let whole = i == 0 && self.is_run(place.base);
            match step {
                Step::Index(v) => {
                    let s = self.scalar_of(*v);
                    let e = self.take(*v);
                    steps.push(SpotStep::Index(e, s));
                    if !whole && let Some(c) = ty.component(0) {
                        ty = c;
                    }
                }
                Step::Field(i) => {
                    steps.push(SpotStep::Field(*i));
                    if let Some(c) = ty.component(*i) {
                        ty = c;
                    }
                }
            }
        }
        Spot {
            base: place.base,
            steps,
            ty,
        }
    }

    /// Whether a base is a run of elements whose number is not in its type.
    fn is_run(&self, base: Base) -> bool {
        match base {
            Base::Buffer(_) | Base::Constant(_) => true,
            Base::Shared(i) => self.m.kernel.shared.get(i as usize).is_some_and(|s| s.dynamic),
            Base::Local(_) => false,
        }
    }

    /// Type of a base, or of its elements where it is a run of them.
    fn base_type(&self, base: Base) -> Type {
        let k = self.m.kernel;
        match base {
            Base::Buffer(i) => match k.params.get(i as usize).map(|p| &p.kind) {
                Some(crate::ir::ParamKind::Buffer { element, .. }) => element.clone(),
                _ => Type::U32,
            },
            Base::Shared(i) => k.shared.get(i as usize).map_or(Type::U32, |s| s.ty.clone()),
            Base::Local(id) => self
                .body
                .locals
                .get(id.0 as usize)
                .map_or(Type::U32, |l| l.ty.clone()),
            Base::Constant(i) => k
                .constants
                .get(i as usize)
                .map_or(Type::U32, |c| c.element.into()),
        }
    }

    /// `root`, of type `ty` whose outer `flat` array levels are plain, followed by `steps`.
    pub(crate) fn path(&self, root: String, ty: &Type, flat: u32, steps: &[SpotStep]) -> Expr {
        let mut text = root;
        let mut ty = ty.clone();
        for (level, step) in steps.iter().enumerate() {
            let plain = (level as u32) < flat;
            let next = match step {
                SpotStep::Index(e, s) => {
                    text.push_str(&self.d.element(self.m, &ty, e, *s, plain));
                    ty.component(0)
                }
                SpotStep::Field(i) => {
                    text.push_str(&self.d.component(self.m, &ty, plain, *i));
                    ty.component(*i)
                }
            };
            if let Some(next) = next {
                ty = next;
            }
        }
        let indices = steps.iter().filter_map(|s| match s {
            SpotStep::Index(e, _) => Some(e),
            SpotStep::Field(_) => None,
        });
        let mut e = Expr::whole(text);
        for i in indices {
            e.reads.add(&i.reads);
        }
        e
    }

    /// What a variable or part of it is written as.
    pub(super) fn local_place(&self, local: u32, spot: &Spot) -> Expr {
        let ty = self.body.locals.get(local as usize).map_or(&Type::U32, |l| &l.ty);
        self.path(
            self.local_name(local).to_owned(),
            ty,
            self.flat_levels(local),
            &spot.steps,
        )
    }

    /// A name that tells what a value is.
    fn hint(&self, v: Value) -> String {
        let Some(Some(op)) = self.definitions.get(v.0 as usize) else {
            return "t".into();
        };
        if let Some(axis) = self.global_id(op) {
            return format!("id{}", axis.name());
        }
        match op {
            Op::Load(place, _) => self.place_hint(place),
            Op::Builtin(Builtin::ThreadIdx(a)) => format!("t{}", a.name()),
            Op::Len(Base::Buffer(i), _) => {
                let name = self.m.params.get(*i as usize).map_or("", String::as_str);
                format!("{name}_len")
            }
            Op::Cast(_, a) => self.hint(*a),
            Op::Atomic(..) | Op::CompareExchange { .. } => "old".into(),
            Op::Device(op, _) if !op.row().hint.is_empty() => op.row().hint.into(),
            _ if *self.type_of(v) == Type::BOOL => "test".into(),
            _ => "t".into(),
        }
    }

    fn place_hint(&self, place: &Place) -> String {
        let base = match place.base {
            Base::Buffer(i) => self.m.params.get(i as usize),
            Base::Shared(i) => self.m.shared.get(i as usize),
            Base::Constant(i) => self.m.constants.get(i as usize),
            Base::Local(id) => self.locals.get(id.0 as usize),
        };
        let base = base.map_or("t", String::as_str);
        if matches!(place.base, Base::Local(_)) {
            base.to_owned()
        } else {
            format!("{base}_i")
        }
    }

    /// The axis along which `op` computes the lane's index in the grid, if it does that.
    fn global_id(&self, op: &Op) -> Option<Axis> {
        let definition = |v: &Value| self.definitions.get(v.0 as usize).copied().flatten();
        let Op::Binary(BinaryOp::Add, base, thread) = op else {
            return None;
        };
        let (Some(Op::Binary(BinaryOp::Mul, block, size)), Some(Op::Builtin(Builtin::ThreadIdx(axis)))) =
            (definition(base), definition(thread))
        else {
            return None;
        };
        matches!(
            (definition(block), definition(size)),
            (
                Some(Op::Builtin(Builtin::BlockIdx(_))),
                Some(Op::Builtin(Builtin::BlockDim(_)))
            )
        )
        .then_some(*axis)
    }

    /// The expression in the form that its type has.
    pub(crate) fn natural(&self, s: Scalar, e: Expr) -> Expr {
        self.d.natural(self.m, s, e)
    }
}

/// Whether a place is all of local variable `local`.
pub(super) fn is_whole(place: &Place, local: u32) -> bool {
    matches!(place.base, Base::Local(id) if id.0 == local) && place.path.is_empty()
}

/// How many arrays a type nests at its outside.
pub(crate) fn array_levels(ty: &Type) -> u32 {
    match ty {
        Type::Array(element, _) => 1 + array_levels(element),
        _ => 0,
    }
}

/// White space at the start of a line.
pub(crate) fn indent(depth: usize) -> String {
    "    ".repeat(depth)
}

impl Writer<'_> {
    /// The text so far.
    pub(crate) fn text(self) -> String {
        self.out
    }
}
