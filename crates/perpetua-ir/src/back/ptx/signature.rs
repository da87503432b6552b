//! The module around the code: version, target, tables, entry point, parameters, and the limits that they must
//! keep.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use super::Renderer;
use super::emit::{Emitter, Leaf, emit, emit_once};
use super::frame::{Exit, Frame, Span};
use super::report::{PRINT_RING, RECORD, SITE_BASE};
use super::runs::variable_alignment;
use super::stages;
use crate::back::{Capability, RenderError, Sm};
use crate::ir::{DeviceOp, Kernel, ParamKind, Scalar, Type};
use crate::ops::Meeting;
use crate::pass::checks::first_sites;
use crate::plain::plain;
use crate::verify::Facts;

/// Most bytes of statically declared shared memory.
const STATIC_SHARED: u64 = 48 << 10;
/// All shared variables of a kernel that stays.
const SHARED_BLOCK: &str = "shared_block";
/// Most bytes of parameters that every version takes.
const PARAMETERS: u64 = 4352;
/// Most lanes in a group.
const LANES: u64 = 1024;

/// That a kernel keeps the target's limits.
pub(super) fn check_limits(kernel: &Kernel, sm: Sm) -> Result<(), RenderError> {
    let target = format!("PTX {sm}");
    let limit = |what: &str, found: u64, limit: u64| RenderError::Limit {
        kernel: kernel.name.clone(),
        what: what.into(),
        found,
        limit,
        target: target.clone(),
    };
    if sm.number < Sm::OLDEST {
        return Err(limit(
            "the device's compute capability (times ten; the oldest is the limit)",
            sm.number.into(),
            Sm::OLDEST.into(),
        ));
    }
    if sm.named().is_none() {
        return Err(RenderError::Unsupported {
            kernel: kernel.name.clone(),
            line: 0,
            what: "anything: there is no such target".into(),
            target,
        });
    }
    let shared = u64::from(kernel.shared_bytes());
    if shared > STATIC_SHARED {
        return Err(limit(
            "static shared memory in bytes (use dynamic memory for more)",
            shared,
            STATIC_SHARED,
        ));
    }
    let parameters = kernel.params.iter().fold(0u64, |at, p| match &p.kind {
        ParamKind::Buffer { .. } => at.next_multiple_of(8) + 16,
        ParamKind::Value(ty) => at.next_multiple_of(ty.align().into()) + u64::from(ty.size()),
    });
    let maps = kernel.stages.as_ref().map_or(0, |stages| {
        64 + stages::maps(stages).count() as u32 * stages::MAP_BYTES
    });
    let hidden = 24 + u64::from(maps);
    if parameters.next_multiple_of(8) + hidden > PARAMETERS {
        return Err(limit(
            "the parameters' size in bytes",
            parameters,
            PARAMETERS - hidden,
        ));
    }
    if let Some([x, y, z]) = kernel.block_size {
        let lanes = u64::from(x) * u64::from(y) * u64::from(z);
        if lanes > LANES {
            return Err(limit("the number of lanes in a block", lanes, LANES));
        }
    }
    Ok(())
}

/// An identifier as a PTX name: one word is reserved, and underscores alone are not a name.
fn identifier(name: &str) -> String {
    if name == "WARP_SZ" || name.chars().all(|c| c == '_') {
        format!("perpetua_{name}")
    } else {
        name.into()
    }
}

/// Data of a variable: a directive for elements of so many bytes.
fn element_directive(size: u32) -> &'static str {
    match size {
        1 => ".b8",
        2 => ".b16",
        4 => ".b32",
        _ => ".b64",
    }
}

impl<'k> Renderer<'k> {
    pub(super) fn new(kernel: &'k Kernel, facts: &'k Facts, sm: Sm, at_once: bool) -> Renderer<'k> {
        Renderer {
            kernel,
            facts,
            entry: identifier(&kernel.name),
            sm,
            at_once,
            out: Emitter::default(),
            frame: Frame {
                body: &kernel.body,
                values: Vec::new(),
                locals: Vec::new(),
                constructs: Vec::new(),
                exit: Exit::Kernel,
                next: (0, 0),
            },
            leaves: Vec::new(),
            first_sites: first_sites(kernel),
            widened_words: HashMap::new(),
            halves: HashMap::new(),
            sums: HashMap::new(),
            builtins: HashMap::new(),
            parameters: HashMap::new(),
            pointers: HashMap::new(),
            lengths: HashMap::new(),
            symbols: HashMap::new(),
            addresses: Vec::new(),
            in_shared: Vec::new(),
            variables: Vec::new(),
            dead: None,
            caught: None,
            stays: facts.asks(DeviceOp::Nap),
            block_of_faults: None,
            report: None,
            mask: None,
            parts_teams: None,
            turn: None,
            in_flight: Vec::new(),
            meanwhile: Vec::new(),
            rounded_ahead: None,
            uniform: HashSet::new(),
        }
    }

    /// A module's text, and its entry point's name.
    pub(super) fn module(self) -> (String, String) {
        let mut text = String::new();
        self.head(&mut text);
        let entry = self.function(&mut text);
        (text, entry)
    }

    /// Writes the entry point behind a module's text. Gives its name.
    pub(super) fn function(mut self, text: &mut String) -> String {
        let next = self.first_sites.last().copied().unwrap_or_default();
        self.frame = self.frame(&self.kernel.body, &[], Exit::Kernel, next);
        if self.facts.meets(Meeting::Subgroup) {
            self.enter_warp();
        }
        if let Some(stages) = &self.kernel.stages {
            self.begin_stages(stages);
        }
        if !self.at_once && self.facts.faults() {
            self.dead_register();
        }
        if !self.block(&self.kernel.body.block) {
            emit!(self, "ret");
        }
        let hot = self.out.begin_cold();
        self.common_report();
        self.out.end_cold(hot);
        // Writing to a string does not fail.
        let _ = write!(
            text,
            ".visible .entry {}(\n{}\n)\n",
            self.entry,
            self.parameter_list()
        );
        let _ = match self.kernel.block_size {
            Some([x, y, z]) if self.stays => {
                // Left alone the assembler spills to fit more blocks, which kernels that stay are few of.
                let groups = (stages::REGISTERS / 128 / (x * y * z).max(1)).max(1);
                writeln!(text, ".reqntid {x}, {y}, {z}\n.minnctapersm {groups}")
            }
            Some([x, y, z]) if let Some(stages) = &self.kernel.stages => {
                let clusters = if stages.pairs {
                    ".explicitcluster\n.reqnctapercluster 2, 1, 1\n"
                } else {
                    ""
                };
                // Without a number the assembler would not let lanes ask for registers.
                let groups = stages::blocks_at_once(stages);
                writeln!(text, ".reqntid {x}, {y}, {z}\n{clusters}.minnctapersm {groups}")
            }
            Some([x, y, z]) => writeln!(text, ".reqntid {x}, {y}, {z}"),
            None => writeln!(text, ".maxntid {LANES}"),
        };
        text.push_str("{\n");
        self.shared_variables(text);
        for variable in &self.variables {
            let _ = writeln!(text, "\t{variable};");
        }
        text.push_str(&self.out.finish());
        text.push_str("}\n");
        self.entry
    }

    fn shared_variables(&self, text: &mut String) {
        let all = (0u32..).zip(&self.kernel.shared).filter(|(_, var)| !var.dynamic);
        let mut end = 0;
        for (i, var) in all {
            let (name, size) = (self.shared_name(i), var.ty.size().max(1));
            let _ = if self.stays {
                let at = self.shared_offset(i);
                end = at + size;
                writeln!(text, "\t// {SHARED_BLOCK}+{at}: {name}[{size}]")
            } else {
                let align = variable_alignment(&var.ty);
                writeln!(text, "\t.shared .align {align} .b8 {name}[{size}];")
            };
        }
        if end > 0 {
            let _ = writeln!(text, "\t.shared .align 16 .b8 {SHARED_BLOCK}[{end}];");
        }
    }

    /// The address of all shared variables together. Where each is named by itself, the assembler makes its address up from the
    /// block's place in the cluster before every access, which a kernel that stays waits for each time.
    pub(super) fn shared_block(&mut self) -> Leaf {
        self.symbol(SHARED_BLOCK, true)
    }

    /// Where a shared variable begins in the block of all.
    pub(super) fn shared_offset(&self, i: u32) -> u32 {
        let before = self.kernel.shared.iter().take(i as usize).filter(|v| !v.dynamic);
        let end = before.fold(0u32, |at, var| {
            at.next_multiple_of(variable_alignment(&var.ty)) + var.ty.size().max(1)
        });
        let own = self.kernel.shared.get(i as usize);
        end.next_multiple_of(own.map_or(1, |var| variable_alignment(&var.ty)))
    }

    fn head(&self, text: &mut String) {
        // `check_limits` has refused what has no name.
        let (target, version) = self.sm.named().unwrap_or((self.sm, ""));
        let resident = self.facts.needs(Capability::Residency);
        // The older targets' versions have no accesses of 16 bytes.
        let matrices = self.facts.needs(Capability::Matrices);
        let version = match target.number {
            ..100 if resident => "8.4",
            // Nor can they transpose matrices.
            ..89 if matrices => "7.8",
            _ => version,
        };
        if !self.kernel.source.is_empty() {
            let _ = writeln!(text, "// lines are of {}", plain(&self.kernel.source));
        }
        let _ = write!(text, ".version {version}\n.target {target}\n.address_size 64\n\n");
        for (i, table) in self.kernel.constants.iter().enumerate() {
            let size = table.element.size();
            let data: Vec<String> = table.data.iter().map(u64::to_string).collect();
            let _ = writeln!(
                text,
                ".global .align {size} {} {}[{}] = {{{}}};",
                element_directive(size),
                self.table_name(i as u32),
                data.len().max(1),
                data.join(", ")
            );
        }
        if self.kernel.stages.is_some() {
            let _ = writeln!(text, ".extern .shared .align 1024 .b8 {}[];", stages::MEMORY);
        }
        if let Some(i) = self.kernel.shared.iter().position(|v| v.dynamic) {
            let _ = writeln!(
                text,
                ".extern .shared .align 16 .b8 {}[];",
                self.shared_name(i as u32)
            );
        }
    }

    fn parameter_list(&self) -> String {
        let mut list = Vec::new();
        for (i, param) in self.kernel.params.iter().enumerate() {
            let name = self.parameter_name(i as u32);
            match &param.kind {
                ParamKind::Buffer { .. } => {
                    list.push(format!("\t.param .u64 {name}"));
                    list.push(format!("\t.param .u64 {name}_len"));
                }
                ParamKind::Value(Type::Scalar(s)) => {
                    list.push(format!("\t.param {} {name}", element_directive(s.size())));
                }
                ParamKind::Value(ty) => list.push(format!(
                    "\t.param .align {} .b8 {name}[{}]",
                    ty.align(),
                    ty.size().max(1)
                )),
            }
        }
        list.push(format!("\t.param .u64 {RECORD}"));
        list.push(format!("\t.param .u32 {SITE_BASE}"));
        if self.facts.prints() {
            list.push(format!("\t.param .u64 {PRINT_RING}"));
        }
        let maps = self.kernel.stages.iter().flat_map(stages::maps);
        list.extend(maps.map(|map| format!("\t.param .align 64 .b8 {map}[{}]", stages::MAP_BYTES)));
        list.join(",\n")
    }

    /// Name of a parameter: the source's, and its index to make it unique.
    pub(super) fn parameter_name(&self, i: u32) -> String {
        let name = self.kernel.params.get(i as usize).map_or("", |p| p.name.as_str());
        format!("{}_{i}", identifier(name))
    }

    pub(super) fn shared_name(&self, i: u32) -> String {
        let name = self.kernel.shared.get(i as usize).map_or("", |v| v.name.as_str());
        format!("{}_shared_{i}", identifier(name))
    }

    pub(super) fn table_name(&self, i: u32) -> String {
        let name = self
            .kernel
            .constants
            .get(i as usize)
            .map_or("", |c| c.name.as_str());
        format!("{}_table_{i}", identifier(name))
    }

    /// The leaves of a value parameter, loaded at the start.
    pub(super) fn parameter(&mut self, i: u32) -> Span {
        if let Some(span) = self.parameters.get(&i) {
            return *span;
        }
        let Some(ParamKind::Value(ty)) = self.kernel.params.get(i as usize).map(|p| &p.kind) else {
            return Span::default();
        };
        let name = self.parameter_name(i);
        let leaves: Vec<Leaf> = ty
            .leaves()
            .into_iter()
            .map(|(s, offset)| {
                let in_memory = if s == Scalar::Bool { Scalar::U8 } else { s };
                let d = self.out.register(in_memory);
                let load = super::runs::memory_type(s);
                emit_once!(self, "ld.param.{load} {d}, [{name}+{offset}]");
                if s == Scalar::Bool {
                    let p = self.out.pred();
                    emit_once!(self, "setp.ne.u32 {p}, {d}, 0");
                    p
                } else {
                    d
                }
            })
            .collect();
        let span = self.span(leaves);
        self.parameters.insert(i, span);
        span
    }
}
