//! A simulation's state as bytes: exact, checked, and refused whole where it does not fit. Must not know files.
//!
//! All numbers little-endian: magic, version, length of the caller's note, the note; fingerprint of the model, steps done, first
//! step of the series, lengths of fields, cells and series; then these; last a checksum (FNV-1a, 64 bits) of all before it.

use half::f16;

use super::error::{Error, Result};
use super::model::Model;
use super::simulation::{Simulation, Storage};

const MAGIC: &[u8; 8] = b"PERPWAVE";
const VERSION: u32 = 2;

/// FNV-1a, a word of eight bytes at a time; what is left over counts as a word of its own.
fn checksum(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut mix = |word: u64| hash = (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    let (words, rest) = bytes.as_chunks::<8>();
    words.iter().for_each(|w| mix(u64::from_le_bytes(*w)));
    rest.iter().for_each(|b| mix(u64::from(*b) + 1));
    mix(bytes.len() as u64);
    hash
}

/// What must be equal for a state to mean the same. Cells are part of the state: they may have been painted.
fn fingerprint(model: &Model, storage: Storage) -> u64 {
    let text = format!(
        "{:?} {:x} {:x} {:?} {:?} {:?} {:?} {storage:?}",
        model.size,
        model.spacing.to_bits(),
        model.time_step.to_bits(),
        model.media,
        model.border,
        model.sources,
        model.probes,
    );
    checksum(text.as_bytes())
}

fn wrong<T>(message: &str) -> Result<T> {
    Err(Error::Checkpoint(format!("the checkpoint {message}")))
}

/// Takes bytes off a slice.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        match self.0.split_at_checked(len) {
            Some((head, tail)) => {
                self.0 = tail;
                Ok(head)
            }
            None => wrong("ends too early"),
        }
    }

    fn u64(&mut self) -> Result<u64> {
        let bytes = self.take(8)?;
        Ok(bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
    }

    fn floats(&mut self, count: usize) -> Result<Vec<f32>> {
        let (words, _) = self.take(count.saturating_mul(4))?.as_chunks::<4>();
        Ok(words.iter().map(|w| f32::from_le_bytes(*w)).collect())
    }

    fn field(&mut self, count: usize, storage: Storage) -> Result<Vec<f32>> {
        match storage {
            Storage::F32 => self.floats(count),
            Storage::F16 => {
                let (words, _) = self.take(count.saturating_mul(2))?.as_chunks::<2>();
                Ok(words.iter().map(|w| f16::from_le_bytes(*w).to_f32()).collect())
            }
        }
    }
}

/// What [`Simulation::checkpoint_with`] was given to keep: for a program that makes the simulation anew from it.
///
/// # Errors
/// The bytes are no checkpoint, damaged or of another version.
pub fn note(bytes: &[u8]) -> Result<&[u8]> {
    Ok(open(bytes)?.0)
}

/// How many steps were done when the checkpoint was taken.
///
/// # Errors
/// As [`note`].
pub fn steps(bytes: &[u8]) -> Result<u64> {
    let (_, mut reader) = open(bytes)?;
    let _fingerprint = reader.u64()?;
    reader.u64()
}

/// A sound checkpoint's note, and what follows it.
fn open(bytes: &[u8]) -> Result<(&[u8], Reader<'_>)> {
    if !bytes.starts_with(MAGIC) {
        return Err(Error::Checkpoint(
            "this is no checkpoint of a wave simulation".into(),
        ));
    }
    let Some((body, sum)) = bytes.split_last_chunk::<8>() else {
        return wrong("ends too early");
    };
    let mut reader = Reader(body);
    reader.take(MAGIC.len())?;
    if reader.take(4)? != VERSION.to_le_bytes() {
        return wrong("was written by another version of this program");
    }
    if checksum(body) != u64::from_le_bytes(*sum) {
        return wrong("is damaged: its checksum does not fit");
    }
    let len = usize::try_from(reader.u64()?).unwrap_or(usize::MAX);
    Ok((reader.take(len)?, reader))
}

impl Simulation {
    /// Waits, and gives the state as bytes.
    ///
    /// # Errors
    /// As those of [`Simulation::checkpoint_with`].
    pub fn checkpoint(&self) -> Result<Vec<u8>> {
        self.checkpoint_with(&[])
    }

    /// As [`Simulation::checkpoint`], with bytes of the caller's that [`note`] gives back.
    ///
    /// # Errors
    /// The field is no longer finite, so that nothing could go on from it; or what went wrong in the steps, or in reading.
    pub fn checkpoint_with(&self, note: &[u8]) -> Result<Vec<u8>> {
        let (now, before) = self.fields()?;
        if !now.iter().chain(&before).all(|value| value.is_finite()) {
            return Err(Error::Diverged {
                step: self.step_count(),
            });
        }
        let series = self.probe_rows()?;
        let cells = &self.model().cells;
        let mut out = Vec::with_capacity(72 + note.len() + now.len() * 9 + series.len() * 4);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&(note.len() as u64).to_le_bytes());
        out.extend_from_slice(note);
        out.extend_from_slice(&fingerprint(self.model(), self.storage()).to_le_bytes());
        for n in [
            self.step_count(),
            self.probes_from(),
            now.len() as u64,
            series.len() as u64,
        ] {
            out.extend_from_slice(&n.to_le_bytes());
        }
        for value in now.iter().chain(&before) {
            match self.storage() {
                Storage::F32 => out.extend_from_slice(&value.to_le_bytes()),
                Storage::F16 => out.extend_from_slice(&f16::from_f32(*value).to_le_bytes()),
            }
        }
        out.extend_from_slice(cells);
        series
            .iter()
            .for_each(|v| out.extend_from_slice(&v.to_le_bytes()));
        out.extend_from_slice(&checksum(&out).to_le_bytes());
        Ok(out)
    }

    /// Goes on where [`Simulation::checkpoint`] was taken; the simulation must be of the same model, but for painted cells.
    ///
    /// # Errors
    /// The bytes are no checkpoint, damaged, of another version or of another model; nothing has changed then. Or what the
    /// device says.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        let (_, mut reader) = open(bytes)?;
        if reader.u64()? != fingerprint(self.model(), self.storage()) {
            return wrong(
                "is of another scene, size, time step or type: give the options that it was made with",
            );
        }
        let (step, from, cells, series) = (reader.u64()?, reader.u64()?, reader.u64()?, reader.u64()?);
        let probes = self.model().probes.len() as u64;
        if cells != self.model().cells.len() as u64
            || from > step
            || Some(series) != (step - from).checked_mul(probes)
        {
            return wrong("contradicts itself");
        }
        let cells = cells as usize;
        let now = reader.field(cells, self.storage())?;
        let before = reader.field(cells, self.storage())?;
        let media = reader.take(cells)?;
        let series = reader.floats(series as usize)?;
        if media.iter().any(|m| usize::from(*m) >= self.model().media.len()) {
            return wrong("contradicts itself");
        }
        self.set_cells(media)?;
        self.set_step(step, series, from);
        self.set_fields(&now, &before)
    }
}
