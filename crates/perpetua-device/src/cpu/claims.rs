//! Who accesses which memory: what keeps plain accesses of native code from racing with other streams' work.
//!
//! Work claims the memory that it touches before it runs, and gives it back when it has run. Nearly all accesses are
//! atomic in effect (relaxed ones, or machine code), and such work of several streams may meet. Native code whose accesses
//! are proven for its own lanes makes plain ones, and claims its memory as *plain*:
//!
//! - Work that meets a plain claim waits until it is given back. Whoever holds one ends by itself
//!   ([`PreparedLaunch::run`](crate::native::PreparedLaunch::run)), so nobody waits for ever.
//! - Native code that would make plain accesses where others make atomic ones is told so ([`Sharing::Shared`]), and
//!   makes atomic ones as well. It does not wait: work that it meets may run for ever.
//!
//! Two claims meet where their bytes do and one of them stores. Claims are taken and given back under one lock, which also
//! orders what is accessed under one before what is accessed under the next. Streams with events between them, or with buffers of
//! their own, never meet. While a device has had one stream only, nothing can, and nothing is claimed but what may run for ever.

use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard};

use crate::host::raw;
use crate::native::Sharing;
use crate::ptr::DevicePtr;

/// Memory that some work touches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Span {
    bytes: Range<usize>,
    stores: bool,
    /// Whether it is to be accessed plainly.
    plain: bool,
}

impl Span {
    /// `None` where there are no bytes. `plain`: whether native code would access it plainly.
    pub(super) fn new(ptr: &DevicePtr, stores: bool, plain: bool) -> Option<Span> {
        let start = raw(ptr).filter(|_| !ptr.is_empty())?.addr().get();
        Some(Span {
            bytes: start..start + ptr.len() as usize,
            stores,
            plain,
        })
    }

    /// The same memory, accessed by atomics.
    pub(super) fn atomic(self) -> Span {
        Span { plain: false, ..self }
    }

    fn meets(&self, other: &Span) -> bool {
        (self.stores || other.stores)
            && self.bytes.start < other.bytes.end
            && other.bytes.start < self.bytes.end
    }
}

/// What running work has claimed.
#[derive(Default)]
pub(super) struct Claims {
    state: Mutex<State>,
    given_back: Condvar,
}

#[derive(Default)]
struct State {
    // With the number of the claim.
    spans: Vec<(u64, Span)>,
    next: u64,
    // What those that wait want, with a number for each: newcomers that meet it make no plain claim, so that they get their turn.
    waiting: Vec<(u64, Span)>,
}

/// Claimed memory; dropping it gives it back.
pub(super) struct Claim<'a> {
    claims: &'a Claims,
    number: u64,
    sharing: Sharing,
}

impl Claims {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Claims spans, at once; `None` where that would mean to wait.
    pub(super) fn take_now(&self, spans: impl Fn(&mut dyn FnMut(Span))) -> Option<Claim<'_>> {
        self.lock().add(&spans, None).map(|claimed| self.claim(claimed))
    }

    /// Claims spans, and waits where somebody accesses them plainly.
    pub(super) fn take(&self, spans: impl Fn(&mut dyn FnMut(Span))) -> Claim<'_> {
        let mut state = self.lock();
        if let Some(claimed) = state.add(&spans, None) {
            return self.claim(claimed);
        }
        let waiter = state.next;
        state.next += 1;
        spans(&mut |span| state.waiting.push((waiter, span)));
        loop {
            state = self.given_back.wait(state).unwrap_or_else(|e| e.into_inner());
            if let Some(claimed) = state.add(&spans, Some(waiter)) {
                state.waiting.retain(|(number, _)| *number != waiter);
                return self.claim(claimed);
            }
        }
    }

    fn claim(&self, (number, sharing): (u64, Sharing)) -> Claim<'_> {
        Claim {
            claims: self,
            number,
            sharing,
        }
    }
}

impl State {
    // The claim's number, and how its memory may be accessed; `None` where it meets a plain claim. `waiter`: who asks again.
    fn add(&mut self, spans: &impl Fn(&mut dyn FnMut(Span)), waiter: Option<u64>) -> Option<(u64, Sharing)> {
        let (number, before) = (self.next, self.spans.len());
        self.next += 1;
        spans(&mut |span| self.spans.push((number, span)));
        let (others, own) = self.spans.split_at_mut(before);
        let mut sharing = Sharing::ConflictFree;
        for (_, span) in own.iter() {
            for (_, other) in others.iter().filter(|(_, other)| other.meets(span)) {
                if other.plain {
                    self.spans.truncate(before);
                    return None;
                }
                sharing = Sharing::Shared;
            }
        }
        let mut others = self.waiting.iter().filter(|(number, _)| Some(*number) != waiter);
        if others.any(|(_, wanted)| own.iter().any(|(_, span)| span.meets(wanted))) {
            sharing = Sharing::Shared;
        }
        if sharing == Sharing::Shared {
            own.iter_mut().for_each(|(_, span)| span.plain = false);
        }
        Some((number, sharing))
    }
}

impl Claim<'_> {
    /// Who else may access the memory.
    pub(super) fn sharing(&self) -> Sharing {
        self.sharing
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut state = self.claims.lock();
        state.spans.retain(|(number, _)| *number != self.number);
        let waits = !state.waiting.is_empty();
        drop(state);
        if waits {
            self.claims.given_back.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(bytes: Range<usize>, stores: bool, plain: bool) -> Span {
        Span { bytes, stores, plain }
    }

    #[test]
    fn plain_accesses_are_alone_or_become_atomic() {
        let claims = Claims::default();
        let take = |span: Span| claims.take_now(move |add| add(span.clone()));
        let sharing = |claim: &Option<Claim<'_>>| claim.as_ref().map(Claim::sharing);
        let (read, write) = (span(0..8, false, true), span(0..8, true, true));
        // Readers do not disturb each other; who writes waits for them.
        let readers = [
            take(read.clone()),
            take(read.clone()),
            take(span(4..9, false, false)),
        ];
        assert!(
            readers
                .iter()
                .all(|claim| sharing(claim) == Some(Sharing::ConflictFree))
        );
        assert_eq!(sharing(&take(write.clone())), None);
        assert_eq!(sharing(&take(span(0..1, true, false))), None);
        let beside = take(span(9..12, true, true));
        assert_eq!(sharing(&beside), Some(Sharing::ConflictFree));
        let [a, b, atomic] = readers;
        drop((a, b));
        // One that reads atomically is left: who writes does as well, and then others need not wait.
        let shared = take(write.clone());
        assert_eq!(sharing(&shared), Some(Sharing::Shared));
        assert_eq!(sharing(&take(read)), Some(Sharing::Shared));
        drop((shared, atomic));
        assert_eq!(sharing(&take(write)), Some(Sharing::ConflictFree));
        drop(beside);
        assert!(claims.lock().spans.is_empty());
    }
}
