//! Keeps threads on processors of their own, so that what is measured crosses from one to the other.

/// Keeps this thread on processor `processor`, where the operating system allows.
pub(crate) fn pin(processor: usize) {
    #[cfg(target_os = "linux")]
    {
        let mut set = std::mem::MaybeUninit::<libc::cpu_set_t>::zeroed();
        // SAFETY: all zeros are an empty set; the macro's index is in its range; the set is ours. An error leaves all as it was.
        unsafe {
            libc::CPU_SET(processor, set.assume_init_mut());
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), set.as_ptr());
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = processor;
}
