//! The line that an operation is recorded for: the caller's, or, inside a composition, the composition's.

use std::cell::Cell;
use std::panic::Location;

thread_local! {
    static FOR: Cell<Option<&'static Location<'static>>> = const { Cell::new(None) };
}

/// The line that this thread records for, if it is inside a composition; else the caller's.
pub(crate) fn here(caller: &'static Location<'static>) -> &'static Location<'static> {
    FOR.get().unwrap_or(caller)
}

/// Records what `work` does for a line.
pub(crate) fn inside<T>(at: &'static Location<'static>, work: impl FnOnce() -> T) -> T {
    struct Back(Option<&'static Location<'static>>);
    impl Drop for Back {
        fn drop(&mut self) {
            FOR.set(self.0);
        }
    }
    let _back = Back(FOR.replace(Some(at)));
    work()
}

/// The line that the function around it records for; that has `#[track_caller]`.
macro_rules! here {
    () => {
        $crate::place::here(std::panic::Location::caller())
    };
}
