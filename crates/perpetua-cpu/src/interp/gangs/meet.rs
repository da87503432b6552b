//! Where gangs meet: barriers, and exchanges among the lanes of subgroups. Gangs run one after another, but what they come to is put
//! into the order of lanes that run side by side: those that are furthest behind meet first, while the others wait.

use std::cmp::Ordering::{Equal, Less};
use std::sync::atomic::Ordering;

use super::super::machine::Lanes;
use super::serve::{give, given, lanes, word};
use super::*;

/// What lanes bring to an exchange, as the interpreter's registers have it.
#[derive(Default)]
pub(super) struct Exchanged {
    active: Vec<u64>,
    operands: Vec<Vec<Line>>,
}

impl Group {
    /// Where a gang's frame lies in those of the group, in bytes.
    fn frame_at(&self, gang: usize) -> usize {
        gang * (self.frames.len() * size_of::<Line>() / self.gangs.len())
    }

    /// Where a gang goes on.
    fn resume(&self, gang: usize) -> u64 {
        word(
            bytemuck::cast_slice(&self.frames),
            self.frame_at(gang) + GANG_RESUME as usize,
        )
    }

    fn resume_at(&mut self, gang: usize, resume: u64) {
        let at = self.frame_at(gang) + GANG_RESUME as usize;
        let frames: &mut [u8] = bytemuck::cast_slice_mut(&mut self.frames);
        if let Some(to) = frames.get_mut(at..at + 8) {
            to.copy_from_slice(&resume.to_ne_bytes());
        }
    }

    /// Where a gang waits; `None`: it is done.
    fn waits<'i>(&self, installed: &'i Installed, gang: usize) -> Option<&'i Meeting> {
        let resume = self.resume(gang);
        let number = (resume != GANG_DONE).then_some(resume & !GANG_HELD)?;
        installed.code.meetings.get(number as usize)?.as_ref()
    }

    /// Whether a gang that waits at `a` is behind one that waits at `b`: loops that both are in tell by their turns, else the text.
    fn is_behind(&self, layout: &Layout, (i, a): (usize, &Meeting), (j, b): (usize, &Meeting)) -> bool {
        let frames: &[u8] = bytemuck::cast_slice(&self.frames);
        let turn = |gang: usize, depth: usize| word(frames, self.frame_at(gang) + layout.turns + 8 * depth);
        for (depth, (x, y)) in a.loops.iter().zip(&b.loops).enumerate() {
            if x != y {
                break;
            }
            match turn(i, depth).cmp(&turn(j, depth)) {
                Equal => {}
                order => return order == Less,
            }
        }
        a.at < b.at
    }

    /// All gangs wait or are done: those that are furthest behind meet; the others are held.
    pub(super) fn meet(&mut self, installed: &Installed, launch: &Launch<'_>) -> Result<(), InterpError> {
        let layout = &installed.code.layout;
        let mut least: Option<(usize, &Meeting)> = None;
        for gang in 0..self.gangs.len() {
            let Some(here) = self.waits(installed, gang) else {
                continue;
            };
            if least.is_none_or(|least| self.is_behind(layout, (gang, here), least)) {
                least = Some((gang, here));
            }
        }
        let Some(least) = least else { return Ok(()) };
        for gang in 0..self.gangs.len() {
            let Some(here) = self.waits(installed, gang) else {
                continue;
            };
            let resume = self.resume(gang) & !GANG_HELD;
            let ahead = self.is_behind(layout, least, (gang, here));
            self.resume_at(gang, if ahead { resume | GANG_HELD } else { resume });
        }
        match &least.1.exchange {
            None => self.barrier(installed, launch, least.1),
            Some(what) => {
                self.exchange(layout, launch, what);
                Ok(())
            }
        }
    }

    /// The lanes of a gang that are at the meeting.
    fn here(&self, layout: &Layout, gang: usize) -> u64 {
        let resume = self.resume(gang);
        if resume & GANG_HELD != 0 {
            // It is done, or waits elsewhere.
            return 0;
        }
        let frames: &[u8] = bytemuck::cast_slice(&self.frames);
        word(frames, self.frame_at(gang) + layout.waiting) & self.gangs[gang].mask
    }

    /// All lanes must be there but for those that have faulted. They end if others may wait for what such a lane would have written.
    fn barrier(
        &mut self,
        installed: &Installed,
        launch: &Launch<'_>,
        meeting: &Meeting,
    ) -> Result<(), InterpError> {
        let (mut arrived, mut missing, mut count) = (0, None, 0);
        let (block, number) = self.block(launch);
        let dead = self.dead.0 == number;
        for (i, gang) in self.gangs.iter().enumerate() {
            let here = self.here(&installed.code.layout, i);
            let absent = gang.mask & !here & if dead { !self.dead.1[i] } else { u64::MAX };
            arrived += here.count_ones();
            count += absent.count_ones();
            if absent != 0 && missing.is_none() {
                missing = Some(gang.first + u64::from(absent.trailing_zeros()));
            }
        }
        // What a lane read atomically before the barrier may be another group's word that its data is there.
        std::sync::atomic::fence(Ordering::AcqRel);
        let Some(missing) = missing else {
            if dead && installed.program.ends_together {
                (0..self.gangs.len()).for_each(|gang| self.resume_at(gang, GANG_DONE));
            }
            return Ok(());
        };
        let lines = &installed.program.lines;
        Err(InterpError::DivergentBarrier {
            kernel: installed.program.name.clone(),
            line: lines.get(meeting.pc as usize).copied().unwrap_or(0),
            block,
            missing: launch.shape.thread(missing as usize),
            arrived,
            lanes: arrived + count,
        })
    }

    /// Lanes that are there exchange what they have brought.
    fn exchange(&mut self, layout: &Layout, launch: &Launch<'_>, what: &Exchange) {
        let all = launch.shape.lanes();
        let words = all.div_ceil(eval::WORD);
        let mut exchanged = std::mem::take(&mut self.exchanged);
        let Exchanged { active, operands } = &mut exchanged;
        active.clear();
        active.resize(words, 0);
        if operands.len() < what.ins.len() {
            operands.resize_with(what.ins.len(), Vec::new);
        }
        operands
            .iter_mut()
            .for_each(|lines| lines.resize(words * 8, Line::ZERO));
        let frames: &[u8] = bytemuck::cast_slice(&self.frames);
        // A lane's gang, and its number there: lanes lie row after row.
        let mut places = Vec::with_capacity(all);
        for (i, gang) in self.gangs.iter().enumerate() {
            let at = self.frame_at(i) + layout.exchange;
            places.extend((0..gang.mask.count_ones() as usize).map(|lane| (at, lane)));
            for lane in lanes(self.here(layout, i)) {
                let number = gang.first as usize + lane;
                super::super::mask::insert(active, number);
                for (slot, (form, to)) in what.ins.iter().zip(&mut *operands).enumerate() {
                    eval::put(to, form.1, number, given(frames, at + slot * SLOT, *form, lane));
                }
            }
        }
        let here = Lanes {
            of_subgroup: launch.subgroup as usize,
            all,
            active,
        };
        let operands: Vec<&[Line]> = operands.iter().map(Vec::as_slice).collect();
        let frames: &mut [u8] = bytemuck::cast_slice_mut(&mut self.frames);
        exchange(here, what.op, what.s, &operands, |word, lane, bits| {
            if let (Some((at, lane)), Some(form)) = (places.get(lane), what.outs.get(word)) {
                give(frames, at + (what.ins.len() + word) * SLOT, *form, *lane, bits);
            }
        });
        self.exchanged = exchanged;
    }
}
