//! The shape of a launch on the command line: lanes or blocks, and the lanes of a block. Must not know what is launched.

use perpetua::device::{Dim3, LaunchConfig};

use super::Failure;
use super::whole::from_nought;

#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct Shape {
    /// How many lanes to run, at least, as X,Y,Z: as many blocks as that needs
    #[arg(
        long,
        value_delimiter = ',',
        num_args = 1,
        value_name = "N",
        conflicts_with = "grid",
        allow_negative_numbers = true,
        value_parser = from_nought::<u64>
    )]
    lanes: Vec<u64>,
    /// How many blocks to run, as X,Y,Z
    #[arg(long, value_delimiter = ',', num_args = 1, value_name = "N", allow_negative_numbers = true, value_parser = from_nought::<u32>)]
    grid: Vec<u32>,
    /// Lanes of a block, as X,Y,Z [default: what the code says, or the most up to 256 that make the lanes exactly, 256 where those are more than 65,535 blocks along an axis; where lanes share memory or meet, 256 or the power of two that holds the lanes]
    #[arg(long, value_delimiter = ',', num_args = 1, value_name = "N", allow_negative_numbers = true, value_parser = from_nought::<u32>)]
    block: Vec<u32>,
}

/// Up to three numbers, and `rest` behind them.
fn three<T: Copy>(list: &[T], rest: T) -> [T; 3] {
    [0, 1, 2].map(|i| list.get(i).copied().unwrap_or(rest))
}

impl Shape {
    /// Whether the command line says how large blocks are, or how many.
    pub(crate) fn chooses_blocks(&self) -> bool {
        !self.block.is_empty() || !self.grid.is_empty()
    }

    /// How many axes the command line speaks of.
    #[cfg(feature = "isa")]
    pub(crate) fn axes(&self) -> usize {
        self.lanes.len().max(self.grid.len())
    }

    /// The launch. `block`: what the code demands; `axes`: how many it tells apart; `lanes`: how many there should be where nobody says,
    /// exactly so many where nobody says how large blocks are, so that kernels without a condition fit. Lanes that share memory or
    /// meet (`meets`) halve blocks and the like: theirs are powers of two.
    pub(crate) fn config(
        &self,
        block: Option<[u32; 3]>,
        axes: usize,
        lanes: Option<[u64; 3]>,
        meets: bool,
    ) -> Result<LaunchConfig, Failure> {
        for (option, given) in [
            ("--lanes", self.lanes.len()),
            ("--grid", self.grid.len()),
            ("--block", self.block.len()),
        ] {
            if given > 3 {
                return Err(format!("{option} has {given} sizes; there are one to three").into());
            }
        }
        for (option, is_none) in [
            ("--lanes", self.lanes.contains(&0)),
            ("--grid", self.grid.contains(&0)),
        ] {
            if is_none {
                return Err(format!("{option} is 0 along an axis: nothing would run").into());
            }
        }
        let is_fixed = !self.block.is_empty() || block.is_some();
        let mut block = match (self.block.is_empty(), block) {
            (false, _) => three(&self.block, 1),
            (true, Some(block)) => block,
            (true, None) => match axes {
                0 | 1 => [256, 1, 1],
                2 => [16, 16, 1],
                _ => [8, 8, 4],
            },
        };
        if block.contains(&0) {
            return Err(format!("--block {block:?}: a block needs a lane at least along each axis").into());
        }
        let grid = if self.grid.is_empty() {
            let given = (!self.lanes.is_empty()).then(|| three(&self.lanes, 1));
            let lanes = given.or(lanes).ok_or(
                "say how many lanes to run with --lanes X,Y,Z, or how many blocks with --grid X,Y,Z",
            )?;
            let mut grid = [0; 3];
            for axis in 0..3 {
                if !is_fixed {
                    block[axis] = match meets {
                        true => holding(lanes[axis], block[axis]),
                        false => fitting(lanes[axis], block[axis]),
                    };
                }
                let blocks = lanes[axis].div_ceil(block[axis].into());
                grid[axis] = u32::try_from(blocks).map_err(|_| {
                    format!(
                        "{} lanes make {blocks} blocks: at most {} can be",
                        lanes[axis],
                        u32::MAX
                    )
                })?;
            }
            grid
        } else {
            three(&self.grid, 1)
        };
        Ok(LaunchConfig::new(Dim3::from(grid), Dim3::from(block)))
    }
}

/// Lanes of a block along an axis that holds so many lanes: a power of two, or `most` where that holds fewer.
fn holding(lanes: u64, most: u32) -> u32 {
    let all = u32::try_from(lanes).ok();
    let power = all.and_then(u32::checked_next_power_of_two);
    power.map_or(most, |power| power.min(most))
}

/// Lanes of a block along an axis so that blocks make exactly so many lanes; `most` where that takes more blocks than every device has.
fn fitting(lanes: u64, most: u32) -> u32 {
    const MOST_BLOCKS: u64 = 65_535;
    let divides = |size: &u32| lanes.is_multiple_of(u64::from(*size));
    let found = (1..=most).rev().find(divides);
    found
        .filter(|size| lanes / u64::from(*size) <= MOST_BLOCKS)
        .unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_hold_all_lanes() {
        let check =
            |shape: Shape, axes: usize, lanes: Option<[u64; 3]>, expect: Result<[[u32; 3]; 2], &str>| match (
                shape.config(None, axes, lanes, false),
                expect,
            ) {
                (Ok(found), Ok([grid, block])) => {
                    assert_eq!((found.grid, found.block), (Dim3::from(grid), Dim3::from(block)));
                }
                (Err(found), Err(expect)) => assert!(found.to_string().contains(expect), "{found}"),
                (found, _) => panic!("{found:?}"),
            };
        let lanes = |lanes: &[u64]| Shape {
            lanes: lanes.to_vec(),
            ..Shape::default()
        };
        check(lanes(&[1000]), 1, None, Ok([[4, 1, 1], [250, 1, 1]]));
        check(lanes(&[10]), 1, None, Ok([[1, 1, 1], [10, 1, 1]]));
        // A prime number of lanes, and one too large for blocks of one.
        check(lanes(&[1009]), 1, None, Ok([[1009, 1, 1], [1, 1, 1]]));
        check(lanes(&[1_000_003]), 1, None, Ok([[3907, 1, 1], [256, 1, 1]]));
        check(lanes(&[100, 17]), 2, None, Ok([[10, 17, 1], [10, 1, 1]]));
        check(Shape::default(), 3, Some([8, 9, 8]), Ok([[1, 3, 2], [8, 3, 4]]));
        check(Shape::default(), 1, None, Err("say how many lanes"));
        check(
            lanes(&[1 << 41]),
            1,
            None,
            Err("8589934592 blocks: at most 4294967295"),
        );
        for (count, block) in [(64, 64), (100, 128), (1000, 256)] {
            let found = lanes(&[count]).config(None, 1, None, true).unwrap();
            assert_eq!(found.block, Dim3::from([block, 1, 1]));
        }
        assert_eq!((holding(u64::MAX, 256), holding(1 << 31, 256)), (256, 256));
        let none = Shape {
            block: vec![0],
            ..Shape::default()
        };
        check(none, 1, Some([1, 1, 1]), Err("a block needs a lane"));
        check(lanes(&[4, 0]), 2, None, Err("--lanes is 0 along an axis"));
    }
}
