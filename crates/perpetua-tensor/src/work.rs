//! Where an operator is done sooner, by its shape: which kind of work it is, for the device layer's table of times. Measures nothing itself.

use perpetua_device::{Crossover, Data, Device, Operation};

use crate::error::{Error, Result};
use crate::table::{self, Meaning};

/// Devices by operator and shape.
pub trait BestFor {
    /// The device on which an operator of the tables ([`table`]) is done sooner on operands of this shape, each of them: the host's processor, or the
    /// first GPU. The times are those of [`Crossover::best`], measured at first use; of a product of matrices the shape that counts is the square of as many elements.
    ///
    /// ```
    /// use perpetua_device::{Data, Device};
    /// use perpetua_tensor::{BestFor, Tensor};
    /// let device = Device::best_for("softmax", &[8, 100], Data::OnHost)?;
    /// let x = Tensor::ones([8, 100], perpetua_tensor::DType::F32, &device);
    /// assert_eq!(x.softmax(1).sum(..).to_vec::<f32>()?.len(), 1);
    /// # Ok::<(), perpetua_tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such operator, or devices fail while they are measured.
    fn best_for(operator: &str, shape: &[usize], data: Data) -> Result<Device>;
}

impl BestFor for Device {
    fn best_for(operator: &str, shape: &[usize], data: Data) -> Result<Device> {
        let unknown = || Error::NoOperator {
            name: operator.into(),
        };
        let operation = work(operator).ok_or_else(unknown)?;
        let elements = shape.iter().fold(1u64, |all, n| all.saturating_mul(*n as u64));
        Ok(Crossover::best(operation, elements, data)?)
    }
}

// What the tables say: of what is composed, the heaviest of the operators that its formula names.
fn work(name: &str) -> Option<Operation> {
    if let Some(row) = table::primitives().find(|row| row.name == name) {
        return Some(match row.meaning {
            Meaning::Own(_) if table::is_reduction(name) => Operation::Reduction,
            Meaning::Own(_) if name == "matmul" => Operation::MatrixProduct,
            _ => Operation::ElementWise,
        });
    }
    let row = table::composed().find(|row| row.name == name)?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = row.formula.split(|c| !is_part(c)).filter(|word| *word != name);
    let weight = |operation: &Operation| Operation::ALL.iter().position(|other| other == operation);
    let heaviest = words.filter_map(work).max_by_key(weight);
    Some(heaviest.unwrap_or(Operation::ElementWise))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operator_is_work_of_a_kind() {
        for name in table::primitives().map(|row| row.name) {
            assert!(work(name).is_some(), "{name}");
        }
        for name in table::composed().map(|row| row.name) {
            assert!(work(name).is_some(), "{name}");
        }
        for (operation, names) in [
            (
                Operation::ElementWise,
                "add exp where gelu relu cast concat gather sort",
            ),
            (
                Operation::Reduction,
                "sum max segments cumsum mean var softmax logsumexp argmax scatter_add cross_entropy",
            ),
            (Operation::MatrixProduct, "matmul einsum"),
        ] {
            for name in names.split(' ') {
                assert_eq!(work(name), Some(operation), "{name}");
            }
        }
    }

    #[test]
    fn the_table_of_times_chooses_the_device() {
        let shape = [512, 512];
        for (name, operation) in [
            ("matmul", Operation::MatrixProduct),
            ("add", Operation::ElementWise),
        ] {
            for data in [Data::There, Data::OnHost] {
                let expected = Crossover::best(operation, 512 * 512, data).expect("a device");
                let found = Device::best_for(name, &shape, data).expect("a device");
                assert_eq!(found.info().name, expected.info().name, "{name}");
            }
        }
        let error = Device::best_for("matmull", &shape, Data::There).expect_err("no operator");
        assert!(error.to_string().contains("`matmull`"), "{error}");
    }
}
