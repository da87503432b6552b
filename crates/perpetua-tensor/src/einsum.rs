//! Sums of products by letters, as in NumPy: which axes meet, which are summed, and in what order operands are contracted.

use std::collections::BTreeMap;
use std::panic::Location;

use crate::node::Tensor;

/// A tensor whose axes have letters.
struct Named {
    tensor: Tensor,
    letters: Vec<char>,
}

/// The sum of products that `subscripts` describe.
pub(crate) fn einsum(
    subscripts: &str,
    operands: &[&Tensor],
    at: &'static Location<'static>,
) -> Result<Tensor, String> {
    let text: String = subscripts.chars().filter(|c| !c.is_whitespace()).collect();
    let (inputs, output) = match text.split_once("->") {
        Some((inputs, output)) => (inputs, Some(output.chars().collect::<Vec<_>>())),
        None => (&text[..], None),
    };
    let inputs: Vec<Vec<char>> = inputs.split(',').map(|part| part.chars().collect()).collect();
    if inputs.len() != operands.len() {
        return Err(format!(
            "`{subscripts}` describes {} operands, there are {}",
            inputs.len(),
            operands.len()
        ));
    }
    let mut extents: BTreeMap<char, usize> = BTreeMap::new();
    let mut times: BTreeMap<char, usize> = BTreeMap::new();
    for (letters, operand) in inputs.iter().zip(operands) {
        if letters.len() != operand.rank() {
            return Err(format!(
                "`{}` has not as many letters as {} has axes",
                String::from_iter(letters),
                operand.0.describe()
            ));
        }
        for (letter, n) in letters.iter().zip(operand.shape()) {
            if !letter.is_ascii_alphabetic() {
                return Err(format!("`{letter}` is no letter from a to z or A to Z"));
            }
            *times.entry(*letter).or_default() += 1;
            if *extents.entry(*letter).or_insert(*n) != *n {
                return Err(format!("`{letter}` stands for axes of different extents"));
            }
        }
    }
    let output = output.unwrap_or_else(|| {
        times
            .iter()
            .filter(|(_, n)| **n == 1)
            .map(|(letter, _)| *letter)
            .collect()
    });
    for (place, letter) in output.iter().enumerate() {
        if !extents.contains_key(letter) || output[..place].contains(letter) {
            return Err(format!(
                "`{letter}` of the result must stand in an operand, and once in the result"
            ));
        }
    }
    let named = inputs.into_iter().zip(operands);
    let mut parts: Vec<Named> = named
        .map(|(letters, tensor)| {
            Named {
                tensor: (*tensor).clone(),
                letters,
            }
            .without_repeats()
        })
        .collect();
    while parts.len() > 1 {
        let (first, second) = cheapest(&parts, &output, &extents);
        // The second stands behind the first.
        let (b, a) = (parts.remove(second), parts.remove(first));
        let is_kept =
            |letter: &char| output.contains(letter) || parts.iter().any(|part| part.letters.contains(letter));
        let joined = a.contract(b, &is_kept, at);
        parts.push(joined);
    }
    let last = parts.pop().ok_or("it takes at least one operand")?;
    let last = last.summed(&|letter| output.contains(letter));
    Ok(last.in_order(&output))
}

// The pair whose product is the smallest.
fn cheapest(parts: &[Named], output: &[char], extents: &BTreeMap<char, usize>) -> (usize, usize) {
    let mut best = (usize::MAX, (0, 1));
    for second in 1..parts.len() {
        for first in 0..second {
            let others = |letter: &char| {
                let mut rest = parts
                    .iter()
                    .enumerate()
                    .filter(|(place, _)| *place != first && *place != second);
                rest.any(|(_, part)| part.letters.contains(letter))
            };
            let mut letters: Vec<char> = [first, second]
                .iter()
                .flat_map(|part| parts[*part].letters.clone())
                .collect();
            letters.sort_unstable();
            letters.dedup();
            let kept = letters
                .iter()
                .filter(|letter| output.contains(letter) || others(letter));
            let size = kept.fold(1usize, |size, letter| size.saturating_mul(extents[letter]));
            if size < best.0 {
                best = (size, (first, second));
            }
        }
    }
    best.1
}

impl Named {
    // Of axes of one letter the diagonal.
    fn without_repeats(mut self) -> Named {
        while let Some((first, second)) = repeat(&self.letters) {
            let x = &self.tensor;
            let [a, b] = [first, second].map(|axis| Tensor::coordinates(x.shape(), axis, x.device()));
            let dtype = x.dtype();
            self.tensor = a.equal(b).select(x, 0).sum(second as isize).cast(dtype);
            self.letters.remove(second);
        }
        self
    }

    fn summed(mut self, is_kept: &dyn Fn(&char) -> bool) -> Named {
        let gone: Vec<isize> = (0..self.letters.len())
            .filter(|axis| !is_kept(&self.letters[*axis]))
            .map(|axis| axis as isize)
            .collect();
        if !gone.is_empty() {
            self.tensor = self.tensor.sum(&gone[..]);
            self.letters.retain(|letter| is_kept(letter));
        }
        self
    }

    fn in_order(&self, letters: &[char]) -> Tensor {
        let axes: Vec<isize> = letters
            .iter()
            .filter_map(|letter| self.letters.iter().position(|own| own == letter))
            .map(|axis| axis as isize)
            .collect();
        self.tensor.permute(&axes[..])
    }

    // With axes of extent 1 where it lacks a letter.
    fn spread(&self, letters: &[char]) -> Tensor {
        let own: Vec<char> = letters
            .iter()
            .copied()
            .filter(|letter| self.letters.contains(letter))
            .collect();
        let shape: Vec<isize> = letters
            .iter()
            .map(|letter| {
                self.letters
                    .iter()
                    .position(|own| own == letter)
                    .map_or(1, |axis| self.tensor.shape()[axis] as isize)
            })
            .collect();
        self.in_order(&own).reshape(shape)
    }

    fn contract(
        self,
        other: Named,
        is_kept: &dyn Fn(&char) -> bool,
        at: &'static Location<'static>,
    ) -> Named {
        // What only one of them has and nobody wants is summed first.
        let (a, b) = (
            self.summed(&|letter| is_kept(letter) || other.letters.contains(letter)),
            &other,
        );
        let b = Named {
            tensor: b.tensor.clone(),
            letters: b.letters.clone(),
        };
        let b = b.summed(&|letter| is_kept(letter) || a.letters.contains(letter));
        let both = |letter: &&char| b.letters.contains(letter);
        let batch: Vec<char> = a
            .letters
            .iter()
            .filter(both)
            .filter(|letter| is_kept(letter))
            .copied()
            .collect();
        let inner: Vec<char> = a
            .letters
            .iter()
            .filter(both)
            .filter(|letter| !is_kept(letter))
            .copied()
            .collect();
        let left: Vec<char> = a
            .letters
            .iter()
            .filter(|letter| !b.letters.contains(letter))
            .copied()
            .collect();
        let right: Vec<char> = b
            .letters
            .iter()
            .filter(|letter| !a.letters.contains(letter))
            .copied()
            .collect();
        let letters: Vec<char> = batch.iter().chain(&left).chain(&right).copied().collect();
        if inner.is_empty() {
            let tensor = a.spread(&letters) * b.spread(&letters);
            return Named { tensor, letters };
        }
        // Of one row and one column each nothing is left but their sum.
        if left.is_empty() && right.is_empty() {
            let all: Vec<char> = batch.iter().chain(&inner).copied().collect();
            let tensor = a.spread(&all) * b.spread(&all);
            let axes: Vec<isize> = (batch.len()..all.len()).map(|axis| axis as isize).collect();
            let dtype = tensor.dtype();
            let tensor = tensor.sum(&axes[..]).cast(dtype);
            return Named { tensor, letters };
        }
        let size = |part: &Named, letters: &[char]| -> usize {
            let extent = |letter: &char| {
                part.letters
                    .iter()
                    .position(|own| own == letter)
                    .map_or(1, |axis| part.tensor.shape()[axis])
            };
            letters.iter().map(extent).product()
        };
        let matrix = |part: &Named, groups: [&[char]; 3]| {
            let order: Vec<char> = groups.concat();
            let extents = groups.map(|letters| size(part, letters));
            part.in_order(&order).reshaped(&extents, at)
        };
        let product = matrix(&a, [&batch, &left, &inner]).matmul(matrix(&b, [&batch, &inner, &right]));
        let shape: Vec<usize> = batch
            .iter()
            .chain(&left)
            .map(|letter| size(&a, &[*letter]))
            .chain(right.iter().map(|letter| size(&b, &[*letter])))
            .collect();
        let tensor = if product.error().is_some() {
            product
        } else {
            product.reshaped(&shape, at)
        };
        Named { tensor, letters }
    }
}

fn repeat(letters: &[char]) -> Option<(usize, usize)> {
    (0..letters.len()).find_map(|second| {
        let first = letters[..second]
            .iter()
            .position(|letter| *letter == letters[second])?;
        Some((first, second))
    })
}
