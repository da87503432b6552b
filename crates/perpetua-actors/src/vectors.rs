//! Messages with vectors, as the host has them: how they are written into a block and read where they lie. Must not know who owns
//! blocks, nor actors.
//!
//! ```
//! use perpetua::actors::{Borrowed, Context, LaunchOptions, PerpetuaRuntime, RingMessage, ring_kernel};
//! use perpetua::prelude::*;
//!
//! #[derive(RingMessage)]
//! struct Add {
//!     a: Vec<f32>,
//!     b: Vec<f32>,
//! }
//!
//! #[derive(RingMessage)]
//! struct Sum {
//!     values: Vec<f32>,
//! }
//!
//! // `AddView` is `Add` as it travels: a vector is a span of the block that comes with the message.
//! #[ring_kernel]
//! fn add(ctx: &mut Context, handled: &mut u32, message: AddView) -> SumView {
//!     for i in 0..message.a.len() {
//!         ctx.set(message.a, i, ctx.get(message.a, i) + ctx.get(message.b, i));
//!     }
//!     *handled += 1;
//!     SumView { values: message.a }
//! }
//!
//! # fn main() -> Result<(), perpetua::actors::ActorError> {
//! let runtime = PerpetuaRuntime::builder().arena_bytes(1 << 20).build_blocking()?;
//! let kernel = runtime.launch_blocking("add", LaunchOptions::new(add::handler()))?;
//! let add = Add { a: vec![1.0, 2.0], b: vec![10.0, 20.0] };
//! let sum: Sum = kernel.ask_blocking(&add)?; // copied once, out of the block
//! assert_eq!(sum.values, [11.0, 22.0]);
//! let sum: Borrowed<Sum> = kernel.ask_blocking(&add)?; // where it lies
//! assert_eq!(sum.get()?.values, [11.0, 22.0]);
//! # runtime.shutdown_blocking()?;
//! # Ok(())
//! # }
//! ```

use crate::message::RingMessage;
use crate::span::{SpanF32, SpanI32, SpanU32};

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for u32 {}
    impl Sealed for i32 {}
}

/// An element of a message's vector: a number of 32 bits.
pub trait Element: sealed::Sealed + Copy + Send + Sync + 'static {
    /// A vector of these, as handlers see it.
    type Span: Copy;

    /// The span of `len` elements from word `offset` of a block on.
    #[doc(hidden)]
    fn span(offset: u32, len: u32) -> Self::Span;
    /// Where a span begins, and how many elements it has.
    #[doc(hidden)]
    fn parts(span: Self::Span) -> (u32, u32);
    /// The element's bits.
    #[doc(hidden)]
    fn bits(self) -> u32;
    /// These words, as elements.
    #[doc(hidden)]
    fn of_words(words: &[u32]) -> &[Self];
}

macro_rules! elements {
    ($($element:ident: $span:ident, $value:ident => $bits:expr;)*) => { $(
        impl Element for $element {
            type Span = $span;

            fn span(offset: u32, len: u32) -> $span {
                $span::new(offset, len)
            }

            fn parts(span: $span) -> (u32, u32) {
                span.parts()
            }

            #[inline]
            fn bits(self) -> u32 {
                let $value = self;
                $bits
            }

            fn of_words(words: &[u32]) -> &[$element] {
                // SAFETY: both have 32 bits and the same alignment, and all bits are a value of both.
                unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), words.len()) }
            }
        }
    )* };
}

elements! {
    f32: SpanF32, x => x.to_bits();
    u32: SpanU32, x => x;
    i32: SpanI32, x => x as u32;
}

/// What handles send and get: a message of fixed layout ([`RingMessage`]), or one with vectors, of which `#[derive(RingMessage)]`
/// makes a view of fixed layout (`Scale` has `ScaleView`: a vector is a span there) and one that borrows (`ScaleRef`: a vector is
/// a slice there).
pub trait Message: Send + Sync + Sized + 'static {
    /// What travels, and what handlers take.
    type View: RingMessage;
    /// The message where it lies.
    type Ref<'a>;

    /// Words that its vectors take; `None` where the message has none, and needs no block.
    fn vector_words(&self) -> Option<usize>;
    /// Writes its vectors into a block.
    fn store(&self, block: &mut BlockWriter<'_>) -> Self::View;
    /// The message with its vectors where they lie; `None` where they are not there.
    fn borrow<'a>(view: &'a Self::View, block: BlockReader<'a>) -> Option<Self::Ref<'a>>;
    /// The message, its vectors copied; `None` where they are not there.
    fn load(view: &Self::View, block: BlockReader<'_>) -> Option<Self>;
}

impl<M: RingMessage> Message for M {
    type View = M;
    type Ref<'a> = &'a M;

    fn vector_words(&self) -> Option<usize> {
        None
    }

    fn store(&self, _block: &mut BlockWriter<'_>) -> M {
        *self
    }

    fn borrow<'a>(view: &'a M, _block: BlockReader<'a>) -> Option<&'a M> {
        Some(view)
    }

    fn load(view: &M, _block: BlockReader<'_>) -> Option<M> {
        Some(*view)
    }
}

/// A block that is being written, behind its head.
pub struct BlockWriter<'a> {
    words: &'a mut [u32],
    used: usize,
}

impl<'a> BlockWriter<'a> {
    pub(crate) fn new(words: &'a mut [u32]) -> BlockWriter<'a> {
        BlockWriter { words, used: 0 }
    }

    /// Appends a vector. One that does not fit is left out, and its span is empty.
    pub fn put<T: Element>(&mut self, values: &[T]) -> T::Span {
        let Some(room) = self.words.get_mut(self.used..self.used + values.len()) else {
            return T::span(0, 0);
        };
        for (word, value) in room.iter_mut().zip(values) {
            *word = value.bits();
        }
        let span = T::span(self.used as u32, values.len() as u32);
        self.used += values.len();
        span
    }

    /// Words written; all others are zeros from now on.
    pub(crate) fn finish(self) -> usize {
        if let Some(rest) = self.words.get_mut(self.used..) {
            rest.fill(0);
        }
        self.used
    }
}

/// A block that is read, behind its head; empty where there is none.
#[derive(Clone, Copy)]
pub struct BlockReader<'a> {
    words: &'a [u32],
}

impl<'a> BlockReader<'a> {
    pub(crate) fn new(words: &'a [u32]) -> BlockReader<'a> {
        BlockReader { words }
    }

    /// The vector that a span is; `None` where it is not in the block.
    pub fn get<T: Element>(self, span: T::Span) -> Option<&'a [T]> {
        let (offset, len) = T::parts(span);
        if len == 0 {
            return Some(&[]);
        }
        let offset = offset as usize;
        self.words.get(offset..offset + len as usize).map(T::of_words)
    }
}
