//! The directives' table, for the specification and for messages.

/// How each is written, and what it does.
pub(crate) const DIRECTIVES: [(&str, &str); 11] = [
    (
        ".program NAME",
        "Names the program; once, and needed where there is no instruction.",
    ),
    (
        ".block X, Y, Z",
        "The size of its blocks, at most 1024 lanes; `Y` and `Z` are 1 where they are left out. Without it the launch chooses.",
    ),
    (
        ".buffer NAME: TYPE [ACCESS] [= HANDLE]",
        "Memory of the device. ACCESS is `read` or `readwrite`; left out, it may be written if an instruction stores to it.",
    ),
    (".pool NAME [= HANDLE]", "Memory of which lanes take blocks."),
    (".param NAME: TYPE", "A value that the launch gives."),
    (
        ".shared NAME: TYPE[LENGTH]",
        "Memory of a block. What it holds at the start is not specified; in untrusted programs it is zero.",
    ),
    (
        ".const NAME: TYPE = VALUE, …",
        "A table of constants, of at least one.",
    ),
    (
        ".func NAME",
        "What follows, up to the next one, is a routine for `call`, with labels of its own.",
    ),
    (
        ".include \"FILE\"",
        "The lines of a file in the program's folder or below it (a link out of it is refused); `\"atlas\"` brings macros for hologram's instructions of \
         that group.",
    ),
    (
        ".macro NAME A, B",
        "The lines up to `.endmacro` are a macro. A line `NAME x, y` stands for them, with `x` for `\\A`, `y` for `\\B`, and \
         for `\\@` a number that no other use has. NAME is neither an instruction nor a directive.",
    ),
    (".endmacro", "Ends a macro."),
];
