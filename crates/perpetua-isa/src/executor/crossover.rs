//! Executors by the size of the work: the device layer's table says where it is done sooner.

use perpetua_device::{Crossover, Data, Operation};

use super::Executor;
use crate::error::Result;

impl Executor {
    /// An executor on the host's processor or on a GPU: where work of this kind and size is done sooner, as [`Crossover::best`] finds.
    ///
    /// ```
    /// use perpetua_isa::{Data, Executor, Operation};
    /// let executor = Executor::for_size(Operation::ElementWise, 100, Data::OnHost)?;
    /// # Ok::<(), perpetua_isa::Error>(())
    /// ```
    ///
    /// # Errors
    /// What the devices say while they are measured.
    pub fn for_size(operation: Operation, elements: usize, data: Data) -> Result<Executor> {
        Ok(Executor::on(Crossover::best(operation, elements as u64, data)?))
    }
}
