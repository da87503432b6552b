//! The assembler: directives and labels. Instructions are read in `instruction`.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use perpetua_ir::ir::Scalar;
use perpetua_ir::nearest::nearest;

use super::declared::{block, constants, handle, shared};
use super::directives::DIRECTIVES;
use super::instruction::{self, Names};
use super::lexer::{Cursor, Token, TokenKind};
use super::mnemonic::{TYPES, scalar};
use super::source::{Line, lines};
use crate::declaration::{self, MAX_DECLARATIONS, MAX_INSTRUCTIONS};
use crate::diagnostic::AssembleError;
use crate::fault::Fault;
use crate::hologram::include;
use crate::instruction::Operand;
use crate::opcode::{Meaning, Slot, Use};
use crate::program::{Label, Memory, MemoryKind, Parameter, Program, Routine, is_name};

type Result<T = ()> = std::result::Result<T, AssembleError>;

/// Reads programs from text.
///
/// ```
/// use perpetua_isa::Assembler;
/// let text = ".program twice\n.buffer x: f32\n ldg.f32 r0, x[%gid]\n add.f32 r0, r0, r0\n stg.f32 x[%gid], r0\n";
/// let program = Assembler::new().assemble("twice.pasm", text)?;
/// assert_eq!(program.len(), 3);
/// let error = Assembler::new().assemble("bad.pasm", "  add.f32 r0, q1, r0").unwrap_err();
/// assert_eq!((error.line, error.column()), (1, 15));
/// # Ok::<(), perpetua_isa::AssembleError>(())
/// ```
#[derive(Default)]
pub struct Assembler {
    folder: Option<PathBuf>,
}

impl Assembler {
    /// An assembler for texts that include nothing.
    pub fn new() -> Assembler {
        Assembler::default()
    }

    /// Takes included files from a folder (and nowhere above it).
    pub fn include_from(mut self, folder: impl Into<PathBuf>) -> Assembler {
        self.folder = Some(folder.into());
        self
    }

    /// Makes a program of a text. `file` stands in messages, and in what faults say.
    ///
    /// # Errors
    /// The first thing that is wrong with the text, with its place.
    pub fn assemble(&self, file: &str, text: &str) -> Result<Program> {
        let includes = |name: &str| match (include(name), &self.folder) {
            (Some(text), _) => Ok(text.into()),
            (None, None) => {
                Err("this text has no folder: assemble a file, or name a folder with `include_from`".into())
            }
            (None, Some(folder)) => read_below(folder, name),
        };
        let mut reader = Reader::new(file);
        for (line, tokens) in lines(file, text, &includes)? {
            reader.line(&line, &tokens)?;
        }
        reader.finish(&Line::first(file, text))
    }
}

/// Largest file that is included.
pub(crate) const MAX_INCLUDED: u64 = 1 << 24;

// Included files lie in the folder or below it.
fn read_below(folder: &Path, name: &str) -> std::result::Result<String, String> {
    let path = Path::new(name);
    let plain = |part: std::path::Component<'_>| matches!(part, std::path::Component::Normal(_));
    if !path.components().all(plain) {
        return Err("an included file lies in the program's folder or below it".into());
    }
    let path = folder.join(path);
    // Where links lead counts, not what they are called.
    let whole = |path: &Path| std::fs::canonicalize(path).map_err(|error| error.to_string());
    let folder = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    let path = whole(&path)?;
    if !path.starts_with(whole(folder)?) {
        return Err(
            "it is a link to a file that lies elsewhere than in the program's folder or below it".into(),
        );
    }
    let about = std::fs::metadata(&path).map_err(|error| error.to_string())?;
    match about.is_file() && about.len() <= MAX_INCLUDED {
        true => std::fs::read_to_string(path).map_err(|error| error.to_string()),
        false => Err(format!("it is no plain file of at most {MAX_INCLUDED} bytes")),
    }
}

/// A name that is used before it is known.
struct Pending {
    routine: usize,
    instruction: usize,
    operand: usize,
    name: String,
    line: Line,
    span: std::ops::Range<usize>,
}

struct Reader {
    program: Program,
    names: Names,
    // Labels of the routine that is open.
    labels: HashMap<String, u32>,
    pending: Vec<Pending>,
    // Calls, of routines that may follow.
    calls: Vec<Pending>,
    routines: HashMap<String, u16>,
    // Memories whose access is not said: they can be stored to where something does.
    inferred: Vec<usize>,
    // Whether the text has named its program.
    is_named: bool,
    // How many it has, of all routines.
    instructions: usize,
}

impl Reader {
    fn new(file: &str) -> Reader {
        Reader {
            program: Program {
                name: "program".into(),
                source: file.into(),
                routines: vec![Routine::default()],
                ..Program::default()
            },
            names: Names::default(),
            labels: HashMap::new(),
            pending: Vec::new(),
            calls: Vec::new(),
            routines: HashMap::new(),
            inferred: Vec::new(),
            is_named: false,
            instructions: 0,
        }
    }

    fn line(&mut self, line: &Line, tokens: &[Token]) -> Result {
        let mut cursor = Cursor::new(tokens, line.text.len());
        while let (Some(TokenKind::Word(name)), Some(TokenKind::Mark(':'))) =
            (cursor.peek(), cursor.peek_second())
        {
            let span = cursor.span();
            cursor.next();
            cursor.next();
            self.label(name)
                .map_err(|message| line.error(span.clone(), message))?;
            let count = self.routine().labels.len();
            limited(
                "labels of a routine",
                count,
                MAX_DECLARATIONS,
                (span.start, &cursor),
                line,
            )?;
        }
        match cursor.peek() {
            None => return Ok(()),
            Some(TokenKind::Word(word)) if word.starts_with('.') => {
                let span = cursor.span();
                cursor.next();
                self.directive(word, span, &mut cursor, line)?;
            }
            Some(_) => self.instruction(&mut cursor, line)?,
        }
        match cursor.is_done() {
            true => Ok(()),
            false => Err(line.error(cursor.span(), "nothing more belongs on this line")),
        }
    }

    fn routine(&mut self) -> &mut Routine {
        if self.program.routines.is_empty() {
            self.program.routines.push(Routine::default());
        }
        let last = self.program.routines.len() - 1;
        &mut self.program.routines[last]
    }

    fn label(&mut self, name: &str) -> std::result::Result<(), String> {
        if !is_name(name) {
            return Err(format!(
                "`{name}` is no name for a label: letters, digits and `_`, no digit first"
            ));
        }
        let routine = self.routine();
        let number = routine.labels.len() as u32;
        let at = routine.code.len() as u32;
        routine.labels.push(Label {
            name: name.into(),
            at,
        });
        match self.labels.insert(name.into(), number) {
            None => Ok(()),
            Some(_) => Err(format!("the label `{name}` is there already")),
        }
    }

    fn instruction(&mut self, cursor: &mut Cursor<'_>, line: &Line) -> Result {
        let read = instruction::parse(cursor, line, &self.names)?;
        let calls = read.instruction.opcode.meaning() == Meaning::Call;
        self.instructions += 1;
        limited(
            "instructions",
            self.instructions,
            MAX_INSTRUCTIONS,
            (0, cursor),
            line,
        )?;
        let routine = self.program.routines.len() - 1;
        let code = self.routine();
        let instruction = code.code.len();
        code.code.push(read.instruction);
        code.lines.push(line.origin);
        for (operand, name, span) in read.named {
            let waiting = if calls { &mut self.calls } else { &mut self.pending };
            waiting.push(Pending {
                routine,
                instruction,
                operand,
                name,
                line: line.clone(),
                span,
            });
        }
        Ok(())
    }

    fn directive(
        &mut self,
        word: &str,
        at: std::ops::Range<usize>,
        cursor: &mut Cursor<'_>,
        line: &Line,
    ) -> Result {
        let mut name = |what: &str| {
            let span = cursor.span();
            cursor
                .word()
                .map(String::from)
                .ok_or_else(|| line.error(span, format!("{what} is missing here")))
        };
        match word {
            ".program" if self.is_named => {
                let message =
                    "a second `.program`: a text is one program, whose parts are routines (`.func`)";
                return Err(line.error(at, message));
            }
            ".program" => {
                self.program.name = name("the program's name")?;
                self.is_named = true;
                declared(
                    declaration::name("a program", &self.program.name),
                    (at.start, cursor),
                    line,
                )?;
            }
            ".func" => {
                let name = name("the routine's name")?;
                declared(declaration::name("a routine", &name), (at.start, cursor), line)?;
                self.end_routine()?;
                let number = self.program.routines.len();
                limited("routines", number + 1, MAX_DECLARATIONS, (at.start, cursor), line)?;
                let number = number as u16;
                if self.routines.insert(name.clone(), number).is_some() {
                    return Err(line.error(at, format!("the routine `{name}` is there already")));
                }
                self.program.routines.push(Routine {
                    name,
                    ..Routine::default()
                });
            }
            ".block" if self.program.block.is_some() => {
                return Err(line.error(at, "a second `.block`: a program has blocks of one size"));
            }
            ".block" => {
                let block = block(cursor, line)?;
                declared(declaration::block(block), (at.start, cursor), line)?;
                self.program.block = Some(block);
            }
            ".param" => {
                let name = name("the parameter's name")?;
                let ty = self.typed(cursor, line)?;
                let parameter = Parameter { name, ty };
                let right = self.names.unused(&parameter.name);
                let right = right.and_then(|()| declaration::parameter(&parameter));
                declared(right, (at.start, cursor), line)?;
                let number = self.program.parameters.len();
                limited(
                    "parameters",
                    number + 1,
                    MAX_DECLARATIONS,
                    (at.start, cursor),
                    line,
                )?;
                self.names.parameter(&parameter.name, number as u16);
                self.program.parameters.push(parameter);
            }
            ".buffer" | ".shared" | ".const" => {
                let name = name("the memory's name")?;
                let element = self.typed(cursor, line)?;
                let kind = match word {
                    ".buffer" => self.buffer(cursor, line)?,
                    ".shared" => shared(cursor, line)?,
                    _ => constants(element, cursor, line)?,
                };
                let memory = Memory { name, element, kind };
                self.memory(memory, (at.start, cursor), line)?;
            }
            ".pool" => {
                let name = name("the pool's name")?;
                let handle = handle(cursor, line, "the pool's handle")?;
                let memory = Memory {
                    name,
                    element: Scalar::U32,
                    kind: MemoryKind::Pool { handle },
                };
                self.memory(memory, (at.start, cursor), line)?;
            }
            _ => {
                let names = DIRECTIVES.map(|(form, _)| form.split(' ').next().unwrap_or(form));
                return Err(AssembleError {
                    help: Some(format!("there are {}", names.join(", "))),
                    ..line.error(at, format!("`{word}` is no directive"))
                });
            }
        }
        Ok(())
    }

    fn memory(&mut self, memory: Memory, at: (usize, &Cursor<'_>), line: &Line) -> Result {
        let right = self.names.unused(&memory.name);
        declared(right.and_then(|()| declaration::memory(&memory)), at, line)?;
        let number = self.program.memories.len();
        limited("memories", number + 1, MAX_DECLARATIONS, at, line)?;
        self.names.memory(&memory.name, number as u16);
        self.program.memories.push(memory);
        declared(declaration::shared(&self.program.memories), at, line)
    }

    // `: TYPE`
    fn typed(&self, cursor: &mut Cursor<'_>, line: &Line) -> Result<Scalar> {
        let span = cursor.span();
        let (mark, at) = (cursor.takes(':'), cursor.span());
        let found = mark.then(|| cursor.word().and_then(scalar)).flatten();
        let (at, message) = match mark {
            true => (at, "a type belongs here"),
            false => (span, "`:` and a type belong here"),
        };
        found.ok_or_else(|| AssembleError {
            help: Some(format!("types: {}", TYPES)),
            ..line.error(at, message)
        })
    }

    // `[read|readwrite] [= HANDLE]`
    fn buffer(&mut self, cursor: &mut Cursor<'_>, line: &Line) -> Result<MemoryKind> {
        let writable = if cursor.takes_word("readwrite") {
            true
        } else {
            if !cursor.takes_word("read") {
                if let Some(TokenKind::Word(word)) = cursor.peek() {
                    let message = format!("`{word}` is no access: `read` or `readwrite`, or nothing");
                    return Err(line.error(cursor.span(), message));
                }
                self.inferred.push(self.program.memories.len());
            }
            false
        };
        let handle = handle(cursor, line, "the buffer's handle")?;
        Ok(MemoryKind::Buffer { writable, handle })
    }

    // Labels of a routine are known to it alone.
    fn end_routine(&mut self) -> Result {
        let labels = std::mem::take(&mut self.labels);
        let pending = std::mem::take(&mut self.pending);
        for wanted in pending {
            match labels.get(&wanted.name) {
                Some(label) => self.put(&wanted, Operand::Label(*label)),
                None => return Err(unknown(&wanted, "label", labels.keys())),
            }
        }
        Ok(())
    }

    fn put(&mut self, wanted: &Pending, operand: Operand) {
        let routine = self.program.routines.get_mut(wanted.routine);
        let code = routine.and_then(|routine| routine.code.get_mut(wanted.instruction));
        if let Some(place) = code.and_then(|instruction| instruction.operands.get_mut(wanted.operand)) {
            *place = operand;
        }
    }

    // `first`: the text's first line.
    fn finish(mut self, first: &Line) -> Result<Program> {
        if !self.is_named && self.program.is_empty() {
            return Err(AssembleError {
                help: Some(
                    "a program begins with `.program NAME`; a file of macros is for `.include`".into(),
                ),
                ..first.error(0..first.text.len(), "there is no program in this text")
            });
        }
        self.end_routine()?;
        for wanted in std::mem::take(&mut self.calls) {
            match self.routines.get(&wanted.name) {
                Some(routine) => self.put(&wanted, Operand::Routine(*routine)),
                None => return Err(unknown(&wanted, "routine", self.routines.keys())),
            }
        }
        let stored: HashSet<usize> = stored(&self.program).collect();
        for memory in self.inferred {
            if let Some(MemoryKind::Buffer { writable, .. }) = self
                .program
                .memories
                .get_mut(memory)
                .map(|memory| &mut memory.kind)
            {
                *writable = stored.contains(&memory);
            }
        }
        Ok(self.program)
    }
}

// A declaration that a line has made, underlined where it is not right. `at`: where it begins, and what has been read of it.
fn declared(right: std::result::Result<(), Fault>, at: (usize, &Cursor<'_>), line: &Line) -> Result {
    right.map_err(|fault| line.error(at.1.since(at.0), fault.to_string()))
}

// That this is not one too many, which numbers of 16 bits would not tell apart. `at`: as in `declared`.
fn limited(what: &'static str, count: usize, most: usize, at: (usize, &Cursor<'_>), line: &Line) -> Result {
    declared(declaration::limit(what, count as u64, most as u64), at, line)
}

/// The memories that a program stores to.
pub(crate) fn stored(program: &Program) -> impl Iterator<Item = usize> {
    let code = program.routines.iter().flat_map(|routine| &routine.code);
    code.flat_map(|instruction| {
        let slots = &instruction.opcode.row().operands;
        slots
            .iter()
            .zip(&instruction.operands)
            .filter_map(|(slot, operand)| match (slot, operand) {
                (Slot::Place(_, Use::Store), Operand::Place(place)) => Some(usize::from(place.memory)),
                _ => None,
            })
    })
}

fn unknown<'a>(wanted: &Pending, what: &str, known: impl Iterator<Item = &'a String>) -> AssembleError {
    AssembleError {
        help: nearest(&wanted.name, known.map(String::as_str)),
        ..wanted.line.error(
            wanted.span.clone(),
            format!("there is no {what} `{}`", wanted.name),
        )
    }
}
