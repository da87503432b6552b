//! Which byte stands for a cell on the device: its medium, and the sources that drive it. Must not know devices.

use super::error::{Part, Result, range};
use super::kernels::{DRIVEN, FIRST_DRIVEN, REFLECTOR, SLOTS};
use super::model::{MOST_MEDIA, Model};

/// The bytes' meaning. Slot 0 is every reflector, slot `m + 1` the medium `m`, those from `FIRST_DRIVEN` on a medium
/// with sources.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Slots {
    /// Medium and sources of each driven slot.
    driven: Vec<(u8, Vec<usize>)>,
}

const _: () = assert!(MOST_MEDIA < FIRST_DRIVEN as usize && FIRST_DRIVEN as usize + DRIVEN == SLOTS);

impl Slots {
    /// The slot of a cell of `medium` that `sources` (by index, ascending) drive.
    pub(super) fn slot(&mut self, model: &Model, medium: u8, sources: &[usize]) -> Result<u8> {
        if model.media.get(usize::from(medium)).is_some_and(|m| m.reflects) {
            return Ok(REFLECTOR);
        }
        if sources.is_empty() {
            return Ok(medium + 1);
        }
        let known = self.driven.iter().position(|(m, s)| *m == medium && s == sources);
        let index = known.unwrap_or(self.driven.len());
        if index == DRIVEN {
            return Err(range(
                "the number of different sources (counted anew in each medium and where sources overlap)",
                "more than 16",
                "up to 16 are possible",
            )
            .about(Part::Source(sources.last().copied().unwrap_or(0))));
        }
        if known.is_none() {
            self.driven.push((medium, sources.to_vec()));
        }
        Ok(FIRST_DRIVEN + index as u8)
    }

    /// Stiffness of all slots, then what they keep, then the profile.
    pub(super) fn table(&self, model: &Model) -> Vec<f32> {
        let (mut stiffness, mut keep) = (vec![0.0f32; SLOTS], vec![1.0f32; SLOTS]);
        let mut set = |slot: usize, medium: usize| {
            if let Some(m) = model.media.get(medium).filter(|m| !m.reflects) {
                let courant = m.speed * model.time_step / model.spacing;
                let d = m.damping * model.time_step;
                stiffness[slot] = (courant * courant) as f32;
                keep[slot] = ((1.0 - d) / (1.0 + d)) as f32;
            }
        };
        (0..model.media.len()).for_each(|m| set(m + 1, m));
        for (i, (medium, _)) in self.driven.iter().enumerate() {
            set(usize::from(FIRST_DRIVEN) + i, usize::from(*medium));
        }
        stiffness.extend(keep);
        stiffness.extend(model.profile());
        stiffness
    }

    /// What each cell of a run of columns keeps, and how its neighbours pull, below 0 in reflectors: as kernels compute it from
    /// the table and the cells' slots.
    pub(super) fn coefficients(
        table: &[f32],
        model: &Model,
        [x0, y, z]: [usize; 3],
        slots: &[u8],
    ) -> [Vec<f32>; 2] {
        let (media, profile) = table.split_at(2 * SLOTS);
        let [width, height, _] = model.size;
        let keep = |(i, slot): (usize, &u8)| {
            let mut keep = profile[x0 + i] * profile[width + y];
            if model.is_deep() {
                keep *= profile[width + height + z];
            }
            keep * media[SLOTS + usize::from(*slot)]
        };
        let keeps: Vec<f32> = slots.iter().enumerate().map(keep).collect();
        let pull = |(keep, slot): (&f32, &u8)| match *slot {
            REFLECTOR => -1.0,
            slot => (0.5 + 0.5 * keep) * media[usize::from(slot)],
        };
        let pulls = keeps.iter().zip(slots).map(pull).collect();
        [keeps, pulls]
    }

    /// What is added to each driven slot at a step.
    pub(super) fn drives(&self, model: &Model, step: u64) -> [f32; DRIVEN] {
        let of: Vec<f64> = model.sources.iter().map(|s| model.drive(s, step)).collect();
        let mut row = [0.0; DRIVEN];
        for (to, (_, sources)) in row.iter_mut().zip(&self.driven) {
            *to = sources.iter().filter_map(|s| of.get(*s)).sum::<f64>() as f32;
        }
        row
    }

    /// The slots of the cells in a run of columns.
    pub(super) fn row(&mut self, model: &Model, [x0, y, z]: [usize; 3], len: usize) -> Result<Vec<u8>> {
        let start = model.index([x0, y, z]);
        let near: Vec<usize> = (0..model.sources.len())
            .filter(|s| {
                let region = model.sources[*s].region;
                (region.from[1]..region.to[1]).contains(&y) && (region.from[2]..region.to[2]).contains(&z)
            })
            .collect();
        let media = &model.cells[start..start + len];
        let mut here = Vec::new();
        media
            .iter()
            .enumerate()
            .map(|(i, medium)| {
                here.clear();
                here.extend(near.iter().copied().filter(|s| {
                    let region = model.sources[*s].region;
                    (region.from[0]..region.to[0]).contains(&(x0 + i))
                }));
                self.slot(model, *medium, &here)
            })
            .collect()
    }
}
