//! How long values live while a graph is computed, and what memory that takes. Must not know devices.
//!
//! A value ends with the last kernel that reads it, if nobody but the graph holds its tensor: its memory is then free for the next one. What is tracked and whose
//! gradient is computed in the same graph ends so, too, and is computed again should another gradient need it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::error::Result;
use crate::explain::escaped;
use crate::fuse::{Plan, Ways};
use crate::graph::Graph;
use crate::node::Tensor;
use crate::step::Step;
use crate::table::name_of;
use crate::together::{Turn, turns};

/// When values end, by the launches that compute a graph.
pub(crate) struct Lives {
    /// By launch: the values that nothing needs behind it.
    pub(crate) ends: Vec<Vec<usize>>,
    /// By operation: whether its value stays when all is computed.
    pub(crate) stays: Vec<bool>,
    /// By launch: the bytes that it takes, and those that live while it runs.
    bytes: Vec<[u64; 2]>,
    /// By operation: the one whose memory it shares.
    owners: HashMap<usize, usize>,
}

impl Lives {
    pub(crate) fn of<'a>(graph: &Graph, turns: impl Iterator<Item = &'a Turn> + Clone) -> Lives {
        let entries = &graph.0;
        // Who holds a tensor, but for this graph.
        let mut held: HashMap<*const crate::node::Node, usize> = HashMap::new();
        for entry in entries.iter().filter(|entry| !entry.is_known) {
            for source in entry.tensor.0.kept() {
                *held.entry(Arc::as_ptr(&source.0)).or_default() += 1;
            }
        }
        let stays: Vec<bool> = entries
            .iter()
            .map(|entry| {
                let within = held.get(&Arc::as_ptr(&entry.tensor.0)).copied().unwrap_or(0);
                let is_held = Arc::strong_count(&entry.tensor.0) > within + 1;
                let is_done = |user: &usize| !entries[*user].tensor.0.tracked;
                let is_needed = entry.tensor.0.tracked && !entry.users.iter().any(is_done);
                entry.is_root || entry.is_known || is_held || is_needed
            })
            .collect();
        let mut owners: HashMap<usize, usize> = HashMap::new();
        let mut last: HashMap<usize, usize> = HashMap::new();
        let owner =
            |owners: &HashMap<usize, usize>, number: usize| owners.get(&number).copied().unwrap_or(number);
        for (at, turn) in turns.clone().enumerate() {
            for (output, step) in turn {
                if let Step::Same(source) = step {
                    owners.insert(*output, owner(&owners, *source));
                }
                for number in step.reads().into_iter().chain([*output]) {
                    last.insert(number, at);
                }
            }
        }
        let mut ends = vec![Vec::new(); turns.clone().count()];
        let mut ended: Vec<usize> = last.keys().copied().filter(|number| !stays[*number]).collect();
        ended.sort_unstable();
        for number in ended {
            ends[last[&number]].push(number);
        }
        // Memory is free when all that share it have ended.
        let mut sharing: HashMap<usize, usize> = HashMap::new();
        for number in last.keys() {
            *sharing.entry(owner(&owners, *number)).or_default() += 1;
        }
        let size = |number: usize| {
            let tensor = &entries[number].tensor;
            match entries[number].is_known {
                true => 0,
                false => tensor.len() as u64 * u64::from(tensor.dtype().size()),
            }
        };
        let mut live = 0;
        let mut bytes = Vec::new();
        for (turn, ends) in turns.zip(&ends) {
            let taken = turn.iter().map(|(output, step)| match step {
                Step::Same(_) => 0,
                _ => size(*output),
            });
            let taken = taken.sum();
            live += taken;
            bytes.push([taken, live]);
            for number in ends {
                let owner = owner(&owners, *number);
                let left = sharing.entry(owner).or_default();
                *left = left.saturating_sub(1);
                if *left == 0 {
                    live -= size(owner);
                }
            }
        }
        Lives {
            ends,
            stays,
            bytes,
            owners,
        }
    }

    /// The most bytes that live at a time.
    pub(crate) fn peak(&self) -> u64 {
        self.bytes.iter().map(|[_, live]| *live).max().unwrap_or(0)
    }

    /// Whether a value's memory is its own.
    pub(crate) fn owns(&self, number: usize) -> bool {
        let shares = |(other, owner): (&usize, &usize)| *other == number || *owner == number;
        !self.owners.iter().any(shares)
    }
}

/// What memory the computation of tensors takes, step by step: [`Tensor::memory_plan`] makes it, its text is a drawing, and [`MemoryPlan::svg`] another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryPlan {
    /// The kernels, in the order in which they run.
    pub steps: Vec<MemoryStep>,
    /// Bytes that are there before, of values that are known.
    pub given: u64,
}

/// A kernel of a [`MemoryPlan`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryStep {
    /// The operations whose results it stores, and the lines that recorded them.
    pub operation: String,
    /// Bytes that its results take.
    pub takes: u64,
    /// Bytes of results that live while it runs.
    pub live: u64,
}

impl MemoryPlan {
    /// The most bytes of results that live at a time.
    pub fn peak(&self) -> u64 {
        self.steps.iter().map(|step| step.live).max().unwrap_or(0)
    }

    /// The bytes of all results together: the peak if none gave its memory to another.
    pub fn total(&self) -> u64 {
        self.steps.iter().map(|step| step.takes).sum()
    }

    /// The bytes that live over time, as a drawing.
    pub fn svg(&self) -> String {
        use std::fmt::Write as _;
        const HEIGHT: f64 = 240.0;
        let (peak, width) = (self.peak().max(1) as f64, 640.0 / self.steps.len().max(1) as f64);
        let mut bars = String::new();
        for (at, step) in self.steps.iter().enumerate() {
            let height = |bytes: u64| bytes as f64 / peak * HEIGHT;
            let bar = |bytes: u64, above: u64, color: &str| {
                format!(
                    "<rect x=\"{:.2}\" y=\"{:.2}\" width=\"{:.2}\" height=\"{:.2}\" fill=\"{color}\"/>",
                    60.0 + at as f64 * width,
                    20.0 + HEIGHT - height(bytes) - height(above),
                    width * 0.9,
                    height(bytes)
                )
            };
            let before = step.live - step.takes;
            let operation = escaped(&step.operation);
            // Writing to a `String` succeeds.
            let _ = writeln!(
                bars,
                "<g><title>{}: {operation}, {} B</title>{}{}</g>",
                at + 1,
                step.live,
                bar(before, 0, "#6b8fb5"),
                bar(step.takes, before, "#d9864a")
            );
        }
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"300\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"720\" height=\"300\" fill=\"white\"/>\n{bars}\
             <line x1=\"60\" y1=\"260\" x2=\"700\" y2=\"260\" stroke=\"black\"/><line x1=\"60\" y1=\"20\" x2=\"60\" y2=\"260\" stroke=\"black\"/>\n\
             <text x=\"54\" y=\"24\" text-anchor=\"end\">{}</text><text x=\"54\" y=\"264\" text-anchor=\"end\">0</text>\n\
             <text x=\"60\" y=\"282\">{} kernels; {} without reuse; blue: from before, orange: the result</text>\n</svg>\n",
            bytes(self.peak()),
            self.steps.len(),
            bytes(self.total())
        )
    }
}

fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (n as f64, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        (value, unit) = (value / 1024.0, unit + 1);
    }
    match unit {
        0 => format!("{n} B"),
        _ => format!("{value:.1} {}", UNITS[unit]),
    }
}

impl fmt::Display for MemoryPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const WIDTH: u64 = 40;
        let peak = self.peak();
        writeln!(
            f,
            "peak {}, {} without reuse, {} given",
            bytes(peak),
            bytes(self.total()),
            bytes(self.given)
        )?;
        for (at, step) in self.steps.iter().enumerate() {
            let cells = |bytes: u64| (bytes * WIDTH).div_ceil(peak.max(1)) as usize;
            let (all, before) = (cells(step.live), cells(step.live - step.takes));
            let bar = "█".repeat(before) + &"▒".repeat(all.saturating_sub(before));
            writeln!(
                f,
                "{:>4} {:>10} {bar:40} {}",
                at + 1,
                bytes(step.live),
                step.operation
            )?;
        }
        Ok(())
    }
}

impl Tensor {
    /// What memory would be taken if these were computed now, of one device.
    ///
    /// ```
    /// # use perpetua_device::{BackendKind, Device};
    /// # use perpetua_tensor::{DType, Tensor};
    /// # let device = Device::new(BackendKind::Cpu, 0)?;
    /// let w = Tensor::ones([64, 64], DType::F32, &device);
    /// w.realize()?;
    /// let x = (0..8).fold(w.clone(), |x, _| x.matmul(&w).relu());
    /// let plan = Tensor::memory_plan(&[&x])?;
    /// // Eight results, of which two live at a time.
    /// assert_eq!((plan.total(), plan.peak(), plan.given), (8 * 16_384, 2 * 16_384, 16_384));
    /// # Ok::<(), perpetua_tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an operation on the way was refused.
    pub fn memory_plan(tensors: &[&Tensor]) -> Result<MemoryPlan> {
        tensors.iter().try_for_each(|tensor| tensor.check())?;
        let Some(first) = tensors.first() else {
            return Ok(MemoryPlan {
                steps: Vec::new(),
                given: 0,
            });
        };
        let graph = Graph::of(tensors);
        let plan = Plan::of(&graph, Ways::of(first.device()));
        let turns = turns(&graph, &plan)?;
        let lives = Lives::of(&graph, turns.iter());
        let known = graph.0.iter().filter(|entry| entry.is_known);
        let size = |tensor: &Tensor| tensor.len() as u64 * u64::from(tensor.dtype().size());
        Ok(MemoryPlan {
            given: known.map(|entry| size(&entry.tensor)).sum(),
            steps: turns
                .iter()
                .zip(&lives.bytes)
                .map(|(turn, [takes, live])| {
                    let results = turn.iter().map(|(output, _)| {
                        let node = &graph.0[*output].tensor.0;
                        format!("{} {} ({})", name_of(node), node.describe(), node.at())
                    });
                    MemoryStep {
                        operation: results.collect::<Vec<_>>().join(", "),
                        takes: *takes,
                        live: *live,
                    }
                })
                .collect(),
        })
    }
}
