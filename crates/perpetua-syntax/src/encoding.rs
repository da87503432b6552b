//! The tree as bytes: one byte of format version, then postcard. Bytes that are not a tree of this version, or
//! nest deeper than [`MAX_NESTING`](crate::MAX_NESTING), are an
//! error.

use crate::ast::Function;

/// The version that [`encode`] writes and [`decode`] accepts; raised by every change of the tree or of the
/// intrinsics' order.
pub const FORMAT_VERSION: u8 = 5;

/// Why bytes are not a function.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// There are none.
    #[error("the encoded function is empty: rebuild the crate that holds the kernel")]
    Empty,
    /// Another version wrote them.
    #[error(
        "the encoded function has format version {found}, this build reads {FORMAT_VERSION}: \
         use the same version of perpetua-macros and perpetua-ir, and rebuild"
    )]
    Version {
        /// The version found.
        found: u8,
    },
    /// They are damaged.
    #[error("the encoded function is damaged ({cause}): rebuild the crate that holds the kernel")]
    Damaged {
        /// What the decoder met.
        cause: String,
    },
}

/// The function as bytes.
#[must_use]
pub fn encode(function: &Function) -> Vec<u8> {
    // Encoding into a growing vector cannot fail: the tree has only sized sequences and no custom serializers.
    postcard::to_extend(function, vec![FORMAT_VERSION]).unwrap_or_default()
}

/// The function that [`encode`] wrote.
///
/// # Errors
/// [`DecodeError`] where the bytes are not a function of this version, to the last byte.
pub fn decode(bytes: &[u8]) -> Result<Function, DecodeError> {
    let (&version, rest) = bytes.split_first().ok_or(DecodeError::Empty)?;
    if version != FORMAT_VERSION {
        return Err(DecodeError::Version { found: version });
    }
    match postcard::take_from_bytes(rest) {
        Ok((function, [])) => Ok(function),
        Ok((_, trailing)) => Err(DecodeError::Damaged {
            cause: format!("{} bytes follow its end", trailing.len()),
        }),
        Err(error) => Err(DecodeError::Damaged {
            cause: error.to_string(),
        }),
    }
}
