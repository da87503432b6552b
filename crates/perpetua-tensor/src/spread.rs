//! Work of the host, done by several threads at once. Must not know what it is.

use std::sync::Mutex;

/// Work on fewer bytes is done sooner than handed to other threads.
const FEW: usize = 1 << 18;
/// Pieces of about so many bytes are handed out.
const PIECE: usize = 1 << 16;

/// How many of so many bytes make a piece.
pub(crate) fn at_once(bytes: usize) -> usize {
    (PIECE / bytes.max(1)).max(1)
}

/// Does something with each piece of some, which reads and writes so many bytes in all. In which order is open.
pub(crate) fn each<P: Iterator + Send>(bytes: usize, pieces: P, work: impl Fn(P::Item) + Sync)
where
    P::Item: Send,
{
    if bytes < FEW {
        return pieces.for_each(work);
    }
    let pieces = Mutex::new(pieces);
    let next = || {
        // An iterator that has panicked is not asked again.
        pieces.lock().ok()?.next()
    };
    perpetua_device::cpu::spread(&|| {
        while let Some(piece) = next() {
            work(piece);
        }
    });
}
