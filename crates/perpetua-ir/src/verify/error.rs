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
    #[error("there is no enclosing {what} number {depth}: this stands in {found}")]
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
    /// Blocks are nested too deeply.
    #[error("blocks are nested more than {0} deep: move the inner ones to a function")]
    TooDeep(usize),
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
