//! Panics of handlers, which are faults that the runtime answers for: told where faults are told, with their place, not on stderr.
//! `RUST_BACKTRACE` brings the panic's own words back, too. Must not know actors.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether a handler runs on this thread.
    static IS_WATCHED: Cell<bool> = const { Cell::new(false) };
    /// Where the last handler on this thread has panicked.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// From here on the process says nothing of panics that [`caught`] catches. All others go where they went before.
pub(super) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let is_loud = std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0");
        let before = take_hook();
        set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
            let is_watched = IS_WATCHED.get();
            if is_watched {
                let place = info.location().map(ToString::to_string);
                PLACE.with(|last| *last.borrow_mut() = place);
            }
            if is_loud || !is_watched {
                before(info);
            }
        }));
    });
}

/// Runs a handler. A panic is what it says, and where.
pub(super) fn caught<T>(run: impl FnOnce() -> T + std::panic::UnwindSafe) -> Result<T, String> {
    // A handler may wait for another one, which runs within it.
    let around = IS_WATCHED.replace(true);
    let outcome = catch_unwind(run);
    IS_WATCHED.set(around);
    outcome.map_err(|panic| {
        let place = PLACE.with(|last| last.borrow_mut().take());
        let text = describe(&*panic);
        place.map_or(text.clone(), |place| format!("{text}, at {place}"))
    })
}

fn describe(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "it panicked with something that is no text".into())
}
