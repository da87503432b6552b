//! The protocol's names and numbers: version, kinds of frames, codes of errors. The documentation's tables are made of these.

/// What every frame begins with.
pub const MAGIC: [u8; 4] = *b"PISV";
/// The protocol's version.
pub const VERSION: u16 = 1;
/// Bytes of a frame's header.
pub const HEADER: usize = 16;

macro_rules! table {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $code:literal, $word:literal, $meaning:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name { $(#[doc = $meaning] $variant,)* }

        impl $name {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// Its number in frames.
            pub fn code(self) -> u16 {
                match self { $($name::$variant => $code,)* }
            }

            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }

            /// What it means.
            pub fn meaning(self) -> &'static str {
                match self { $($name::$variant => $meaning,)* }
            }

            /// The one of this number.
            pub fn from_code(code: u16) -> Option<$name> {
                $name::ALL.iter().copied().find(|known| known.code() == code)
            }
        }
    };
}

table! {
    /// What a frame is.
    Kind {
        Ask = 1, "ask", "Client to server: what is allowed here? Has no payload.";
        Allowed = 2, "allowed", "Server to client, the answer: the limits.";
        Run = 3, "run", "Client to server: a job.";
        Result = 4, "result", "Server to client: what the job's buffers hold afterwards.";
        Error = 5, "error", "Server to client: why there is no result.";
    }
}

table! {
    /// Why there is no result.
    Code {
        Frame = 1, "frame", "The bytes are no frame of this version, or not one that clients send. The server closes the connection.";
        Large = 2, "large", "A message, or a result, is longer than allowed. For a message the server closes the connection.";
        Slow = 3, "slow", "A frame did not come in the time allowed. The server closes the connection.";
        Full = 4, "full", "The server has as many clients as it takes, all with jobs: come again later. It closes the connection.";
        Ending = 5, "ending", "The server is being ended. The job may have run.";
        Job = 6, "job", "The frame's payload is no job.";
        Program = 7, "program", "The program is wrong, needs what the device cannot do, or is more than is allowed.";
        Fault = 8, "fault", "Lanes met a fault; the message names the line. A budget that is used up is a fault, too.";
        Time = 9, "time", "The job took longer than allowed, and was ended.";
        Memory = 10, "memory", "The job's process took more memory than allowed, and was ended.";
        Process = 11, "process", "The job's process ended, or could not be started: the driver or its compiler failed.";
        Waited = 12, "waited", "Another client needed a place, and the server had waited longest for this one: connect again. No job was begun since the last answer. The server closes the connection.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_rows_and_unknown_ones_are_nothing() {
        for (i, kind) in Kind::ALL.iter().enumerate() {
            assert_eq!(usize::from(kind.code()), i + 1);
            assert_eq!(Kind::from_code(kind.code()), Some(*kind));
        }
        for (i, code) in Code::ALL.iter().enumerate() {
            assert_eq!(usize::from(code.code()), i + 1);
            assert_eq!(Code::from_code(code.code()), Some(*code));
        }
        assert_eq!((Kind::from_code(0), Code::from_code(999)), (None, None));
    }
}
