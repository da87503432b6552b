//! Handlers in kernels that stay: right answers, faults that stay with their actor, parking, packets from actor to actor. On machines
//! without CUDA the kernels stay in the interpreter.

// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod blocks;
mod groups;
mod large;
mod many;
mod room;
mod soak;

use std::sync::Arc;
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};
use perpetua::actors::grid::{Commons, Grid, GridOptions, Shape};
use perpetua::actors::runtime::RuntimeBuilder;
use perpetua::actors::{ActorId, Context, Header, Kind, Packet, PerpetuaRuntime, RingMessage, ring_kernel};
use perpetua::device::cpu::CpuContext;
use perpetua::device::{BackendKind, Device};
use perpetua::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Number {
    value: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Sum {
    sum: u32,
    handled: u32,
}

/// Divides by the number: faults at zero, and by an index at 7.
#[ring_kernel(also(forward))]
fn divide(_ctx: &mut Context, state: &mut Sum, message: Number) -> Number {
    state.handled += 1;
    state.sum += message.value;
    let mut table = [1u32, 2, 3, 4];
    if message.value == 7 {
        table[message.value as usize] = 3;
    }
    Number {
        value: 1000 / message.value + table[0] - 1,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Forward {
    to: u32,
    value: u32,
}

#[ring_kernel]
fn forward(ctx: &mut Context, state: &mut Sum, message: Forward) {
    state.handled += 1;
    ctx.send(message.to, Number { value: message.value });
    ctx.reply(Number { value: message.to });
}

fn packet<M: RingMessage>(kind: Kind, actor: u32, message: &M, correlation: u32) -> [u32; 24] {
    Packet {
        header: Header {
            destination: actor,
            sender: ActorId::HOST,
            type_id: M::TYPE_ID,
            correlation,
            sent: 0,
            kind,
            priority: 128,
            words: M::WORDS as u8,
            deadline: 0,
            deliveries: Default::default(),
        },
        payload: message.to_payload(),
    }
    .to_words()
}

/// Makes all actors of a grid active.
fn active(grid: Grid) -> Grid {
    for actor in grid.first_actor()..grid.first_actor() + grid.actors() {
        let mut payload = [0; 16];
        payload[0] = 2;
        let command = Packet {
            header: Header {
                destination: actor,
                sender: ActorId::HOST,
                type_id: 2,
                correlation: 1,
                sent: 0,
                kind: Kind::Command,
                priority: 0,
                words: 1,
                deadline: 0,
                deliveries: Default::default(),
            },
            payload,
        };
        send(&grid, &command.to_words());
        assert_eq!(receive(&grid).header.kind, Kind::Done);
    }
    grid
}

fn send(grid: &Grid, words: &[u32; 24]) {
    let started = Instant::now();
    while grid.push(grid.home_of(words[0]), [words]) == 0 {
        assert!(started.elapsed() < Duration::from_secs(5), "the ring stays full");
    }
}

fn receive(grid: &Grid) -> Packet {
    let started = Instant::now();
    let mut found = None;
    while found.is_none() {
        for home in 0..grid.homes() {
            if found.is_none() {
                grid.drain(home, 1, |p| found = Some(*p));
            }
        }
        if started.elapsed() > Duration::from_secs(5) {
            panic!("nothing comes: {:?}", grid.take_fault());
        }
    }
    Packet::from_words(&found.unwrap()).unwrap()
}

fn ask<M: RingMessage>(grid: &Grid, actor: u32, message: &M) -> Packet {
    send(grid, &packet(Kind::Ask, actor, message, 99));
    receive(grid)
}

/// Whether kernels stay on a GPU.
fn has_gpu() -> bool {
    Device::new(BackendKind::Cuda, 0).is_ok()
}

fn device() -> Device {
    Device::new(BackendKind::Cuda, 0)
        .or_else(|_| Device::new(BackendKind::Cpu, 0))
        .unwrap()
}

/// A runtime on that device.
fn builder() -> RuntimeBuilder {
    let backend = if has_gpu() {
        BackendKind::Cuda
    } else {
        BackendKind::Cpu
    };
    PerpetuaRuntime::builder().backend(backend).resident()
}

fn grid(actors: u32, homes: u32) -> (Arc<Commons>, Grid) {
    grid_on(&device(), actors, homes)
}

fn grid_on(device: &Device, actors: u32, homes: u32) -> (Arc<Commons>, Grid) {
    let commons = Arc::new(Commons::new(device, Shape::new(homes + 1, actors + 8)).unwrap());
    let grid = active(
        Grid::new(
            &commons,
            &divide::handler(),
            &[0; 8],
            &GridOptions::new(actors, homes),
        )
        .unwrap(),
    );
    (commons, grid)
}

fn answers() {
    let (_commons, grid) = grid(10, 3);
    for i in 0..1000u32 {
        let back = ask(&grid, i % 10, &Number { value: i % 5 + 1 });
        assert_eq!(back.header.kind, Kind::Reply);
        assert_eq!(back.header.sender, ActorId(i % 10));
        assert_eq!(back.header.correlation, 99);
        assert_eq!(Number::from_payload(&back.payload).value, 1000 / (i % 5 + 1));
    }
    let states = grid.read_states().unwrap();
    let handled: Vec<u32> = states
        .chunks_exact(8)
        .map(|s| u32::from_le_bytes(s[4..8].try_into().unwrap()))
        .collect();
    assert_eq!(handled, [100; 10]);
    // Behind the last state lies what the first one was before a message: nobody's business.
    assert_eq!(grid.read_state(9).unwrap(), states[72..80]);
    assert!(grid.read_state(10).is_err());
    assert!(grid.write_state(10, &[0; 8]).is_err());
    // It has been parked for that, and goes on.
    assert_eq!(
        Number::from_payload(&ask(&grid, 3, &Number { value: 10 }).payload).value,
        100
    );
    // A home tells what it has done a moment after the answer.
    let started = Instant::now();
    while (0..3).map(|h| grid.report(h).handled).sum::<u64>() != 1001 {
        assert!(started.elapsed() < Duration::from_secs(5), "not counted");
    }
}

fn faults() {
    let (_commons, grid) = grid(4, 2);
    for (value, text) in [(0, "division by zero"), (7, "index out of bounds")] {
        let actor = u32::from(value == 7);
        let fault = ask(&grid, actor, &Number { value });
        assert_eq!(fault.header.kind, Kind::Fault, "{fault:?}");
        assert_eq!(
            Number::from_payload(&fault.payload).value,
            value,
            "it comes with its message"
        );
        let (kernel, site) = perpetua::device::fault::FaultRegistry::global()
            .kernel(fault.header.deadline - 1)
            .unwrap();
        let what = grid.take_fault().unwrap();
        assert!(what.contains(text), "{what}");
        assert!(kernel.faults[site as usize].line > 0);
        // The others live on; the faulted one takes nothing.
        assert_eq!(ask(&grid, 2, &Number { value: 5 }).header.kind, Kind::Reply);
        let refused = ask(&grid, actor, &Number { value: 5 });
        assert_eq!(
            (refused.header.kind, refused.header.deadline),
            (Kind::Undelivered, 1 | (Kind::Ask as u32) << 8)
        );
    }
    // One that has its first state again stays where it is; then it goes on.
    let command = |type_id, life| {
        let header = Header {
            destination: 0,
            sender: ActorId::HOST,
            type_id,
            correlation: 5,
            sent: 0,
            kind: Kind::Command,
            priority: 0,
            words: 1,
            deadline: 0,
            deliveries: Default::default(),
        };
        let payload = std::array::from_fn(|word| if word == 0 { life } else { 0 });
        send(&grid, &Packet { header, payload }.to_words());
        assert_eq!(receive(&grid).header.kind, Kind::Done);
    };
    command(3, 0);
    let refused = ask(&grid, 0, &Number { value: 4 });
    assert_eq!(refused.header.kind, Kind::Undelivered);
    command(2, 2);
    let answer = ask(&grid, 0, &Number { value: 4 });
    assert_eq!(Number::from_payload(&answer.payload).value, 250);
}

fn forwards() {
    let (commons, grid) = grid(6, 3);
    // The forwarder answers the host. (What its message is answered with is a message to it, which it answers, and so on: only
    // notes, which answer nobody, are sent on below.)
    send(&grid, &packet(Kind::Message, 0, &Forward { to: 12, value: 8 }, 0));
    let back = [receive(&grid), receive(&grid)];
    assert_eq!(
        (back[0].header.kind, back[0].header.deadline),
        (Kind::Undelivered, 5)
    );
    // A second grid comes while the first one stays; actors of the one reach the other's.
    let second = GridOptions {
        actors: 6..8,
        ..GridOptions::new(8, 1)
    };
    let second = active(Grid::new(&commons, &note::handler(), &[0; 4], &second).unwrap());
    assert_eq!(second.first_actor(), 6);
    for (from, to, value) in [(0, 7, 10), (1, 6, 11), (2, 7, 12)] {
        send(&grid, &packet(Kind::Message, from, &Forward { to, value }, 0));
        assert_eq!(receive(&grid).header.kind, Kind::Reply);
        let noted = receive(&second);
        assert_eq!((noted.payload[0], noted.header.sender), (value, ActorId(to)));
    }
    assert_eq!(
        Number::from_payload(&ask(&grid, 4, &Number { value: 2 }).payload).value,
        500
    );
    second.end().unwrap();
    assert_eq!(
        Number::from_payload(&ask(&grid, 4, &Number { value: 1 }).payload).value,
        1000
    );
}

/// Tells the host what it got.
#[ring_kernel]
fn note(ctx: &mut Context, state: &mut u32, message: Number) {
    *state += 1;
    ctx.send(u32::MAX, message);
}

fn launches_beside() {
    let (commons, grid) = grid(4, 2);
    let device = commons.device();
    // Compiling, loading, launching, copying, allocating and freeing while a grid stays.
    for n in [1000usize, 1 << 20] {
        eprintln!("{n}: upload");
        let x = device.upload(&vec![1.5f32; n]).unwrap();
        let y = device.zeros::<f32>(n).unwrap();
        device
            .launch(
                &twice::kernel(),
                LaunchConfig::linear(n, 256),
                perpetua::args![&x, &y],
            )
            .unwrap();
        eprintln!("read");
        assert!(y.read().unwrap().iter().all(|v| *v == 3.0));
        drop((x, y));
        eprintln!("trim");
        device.trim(0).unwrap();
    }
    // One whose lanes need more memory of their own than any before.
    let z = device.zeros::<f32>(64).unwrap();
    device
        .launch(&deep::kernel(), LaunchConfig::linear(64, 64), perpetua::args![&z])
        .unwrap();
    assert_eq!(z.read().unwrap()[5], 5.0);
    assert_eq!(
        Number::from_payload(&ask(&grid, 3, &Number { value: 4 }).payload).value,
        250
    );
}

#[kernel]
fn deep(z: &mut [f32]) {
    let i = global_id_x();
    let mut own = [0.0f32; 4000];
    for k in 0..64 {
        own[(i * 61 + k * 7) % 4000] += i as f32;
    }
    z[i] = own[(i * 61 + 7) % 4000];
}

#[kernel]
fn twice(x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    if i < y.len() {
        y[i] = 2.0 * x[i];
    }
}

/// As many grids as may stay: each must be heard, launches beside them, too, and one more is refused.
fn many_grids() {
    const GRIDS: u32 = 24;
    let device = device();
    let commons = Arc::new(Commons::new(&device, Shape::new(GRIDS + 1, GRIDS + 1)).unwrap());
    let grids: Vec<Grid> = (0..GRIDS)
        .map(|number| {
            let options = GridOptions {
                actors: number..number + 1,
                ..GridOptions::new(1, 1)
            };
            active(Grid::new(&commons, &divide::handler(), &[0; 8], &options).unwrap())
        })
        .collect();
    for grid in &grids {
        let back = ask(grid, grid.first_actor(), &Number { value: 4 });
        assert_eq!(Number::from_payload(&back.payload).value, 250);
        // Counted a moment after the answer.
        let started = Instant::now();
        while grid.handled(0).unwrap() != 1 {
            assert!(started.elapsed() < Duration::from_secs(5), "not counted");
        }
    }
    let more = GridOptions {
        actors: GRIDS..GRIDS + 1,
        ..GridOptions::new(1, 1)
    };
    let refused = Grid::new(&commons, &divide::handler(), &[0; 8], &more)
        .err()
        .unwrap();
    assert!(refused.to_string().contains("0 more launches"), "{refused}");
    let x = device.upload(&[1.5f32; 100]).unwrap();
    let y = device.zeros::<f32>(100).unwrap();
    device
        .launch(
            &twice::kernel(),
            LaunchConfig::linear(100, 100),
            perpetua::args![&x, &y],
        )
        .unwrap();
    assert_eq!(y.read().unwrap()[99], 3.0);
}

fn full_rings() {
    let (commons, grid) = grid(2, 1);
    // More than both rings hold, without taking anything out: the host is told, nothing is lost.
    let ring = commons.shape().ring as usize;
    let words = packet(Kind::Ask, 0, &Number { value: 2 }, 1);
    let mut sent = 0;
    let (started, mut last) = (Instant::now(), Instant::now());
    // So long nothing has moved.
    let still = Duration::from_millis(if has_gpu() { 200 } else { 1000 });
    while last.elapsed() < still {
        let pushed = grid.push(0, [&words]);
        if pushed > 0 {
            (sent, last) = (sent + pushed, Instant::now());
        }
    }
    // Up to four are taken in at once, and all are told of at the end.
    assert!((2 * ring - 4..2 * ring + 4).contains(&sent), "{sent} of {ring}");
    // Parking it now must not hang.
    assert_eq!(grid.read_states().unwrap().len(), 16);
    let mut received = 0;
    while received < sent && started.elapsed() < Duration::from_secs(20) {
        received += grid.drain(0, 64, |p| assert_eq!(p[8], 500));
    }
    assert_eq!(received, sent);
}

/// Watched by the interpreter's race detector: what the subgroups of a home tell each other, and homes and grids.
fn without_races() {
    let device = Device::new(BackendKind::Cpu, 0).unwrap();
    let cpu: &CpuContext = device.context().as_any().downcast_ref().unwrap();
    cpu.detect_races(true);
    let (commons, grid) = grid_on(&device, 4, 2);
    let second = GridOptions {
        actors: 4..6,
        ..GridOptions::new(6, 1)
    };
    let second = active(Grid::new(&commons, &note::handler(), &[0; 4], &second).unwrap());
    // Many at once, some to one actor, some on to the other grid, some that fault.
    let values = [5, 8, 1, 2, 0, 3, 9, 4, 6, 2, 5, 1];
    for (actor, value) in [0, 1, 0, 2, 3, 0, 1, 2, 1, 2, 0, 2].into_iter().zip(values) {
        send(&grid, &packet(Kind::Ask, actor, &Number { value }, 7));
        let to = 4 + value % 2;
        send(&grid, &packet(Kind::Message, actor, &Forward { to, value }, 0));
    }
    let (mut kinds, mut noted) = ([0; 8], 0);
    // The third actor faults at the first of its messages.
    while kinds.iter().sum::<u32>() < 24 {
        let started = Instant::now();
        while !(0..2).any(|home| grid.drain_waits(home)) {
            assert!(
                started.elapsed() < Duration::from_secs(20),
                "{kinds:?}, {:?}",
                grid.take_fault()
            );
        }
        kinds[receive(&grid).header.kind as usize] += 1;
    }
    assert_eq!(kinds[Kind::Fault as usize], 1);
    assert_eq!(kinds[Kind::Undelivered as usize], 1);
    assert_eq!(kinds[Kind::Reply as usize], 22);
    while noted < 11 {
        assert_eq!(receive(&second).header.kind, Kind::Message);
        noted += 1;
    }
    for grid in [&grid, &second] {
        grid.end()
            .unwrap_or_else(|error| panic!("{error}: {:?}", grid.take_fault()));
    }
}

fn main() {
    let arguments = Arguments::from_args();
    let tests: [(&str, fn()); 16] = [
        ("without_races", without_races),
        ("blocks_without_races", blocks::blocks_without_races),
        ("answers", answers),
        ("faults", faults),
        ("forwards", forwards),
        ("launches_beside", launches_beside),
        ("full_rings", full_rings),
        ("crowds", room::crowds),
        ("large_states", large::large_states),
        ("many_grids", many_grids),
        ("come_and_go", large::come_and_go),
        ("many_actors", many::many_actors),
        ("groups", groups::groups),
        ("loops_end", groups::loops_end),
        ("latencies", groups::latencies),
        ("soak", soak::soak),
    ];
    let place = if has_gpu() { "CUDA" } else { "interpreter" };
    let trials = tests
        .into_iter()
        .map(|(name, test)| {
            Trial::test(format!("{name} ({place})"), move || {
                test();
                Ok::<(), Failed>(())
            })
        })
        .collect();
    let arguments = Arguments {
        test_threads: Some(1),
        ..arguments
    };
    libtest_mimic::run(&arguments, trials).exit();
}
