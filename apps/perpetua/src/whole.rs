//! Whole numbers of the command line, with what may be written in words. Must not know what they count.

use std::fmt::Display;
use std::str::FromStr;

/// A number that is not below zero.
pub(crate) trait Whole: FromStr + Display {
    const MOST: Self;
}

macro_rules! whole {
    ($($number:ty),*) => {
        $(impl Whole for $number {
            const MOST: Self = <$number>::MAX;
        })*
    };
}

whole!(u32, u64, usize);

/// A number from 0 on.
pub(crate) fn from_nought<T: Whole>(text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| {
        let parts = || text.split('x').map(str::trim);
        if parts().count() > 1 && parts().all(|part| part.parse::<T>().is_ok()) {
            let list: Vec<&str> = parts().collect();
            return format!("a comma parts sizes here: {}", list.join(","));
        }
        format!("it must be a whole number from 0 to {}", T::MOST)
    })
}

/// A number with the noun that it counts.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_written_is_said() {
        assert_eq!(from_nought::<u32>(" 0"), Ok(0));
        for text in ["-1", "64.5", "x", "", "4294967296"] {
            assert_eq!(
                from_nought::<u32>(text),
                Err("it must be a whole number from 0 to 4294967295".into())
            );
        }
        assert_eq!(
            from_nought::<u64>("5x4"),
            Err("a comma parts sizes here: 5,4".into())
        );
        assert_eq!(counted(1, "step", "steps"), "1 step");
        assert_eq!(counted(0, "step", "steps"), "0 steps");
    }
}
