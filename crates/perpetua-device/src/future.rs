//! Futures that need no executor, and the bounds that differ between native targets and browsers.
//!
//! In a browser GPU objects belong to one thread, so nothing there is `Send`, unless the feature `wasm-send` says that one
//! thread is all that there is; [`MaybeSend`] and [`MaybeSync`] ask for
//! `Send` and `Sync` everywhere else. Must not know any backend.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::Waker;

#[cfg(any(not(target_arch = "wasm32"), feature = "wasm-send"))]
mod bounds {
    /// `Send`, except on wasm32, where it asks for nothing.
    pub trait MaybeSend: Send {}
    impl<T: Send + ?Sized> MaybeSend for T {}
    /// `Sync`, except on wasm32, where it asks for nothing.
    pub trait MaybeSync: Sync {}
    impl<T: Sync + ?Sized> MaybeSync for T {}
    /// A boxed future; `Send` except on wasm32.
    pub type BoxFuture<'a, T> = super::Pin<Box<dyn super::Future<Output = T> + Send + 'a>>;
}

#[cfg(all(target_arch = "wasm32", not(feature = "wasm-send")))]
mod bounds {
    /// `Send`, except on wasm32, where it asks for nothing.
    pub trait MaybeSend {}
    impl<T: ?Sized> MaybeSend for T {}
    /// `Sync`, except on wasm32, where it asks for nothing.
    pub trait MaybeSync {}
    impl<T: ?Sized> MaybeSync for T {}
    /// A boxed future; `Send` except on wasm32.
    pub type BoxFuture<'a, T> = super::Pin<Box<dyn super::Future<Output = T> + 'a>>;
}

pub use bounds::{BoxFuture, MaybeSend, MaybeSync};

/// A future that is ready with `value`.
pub fn ready<'a, T: MaybeSend + 'a>(value: T) -> BoxFuture<'a, T> {
    Box::pin(std::future::ready(value))
}

/// Wakes them all. An executor may do anything when woken: so not under a lock; and one that panics (the panic's hook has told of
/// it) takes neither the others' turn nor the calling thread with it.
pub(crate) fn wake_all(wakers: impl IntoIterator<Item = Waker>) {
    for waker in wakers {
        let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
    }
}

/// Runs a future to its end on the calling thread, which sleeps while the future waits.
#[cfg(not(target_arch = "wasm32"))]
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    use std::sync::Arc;
    use std::task::{Context, Poll, Wake};

    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
        fn wake_by_ref(self: &Arc<Self>) {
            self.0.unpark();
        }
    }

    let mut future = std::pin::pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut cx = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut cx) {
            return value;
        }
        std::thread::park();
    }
}

/// The future's value if it is ready at once, which is all that a thread that may not sleep can do.
#[cfg(target_arch = "wasm32")]
pub fn now_or_cannot_block<T>(
    future: impl Future<Output = crate::Result<T>>,
    operation: &'static str,
) -> crate::Result<T> {
    let mut future = std::pin::pin!(future);
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut cx) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => Err(crate::Error::CannotBlock { operation }),
    }
}
