//! What a device has compiled, each kernel once, up to a bound. Whoever asks for a kernel that is being compiled waits for
//! it: as a future, or sleeping. Must not know backends.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::task::{Context, Poll, Wake, Waker};

use crate::error::{Error, Result};
use crate::future::{BoxFuture, ready};
use crate::kernel::Module;
use crate::lock::lock;
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
pub(crate) struct Modules(Arc<Map>);

type Map = Mutex<Lru<ModuleKey, Arc<Slot>>>;

impl Default for Modules {
    fn default() -> Modules {
        Modules(Arc::new(Mutex::new(Lru::new(DEFAULT_MODULES))))
    }
}

impl Modules {
    /// The module, compiled by `make` on this thread, unless somebody has or is at it.
    pub(crate) fn get(&self, key: ModuleKey, make: impl FnOnce() -> Result<Module>) -> Result<Module> {
        match self.enter(key) {
            Entered::Ended(outcome) => outcome,
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
        match self.enter(key) {
            Entered::Ended(outcome) => ready(outcome),
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

    /// Whoever finds no slot makes one, and has the turn.
    fn enter(&self, key: ModuleKey) -> Entered {
        let mut slots = lock(&self.0);
        if let Some(slot) = slots.get(&key).map(Arc::clone) {
            drop(slots);
            return match slot.outcome.get() {
                Some(outcome) => Entered::Ended(outcome.clone()),
                None => Entered::Waiting(Asked(slot)),
            };
        }
        let slot = Arc::new(Slot {
            outcome: OnceLock::new(),
            future: Mutex::default(),
            waiting: Arc::default(),
            map: Arc::downgrade(&self.0),
            key: key.clone(),
        });
        let gone = slots.insert(key, Arc::clone(&slot));
        drop(slots);
        // Outside the lock, as above.
        drop(gone);
        Entered::Turn(Turn(Some(Asked(slot))))
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

/// An attempt to compile one module, and what came of it. One that has failed is in no map.
struct Slot {
    outcome: OnceLock<Result<Module>>,
    /// What compiles it, where that is a future, which whoever waits polls.
    future: Mutex<Option<BoxFuture<'static, Result<Module>>>>,
    waiting: Arc<Waiting>,
    map: Weak<Map>,
    key: ModuleKey,
}

/// Those to wake when the attempt may go on; `None` when it has ended, and nobody is kept any more.
struct Waiting(Mutex<Option<Vec<Waker>>>);

impl Default for Waiting {
    fn default() -> Waiting {
        Waiting(Mutex::new(Some(Vec::new())))
    }
}

impl Waiting {
    fn add(&self, waker: &Waker) {
        if let Some(wakers) = &mut *lock(&self.0)
            && !wakers.iter().any(|w| w.will_wake(waker))
        {
            wakers.push(waker.clone());
        }
    }

    fn end(&self) {
        let wakers = lock(&self.0).take();
        wakers.into_iter().flatten().for_each(Waker::wake);
    }
}

impl Wake for Waiting {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let wakers = lock(&self.0).as_mut().map(std::mem::take);
        wakers.into_iter().flatten().for_each(Waker::wake);
    }
}

enum Entered {
    Ended(Result<Module>),
    Waiting(Asked),
    Turn(Turn),
}

impl Slot {
    // Ends once: by the turn, or by the one future that it was given to.
    fn end(self: &Arc<Self>, made: Result<Module>) {
        if made.is_err()
            && let Some(map) = self.map.upgrade()
        {
            // Before anybody is told, so that whoever is and tries again makes an attempt of its own.
            let gone = lock(&map).remove(&self.key, |slot| Arc::ptr_eq(slot, self));
            // Outside the lock.
            drop(gone);
        }
        let _ = self.outcome.set(made);
        self.waiting.end();
    }
}

/// Somebody's wait for a module that is being compiled.
struct Asked(Arc<Slot>);

impl Future for Asked {
    type Output = Result<Module>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Module>> {
        let slot = &self.0;
        // First, so that an end after this look wakes us.
        slot.waiting.add(cx.waker());
        if let Some(outcome) = slot.outcome.get() {
            return Poll::Ready(outcome.clone());
        }
        let mut future = lock(&slot.future);
        // Polling is quick: the compiler runs elsewhere. Its waker wakes all who wait, so any of them may be dropped.
        let polled = match &mut *future {
            Some(future) => {
                let waker = Waker::from(Arc::clone(&slot.waiting));
                let cx = &mut Context::from_waker(&waker);
                catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx)))
            }
            None => Ok(Poll::Pending),
        };
        // Under the lock: a future that has ended is polled by nobody else.
        let ended = match polled {
            Ok(Poll::Pending) => None,
            _ => future.take(),
        };
        drop(future);
        drop(ended);
        match polled {
            Ok(Poll::Ready(made)) => slot.end(made),
            Ok(Poll::Pending) => {}
            // A compiler's panic is its asker's; all others are told, and the next one may try again.
            Err(panic) => {
                slot.end(Err(Error::InvalidState {
                    operation: "compile",
                    cause: "the compiler panicked",
                    remedy: "look for its message in the program's output",
                }));
                resume_unwind(panic);
            }
        }
        slot.outcome.get().cloned().map_or(Poll::Pending, Poll::Ready)
    }
}

/// The right and duty to compile a module.
struct Turn(Option<Asked>);

impl Turn {
    fn end(mut self, made: Result<Module>) -> Result<Module> {
        if let Some(Asked(slot)) = self.0.take() {
            slot.end(made.clone());
        }
        made
    }

    /// Hands it on to a future, which whoever waits polls.
    fn share(mut self, future: BoxFuture<'static, Result<Module>>) -> BoxFuture<'static, Result<Module>> {
        let Some(asked) = self.0.take() else { return future };
        *lock(&asked.0.future) = Some(future);
        // Others who came meanwhile may be the first to poll.
        asked.0.waiting.wake_by_ref();
        Box::pin(asked)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(Asked(slot)) = self.0.take() {
            slot.end(Err(Error::InvalidState {
                operation: "compiling a kernel",
                cause: "the compiler panicked",
                remedy: "see the panic's message",
            }));
        }
    }
}
