//! Work that takes long and must not hold the caller's thread: a few threads of our own, and a future that tells the
//! result. Needs no executor. Must not know what the work is.

use std::any::Any;
use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use crate::future::BoxFuture;
use crate::lock::lock;

/// Runs `job` on a thread of the pool; begins by the call, whether or not the future is polled. Dropping the future
/// leaves the job to end by itself. A job's panic comes out of the future.
pub(crate) fn run<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> BoxFuture<'static, T> {
    let told = Arc::new(Mutex::new(Told {
        result: None,
        waker: None,
    }));
    let own = Arc::clone(&told);
    submit(Box::new(move || {
        let result = catch_unwind(AssertUnwindSafe(job));
        let waker = {
            let mut told = lock(&own);
            told.result = Some(result);
            told.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }));
    Box::pin(Ended(told))
}

struct Told<T> {
    result: Option<Result<T, Box<dyn Any + Send>>>,
    waker: Option<Waker>,
}

struct Ended<T>(Arc<Mutex<Told<T>>>);

impl<T> Future for Ended<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let mut told = lock(&self.0);
        match told.result.take() {
            Some(Ok(value)) => Poll::Ready(value),
            Some(Err(panic)) => {
                drop(told);
                resume_unwind(panic)
            }
            None => {
                told.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// Jobs that wait for a thread, and how many threads there are.
struct Pool {
    jobs: VecDeque<Job>,
    threads: usize,
}

static POOL: Mutex<Pool> = Mutex::new(Pool {
    jobs: VecDeque::new(),
    threads: 0,
});

// Threads are made as they are needed, as many as the host has cores, and end when there is nothing left to do.
fn submit(job: Job) {
    let most = std::thread::available_parallelism().map_or(1, usize::from);
    let mut pool = lock(&POOL);
    pool.jobs.push_back(job);
    if pool.threads >= most {
        return;
    }
    pool.threads += 1;
    drop(pool);
    let made = std::thread::Builder::new()
        .name("perpetua-compile".into())
        .spawn(work);
    if made.is_err() {
        // The host has no thread to give: this one does the work.
        work();
    }
}

fn work() {
    loop {
        let mut pool = lock(&POOL);
        let Some(job) = pool.jobs.pop_front() else {
            pool.threads -= 1;
            return;
        };
        drop(pool);
        // A waker may panic: that must not cost the pool a thread.
        let _ = catch_unwind(AssertUnwindSafe(job));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::future::block_on;

    #[test]
    fn jobs_run_elsewhere_and_their_futures_may_be_dropped() {
        let own = std::thread::current().id();
        let (sender, receiver) = std::sync::mpsc::channel();
        let futures: Vec<_> = (0..100)
            .map(|n| {
                let sender = sender.clone();
                run(move || {
                    let _ = sender.send(n);
                    (n, std::thread::current().id())
                })
            })
            .collect();
        for (i, future) in futures.into_iter().enumerate() {
            if i % 2 == 0 {
                let (n, thread) = block_on(future);
                assert_eq!(n, i);
                assert_ne!(thread, own);
            }
        }
        drop(sender);
        let mut ran: Vec<usize> = receiver.into_iter().collect();
        ran.sort_unstable();
        assert_eq!(
            ran,
            (0..100).collect::<Vec<_>>(),
            "those whose futures were dropped, too"
        );
    }

    #[test]
    fn a_panic_comes_out_of_the_future() {
        let future = run(|| std::panic::panic_any(7));
        let panic = catch_unwind(AssertUnwindSafe(|| block_on(future))).expect_err("it panics");
        assert_eq!(panic.downcast_ref(), Some(&7));
    }
}
