//! Small kernels of one structure that do not need each other are one launch: the steps of an optimiser over many weights, say. Must not know devices.
//!
//! What may be launched with others waits until somebody needs its result. Kernels that wait for none have the level 0, others the one above that of what they wait for; those of one structure and level
//! are a group, so groups never wait for each other in a circle.

use std::collections::HashMap;

use crate::emit::Recipe;
use crate::error::Result;
use crate::fuse::Plan;
use crate::graph::Graph;
use crate::step::Step;

/// Results by their numbers, and how they come to be, by one launch.
pub(crate) type Turn = Vec<(usize, Step)>;

/// So many results has a launch: few numbers, since each is a kernel.
const SIZES: [usize; 8] = [16, 12, 8, 6, 4, 3, 2, 1];
/// So many steps has its kernel at most, for all together.
const LONG: usize = 1024;

/// What computes a graph, launch by launch, in the order in which that runs.
pub(crate) fn turns(graph: &Graph, plan: &Plan) -> Result<Vec<Turn>> {
    let steps = Step::all(graph, plan)?;
    let room = |(output, step): &(usize, Step)| match step {
        Step::Launch(built) if built.recipe.is_of_elements() => {
            let all = built.given.inputs.iter().chain([output]);
            // What is read waits, too, and keeps its memory.
            let is_small = all
                .clone()
                .all(|number| graph.0[*number].tensor.len() <= plan.together);
            let by_length = LONG / built.recipe.steps.len().max(1);
            let room = by_length.min(plan.most_buffers / all.count());
            if is_small { size(room) } else { 1 }
        }
        _ => 1,
    };
    let rooms: Vec<usize> = steps.iter().map(room).collect();
    if rooms.iter().filter(|room| **room > 1).count() < 2 {
        return Ok(steps.into_iter().map(|step| vec![step]).collect());
    }
    let mut waiting = Waiting {
        steps: &steps,
        groups: Vec::new(),
        homes: HashMap::new(),
        open: HashMap::new(),
        order: Vec::new(),
    };
    for (at, room) in rooms.into_iter().enumerate() {
        waiting.add(at, room);
    }
    waiting.launch((0..waiting.groups.len()).collect());
    let order = waiting.order;
    let mut steps: Vec<Option<(usize, Step)>> = steps.into_iter().map(Some).collect();
    let turn = |turn: Vec<usize>| turn.into_iter().filter_map(|at| steps[at].take()).collect();
    Ok(order.into_iter().map(turn).collect())
}

/// How many of so many are one launch.
fn size(most: usize) -> usize {
    let fits = SIZES.into_iter().find(|size| *size <= most);
    fits.unwrap_or(1)
}

/// Steps that are launched together.
struct Group {
    level: usize,
    members: Vec<usize>,
    is_launched: bool,
}

struct Waiting<'a> {
    steps: &'a [(usize, Step)],
    groups: Vec<Group>,
    /// By operation: the group that computes it.
    homes: HashMap<usize, usize>,
    /// Groups that have room, by their structure and level.
    open: HashMap<(&'a Recipe, usize), usize>,
    order: Vec<Vec<usize>>,
}

impl<'a> Waiting<'a> {
    fn add(&mut self, at: usize, room: usize) {
        let steps = self.steps;
        let (output, step) = &steps[at];
        let needs = self.needs(at);
        let levels = needs.iter().map(|group| self.groups[*group].level + 1);
        let level = levels.max().unwrap_or(0);
        let group = match step {
            Step::Launch(built) if room > 1 => {
                let next = self.groups.len();
                *self.open.entry((&built.recipe, level)).or_insert(next)
            }
            // The same memory: it can wait with what it is.
            Step::Same(_) if !needs.is_empty() => self.groups.len(),
            _ => {
                self.launch(needs);
                self.order.push(vec![at]);
                return;
            }
        };
        if group == self.groups.len() {
            self.groups.push(Group {
                level,
                members: Vec::new(),
                is_launched: false,
            });
        }
        self.homes.insert(*output, group);
        self.groups[group].members.push(at);
        if room > 1 && self.groups[group].members.len() == room {
            self.launch(vec![group]);
        }
    }

    // The groups that wait and compute what a step reads.
    fn needs(&self, at: usize) -> Vec<usize> {
        let reads = self.steps[at].1.reads();
        let homes = reads.iter().filter_map(|number| self.homes.get(number).copied());
        homes.filter(|group| !self.groups[*group].is_launched).collect()
    }

    // Groups, and before them what they need.
    fn launch(&mut self, mut wanted: Vec<usize>) {
        let mut found = Vec::new();
        while let Some(group) = wanted.pop() {
            if std::mem::replace(&mut self.groups[group].is_launched, true) {
                continue;
            }
            found.push(group);
            for member in &self.groups[group].members {
                wanted.extend(self.needs(*member));
            }
        }
        found.sort_unstable_by_key(|group| (self.groups[*group].level, *group));
        for group in found {
            let mut members = std::mem::take(&mut self.groups[group].members);
            while !members.is_empty() {
                let others = members.split_off(size(members.len()));
                self.order.push(std::mem::replace(&mut members, others));
            }
        }
        // What is launched takes no more.
        let groups = &self.groups;
        self.open.retain(|_, group| !groups[*group].is_launched);
    }
}
