//! Standard output. Where the program was started with it closed (`>&-`), writing is an error: Rust's runtime opens what is closed as
//! `/dev/null`. Must not know what is written.

use std::io::{self, Stdout};

#[cfg(target_os = "linux")]
mod closed {
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Set before `main`, and before threads.
    static WAS: AtomicBool = AtomicBool::new(false);

    /// Run by the C library before Rust's runtime, which opens what is closed.
    #[used]
    // SAFETY: this section holds functions of this type, and `look` needs nothing of Rust's runtime.
    #[unsafe(link_section = ".init_array")]
    static LOOK: extern "C" fn() = look;

    extern "C" fn look() {
        // SAFETY: it asks for the flags of a number, open or not.
        let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
        // Relaxed: there is one thread.
        WAS.store(flags == -1, Ordering::Relaxed);
    }

    pub(super) fn was() -> bool {
        WAS.load(Ordering::Relaxed)
    }
}

/// Where to write, or that there is no such place.
pub(crate) fn stdout() -> io::Result<Stdout> {
    #[cfg(target_os = "linux")]
    if closed::was() {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    Ok(io::stdout())
}
