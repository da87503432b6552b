//! Where the simulation runs: on a thread of its own, or, in a browser, between two frames. Must not know what it does.

use super::command::Command;
use super::engine::Engine;
use super::view::SharedView;

#[cfg(not(target_arch = "wasm32"))]
pub(super) use threaded::Runner;

#[cfg(target_arch = "wasm32")]
pub(super) use inline::Runner;

#[cfg(not(target_arch = "wasm32"))]
mod threaded {
    use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
    use std::time::Duration;

    use super::super::engine::Pace;
    use super::{Command, Engine, SharedView};

    /// A thread with the simulation; it ends when this is dropped.
    pub(in crate::window) struct Runner {
        commands: Sender<Command>,
        view: SharedView,
    }

    impl Runner {
        /// Starts the thread.
        ///
        /// # Errors
        /// The system gives no thread.
        pub(in crate::window) fn new(engine: Engine) -> std::io::Result<Runner> {
            let (commands, orders) = channel();
            let view = engine.view();
            let thread = std::thread::Builder::new().name("perpetua-wave".into());
            thread.spawn(move || work(engine, &orders))?;
            Ok(Runner { commands, view })
        }

        /// Hands a command over; it is done before the next step.
        pub(in crate::window) fn send(&mut self, command: Command) {
            // The thread outlives this sender.
            let _ = self.commands.send(command);
        }

        /// Called at the start of each frame.
        pub(in crate::window) fn frame(&mut self) {}

        /// What there is to see.
        pub(in crate::window) fn view(&self) -> &SharedView {
            &self.view
        }
    }

    fn work(mut engine: Engine, orders: &Receiver<Command>) {
        loop {
            loop {
                match orders.try_recv() {
                    Ok(command) => engine.obey(command),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return,
                }
            }
            let pause = match engine.pump() {
                Pace::Now => continue,
                Pace::Busy => {
                    engine.wait();
                    continue;
                }
                Pace::After(pause) => pause.min(Duration::from_millis(30)),
            };
            match orders.recv_timeout(pause) {
                Ok(command) => engine.obey(command),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}

#[cfg(target_arch = "wasm32")]
mod inline {
    use super::{Command, Engine, SharedView};

    /// The simulation, which runs at the start of each frame.
    pub(in crate::window) struct Runner {
        engine: Engine,
        view: SharedView,
    }

    impl Runner {
        /// Takes the simulation.
        ///
        /// # Errors
        /// None: other targets have some.
        pub(in crate::window) fn new(engine: Engine) -> std::io::Result<Runner> {
            let view = engine.view();
            Ok(Runner { engine, view })
        }

        /// Does what a command says.
        pub(in crate::window) fn send(&mut self, command: Command) {
            self.engine.obey(command);
        }

        /// Called at the start of each frame.
        pub(in crate::window) fn frame(&mut self) {
            let _ = self.engine.pump();
        }

        /// What there is to see.
        pub(in crate::window) fn view(&self) -> &SharedView {
            &self.view
        }
    }
}
