//! How errors print in `Debug`. Must not know any of them.

/// `Debug` as `Display`: what `fn main() -> Result<(), Error>`, `unwrap` and `expect` print is for people, with cause and remedy. The
/// values are fields all the same.
#[doc(hidden)]
#[macro_export]
macro_rules! debug_as_display {
    ($error:ty) => {
        impl ::core::fmt::Debug for $error {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::fmt::Display::fmt(self, f)
            }
        }
    };
}
