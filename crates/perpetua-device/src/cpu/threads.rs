//! The threads that kernels are spread over, beside the one that runs them.
//!
//! They are a pool of the backend's own, not rayon's global one: programs may block that one's threads while they wait for a
//! stream, and work that needed them would wait for ever. For the same reason a thread of any rayon pool
//! must not spread work here itself ([`may_spread`]): while it waited for the others it would run other tasks of
//! its pool, which may wait for the very stream that it is running.

use crate::future::MaybeSync;

#[cfg(not(target_arch = "wasm32"))]
mod imp {
    use std::sync::OnceLock;

    use rayon::{ThreadPool, ThreadPoolBuilder};

    use super::super::floats::Floats;

    use crate::future::MaybeSync;

    // `None` when the system gives no threads: then all work is done by the thread that runs it.
    fn pool() -> Option<&'static ThreadPool> {
        static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();
        let build = || {
            let name = |i| format!("perpetua-cpu-{i}");
            // A thread begins with what its parent has of floats; these run nothing but kernels.
            let begin = |_| std::mem::forget(Floats::as_rust());
            let builder = ThreadPoolBuilder::new().thread_name(name).start_handler(begin);
            builder.build().ok()
        };
        POOL.get_or_init(build).as_ref()
    }

    /// Number of threads that work in parallel (RAYON_NUM_THREADS, else one for each processor).
    pub(in super::super) fn count() -> usize {
        pool().map_or(1, ThreadPool::current_num_threads)
    }

    /// Whether this thread may call [`spread`].
    pub(in super::super) fn may_spread() -> bool {
        rayon::current_thread_index().is_none()
    }

    /// Calls `work` on this thread and at the same time on the others, on up to `most` in all; returns when all calls have.
    pub(in super::super) fn spread_to(most: usize, work: &(impl Fn() + MaybeSync + ?Sized)) {
        match pool().filter(|_| most > 1) {
            None => work(),
            Some(pool) => pool.in_place_scope(|scope| {
                for _ in 1..pool.current_num_threads().min(most) {
                    scope.spawn(|_| work());
                }
                work();
            }),
        }
    }
}

#[cfg(target_arch = "wasm32")]
mod imp {
    use crate::future::MaybeSync;

    /// Browsers give one thread.
    pub(in super::super) fn count() -> usize {
        1
    }

    /// There is nobody to wait for.
    pub(in super::super) fn may_spread() -> bool {
        true
    }

    /// Calls `work`.
    pub(in super::super) fn spread_to(_: usize, work: &(impl Fn() + MaybeSync + ?Sized)) {
        work();
    }
}

pub(super) use imp::{count, may_spread, spread_to};

/// Calls `work` on this thread and at the same time on all others; returns when all calls have.
pub(super) fn spread(work: &(impl Fn() + MaybeSync + ?Sized)) {
    spread_to(usize::MAX, work);
}
