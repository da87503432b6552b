//! Checkpoints under load, and what is refused.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use perpetua_actors::ActorState::*;
use perpetua_actors::{
    ActorError, CheckpointStore, FolderStore, KernelHandle, LaunchOptions, MemoryStore, PerpetuaRuntime,
};
use perpetua_device::future::block_on;

use crate::handlers::{self, *};
use crate::{eventually, launch, runtime, tally};

/// A file that goes with its test.
pub(crate) struct File(PathBuf);

impl File {
    pub(crate) fn new(name: &str) -> File {
        File(std::env::temp_dir().join(format!("perpetua-{}-{name}", std::process::id())))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn restored(path: &Path) -> (PerpetuaRuntime, Vec<KernelHandle>) {
    restored_by(runtime(), path)
}

fn restored_by(runtime: PerpetuaRuntime, path: &Path) -> (PerpetuaRuntime, Vec<KernelHandle>) {
    runtime.register(handlers::tally());
    let kernels = runtime.restore_blocking(path).expect("it is whole");
    (runtime, kernels)
}

#[test]
fn states_lives_and_messages_come_back() {
    let file = File::new("all");
    let first = runtime();
    let active = tally(&first, "active");
    let _: Total = active
        .ask_blocking(&Add {
            amount: 5,
            ..Add::default()
        })
        .expect("it answers");
    active.send(&Report::default()).expect("there is room");
    eventually("it reports", || active.metrics().messages_processed == 2);
    let waiting = launch(
        &first,
        "waiting",
        LaunchOptions::default().with_actors(3).without_auto_activate(),
    );
    let second = waiting.actor(1).expect("there are three");
    for sequence in 0..10 {
        let note = Note {
            amount: 1,
            source: 2,
            sequence,
        };
        second.send(&note).expect("there is room");
    }
    block_on(waiting.actor(2).expect("there are three").terminate()).expect("it is launched");
    let faulted = tally(&first, "faulted");
    faulted
        .send(&Boom { number: 1, micros: 0 })
        .expect("there is room");
    eventually("it faults", || faulted.state() == Faulted);
    block_on(first.checkpoint(file.path())).expect("it is written");
    drop((first, active, waiting, second, faulted));

    let (again, kernels) = restored(file.path());
    assert_eq!(
        kernels.iter().map(KernelHandle::name).collect::<Vec<_>>(),
        ["active", "waiting", "faulted"]
    );
    let active = again.find("active").expect("it is restored");
    assert_eq!(active.metrics().messages_processed, 2);
    let reported: Total = block_on(active.receive()).expect("it waited for the host");
    assert_eq!((reported.count, reported.sum), (2, 5));
    let total: Total = active.ask_blocking(&Add::default()).expect("it answers");
    assert_eq!((total.count, total.sum), (3, 5));
    let waiting = again.find("waiting").expect("it is restored");
    assert_eq!(waiting.state(), Launched);
    assert_eq!(waiting.actor(2).expect("three numbers").state(), Terminated);
    let second = waiting.actor(1).expect("there are two");
    assert_eq!(second.metrics().queue_depth, 10);
    block_on(second.activate()).expect("it is launched");
    eventually("all are handled", || second.metrics().messages_processed == 10);
    assert_eq!(second.read_state::<Tally>().expect("a tally").disorder, 0);
    let faulted = again.find("faulted").expect("it is restored");
    assert_eq!(faulted.state(), Faulted);
    block_on(faulted.restart()).expect("it is faulted");
    // New actors have new numbers.
    assert!(tally(&again, "new").id() > faulted.id());
}

#[test]
fn under_load_nothing_is_lost_and_nothing_is_twice() {
    // A busy machine may let a worker wait for longer than others' patience.
    let patient = || {
        let builder = PerpetuaRuntime::builder()
            .threads(2)
            .patience(Duration::from_secs(60));
        builder.build_blocking().expect("threads start")
    };
    let file = File::new("load");
    let first = patient();
    let options = || LaunchOptions::default().with_queue_capacity(16);
    let receiver = launch(&first, "receiver", options());
    let forwarders = launch(&first, "forwarders", options().with_actors(4));
    let stop = AtomicBool::new(false);
    let accepted: [AtomicU32; 4] = Default::default();
    std::thread::scope(|scope| {
        let _stops = Stops(&stop);
        for source in 0..4u32 {
            let forwarder = forwarders.actor(source).expect("there are four");
            let (stop, accepted) = (&stop, &accepted[source as usize]);
            let to = receiver.id().0;
            scope.spawn(move || {
                let mut sequence = 0;
                while !stop.load(Ordering::Relaxed) {
                    let forward = Forward {
                        to,
                        amount: 1,
                        source,
                        sequence,
                    };
                    if forwarder.send(&forward).is_ok() {
                        sequence += 1;
                        accepted.store(sequence, Ordering::Release);
                    }
                }
            });
        }
        for _ in 0..20 {
            std::thread::sleep(Duration::from_millis(5));
            let before: u32 = accepted.iter().map(|count| count.load(Ordering::Acquire)).sum();
            first.checkpoint_blocking(file.path()).expect("it is written");
            let (again, _) = restored_by(patient(), file.path());
            let receiver = again.find("receiver").expect("it is restored");
            let report = again.shutdown_blocking();
            assert!(report.expect("it was open").drained);
            drop(receiver);
            // Each source's messages up to some one, all and once: sequence numbers leave no gap and none comes twice.
            let (again, _) = restored_by(patient(), file.path());
            let receiver = again.find("receiver").expect("it is restored");
            let forwarders = again.find("forwarders").expect("it is restored");
            let until = Instant::now() + Duration::from_secs(60);
            while receiver.metrics().messages_processed != forwarders.metrics().messages_processed
                || forwarders.metrics().queue_depth + receiver.metrics().queue_depth > 0
            {
                let figures = (receiver.metrics(), forwarders.metrics());
                let letters = again.dead_letters().counts();
                assert!(
                    Instant::now() < until,
                    "not within a minute: {figures:?}, {letters:?}"
                );
                std::thread::sleep(Duration::from_micros(200));
            }
            let state: Tally = receiver.read_state().expect("a tally");
            assert_eq!(state.disorder, 0);
            let expected: u32 = state.next.iter().sum();
            assert_eq!(state.count, u64::from(expected), "{:?}", state.next);
            assert!(expected >= before, "{expected} of {before}");
            assert_eq!(again.dead_letters().counts().total(), 0);
        }
    });
}

/// Lets senders end, also where the test has failed.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_faulted_actor_is_restored() {
    let file = File::new("one");
    let runtime = runtime();
    let all = launch(&runtime, "all", LaunchOptions::default().with_actors(2));
    let kernel = all.actor(1).expect("two");
    for _ in 0..3 {
        let _: Total = kernel.ask_blocking(&Add::default()).expect("it answers");
    }
    runtime.checkpoint_blocking(file.path()).expect("it is written");
    let _: Total = kernel.ask_blocking(&Add::default()).expect("it answers");
    kernel
        .send(&Boom { number: 1, micros: 0 })
        .expect("there is room");
    eventually("it faults", || kernel.state() == Faulted);
    kernel.send(&Note::default()).expect("there is room");
    block_on(kernel.restore(file.path())).expect("it is there");
    eventually("what waited is handled", || {
        kernel.metrics().messages_processed == 5
    });
    assert_eq!(kernel.read_state::<Tally>().expect("a tally").count, 4);
    let other = tally(&runtime, "other");
    let error = block_on(other.restore(file.path())).expect_err("it is not there");
    assert!(error.to_string().contains("it does not hold `other`"), "{error}");
}

#[test]
fn what_does_not_fit_is_refused_whole() {
    let file = File::new("refused");
    let first = runtime();
    tally(&first, "one");
    first.checkpoint_blocking(file.path()).expect("it is written");
    let bytes = std::fs::read(file.path()).expect("it is there");
    let check = |runtime: &PerpetuaRuntime, expect: &str| {
        let error = runtime.restore_blocking(file.path()).expect_err(expect);
        assert!(error.to_string().contains(expect), "{error}");
        assert!(matches!(error, ActorError::Checkpoint { .. }));
    };
    check(&runtime(), "tally` is not known here");
    check(&first, "actors were launched already");
    let fresh = runtime();
    let mut other = handlers::tally();
    other.state_type = <u64 as perpetua::GpuType>::describe;
    fresh.register(other);
    check(&fresh, "is of another type here: (version 1)");
    fresh.register(handlers::tally());
    std::fs::write(file.path(), &bytes[..bytes.len() - 7]).expect("it is torn");
    check(&fresh, "it is torn");
    assert!(fresh.kernels().is_empty());
    std::fs::write(file.path(), &bytes).expect("it is whole");
    assert_eq!(fresh.restore_blocking(file.path()).expect("it is whole").len(), 1);
}

// What the killed process does: counts, and tells its parent, by a file's name, after which count a checkpoint was whole.
#[test]
fn a_killed_process_goes_on_from_its_last_checkpoint() {
    const FILE: &str = "PERPETUA_KILLED_PROCESS_FILE";
    if let Some(path) = std::env::var_os(FILE) {
        let runtime = runtime();
        let kernel = tally(&runtime, "counts");
        loop {
            let note = Note {
                amount: 1,
                ..Note::default()
            };
            block_on(kernel.send_when_room(&note)).expect("room comes");
            if kernel.metrics().messages_processed.is_multiple_of(100) {
                runtime
                    .checkpoint_blocking(PathBuf::from(&path))
                    .expect("it is written");
            }
        }
    }
    let file = File::new("killed");
    let mut child = std::process::Command::new(std::env::current_exe().expect("this test"))
        .args([
            "--exact",
            "checkpoints::a_killed_process_goes_on_from_its_last_checkpoint",
        ])
        .env(FILE, file.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("it starts");
    eventually("the first checkpoint", || file.path().exists());
    std::thread::sleep(Duration::from_millis(100));
    // SIGKILL, in the midst of a write more often than not.
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let (_runtime, kernels) = restored(file.path());
    eventually("what waited is handled", || kernels[0].metrics().queue_depth == 0);
    let state: Tally = kernels[0].read_state().expect("a tally");
    assert_eq!(state.count, kernels[0].metrics().messages_processed);
    for left in std::fs::read_dir(std::env::temp_dir())
        .expect("the folder")
        .flatten()
    {
        let name = left.file_name().to_string_lossy().into_owned();
        if name.starts_with(&*file.path().file_name().expect("a name").to_string_lossy())
            && name.ends_with(".new")
        {
            std::fs::remove_file(left.path()).expect("a torn one is left");
        }
    }
}

#[test]
fn every_store_keeps_what_it_took() {
    let folder = std::env::temp_dir().join(format!("perpetua-store-{}", std::process::id()));
    let stores: [&dyn CheckpointStore; 2] = [&MemoryStore::default(), &FolderStore::new(&folder)];
    for store in stores {
        assert_eq!(store.names().expect("it is empty"), Vec::<String>::new());
        assert!(store.load("one").is_err() && store.remove("one").is_err());
        let first = runtime();
        let kernel = tally(&first, "kept");
        for (name, amount) in [("two", 2), ("one", 3), ("two", 5)] {
            let _: Total = kernel
                .ask_blocking(&Add {
                    amount,
                    ..Add::default()
                })
                .expect("it answers");
            first.checkpoint_to(store, name).expect("it is kept");
        }
        assert_eq!(store.names().expect("they are there"), ["one", "two"]);
        for (name, total) in [("one", 5), ("two", 10)] {
            let runtime = runtime();
            runtime.register(handlers::tally());
            let kernels = runtime.restore_from(store, name).expect("it is whole");
            let found: Total = kernels[0]
                .ask_blocking(&Add {
                    amount: 0,
                    ..Add::default()
                })
                .expect("it answers");
            assert_eq!(found.sum, total, "{name}");
        }
        store.remove("one").expect("it was there");
        assert_eq!(store.names().expect("one is left"), ["two"]);
    }
    let store = FolderStore::new(&folder);
    for name in ["", "../two", "a/b", "a\\b", ".two", "two\0"] {
        let refused = store.save(name, b"");
        assert!(
            matches!(refused, Err(ActorError::Checkpoint { .. })),
            "{name}: {refused:?}"
        );
    }
    std::fs::remove_dir_all(&folder).expect("it is the test's own");
}
