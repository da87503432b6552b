//! What actors have sent to the host and nobody asked for by correlation: a bounded queue an actor. Where it is full, the actor waits.
//! Must not know engines.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::task::Waker;
use std::time::Instant;

use crate::lock::lock;
use crate::message::Packet;

/// One actor's outputs.
#[derive(Default)]
pub(crate) struct Outputs {
    inner: Mutex<Inner>,
    arrived: Condvar,
}

#[derive(Default)]
struct Inner {
    packets: VecDeque<Packet>,
    wakers: Vec<Waker>,
    // The actor found this full, and waits.
    refused: bool,
    closed: bool,
}

/// What a look into the queue gives.
pub(crate) enum Output {
    /// A packet, and whether the actor waits for room.
    Packet(Packet, bool),
    /// None yet.
    Empty,
    /// None any more.
    Closed,
}

impl Outputs {
    /// Appends; false where `capacity` packets wait: whoever takes one is told that the actor waits.
    pub(crate) fn push(&self, packet: &Packet, capacity: usize) -> bool {
        let mut inner = lock(&self.inner);
        if inner.packets.len() >= capacity {
            inner.refused = true;
            return false;
        }
        inner.packets.push_back(*packet);
        let wakers = std::mem::take(&mut inner.wakers);
        drop(inner);
        self.arrived.notify_one();
        wakers.into_iter().for_each(Waker::wake);
        true
    }

    /// The next; where there is none, `waker` is woken when there is.
    pub(crate) fn poll(&self, waker: Option<&Waker>) -> Output {
        let mut inner = lock(&self.inner);
        let output = inner.next();
        if let (Output::Empty, Some(waker)) = (&output, waker)
            && !inner.wakers.iter().any(|other| other.will_wake(waker))
        {
            inner.wakers.push(waker.clone());
        }
        output
    }

    /// The next; sleeps until there is one, or `deadline`.
    pub(crate) fn wait(&self, deadline: Option<Instant>) -> Output {
        let mut inner = lock(&self.inner);
        loop {
            let output = inner.next();
            let now = Instant::now();
            if !matches!(output, Output::Empty) || deadline.is_some_and(|deadline| deadline <= now) {
                return output;
            }
            inner = match deadline {
                None => self.arrived.wait(inner).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let waited = self.arrived.wait_timeout(inner, deadline - now);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// What waits, in order.
    pub(crate) fn snapshot(&self) -> Vec<Packet> {
        lock(&self.inner).packets.iter().copied().collect()
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        lock(&self.inner).packets.len()
    }

    /// Whether nothing more will come.
    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.inner).closed
    }

    /// Nothing more will come: what is there can still be taken.
    pub(crate) fn close(&self) {
        let mut inner = lock(&self.inner);
        inner.closed = true;
        let wakers = std::mem::take(&mut inner.wakers);
        drop(inner);
        self.arrived.notify_all();
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Inner {
    fn next(&mut self) -> Output {
        match self.packets.pop_front() {
            Some(packet) => Output::Packet(packet, std::mem::take(&mut self.refused)),
            None if self.closed => Output::Closed,
            None => Output::Empty,
        }
    }
}
