//! Reasons why results are stored. Must not know how graphs are divided.

/// Why an operation's result is stored instead of being computed where it is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stay {
    /// Somebody asked for it.
    Asked,
    /// Tracking begins with it.
    Variable,
    /// It is a combination whose result others need than one kernel over the same rows.
    Combination,
    /// It is a matrix product whose result is not needed by one kernel element by element.
    Product,
    /// Several kernels need it, and computing it is dear.
    Shared,
    /// It would be computed again for each repetition.
    Repeated,
    /// Its elements are looked up by their index.
    Gathered,
    /// It would be computed for many of its elements to get one of the result.
    Often,
    /// It would be computed again for each tile of a product.
    Brought,
    /// The kernel library computes it.
    Library,
    /// It is a function with a kernel of its own.
    Function,
    /// A kernel that is not generated reads it.
    Read,
    /// The kernel would be too long.
    Long,
    /// The kernel would have more buffers than the device binds.
    Buffers,
    /// Fusion is off.
    Off,
}

impl Stay {
    /// The reason in words.
    pub const fn reason(self) -> &'static str {
        match self {
            Stay::Asked => "its value was asked for",
            Stay::Variable => "tracking begins with it",
            Stay::Combination => "others need its result than one kernel over the same rows",
            Stay::Product => "others need its result than one kernel over the same elements",
            Stay::Shared => "several kernels need it, and computing it again is dear",
            Stay::Repeated => "it would be computed again for each repetition",
            Stay::Gathered => "its elements are looked up by their index",
            Stay::Often => "it would be computed for many of its elements to get one of the result",
            Stay::Brought => "it would be computed again for each tile of a product",
            Stay::Library => "the kernel library computes it",
            Stay::Function => "it has a kernel of its own",
            Stay::Read => "a kernel that is not generated reads it",
            Stay::Long => "the kernel would be too long",
            Stay::Buffers => "the kernel would have more buffers than the device binds",
            Stay::Off => "fusion is off",
        }
    }
}
