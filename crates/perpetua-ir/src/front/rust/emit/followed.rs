//! A kernel that tells what its conditions are: for who asks what its native body accesses.

use perpetua_syntax::MOST_CONDITIONS;

use super::lower::{Lowered, lower_noting};
use super::{Emitter, Result};
use crate::front::rust::instantiate::Instantiation;
use crate::front::rust::resolve::FunctionDef;
use crate::ir::{Kernel, LocalId, Place, Scalar, Value};

/// A kernel as native code runs it, for analyses.
#[derive(Clone, Debug)]
pub struct Followed {
    /// The kernel. It reads neighbours from global memory, and decides no branch beforehand.
    pub kernel: Kernel,
    /// Variables that nobody reads, to each of which a condition is written whenever a lane meets it, by the conditions' numbers:
    /// those of the function's `if`s, [`INSIDE`], [`COMPUTED`].
    pub conditions: Vec<(u32, LocalId)>,
}

/// The number of the condition that a stencil's cell is computed.
pub const COMPUTED: u32 = MOST_CONDITIONS + 1;

/// The number of the condition that a neighbour lies in the grid, and is not farther than the halo.
pub const INSIDE: u32 = MOST_CONDITIONS;

/// Makes a kernel of a function that tells what its conditions are. `None` where native code would run functions of a user's type, or
/// operators on references, as they stand (operators, `clone`, `From`, `Default`): what rustc makes of them need not be what their
/// trees say.
///
/// # Errors
/// As `lower`.
pub fn lower_followed(def: &FunctionDef, how: &Instantiation) -> Result<Option<Followed>> {
    let mut how = how.clone();
    how.stencil.tile = None;
    let Lowered {
        kernel,
        noted,
        calls_host,
    } = lower_noting(def, &how, Some(Vec::new()))?;
    let followed = Followed {
        kernel,
        conditions: noted,
    };
    Ok((!calls_host).then_some(followed))
}

impl Emitter<'_> {
    /// Writes the value of a kernel's condition to its variable, where conditions are asked for.
    pub(super) fn note(&mut self, number: u32, value: Value, line: u32) -> Result<()> {
        let Some(noted) = &self.noted else {
            return Ok(());
        };
        let known = noted.iter().find(|(known, _)| *known == number);
        let local = match known {
            Some((_, local)) => *local,
            None => {
                let local = self.k.local(format!("condition{number}"), Scalar::Bool.into());
                self.noted.get_or_insert_default().push((number, local));
                local
            }
        };
        self.store(&Place::local(local), value, line)
    }
}
