//! What would run, in words. Must not know how it is run.

use std::fmt;

use crate::error::Result;
use crate::fuse::{Plan, Ways};
use crate::graph::Graph;
use crate::node::Tensor;
use crate::stay::Stay;
use crate::table::name_of;

/// What would run if a tensor was looked at: its kernels, what each computes, and why results are stored. Its text is for people; `kernels`
/// for tests.
pub struct Explanation {
    /// Each kernel's operations, the one whose result it stores last, and why that is stored.
    pub kernels: Vec<(Vec<String>, Stay)>,
}

impl Explanation {
    fn of(graph: &Graph, plan: &Plan) -> Explanation {
        let kernels = plan.groups.iter().map(|group| {
            let inside = (0..graph.0.len()).filter(|number| plan.homes[*number].contains(&group.output));
            let texts = inside.filter(|number| !graph.0[*number].is_known).map(|number| {
                let node = &graph.0[number].tensor.0;
                let by = plan
                    .library
                    .get(&number)
                    .map_or(String::new(), |by| format!(", by {by}"));
                format!("{} {} ({}){by}", name_of(node), node.describe(), node.at())
            });
            (texts.collect(), plan.stays[group.output].unwrap_or(Stay::Asked))
        });
        Explanation {
            kernels: kernels.collect(),
        }
    }
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
            writeln!(f, "    stored: {}", stay.reason())?;
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
    /// assert_eq!(explanation.kernels.len(), 1, "{explanation}");
    /// # Ok::<(), perpetua_tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an operation on the way was refused.
    pub fn explain(&self) -> Result<Explanation> {
        self.check()?;
        let graph = Graph::of(&[self]);
        let plan = Plan::of(&graph, Ways::of(self.device()));
        Ok(Explanation::of(&graph, &plan))
    }
}
