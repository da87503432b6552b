//! What the verifier finds wrong, as data. Text lives in `Display` alone.

use std::fmt;

use crate::ir::text;
use crate::ir::{Body, Inst, Kernel, Stmt, Type, TypeError};

/// One thing that is wrong with a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyError {
    /// Kernel's name.
    pub kernel: String,
    /// The device function that the error is in; `None` for the kernel's own code and for declarations.
    pub function: Option<String>,
    /// Source line, 0 when unknown or when the error is about a declaration.
    pub line: u32,
    /// The statement that the error points at; `None` when it is about a declaration or a whole body.
    pub statement: Option<Statement>,
    /// What is wrong.
    pub cause: Cause,
}

/// A statement, named for a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Its number in its body, in the order of [`crate::ir::Block::walk`], from 0.
    pub number: u32,
    /// Its text, without the code in its blocks.
    pub text: String,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// An operation's operands do not fit it.
    #[error(transparent)]
    Type(#[from] TypeError),
    /// A name that targets could not write.
    #[error(
        "the name `{name}` of {what} is not an identifier: use ASCII letters, digits and `_`, no digit first"
    )]
    Name {
        /// What bears it.
        what: String,
        /// The name.
        name: String,
    },
    /// Two things with one name.
    #[error("{what} `{name}` has the name of another one: rename it")]
    Duplicate {
        /// What the second one is.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// Two different structs with one name.
    #[error("two different structs are called `{name}`: rename one")]
    StructsDiffer {
        /// The name.
        name: String,
    },
    /// A type that cannot be laid out or is laid out wrongly.
    #[error("the type of {what}: {problem}")]
    BadType {
        /// What has the type.
        what: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Something is larger or more than allowed.
    #[error("{what} is {found}, at most {limit} is allowed")]
    TooLarge {
        /// What is limited.
        what: String,
        /// How much it is.
        found: u64,
        /// How much it may be.
        limit: u64,
    },
    /// Something else about a declaration.
    #[error("{0}")]
    Declaration(String),
    /// A value is read that nothing has defined before.
    #[error("%{0} is used before it is defined")]
    Undefined(u32),
    /// A value is read outside the block that defines it.
    #[error("%{0} is defined in a block that has ended: carry it out in a local variable")]
    OutOfScope(u32),
    /// A value is defined twice.
    #[error("%{0} is defined a second time")]
    Redefined(u32),
    /// The result of a call that gives none is read.
    #[error("%{0} is the result of a function that gives none")]
    NoValue(u32),
    /// The body's table of values says another type than the operation gives.
    #[error("the value is declared as {declared}, the operation gives {given}")]
    Declared {
        /// Type in the body's table.
        declared: String,
        /// Type by the operation.
        given: String,
    },
    /// A `break` or `continue` past the outermost loop.
    #[error("there is no enclosing {what} number {depth}: this stands in {found} of them")]
    NoTarget {
        /// `loop or block` or `loop`.
        what: &'static str,
        /// The depth that it names.
        depth: u32,
        /// How many there are.
        found: usize,
    },
    /// A `continue` that names a labelled block.
    #[error("`continue {0}` names a labelled block, only loops can be continued")]
    ContinueBlock(u32),
    /// A statement that directly follows a `break`, `continue` or `return`.
    #[error("this follows a `{0}` in its block and never runs: remove it")]
    AfterTerminator(&'static str),
    /// A `return` with a value too many, too few or of the wrong type.
    #[error("returns {found}, the function's result is {expected}")]
    Return {
        /// The function's result.
        expected: String,
        /// What is returned.
        found: String,
    },
    /// A path through a function ends without returning its result.
    #[error("not every path returns the function's result of type {0}: return it at the end")]
    MissingReturn(String),
    /// A function calls itself or a later one.
    #[error(
        "function `{0}` stands at or after this one: a function calls only those before it, recursion is not possible"
    )]
    CallsLater(String),
    /// Something that a device function may not do.
    #[error(
        "a device function takes and returns values, it cannot reach {0}: pass the value, or inline the function"
    )]
    NotInFunction(String),
    /// A switch label that the selector can never have.
    #[error("case {label:#x} does not fit the selector's type {selector}")]
    LabelTooWide {
        /// The label's bits.
        label: u64,
        /// The selector's type.
        selector: String,
    },
    /// A switch label that stands twice.
    #[error("case {0:#x} stands twice")]
    LabelTwice(u64),
    /// A switch case without labels.
    #[error("case number {0} has no labels")]
    NoLabels(usize),
    /// A fault with the wrong number of operands.
    #[error("fault `{kind}` takes {expected} operands, found {found}")]
    FaultOperands {
        /// Name of the fault.
        kind: &'static str,
        /// How many it takes.
        expected: usize,
        /// How many it got.
        found: usize,
    },
    /// A local variable is read where some path has not written it.
    #[error("local variable `{0}` is read before every path has written it: give it a value where it begins")]
    Unassigned(String),
    /// A part of a local variable is stored where some path has not written the whole.
    #[error(
        "a part of local variable `{0}` is stored before every path has written the whole: store the whole first"
    )]
    PartAssigned(String),
    /// A barrier that only some lanes may reach.
    #[error("{}", divergent_text(.callee.as_ref(), *.parting, *.line, *.number, .why))]
    DivergentBarrier {
        /// The called function that has the barrier, and the barrier's line; `None` for a barrier itself.
        callee: Option<(String, u32)>,
        /// How lanes part before it.
        parting: Parting,
        /// Line of the statement where they part, 0 when unknown.
        line: u32,
        /// Number of that statement in its body.
        number: u32,
        /// Why they part.
        why: Divergence,
    },
    /// A call whose argument decides about a barrier and differs between lanes.
    #[error(
        "whether lanes reach the barrier of `{function}`{} depends on its parameter `{param}`, and the argument \
         differs between them, because {why}: pass a value that is the same for the block",
        in_line(*.barrier)
    )]
    BarrierArgument {
        /// The called function.
        function: String,
        /// Line of its barrier, 0 when unknown.
        barrier: u32,
        /// The parameter.
        param: String,
        /// Why the argument differs.
        why: Divergence,
    },
    /// Blocks are nested too deeply.
    #[error("blocks are nested more than {0} deep: move the inner ones to a function")]
    TooDeep(usize),
}

/// How the lanes of a block part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parting {
    /// By an `if`.
    If,
    /// By a `switch`.
    Switch,
    /// By a `break` that not all take.
    Break,
    /// By a `continue` that not all take.
    Continue,
    /// By a `return` that not all take.
    Return,
}

impl Parting {
    const fn name(self) -> &'static str {
        match self {
            Parting::If => "if",
            Parting::Switch => "switch",
            Parting::Break => "break",
            Parting::Continue => "continue",
            Parting::Return => "return",
        }
    }
}

/// Why a value differs between the lanes of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// The reason, as a clause.
    pub what: String,
    /// Line of the statement that gives the value, 0 when unknown.
    pub line: u32,
    /// Whether all lanes would read the same, if they met before any of them wrote again.
    pub settles: bool,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.what, in_line(self.line))
    }
}

/// ` (line 7)`, or nothing for an unknown line.
fn in_line(line: u32) -> String {
    if line == 0 {
        String::new()
    } else {
        format!(" (line {line})")
    }
}

fn divergent_text(
    callee: Option<&(String, u32)>,
    parting: Parting,
    line: u32,
    number: u32,
    why: &Divergence,
) -> String {
    let what = match callee {
        Some((name, line)) => format!("the call of `{name}`, which has a barrier{},", in_line(*line)),
        None => "the barrier".into(),
    };
    let place = if line == 0 {
        format!("statement {number}")
    } else {
        format!("line {line}")
    };
    let remedy = match parting {
        _ if why.settles => {
            "let all lanes meet (`sync_threads()`) right before and right behind a `let` that reads it, and test what was read"
        }
        Parting::If | Parting::Switch => "move the barrier out of it",
        Parting::Return => "put an `if` around what the others do instead of returning early",
        Parting::Break | Parting::Continue => {
            "let all lanes take the same turns and put an `if` around what only some do"
        }
    };
    format!(
        "{what} is not reached by all lanes of a block together: they part at the `{}` in {place}, because {why}; {remedy}",
        parting.name()
    )
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel `{}`", self.kernel)?;
        if let Some(function) = &self.function {
            write!(f, ", function `{function}`")?;
        }
        if self.line != 0 {
            write!(f, ", line {}", self.line)?;
        }
        if let Some(statement) = &self.statement {
            if self.line == 0 {
                write!(f, ", statement {}", statement.number)?;
            }
            write!(f, ", `{}`", statement.text)?;
        }
        write!(f, ": {}", self.cause)
    }
}

impl std::error::Error for VerifyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

/// Everything that is wrong with a kernel. As an error never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyErrors {
    /// Kernel's name.
    pub kernel: String,
    /// The errors, in the order found.
    pub errors: Vec<VerifyError>,
    /// Errors found beyond [`VerifyErrors::MOST`], which are counted and not kept.
    pub omitted: usize,
}

/// Where in a kernel an error is.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    pub(super) kernel: &'a Kernel,
    /// Name of the function, `None` for the kernel's own body.
    pub(super) function: Option<&'a str>,
    pub(super) body: &'a Body,
}

impl VerifyErrors {
    /// How many errors are kept.
    pub const MOST: usize = 100;

    /// No errors yet.
    pub(super) fn of(kernel: &Kernel) -> VerifyErrors {
        VerifyErrors {
            kernel: kernel.name.clone(),
            errors: Vec::new(),
            omitted: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    fn push(&mut self, make: impl FnOnce(String) -> VerifyError) {
        if self.errors.len() < VerifyErrors::MOST {
            let error = make(self.kernel.clone());
            self.errors.push(error);
        } else {
            self.omitted += 1;
        }
    }

    /// An error of a declaration.
    pub(super) fn declaration(&mut self, function: Option<&str>, cause: Cause) {
        self.push(|kernel| VerifyError {
            kernel,
            function: function.map(str::to_owned),
            line: 0,
            statement: None,
            cause,
        });
    }

    /// An error of the statement with this number.
    pub(super) fn statement(&mut self, site: Site<'_>, number: u32, stmt: &Stmt, cause: Cause) {
        self.at(site, number, stmt.line, &stmt.inst, cause);
    }

    fn at(&mut self, site: Site<'_>, number: u32, line: u32, inst: &Inst, cause: Cause) {
        self.push(|kernel| VerifyError {
            kernel,
            function: site.function.map(str::to_owned),
            line,
            statement: Some(Statement {
                number,
                text: text::statement(site.kernel, site.body, inst),
            }),
            cause,
        });
    }
}

impl fmt::Display for VerifyErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.errors.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        if self.omitted > 0 {
            write!(f, "\n… and {} more", self.omitted)?;
        }
        Ok(())
    }
}

impl std::error::Error for VerifyErrors {}

/// A type for messages; `None` is no value.
pub(super) fn type_text(ty: Option<&Type>) -> String {
    ty.map_or_else(|| "no value".into(), Type::to_string)
}
