//! What the probes have recorded: the latest rows on the device, older ones on the host. Must not know how steps are launched.

use super::super::error::Result;
use perpetua_device::{BoxFuture, Buffer, Device, Stream};

/// What is kept of what the probes record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Recording {
    /// All of it, older rows in the host's memory.
    #[default]
    All,
    /// The latest thousand steps and some more, on the device; nobody waits for them.
    Latest,
}

/// Most numbers on the device, but for the rows of many probes.
const MOST: usize = 1 << 20;

/// Rows of numbers, a row a step, a number a probe.
pub(super) struct Series {
    recording: Recording,
    probes: usize,
    /// Most numbers on the device: more than four times as many as are appended at once.
    most: usize,
    /// Those of the steps from `base` on.
    buffer: Option<Buffer<f32>>,
    /// Where the latest rows go when `buffer` is full; only for [`Recording::Latest`].
    spare: Option<Buffer<f32>>,
    /// Those of the steps `from..base`.
    taken: Vec<Vec<f32>>,
    from: u64,
    base: u64,
}

impl Series {
    /// Of so many probes from step `from` on, of which at most so many rows are appended at once.
    pub(super) fn new(recording: Recording, probes: usize, rows_at_once: u64, from: u64) -> Series {
        Series {
            recording,
            probes,
            most: MOST.max(4 * rows_at_once as usize * probes),
            buffer: None,
            spare: None,
            taken: Vec::new(),
            from,
            base: from,
        }
    }

    /// The step of the first row.
    pub(super) fn from(&self) -> u64 {
        self.from
    }

    pub(super) fn recording(&self) -> Recording {
        self.recording
    }

    /// From here on keeps as much; what is on the device stays.
    pub(super) fn set_recording(&mut self, recording: Recording) {
        self.recording = recording;
        if recording == Recording::Latest {
            self.taken.clear();
            self.from = self.base;
        }
    }

    /// Forgets all rows; the next one is that of step `from`.
    pub(super) fn restart(&mut self, from: u64) {
        self.taken.clear();
        (self.from, self.base) = (from, from);
    }

    /// These rows instead of all that there were: those of the steps `from..step`.
    pub(super) fn replace(&mut self, rows: Vec<f32>, from: u64, step: u64) {
        self.restart(from);
        if self.recording == Recording::All && !rows.is_empty() {
            self.taken.push(rows);
        } else {
            self.from = step;
        }
        self.base = step;
    }

    /// How many numbers the device holds before step `step`.
    fn held(&self, step: u64) -> usize {
        (step - self.base) as usize * self.probes
    }

    /// Appends the first rows of `record`, those of the steps from `step` on.
    pub(super) fn append(
        &mut self,
        device: &Device,
        stream: &Stream,
        record: &Buffer<f32>,
        step: u64,
        turns: u64,
    ) -> Result<()> {
        let new = turns as usize * self.probes;
        if new == 0 {
            return Ok(());
        }
        if self.held(step) + new > self.most {
            self.make_room(device, stream, step)?;
        }
        let at = self.held(step);
        let buffer = self.room_for(device, stream, at + new)?;
        stream.copy(&record.slice(..new)?, &buffer.slice(at..at + new)?)?;
        Ok(())
    }

    /// The buffer with room for so many numbers; grows by doubling.
    fn room_for(&mut self, device: &Device, stream: &Stream, len: usize) -> Result<Buffer<f32>> {
        if let Some(buffer) = self.buffer.as_ref().filter(|buffer| buffer.len() >= len) {
            return Ok(buffer.clone());
        }
        let size = len.next_power_of_two().clamp(4096, self.most.max(4096));
        let grown = device.zeros::<f32>(size)?;
        if let Some(old) = &self.buffer {
            stream.copy(old, &grown.slice(..old.len())?)?;
        }
        self.buffer = Some(grown.clone());
        Ok(grown)
    }

    /// Takes what the device holds to the host, or lets go of all but the latest rows.
    fn make_room(&mut self, device: &Device, stream: &Stream, step: u64) -> Result<()> {
        let held = self.held(step);
        let Some(full) = self.buffer.clone().filter(|_| held > 0) else {
            return Ok(());
        };
        match self.recording {
            Recording::All => {
                self.taken.push(full.slice(..held)?.read()?);
                self.base = step;
            }
            Recording::Latest => {
                let rows = (self.most / self.probes / 4).min(held / self.probes);
                let kept = rows * self.probes;
                let next = match self.spare.take().filter(|spare| spare.len() >= full.len()) {
                    Some(spare) => spare,
                    None => device.zeros(full.len())?,
                };
                stream.copy(&full.slice(held - kept..held)?, &next.slice(..kept)?)?;
                (self.buffer, self.spare) = (Some(next), Some(full));
                self.base = step - rows as u64;
                self.from = self.base;
            }
        }
        Ok(())
    }

    /// All rows up to step `step`, one after the other.
    pub(super) fn rows(&self, step: u64) -> Result<Vec<f32>> {
        let mut rows = self.taken.concat();
        let held = self.held(step);
        if let Some(buffer) = self.buffer.as_ref().filter(|_| held > 0) {
            rows.extend(buffer.slice(..held)?.read()?);
        }
        Ok(rows)
    }

    /// The last rows up to step `step`, at most `most` of them.
    pub(super) fn latest(&self, step: u64, most: usize) -> BoxFuture<'static, Result<Vec<f32>>> {
        let held = self.held(step);
        let wanted = most.saturating_mul(self.probes);
        let part = held.saturating_sub(wanted)..held;
        let older = wanted - part.len();
        let mut rows: Vec<f32> = Vec::new();
        for piece in self.taken.iter().rev() {
            let missing = (older - rows.len()).min(piece.len());
            rows.splice(..0, piece[piece.len() - missing..].iter().copied());
        }
        let reading = match &self.buffer {
            Some(buffer) if !part.is_empty() => buffer.slice(part).map(|part| part.read_async()),
            _ => return Box::pin(async move { Ok(rows) }),
        };
        Box::pin(async move {
            rows.extend(reading?.await?);
            Ok(rows)
        })
    }
}
