//! What a device has compiled, each kernel once, up to a bound. Whoever asks for a kernel that is being compiled waits for
//! it: as a future, or sleeping. Must not know backends.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::task::{Context, Poll, Wake, Waker};

use crate::error::{Error, Result};
use crate::future::{BoxFuture, ready};
use crate::kernel::Module;
use crate::lru::Lru;
use crate::source::{CompileOptions, KernelId};

/// Most modules that a device keeps, unless [`Device::set_module_limit`](crate::Device::set_module_limit) says otherwise.
pub const DEFAULT_MODULES: usize = 1024;

/// What a module is made of.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct ModuleKey {
    pub(crate) form: &'static str,
    pub(crate) id: KernelId,
    pub(crate) options: CompileOptions,
}

/// A device's modules. One that falls out of the map lives on with whoever holds it.
pub(crate) struct Modules(Mutex<Lru<ModuleKey, Arc<Slot>>>);

impl Default for Modules {
    fn default() -> Modules {
        Modules(Mutex::new(Lru::new(DEFAULT_MODULES)))
    }
}

impl Modules {
    /// The module, compiled by `make` on this thread, unless somebody has or is at it.
    pub(crate) fn get(&self, key: ModuleKey, make: impl FnOnce() -> Result<Module>) -> Result<Module> {
        match self.slot(key).enter() {
            Entered::Done(module) => Ok(module),
            Entered::Waiting(asked) => wait(asked),
            Entered::Turn(turn) => {
                let made = make();
                turn.end(made)
            }
        }
    }

    /// The same as a future, of what `begin` has begun, within this call.
    pub(crate) fn get_async(
        &self,
        key: ModuleKey,
        begin: impl FnOnce() -> BoxFuture<'static, Result<Module>>,
    ) -> BoxFuture<'static, Result<Module>> {
        match self.slot(key).enter() {
            Entered::Done(module) => ready(Ok(module)),
            Entered::Waiting(asked) => Box::pin(asked),
            Entered::Turn(turn) => {
                let future = begin();
                turn.share(future)
            }
        }
    }

    /// How many modules there are.
    pub(crate) fn len(&self) -> usize {
        lock(&self.0).len()
    }

    /// Changes the bound.
    pub(crate) fn set_most(&self, most: usize) {
        let gone = lock(&self.0).set_most(most);
        // Outside the lock: dropping a module may take time.
        drop(gone);
    }

    fn slot(&self, key: ModuleKey) -> Arc<Slot> {
        let mut slots = lock(&self.0);
        if let Some(slot) = slots.get(&key) {
            return Arc::clone(slot);
        }
        let slot = Arc::new(Slot::default());
        let gone = slots.insert(key, Arc::clone(&slot));
        drop(slots);
        // Outside the lock, as above.
        drop(gone);
        slot
    }
}

#[cfg(not(target_arch = "wasm32"))]
fn wait(asked: Asked) -> Result<Module> {
    crate::future::block_on(asked)
}

#[cfg(target_arch = "wasm32")]
fn wait(asked: Asked) -> Result<Module> {
    crate::future::now_or_cannot_block(asked, "waiting for a kernel that is being compiled")
}

/// Locks, also after a panic elsewhere: every guarded value is valid between any two statements.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// What an attempt to compile gave, for all who wait for it.
type Outcome = Arc<OnceLock<Result<Module>>>;

/// One module's place.
#[derive(Default)]
struct Slot {
    state: Mutex<State>,
    waiting: Arc<Waiting>,
}

#[derive(Default)]
enum State {
    #[default]
    Free,
    /// Somebody compiles it: in a future, which whoever waits polls, or on a thread.
    Running(Option<BoxFuture<'static, Result<Module>>>, Outcome),
    Done(Module),
}

/// Those to wake when the attempt may go on, or has ended.
#[derive(Default)]
struct Waiting(Mutex<Vec<Waker>>);

impl Waiting {
    fn add(&self, waker: &Waker) {
        let mut wakers = lock(&self.0);
        if !wakers.iter().any(|w| w.will_wake(waker)) {
            wakers.push(waker.clone());
        }
    }
}

impl Wake for Waiting {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let wakers = std::mem::take(&mut *lock(&self.0));
        wakers.into_iter().for_each(Waker::wake);
    }
}

enum Entered {
    Done(Module),
    Waiting(Asked),
    Turn(Turn),
}

impl Slot {
    fn enter(self: Arc<Slot>) -> Entered {
        let mut state = lock(&self.state);
        let outcome = match &*state {
            State::Done(module) => return Entered::Done(module.clone()),
            State::Running(_, outcome) => Some(Arc::clone(outcome)),
            State::Free => None,
        };
        if let Some(outcome) = outcome {
            drop(state);
            return Entered::Waiting(Asked { slot: self, outcome });
        }
        let outcome = Outcome::default();
        *state = State::Running(None, Arc::clone(&outcome));
        drop(state);
        Entered::Turn(Turn(Some(Asked { slot: self, outcome })))
    }
}

/// Somebody's wait for a module that is being compiled.
struct Asked {
    slot: Arc<Slot>,
    outcome: Outcome,
}

impl Asked {
    fn end(&self, made: Result<Module>) {
        let mut state = lock(&self.slot.state);
        *state = match &made {
            Ok(module) => State::Done(module.clone()),
            Err(_) => State::Free,
        };
        // Ends once: by the turn, or by the one future that it was given to.
        let _ = self.outcome.set(made);
        drop(state);
        self.slot.waiting.wake_by_ref();
    }
}

impl Future for Asked {
    type Output = Result<Module>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Module>> {
        // First, so that an end after this look wakes us.
        self.slot.waiting.add(cx.waker());
        if let Some(outcome) = self.outcome.get() {
            return Poll::Ready(outcome.clone());
        }
        let mut state = lock(&self.slot.state);
        // Polling is quick: the compiler runs elsewhere. Its waker wakes all who wait, so any of them may be dropped.
        let polled = match &mut *state {
            State::Running(Some(future), outcome) if Arc::ptr_eq(outcome, &self.outcome) => {
                let waker = Waker::from(Arc::clone(&self.slot.waiting));
                let cx = &mut Context::from_waker(&waker);
                catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx)))
            }
            _ => Ok(Poll::Pending),
        };
        // Under the lock: a future that has ended is polled by nobody else.
        if !matches!(polled, Ok(Poll::Pending))
            && let State::Running(future, _) = &mut *state
        {
            *future = None;
        }
        drop(state);
        match polled {
            Ok(Poll::Ready(made)) => self.end(made),
            Ok(Poll::Pending) => {}
            // A compiler's panic is its asker's; all others are told, and the next one may try again.
            Err(panic) => {
                self.end(Err(Error::InvalidState {
                    operation: "compile",
                    cause: "the compiler panicked",
                    remedy: "look for its message in the program's output",
                }));
                resume_unwind(panic);
            }
        }
        self.outcome.get().cloned().map_or(Poll::Pending, Poll::Ready)
    }
}

/// The right and duty to compile a module.
struct Turn(Option<Asked>);

impl Turn {
    fn end(mut self, made: Result<Module>) -> Result<Module> {
        if let Some(asked) = self.0.take() {
            asked.end(made.clone());
        }
        made
    }

    /// Hands it on to a future, which whoever waits polls.
    fn share(mut self, future: BoxFuture<'static, Result<Module>>) -> BoxFuture<'static, Result<Module>> {
        let Some(asked) = self.0.take() else { return future };
        *lock(&asked.slot.state) = State::Running(Some(future), Arc::clone(&asked.outcome));
        // Others who came meanwhile may be the first to poll.
        asked.slot.waiting.wake_by_ref();
        Box::pin(asked)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(asked) = self.0.take() {
            asked.end(Err(Error::InvalidState {
                operation: "compiling a kernel",
                cause: "the compiler panicked",
                remedy: "see the panic's message",
            }));
        }
    }
}
