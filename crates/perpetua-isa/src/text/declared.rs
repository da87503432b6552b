//! What stands behind the names of declarations: extents, lengths, handles, tables. Knows no names.

use perpetua_ir::ir::{Scalar, constant};

use super::instruction::immediate;
use super::lexer::{Cursor, TokenKind};
use super::source::Line;
use crate::diagnostic::AssembleError;
use crate::program::MemoryKind;

type Result<T> = std::result::Result<T, AssembleError>;

fn integer<T: TryFrom<i128>>(cursor: &mut Cursor<'_>, line: &Line, what: &str) -> Result<T> {
    let span = cursor.span();
    let missing = || line.error(span.clone(), format!("{what} belongs here, a number"));
    let Some(TokenKind::Number(text)) = cursor.next() else {
        return Err(missing());
    };
    let value = constant::integer(text).ok_or_else(missing)?;
    T::try_from(value).map_err(|_| {
        let most = u64::MAX >> (64 - 8 * size_of::<T>());
        line.error(span, format!("{what}, {value}, is more than {most}"))
    })
}

/// `[= HANDLE]`
pub(super) fn handle(cursor: &mut Cursor<'_>, line: &Line, what: &str) -> Result<Option<u64>> {
    match cursor.takes('=') {
        true => integer(cursor, line, what).map(Some),
        false => Ok(None),
    }
}

/// `X, Y, Z`
pub(super) fn block(cursor: &mut Cursor<'_>, line: &Line) -> Result<[u32; 3]> {
    let mut block = [1; 3];
    for (i, extent) in block.iter_mut().enumerate() {
        if i > 0 && !cursor.takes(',') {
            break;
        }
        *extent = integer(cursor, line, "an extent of the block")?;
    }
    Ok(block)
}

/// `[LENGTH]`
pub(super) fn shared(cursor: &mut Cursor<'_>, line: &Line) -> Result<MemoryKind> {
    let bracket = |cursor: &mut Cursor<'_>, mark| match cursor.takes(mark) {
        true => Ok(()),
        false => Err(line.error(
            cursor.span(),
            "the length stands in brackets: `.shared NAME: TYPE[LENGTH]`",
        )),
    };
    bracket(cursor, '[')?;
    let len = integer(cursor, line, "the number of elements")?;
    bracket(cursor, ']')?;
    Ok(MemoryKind::Shared { len })
}

/// `= VALUE, …`
pub(super) fn constants(ty: Scalar, cursor: &mut Cursor<'_>, line: &Line) -> Result<MemoryKind> {
    if !cursor.takes('=') {
        return Err(line.error(cursor.span(), "`=` and the constants belong here"));
    }
    let mut data = Vec::new();
    loop {
        data.push(immediate(ty, cursor, line)?);
        if !cursor.takes(',') {
            return Ok(MemoryKind::Constants(data));
        }
    }
}
