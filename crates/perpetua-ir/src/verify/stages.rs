//! Staged products: that what a kernel declares of them fits together, and that each of their operations stands where one team comes to it as
//! a whole. Relies on right types.

use super::error::{Cause, Site, VerifyErrors};
use crate::ir::*;
use crate::ops::{Meeting, StageOp};

/// Bytes of shared memory that stages may take: what a block of sm_90 has.
const BYTES: u32 = 227 << 10;

/// What is wrong with what a kernel declares, if anything is.
pub(super) fn check_declaration(kernel: &Kernel, errors: &mut VerifyErrors) {
    if let Some(problem) = kernel.stages.as_ref().and_then(|stages| problem(kernel, stages)) {
        errors.declaration(None, Cause::Declaration(problem));
    }
}

fn problem(kernel: &Kernel, stages: &Stages) -> Option<String> {
    if !(1..=Stages::MOST).contains(&stages.count) {
        let (count, most) = (stages.count, Stages::MOST);
        return Some(format!("the number of stages is {count}, it is 1 to {most}"));
    }
    let (element, depth, unit) = (stages.element, stages.depth, stages.element.depth());
    let keeps = stages.keeps(0);
    let most = if keeps { 4 * unit } else { unit };
    if depth == 0 || depth > most || !depth.is_multiple_of(unit) {
        return Some(format!(
            "stages are {depth} deep, of {element} {unit} are possible, and in a chain of three factors, or of twins, {}",
            4 * unit
        ));
    }
    if !element.transposes() && (keeps || stages.factors().any(|factor| factor.across)) {
        return Some(format!(
            "factors of {element} are two, whose depth goes along rows: transpose them before"
        ));
    }
    let sides = match stages.twins {
        None => ["left", "right", "third", ""],
        Some(_) => ["left", "right", "second left", "second right"],
    };
    for (number, (side, factor)) in sides.into_iter().zip(stages.factors()).enumerate() {
        let most = Stages::EXTENTS[match stages.twins {
            None => number,
            Some(_) => number % 2,
        }];
        let (extent, unit) = (factor.extent, stages.extent_unit(number));
        if extent == 0 || extent > most || !extent.is_multiple_of(unit) {
            return Some(format!(
                "the extent of the {side} factor is {extent}, it is a multiple of {unit} up to {most}"
            ));
        }
        let fits = matches!(
            kernel.params.get(factor.buffer as usize).map(|p| &p.kind),
            Some(ParamKind::Buffer { element: held, access: Access::Read }) if element.is_held_by(held)
        );
        if !fits {
            let memory = element.memory();
            return Some(format!("the {side} factor is no parameter of type &[{memory}]"));
        }
        let is_length = |i: &u32| {
            let kind = kernel.params.get(*i as usize).map(|p| &p.kind);
            matches!(
                kind,
                Some(ParamKind::Value(Type::Scalar(Scalar::U32 | Scalar::U64)))
            )
        };
        if !factor.described().all(|i| is_length(&i)) {
            return Some(format!(
                "rows, columns, pitch and layers of the {side} factor are not all parameters of type usize or u32"
            ));
        }
    }
    let most = 2 * Stages::ROWS;
    if keeps && (stages.pairs || stages.right.extent > most) {
        return Some(format!(
            "a chain of three factors, or twins, have no pairs of blocks, and a right factor of an extent of up to {most}"
        ));
    }
    if let Some([left, right]) = &stages.twins {
        let alike = [left.extent, right.extent] == [stages.left.extent, stages.right.extent];
        if stages.third.is_some() || !alike || stages.factors().any(|factor| factor.across) {
            return Some(
                "twins are two products of the same extents, without a third factor, whose depth goes along rows".into(),
            );
        }
    }
    // Half of the columns are whole panels where depth goes from row to row; else any number of rows will do.
    if stages.pairs && stages.right.across && !stages.right.extent.is_multiple_of(most) {
        let extent = stages.right.extent;
        return Some(format!(
            "pairs of blocks cannot divide an extent of {extent}: make it a multiple of {most}"
        ));
    }
    let bytes = stages.bytes();
    if bytes > BYTES {
        return Some(format!(
            "the stages have {bytes} bytes, {BYTES} are possible: use fewer"
        ));
    }
    if kernel.shared.iter().any(|var| var.dynamic) {
        return Some("a kernel with stages has no dynamic shared memory: give the array a fixed size".into());
    }
    let lanes = stages.lanes();
    (kernel.block_size != Some([lanes, 1, 1])).then(|| {
        let consumers = stages.consumers();
        format!(
            "one team of {} lanes fills stages and {consumers} multiply: fix the block size at {lanes} (it is {:?})",
            Stages::TEAM,
            kernel.block_size
        )
    })
}

/// Whether all lanes of a block come to an operation together.
fn meets(op: DeviceOp) -> bool {
    matches!(op.row().meeting, Meeting::Block | Meeting::Unproven)
}

/// The operation at which all lanes of a block meet in a function or in what it calls, and which function that is.
fn meeting(kernel: &Kernel, f: u32) -> Option<(&str, &'static str)> {
    let mut seen = vec![false; kernel.functions.len()];
    let mut open = vec![f];
    while let Some(f) = open.pop() {
        let (Some(function), Some(seen)) = (kernel.functions.get(f as usize), seen.get_mut(f as usize))
        else {
            continue;
        };
        if std::mem::replace(seen, true) {
            continue;
        }
        let mut met = None;
        function
            .body
            .block
            .walk(&mut |stmt| match (&stmt.inst, stmt.inst.device()) {
                (_, Some(op)) if meets(op) => met = met.or(Some(op)),
                (Inst::Let(_, Op::Call(callee, _)), _) => open.push(*callee),
                _ => {}
            });
        if let Some(op) = met {
            return Some((&function.name, op.row().word()));
        }
    }
    None
}

/// Where a statement stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Before the teams part.
    All,
    /// In the code of those that fill, or that multiply.
    Of(StageOp),
    /// Behind it.
    Gone,
}

struct Check<'a, 'e> {
    site: Site<'a>,
    errors: &'e mut VerifyErrors,
    /// The value that says which team fills.
    produces: Option<Value>,
    number: u32,
}

/// Checks a body.
pub(super) fn check(site: Site<'_>, errors: &mut VerifyErrors) {
    let mut check = Check {
        site,
        errors,
        produces: None,
        number: 0,
    };
    check.block(&site.body.block, Role::All, true);
}

impl Check<'_, '_> {
    fn block(&mut self, block: &Block, role: Role, outermost: bool) {
        let mut role = role;
        for stmt in &block.0 {
            let number = self.number;
            self.number += 1;
            if let Some(problem) = self.problem(stmt, role, outermost) {
                let cause = TypeError::Invalid(problem).into();
                self.errors.statement(self.site, number, stmt, cause);
            }
            match &stmt.inst {
                Inst::If(v, fill, multiply) if Some(*v) == self.produces => {
                    self.block(fill, Role::Of(StageOp::Fill), false);
                    self.block(multiply, Role::Of(StageOp::Multiply), false);
                    role = Role::Gone;
                }
                Inst::Let(v, Op::Device(DeviceOp::Stage(StageOp::Produces), _)) => self.produces = Some(*v),
                inst => inst.blocks().into_iter().for_each(|b| self.block(b, role, false)),
            }
        }
    }

    fn problem(&self, stmt: &Stmt, role: Role, outermost: bool) -> Option<String> {
        let says = |text: &str| Some(text.to_owned());
        let mut used = false;
        stmt.inst.operands(&mut |v| used |= Some(v) == self.produces);
        if used {
            let is_condition = matches!(stmt.inst, Inst::If(..)) && outermost && role == Role::All;
            return match is_condition {
                true => None,
                false => says(
                    "`is_producer` is the condition of one `if` that stands in nothing else, and of nothing more",
                ),
            };
        }
        let kernel = self.site.kernel;
        let pairs = kernel.stages.as_ref().is_some_and(|stages| stages.pairs);
        if self.site.function.is_none() && matches!(stmt.inst, Inst::Return(_)) {
            if role == Role::Of(StageOp::Fill) {
                return says(
                    "a lane that fills stages must not return while they are on their way: leave the loops instead",
                );
            }
            if pairs && role != Role::Gone {
                return says(
                    "a lane whose block is one of a pair must not return where the other one may still need it: leave the loops instead",
                );
            }
        }
        if let (Inst::Let(_, Op::Call(f, _)), true) = (&stmt.inst, role != Role::All)
            && let Some((function, barrier)) = meeting(kernel, *f)
        {
            return Some(format!(
                "`{function}` brings lanes together whose teams have parted, by its `{barrier}`: call it before `if is_producer()`"
            ));
        }
        let op = stmt.inst.device()?;
        let name = op.row().word();
        let DeviceOp::Stage(op) = op else {
            return (meets(op) && role != Role::All)
                .then(|| format!("`{name}` brings lanes together whose teams have parted: move it before `if is_producer()`"));
        };
        let Some(stages) = self
            .site
            .kernel
            .stages
            .as_ref()
            .filter(|_| self.site.function.is_none())
        else {
            return Some(format!(
                "`{name}` needs a kernel that declares its stages: call `stage_factors`"
            ));
        };
        let misplaced = Some(format!(
            "`{name}` stands in the code of a team: the first block of `if is_producer() {{ … }} else {{ … }}` fills, the second one multiplies"
        ));
        match op {
            StageOp::Produces if !outermost || self.produces.is_some() => {
                says("`is_producer` is asked once, in no other statement")
            }
            StageOp::Fill | StageOp::FillOf if role != Role::Of(StageOp::Fill) => misplaced,
            StageOp::Multiply | StageOp::MultiplyTwin | StageOp::Weigh | StageOp::WeighTwin
                if role != Role::Of(StageOp::Multiply) =>
            {
                misplaced
            }
            StageOp::Multiply | StageOp::MultiplyTwin | StageOp::Weigh | StageOp::WeighTwin => {
                let Some(reading) = stages.read_by(op) else {
                    return Some(match op {
                        StageOp::Weigh => format!(
                            "`{name}` needs a third factor or twins: call `stage_third` or `stage_twins`"
                        ),
                        _ => format!("`{name}` needs twins: call `stage_twins`"),
                    });
                };
                let mut wanted = vec![stages.sums(reading.columns)];
                if reading.left.is_none() {
                    wanted.push(stages.sums(reading.depth));
                }
                let mut types = Vec::new();
                stmt.inst
                    .operands(&mut |v| types.extend(self.site.body.values.get(v.0 as usize)));
                let fits = types.iter().copied().eq(&wanted);
                let wanted: Vec<String> = wanted.iter().map(Type::to_string).collect();
                (!fits).then(|| {
                    let wanted = wanted.join(", and weights, which are ");
                    format!("`{name}` adds to the sums of a lane, which are {wanted} here")
                })
            }
            _ => None,
        }
    }
}
