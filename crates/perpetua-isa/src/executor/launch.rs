//! Launches: programs with their buffers and arguments, one by one, several at once, on streams and as graphs.

use std::sync::Arc;
use std::time::Instant;

use perpetua_device::{DynBuffer, Graph, Kernel, KernelArg, LaunchConfig, Stream};
use perpetua_ir::ir::Type;

use super::parts::{Pace, Room};
use super::{Arguments, Compiled, Executor, Registers};
use crate::error::{Error, Result};
use crate::program::{MemoryKind, Program};

/// A program to be launched.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The program, its buffers bound to handles.
    pub program: &'a Program,
    /// Blocks and their size.
    pub config: LaunchConfig,
    /// Values of its parameters.
    pub arguments: &'a Arguments,
}

/// A launch that is found, compiled and bound once and submitted any number of times. It keeps its memory: what is freed meanwhile
/// lives until it goes.
pub struct Prepared {
    kernel: Arc<Kernel>,
    config: LaunchConfig,
    buffers: Vec<DynBuffer>,
    values: Vec<KernelArg<'static>>,
    // Of an untrusted program, where a watchdog may end launches.
    room: Option<Room>,
}

impl Prepared {
    /// Submits it. What lanes meet is told by the next read or synchronisation. But a grid of an untrusted program that runs in parts is
    /// waited for part by part: this gives the first fault, and what comes behind it does not run; what other threads submit to the
    /// stream meanwhile may run between the parts.
    ///
    /// # Errors
    /// If it is not to be launched like this, or the stream is another device's.
    pub fn submit(&self, stream: &Stream) -> Result<()> {
        self.submit_parts(stream, true)
    }

    fn submit_parts(&self, stream: &Stream, waits: bool) -> Result<()> {
        let mut args = Vec::with_capacity(self.buffers.len() + self.values.len() + 6);
        args.extend(self.buffers.iter().map(DynBuffer::arg));
        args.extend(self.values.iter().cloned());
        let Some(room) = self.room.filter(|room| room.straight.is_none()) else {
            return Ok(stream.launch(self.kernel.as_ref(), self.config, &args)?);
        };
        let own = args.len();
        let grid = self.config.grid;
        let mut is_first = true;
        let mut pace = Pace::new(&room, &self.config);
        let mut parts = room.parts(&self.config);
        let mut halves = Vec::new();
        while let Some((first, size)) = halves.pop().or_else(|| parts.next()) {
            let waits = waits && size != grid;
            if waits && let Some([one, other]) = pace.halves((first, size), self.config.cluster) {
                halves.extend([other, one]);
                continue;
            }
            args.truncate(own);
            for extents in [first, grid] {
                args.extend(extents.to_array().map(KernelArg::from));
            }
            if waits && std::mem::take(&mut is_first) {
                // What ran before has faults of its own.
                stream.synchronize()?;
            }
            let part = LaunchConfig {
                grid: size,
                ..self.config
            };
            let begun = Instant::now();
            stream.launch(self.kernel.as_ref(), part, &args)?;
            if waits {
                stream
                    .synchronize()
                    .map_err(|error| in_grid(error, first.to_array()))?;
                pace.took(size.count(), begun.elapsed());
            }
        }
        Ok(())
    }
}

// A part's fault, with the number that its block has in the whole grid.
fn in_grid(mut error: perpetua_device::Error, first: [u32; 3]) -> perpetua_device::Error {
    if let perpetua_device::Error::Fault(fault) = &mut error {
        for (block, first) in fault.block.iter_mut().zip(first) {
            *block += first;
        }
    }
    error
}

impl Executor {
    /// A new stream: what is submitted to it runs in order, and beside what other streams do.
    ///
    /// # Errors
    /// What the device says.
    pub fn create_stream(&self) -> Result<Stream> {
        Ok(self.device.create_stream()?)
    }

    /// Launches a program whose buffers are bound to handles, and which takes no parameters.
    ///
    /// # Errors
    /// If the program is wrong, or not to be launched like this. What lanes meet (an index out of bounds) is told by the next read.
    pub fn execute_program(&self, program: &Program, config: &LaunchConfig) -> Result<()> {
        self.execute(program, config, &Arguments::new())
    }

    /// The same, with what registers hold before the first instruction.
    ///
    /// ```
    /// use perpetua_isa::{BackendType, Executor, LaunchConfig, Program, Registers};
    /// let executor = Executor::new_with_backend(BackendType::Cpu)?;
    /// let x = executor.allocate_buffer(8)?;
    /// let program: Program = format!(".buffer x: f32 = {x}\nstg.f32 x[r252], r7").parse()?;
    /// let registers = Registers::new().with(7, 2.5f32);
    /// executor.execute_program_with_registers(&program, &LaunchConfig::new(1, 2), &registers)?;
    /// assert_eq!(executor.read_buffer::<f32>(x, 0, 2)?, [2.5, 2.5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Executor::execute_program`].
    pub fn execute_program_with_registers(
        &self,
        program: &Program,
        config: &LaunchConfig,
        registers: &Registers,
    ) -> Result<()> {
        let (program, arguments) = registers.bind(program);
        self.execute(&program, config, &arguments)
    }

    /// Launches a program with values for its parameters.
    ///
    /// # Errors
    /// As [`Executor::execute_program`].
    pub fn execute(&self, program: &Program, config: &LaunchConfig, arguments: &Arguments) -> Result<()> {
        let launch = Launch {
            program,
            config: *config,
            arguments,
        };
        self.prepare(&launch)?.submit(&self.device.default_stream())
    }

    /// The same on a stream.
    ///
    /// # Errors
    /// As [`Executor::execute_program`].
    pub fn execute_on(&self, stream: &Stream, launch: &Launch<'_>) -> Result<()> {
        self.prepare(launch)?.submit(stream)
    }

    /// Submits several launches at once, in their order: if one cannot be launched for what it is (a wrong program, a missing buffer or
    /// parameter, a grid beyond the device's limits), none is.
    ///
    /// # Errors
    /// As [`Executor::execute_program`].
    pub fn execute_batch(&self, stream: &Stream, launches: &[Launch<'_>]) -> Result<()> {
        for prepared in self.prepare_all(launches)? {
            prepared.submit(stream)?;
        }
        Ok(stream.flush()?)
    }

    /// The launches as a graph of the device: [`Stream::launch_graph`] runs them all again, with one submission, as often as it is called.
    /// A graph of untrusted programs runs all parts of their grids, also behind a fault, whose block it counts from its part's first.
    ///
    /// ```
    /// use perpetua_isa::{Arguments, BackendType, Executor, Launch, LaunchConfig, Program};
    /// let executor = Executor::new_with_backend(BackendType::Cpu)?;
    /// let x = executor.allocate_buffer(4)?;
    /// let count: Program = format!(".buffer x: u32 = {x}\natom_add.u32 r0, x[0], 1").parse()?;
    /// let launch = Launch { program: &count, config: LaunchConfig::new(1, 5), arguments: &Arguments::new() };
    /// let graph = executor.capture(&[launch, launch])?;
    /// let stream = executor.create_stream()?;
    /// for _ in 0..10 {
    ///     stream.launch_graph(&graph)?;
    /// }
    /// stream.synchronize()?;
    /// assert_eq!(executor.read_buffer::<u32>(x, 0, 1)?, [100]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Executor::execute_program`].
    pub fn capture(&self, launches: &[Launch<'_>]) -> Result<Graph> {
        let prepared = self.prepare_all(launches)?;
        let mut failed = Ok(());
        let captured = self.device.create_stream()?.capture(|stream| {
            failed = prepared
                .iter()
                .try_for_each(|prepared| prepared.submit_parts(stream, false));
            Ok(())
        });
        failed?;
        Ok(captured?)
    }

    fn prepare_all(&self, launches: &[Launch<'_>]) -> Result<Vec<Prepared>> {
        launches.iter().map(|launch| self.prepare(launch)).collect()
    }

    /// Finds or compiles a launch's kernel, and binds its buffers and arguments.
    ///
    /// # Errors
    /// If the program is wrong, or a buffer or parameter is.
    pub fn prepare(&self, launch: &Launch<'_>) -> Result<Prepared> {
        let program = launch.program;
        let Compiled { kernel, room } = self.compiled(program)?;
        self.device.check_launch(&kernel, &launch.config)?;
        room.map_or(Ok(()), |room| room.check(&launch.config))?;
        let mut buffers = Vec::with_capacity(program.memories.len());
        for memory in &program.memories {
            let unbound = || Error::Unbound {
                program: program.name.clone(),
                name: memory.name.clone(),
            };
            match memory.kind {
                MemoryKind::Buffer { handle, .. } => {
                    let bytes = self.buffer(handle.ok_or_else(unbound)?)?;
                    buffers.push(DynBuffer::view(&bytes, &memory.element.into())?);
                }
                MemoryKind::Pool { handle } => {
                    let pool = self.pool(handle.ok_or_else(unbound)?)?;
                    for bytes in [pool.storage, pool.table] {
                        buffers.push(DynBuffer::view(&bytes, &Type::U32)?);
                    }
                }
                MemoryKind::Shared { .. } | MemoryKind::Constants(_) => {}
            }
        }
        let mut values = Vec::with_capacity(program.parameters.len());
        for parameter in &program.parameters {
            let given = launch.arguments.get(&parameter.name);
            let wrong = |found: String| Error::Parameter {
                program: program.name.clone(),
                name: parameter.name.clone(),
                expected: parameter.ty,
                found,
            };
            let (ty, bytes) = given.ok_or_else(|| wrong("nothing was given".into()))?;
            if ty != parameter.ty {
                return Err(wrong(format!("{ty} was given")));
            }
            let size = parameter.ty.size() as usize;
            values.push(KernelArg::value(&parameter.ty.into(), &bytes[..size])?);
        }
        Ok(Prepared {
            kernel,
            config: launch.config,
            buffers,
            values,
            room,
        })
    }
}
