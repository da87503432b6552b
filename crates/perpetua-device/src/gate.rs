//! The gate between resident kernels and driver calls that would wait for them for ever (CUDA: loading and unloading
//! modules, `cuStreamCreate`, `cuMemFree`, `cuMemFreeHost`, `cuCtxSetLimit`, `cuCtxSynchronize`, a first launch with a bigger stack).
//!
//! A backend wraps such calls in [`Gate::parked`]; whoever runs a resident kernel admits it here and can stop
//! and start it. Without residents the gate costs one uncontended lock. Must not know what is resident.

use std::sync::{Arc, Mutex, MutexGuard, Weak};

use crate::error::{Error, Result};
use crate::future::{MaybeSend, MaybeSync};

/// A kernel that stays on the device until told to stop.
pub trait Parkable: MaybeSend + MaybeSync {
    /// Stops it and returns when it has left the device; its state stays in device memory. Called while it runs.
    fn park(&self) -> Result<()>;
    /// Starts it, without waiting. Called while it is parked. Must not call the gate.
    fn unpark(&self) -> Result<()>;
    /// Whether its blocks wait for each other: all of them must be on the device at once. Two such kernels, each with some of its
    /// blocks there, would wait for ever, so a device takes one.
    fn is_whole(&self) -> bool {
        false
    }
}

/// The gate of one device.
#[derive(Default)]
pub struct Gate {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    // How many `parked` sections are open; residents run only while there are none.
    open: usize,
    residents: Vec<Weak<dyn Parkable>>,
}

impl State {
    /// Those that are there. Let go of them when the gate is no longer locked: what the last owner of a resident frees may ask the gate.
    fn alive(&mut self) -> Vec<Arc<dyn Parkable>> {
        self.residents.retain(|r| r.strong_count() != 0);
        self.residents.iter().filter_map(Weak::upgrade).collect()
    }
}

/// All of them, or none.
fn park_all(residents: &[Arc<dyn Parkable>]) -> Result<()> {
    for (i, resident) in residents.iter().enumerate() {
        if let Err(error) = resident.park() {
            for parked in &residents[..i] {
                parked.unpark()?;
            }
            return Err(error);
        }
    }
    Ok(())
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Starts a parked resident, and parks it from now on around calls that need it. When a section is open, it
    /// starts at that section's end. Dropping the resident (after stopping it) removes it.
    ///
    /// # Errors
    /// [`Error::InvalidState`] for a second resident that [is whole](Parkable::is_whole).
    pub fn admit(&self, resident: &Arc<dyn Parkable>) -> Result<()> {
        let mut state = self.lock();
        let alive = state.alive();
        let admitted = if resident.is_whole() && alive.iter().any(|other| other.is_whole()) {
            Err(Error::InvalidState {
                operation: "starting a resident kernel whose blocks wait for each other",
                cause: "another one is on this device, and each would keep the other's blocks out",
                remedy: "stop that one first, or launch the steps instead",
            })
        } else if state.open == 0 {
            resident.unpark()
        } else {
            Ok(())
        };
        if admitted.is_ok() {
            state.residents.push(Arc::downgrade(resident));
        }
        drop(state);
        admitted
    }

    /// Parks every resident until the section is closed or dropped. Sections may nest and overlap between threads.
    pub fn section(&self) -> Result<Section<'_>> {
        let mut state = self.lock();
        let alive = match state.open {
            0 => state.alive(),
            _ => Vec::new(),
        };
        let parked = park_all(&alive);
        if parked.is_ok() {
            state.open += 1;
        }
        drop(state);
        parked.map(|()| Section(Some(self)))
    }

    /// Runs `call` while every resident is parked.
    pub fn parked<R>(&self, call: impl FnOnce() -> R) -> Result<R> {
        // Closed also when `call` panics; then an error of restarting is lost with the rest.
        let section = self.section()?;
        let result = call();
        section.close()?;
        Ok(result)
    }
}

/// While it is open, residents are parked.
pub struct Section<'a>(Option<&'a Gate>);

impl Section<'_> {
    /// Ends it: the last one starts the residents.
    pub fn close(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        let Some(gate) = self.0.take() else { return Ok(()) };
        let mut state = gate.lock();
        state.open -= 1;
        if state.open > 0 {
            return Ok(());
        }
        let alive = state.alive();
        let outcome = alive.iter().try_for_each(|resident| resident.unpark());
        drop(state);
        outcome
    }
}

impl Drop for Section<'_> {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI32, Ordering::SeqCst};

    use super::*;

    // SeqCst throughout: a counter in a test, read after the fact.
    #[derive(Default)]
    struct Running(AtomicI32);
    impl Parkable for Running {
        fn park(&self) -> Result<()> {
            self.0.fetch_sub(1, SeqCst);
            Ok(())
        }
        fn unpark(&self) -> Result<()> {
            self.0.fetch_add(1, SeqCst);
            Ok(())
        }
    }

    /// Its blocks wait for each other until it ends.
    #[derive(Default)]
    struct Whole(AtomicI32);
    impl Parkable for Whole {
        fn park(&self) -> Result<()> {
            Ok(())
        }
        fn unpark(&self) -> Result<()> {
            Ok(())
        }
        fn is_whole(&self) -> bool {
            self.0.load(SeqCst) == 0
        }
    }

    #[test]
    fn one_whole_resident_at_a_time() -> Result<()> {
        let gate = Gate::default();
        let whole: [Arc<dyn Parkable>; 2] = [Arc::new(Whole::default()), Arc::new(Whole::default())];
        let ended: Arc<dyn Parkable> = Arc::new(Whole(AtomicI32::new(1)));
        gate.admit(&ended)?;
        gate.admit(&whole[0])?;
        let refused = gate.admit(&whole[1]).map_err(|error| error.to_string());
        assert!(refused.is_err_and(|error| error.contains("stop that one first")));
        gate.admit(&(Arc::new(Running::default()) as Arc<dyn Parkable>))?;
        let [first, second] = whole;
        drop(first);
        gate.admit(&second)
    }

    /// Its last owner but the gate lets go of it while it is parked; and its end asks the gate.
    struct Last {
        gate: Arc<Gate>,
        owner: Arc<Mutex<Option<Arc<dyn Parkable>>>>,
    }
    impl Parkable for Last {
        fn park(&self) -> Result<()> {
            let owner = self.owner.lock().map(|mut owner| owner.take());
            drop(owner);
            Ok(())
        }
        fn unpark(&self) -> Result<()> {
            Ok(())
        }
    }
    impl Drop for Last {
        fn drop(&mut self) {
            let _ = self.gate.parked(|| ());
        }
    }

    #[test]
    fn the_gate_is_open_to_what_ends_while_it_is_parked() -> Result<()> {
        let gate = Arc::new(Gate::default());
        let owner = Arc::new(Mutex::default());
        let last: Arc<dyn Parkable> = Arc::new(Last {
            gate: Arc::clone(&gate),
            owner: Arc::clone(&owner),
        });
        gate.admit(&last)?;
        let weak = Arc::downgrade(&last);
        if let Ok(mut owner) = owner.lock() {
            *owner = Some(last);
        }
        gate.parked(|| assert_eq!(weak.strong_count(), 0))
    }

    #[test]
    fn residents_run_only_outside_sections() -> Result<()> {
        let gate = Gate::default();
        let early = Arc::new(Running::default());
        let late = Arc::new(Running::default());
        let check = |e: i32, l: i32| assert_eq!((early.0.load(SeqCst), late.0.load(SeqCst)), (e, l));
        gate.admit(&(Arc::clone(&early) as Arc<dyn Parkable>))?;
        check(1, 0);
        gate.parked(|| -> Result<()> {
            check(0, 0);
            gate.parked(|| check(0, 0))?;
            gate.admit(&(Arc::clone(&late) as Arc<dyn Parkable>))?;
            check(0, 0);
            Ok(())
        })??;
        check(1, 1);
        Ok(())
    }
}
