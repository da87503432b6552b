//! What machine code makes of each source line, for people: how lanes reach memory, where they part, what the host evaluates for them.
//! Tells what `spread` and `lower` have found and finds out nothing itself.

use std::collections::HashSet;

use super::layout::{Site, What};
use super::lir::{I, Shape};
use super::spread::{Kind, Spreads};
use super::tree::{self, AccessKind, Act, Leaving, Node, Tree};
use super::{Refusal, Target, Width, by_lane, lower, spread};
use crate::interp::program::{Program, SharedPlace};

/// Something about a source line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The line, 0 when unknown.
    pub line: u32,
    /// What there is to say.
    pub what: Noted,
}

/// What there is to say about a line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Noted {
    /// An access to memory that lanes share.
    Access {
        /// Name of the buffer, shared variable or table.
        subject: String,
        /// Whether it writes.
        stores: bool,
        /// Where the places of neighbouring lanes lie.
        apart: Apart,
        /// How the lanes of a gang get there.
        done: Done,
    },
    /// The host evaluates this operation lane by lane, as the interpreter does.
    Host(String),
    /// Lanes take different ways; where `leaves` is true, they leave a loop in different turns.
    Part {
        /// Whether that ends a loop.
        leaves: bool,
    },
    /// Lanes wait for each other: at a barrier, or to exchange values.
    Meet {
        /// Whether values are exchanged.
        exchanges: bool,
    },
}

/// Where the places of neighbouring lanes lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Apart {
    /// One place for all lanes.
    Same,
    /// Side by side.
    Next,
    /// So many bytes apart, always.
    Bytes(i64),
    /// Each lane's is its own.
    Own,
}

/// How the lanes of a gang get to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Done {
    /// Once for all.
    Once,
    /// As vectors of consecutive elements.
    Vector,
    /// By gathers or scatters.
    Gather,
    /// Lane by lane.
    Lanes,
    /// By a call of the host.
    Host,
}

/// What code of this width makes of a program.
pub(crate) fn notes(program: &Program, width: Width) -> Result<Vec<Note>, Refusal> {
    let target = Target::of(width);
    let tree = tree::read(program)?;
    let spreads = spread::analyse(&tree, program);
    let lowered = lower::lower(program, &tree, &spreads, target)?;
    let line = |pc: u32| program.lines.get(pc as usize).copied().unwrap_or(0);
    let shape = |site: usize| {
        lowered.code.iter().find_map(|i| match i {
            I::Access { site: of, shape, .. } if *of as usize == site => Some(*shape),
            _ => None,
        })
    };
    let mut notes = Vec::new();
    for (number, site) in lowered.sites.iter().enumerate() {
        let what = match site.what {
            What::Access(access, kind) => {
                let Some(place) = program.accesses.get(access as usize) else {
                    continue;
                };
                Noted::Access {
                    subject: region(program, place),
                    stores: !matches!(kind, AccessKind::Load | AccessKind::Words { stores: false }),
                    apart: apart(&tree, &spreads, place, site.pc),
                    done: done(place, kind, shape(number), target),
                }
            }
            // An end, not a way to compute.
            What::Fault(_) | What::Print(_) => continue,
            _ if site.always => Noted::Host(name(program, site)),
            _ => continue,
        };
        notes.push(Note {
            line: line(site.pc),
            what,
        });
    }
    partings(&tree, &spreads, &mut |pc, leaves| {
        notes.push(Note {
            line: line(pc),
            what: Noted::Part { leaves },
        });
    });
    notes.extend(lowered.meetings.iter().flatten().map(|meeting| Note {
        line: line(meeting.pc),
        what: Noted::Meet {
            exchanges: meeting.exchange.is_some(),
        },
    }));
    Ok(notes)
}

fn region(program: &Program, place: &SharedPlace) -> String {
    let region = program.regions.get(place.region as usize);
    region.map_or_else(String::new, |region| region.name.clone())
}

/// A name for what a site asks of the host.
pub(crate) fn name(program: &Program, site: &Site) -> String {
    match &site.what {
        What::Unary(op, s) => format!("{} of {s}", op.name()),
        What::Binary(op, s) | What::Divide(op, s, _) => format!("{} of {s}", op.name()),
        What::Ternary(op, s) => format!("{} of {s}", op.name()),
        What::Cast(from, to) => format!("{from} as {to}"),
        What::Access(access, _) => {
            let place = program.accesses.get(*access as usize);
            format!(
                "access to `{}`",
                place.map_or_else(String::new, |place| region(program, place))
            )
        }
        What::PrivateLoad(..) | What::PrivateStore(..) => "a lane's array".to_owned(),
        What::Clock => "the clock".to_owned(),
        What::Print(_) => "printing".to_owned(),
        What::Fault(_) => "a fault".to_owned(),
    }
}

fn done(place: &SharedPlace, kind: AccessKind, shape: Option<Shape>, target: Target) -> Done {
    let loads = kind == AccessKind::Load;
    let each = place
        .leaves
        .iter()
        .all(|(s, ..)| !by_lane(*s, loads, target.scatters()));
    match shape {
        None => Done::Host,
        Some(_) if !matches!(kind, AccessKind::Load | AccessKind::Store) => Done::Lanes,
        Some(Shape::One) => Done::Once,
        Some(Shape::Run(_)) => Done::Vector,
        Some(Shape::Each | Shape::Own { .. }) if each => Done::Gather,
        Some(Shape::Each | Shape::Own { .. }) => Done::Lanes,
    }
}

/// How far the places of neighbouring lanes lie apart: what their indices' steps add up to.
fn apart(tree: &Tree, spreads: &Spreads, place: &SharedPlace, pc: u32) -> Apart {
    let mut found = Apart::Own;
    tree::walk(&tree.nodes, &mut |node| {
        let Node::Op {
            pc: of,
            act: Act::Access { index, .. },
            ..
        } = node
        else {
            return;
        };
        if *of != pc {
            return;
        }
        let bytes = index
            .iter()
            .zip(&place.steps)
            .map(|(v, step)| match spreads.kind(*v) {
                Kind::Uniform => Some(0),
                Kind::Affine(by) => Some(i64::from(by) * i64::from(step.stride)),
                Kind::Lanes | Kind::Unset => None,
            });
        let size: u32 = place.leaves.iter().map(|(s, ..)| s.size()).sum();
        found = match bytes.sum::<Option<i64>>() {
            Some(0) => Apart::Same,
            Some(bytes) if bytes == i64::from(size) => Apart::Next,
            Some(bytes) => Apart::Bytes(bytes),
            None => Apart::Own,
        };
    });
    found
}

/// Calls `visit` for each choice that lanes make differently, with whether some leave a loop by it.
fn partings(tree: &Tree, spreads: &Spreads, visit: &mut dyn FnMut(u32, bool)) {
    let mut loops = HashSet::new();
    tree::walk(&tree.nodes, &mut |node| {
        if let Node::Loop { frame, .. } = node {
            loops.insert(*frame);
        }
    });
    let breaks = |nodes: &[Node]| {
        nodes.iter().any(|node| {
            matches!(node, Node::Leave { frame: Some(frame), how: Leaving::Break } if loops.contains(frame))
        })
    };
    tree::walk(&tree.nodes, &mut |node| {
        let (at, decides, leaves) = match node {
            Node::If {
                at,
                condition,
                then,
                otherwise,
                ..
            } => (at, condition, breaks(then) || breaks(otherwise)),
            Node::Switch { at, selector, .. } => (at, selector, false),
            _ => return,
        };
        if spreads.kind(*decides) != Kind::Uniform
            && let Some(pc) = tree.choices.get(at)
        {
            visit(*pc, leaves);
        }
    });
}
