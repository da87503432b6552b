//! What would run, in words and as a drawing. Must not know how it is run.

use std::fmt;

use crate::error::Result;
use crate::fuse::{Plan, Ways};
use crate::graph::Graph;
use crate::node::Tensor;
use crate::stay::Stay;
use crate::table::name_of;
use crate::together::{Turn, turns};

/// What would run if a tensor was looked at: its kernels, what each computes, and why results are stored. Its text and its drawing are for people; `kernels`
/// for tests.
pub struct Explanation {
    /// Each kernel's operations, the one whose result it stores last, and why that is stored. Of several results that one launch gives, the operations of all, and why the first one is stored.
    pub kernels: Vec<(Vec<String>, Stay)>,
    /// By kernel: the kernels whose results it reads, by their places, and what else it reads: types and shapes of values that are known.
    reads: Vec<(Vec<usize>, Vec<String>)>,
    /// By kernel: how many results it stores.
    results: Vec<usize>,
}

impl Explanation {
    fn of(graph: &Graph, plan: &Plan, turns: &[Turn]) -> Explanation {
        let is_of = |turn: &Turn, number: &usize| turn.iter().any(|(output, _)| output == number);
        let inside = |turn: &Turn, number: &usize| plan.homes[*number].iter().any(|home| is_of(turn, home));
        let kernels = turns.iter().map(|turn| {
            let inside = (0..graph.0.len()).filter(|number| inside(turn, number));
            let texts = inside.filter(|number| !graph.0[*number].is_known).map(|number| {
                let node = &graph.0[number].tensor.0;
                let by = plan
                    .library
                    .get(&number)
                    .map_or(String::new(), |by| format!(", by {by}"));
                format!("{} {} ({}){by}", name_of(node), node.describe(), node.at())
            });
            let stay = turn.first().and_then(|(output, _)| plan.stays[*output]);
            (texts.collect(), stay.unwrap_or(Stay::Asked))
        });
        let reads = turns.iter().map(|turn| {
            let inside = (0..graph.0.len()).filter(|number| inside(turn, number));
            let mut all: Vec<usize> = inside
                .flat_map(|number| graph.0[number].sources.to_vec())
                .collect();
            all.sort_unstable();
            all.dedup();
            let others = all.iter().filter(|number| !is_of(turn, number));
            let mut places: Vec<usize> = others
                .filter_map(|number| turns.iter().position(|turn| is_of(turn, number)))
                .collect();
            places.dedup();
            let known = all.iter().filter(|number| graph.0[**number].is_known);
            (
                places,
                known.map(|number| graph.0[*number].tensor.0.describe()).collect(),
            )
        });
        Explanation {
            kernels: kernels.collect(),
            reads: reads.collect(),
            results: turns.iter().map(Vec::len).collect(),
        }
    }

    fn stored(&self, at: usize, stay: Stay) -> String {
        let together = match self.results[at] {
            1 => String::new(),
            results => format!("; {results} results of one structure by one launch"),
        };
        format!("stored: {}{together}", stay.reason())
    }

    /// Its kernels from top to bottom, in the order in which they run, with what each computes, and arrows from results to the kernels that read them.
    pub fn svg(&self) -> String {
        use std::fmt::Write as _;
        // A line of text, a letter of it, the edge of a box around it, and the way between arrows.
        const LINE: usize = 18;
        const LETTER: usize = 8;
        const EDGE: usize = 10;
        const WAY: usize = 12;
        let lines = |at: usize| -> Vec<String> {
            let (operations, stay) = &self.kernels[at];
            let (_, known) = &self.reads[at];
            let given = (!known.is_empty()).then(|| format!("given: {}", known.join(", ")));
            let stored = self.stored(at, *stay);
            given
                .into_iter()
                .chain(operations.iter().cloned())
                .chain([stored])
                .collect()
        };
        let boxes: Vec<Vec<String>> = (0..self.kernels.len()).map(lines).collect();
        let letters = boxes.iter().flatten().map(|text| text.chars().count()).max();
        let width = letters.unwrap_or(0) * LETTER + 2 * EDGE;
        // Arrows begin at the right: the farther they reach, the farther out.
        let arrows = self.reads.iter().enumerate();
        let mut arrows: Vec<(usize, usize)> = arrows
            .flat_map(|(to, (from, _))| from.iter().map(move |from| (*from, to)))
            .collect();
        arrows.sort_by_key(|(from, to)| to.abs_diff(*from));
        let (mut tops, mut end) = (Vec::new(), EDGE);
        for lines in &boxes {
            tops.push(end);
            end += (lines.len() + 1) * LINE + 3 * EDGE;
        }
        let mut drawn = String::new();
        for (at, lines) in boxes.iter().enumerate() {
            let (top, height) = (tops[at], (lines.len() + 1) * LINE + EDGE);
            // Writing to a `String` succeeds.
            let _ = writeln!(
                drawn,
                "<rect x=\"{EDGE}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" rx=\"4\" fill=\"#eef3f8\" stroke=\"#6b8fb5\"/>\n<text x=\"{}\" y=\"{}\" font-weight=\"bold\">kernel {}</text>",
                2 * EDGE,
                top + LINE,
                at + 1
            );
            for (place, line) in lines.iter().enumerate() {
                let color = match place + 1 == lines.len() || line.starts_with("given: ") {
                    true => "#777777",
                    false => "black",
                };
                let _ = writeln!(
                    drawn,
                    "<text x=\"{}\" y=\"{}\" fill=\"{color}\">{}</text>",
                    2 * EDGE,
                    top + (place + 2) * LINE,
                    escaped(line)
                );
            }
        }
        for (out, (from, to)) in arrows.iter().enumerate() {
            let (right, far) = (EDGE + width, EDGE + width + (out + 2) * WAY);
            let (begin, end) = (
                tops[*from] + boxes[*from].len() * LINE + LINE,
                tops[*to] + LINE + EDGE / 2,
            );
            let _ = writeln!(
                drawn,
                "<path d=\"M{right} {begin} H{far} V{end} H{}\" fill=\"none\" stroke=\"#d9864a\" marker-end=\"url(#arrow)\"/>",
                right + 7
            );
        }
        let (all, high) = (width + 3 * EDGE + (arrows.len() + 2) * WAY, end);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{all}\" height=\"{high}\" font-family=\"monospace\" font-size=\"12\">\n\
             <defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"1\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\"><path d=\"M0 0 L8 4 L0 8 z\" fill=\"#d9864a\"/></marker></defs>\n\
             <rect width=\"{all}\" height=\"{high}\" fill=\"white\"/>\n{drawn}</svg>\n"
        )
    }
}

/// A text as XML has it.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (operations, stay)) in self.kernels.iter().enumerate() {
            writeln!(f, "kernel {}", number + 1)?;
            for (place, operation) in operations.iter().enumerate() {
                let branch = if place + 1 == operations.len() {
                    "└"
                } else {
                    "├"
                };
                writeln!(f, "  {branch} {operation}")?;
            }
            writeln!(f, "    {}", self.stored(number, *stay))?;
        }
        Ok(())
    }
}

impl Tensor {
    /// What would run if this was looked at: which operations each kernel computes, and why results are stored. A tensor whose value is
    /// known needs none.
    ///
    /// ```
    /// # use perpetua_device::{BackendKind, Device};
    /// # use perpetua_tensor::{DType, Tensor};
    /// # let device = Device::new(BackendKind::Cpu, 0)?;
    /// let x = Tensor::ones([4, 1000], DType::F32, &device);
    /// let explanation = (x * 2.0).softmax(-1).explain()?;
    /// assert_eq!(explanation.kernels.len(), 1, "{explanation}"); // or `explanation.svg()`
    /// # Ok::<(), perpetua_tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an operation on the way was refused.
    pub fn explain(&self) -> Result<Explanation> {
        Tensor::explain_all(&[self])
    }

    /// The same of several, of one device.
    ///
    /// # Errors
    /// As [`Tensor::explain`].
    pub fn explain_all(tensors: &[&Tensor]) -> Result<Explanation> {
        tensors.iter().try_for_each(|tensor| tensor.check())?;
        let Some(first) = tensors.first() else {
            return Ok(Explanation {
                kernels: Vec::new(),
                reads: Vec::new(),
                results: Vec::new(),
            });
        };
        let graph = Graph::of(tensors);
        let plan = Plan::of(&graph, Ways::of(first.device()));
        let turns = turns(&graph, &plan)?;
        Ok(Explanation::of(&graph, &plan, &turns))
    }
}
