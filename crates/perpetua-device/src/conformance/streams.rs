//! Cells of streams: order, events, time, graphs.

use super::{Cell, Check, Failure, Need, fails, pattern, same, same_all};
use crate::args;
use crate::device::Device;
use crate::dim::LaunchConfig;
use crate::error::Error;
use crate::future::block_on;
use crate::stream::Event;

pub(super) fn cells() -> Vec<Cell> {
    vec![
        Cell::new("streams/work runs in order", in_order),
        Cell::new("streams/events order streams", events_order),
        Cell::new("streams/events complete", events_complete),
        Cell::new("streams/synchronisation", synchronisation),
        Cell::new("streams/work outlives its stream", outlives),
        Cell::new("streams/elapsed time", elapsed).needs(Need::Timestamps),
        Cell::new("streams/many streams", many),
        Cell::new("streams/random programs equal sequential ones", random_programs),
        Cell::new("graphs/replay", replay),
        Cell::new("graphs/keep memory alive", keeps_alive),
        Cell::new("graphs/misuse", misuse),
        Cell::new("graphs/a capture is one thread's", one_threads),
    ]
}

fn in_order(device: &Device) -> Check {
    let stream = device.create_stream()?;
    let (a, b) = (device.alloc::<u32>(100_000)?, device.alloc::<u32>(100_000)?);
    for i in 0..100u32 {
        stream.fill(&a, i)?;
        stream.copy(&a, &b)?;
        stream.fill(&a, u32::MAX)?;
    }
    same_all("the last copy", &stream.read(&b)?, &[99; 100_000])
}

fn events_order(device: &Device) -> Check {
    let (writer, reader) = (device.create_stream()?, device.create_stream()?);
    let (a, b) = (device.alloc::<u32>(1 << 20)?, device.alloc::<u32>(1 << 20)?);
    for i in 0..20u32 {
        writer.fill(&a, i)?;
        reader.wait(&writer.record()?)?;
        reader.copy(&a, &b)?;
        // The next fill must not overtake the copy.
        writer.wait(&reader.record()?)?;
    }
    same_all("the last copy", &reader.read(&b)?, &vec![19; 1 << 20])?;
    // An event of its own stream, an old one, and one twice.
    let event = writer.record()?;
    writer.wait(&event)?;
    reader.wait(&event)?;
    reader.wait(&event)?;
    writer.synchronize()?;
    reader.wait(&event)?;
    Ok(reader.synchronize()?)
}

fn events_complete(device: &Device) -> Check {
    let stream = device.create_stream()?;
    let buffer = device.alloc::<u8>(1 << 20)?;
    let early = stream.record()?;
    stream.fill(&buffer, 1)?;
    let late = stream.record()?;
    late.synchronize()?;
    same("the late one", late.is_complete()?, true)?;
    same("the early one", early.is_complete()?, true)?;
    stream.fill(&buffer, 2)?;
    let third = stream.record()?;
    block_on(third.synchronize_async())?;
    same("awaited", third.is_complete()?, true)?;
    // Asking is enough to get there: nobody has to wait.
    let fourth = stream.record()?;
    let mut asked = 0u64;
    while !fourth.is_complete()? {
        asked += 1;
        if asked > 10_000_000 {
            return Err(Failure(
                "an event is not complete after ten million questions".into(),
            ));
        }
        std::hint::spin_loop();
    }
    Ok(())
}

fn synchronisation(device: &Device) -> Check {
    let stream = device.create_stream()?;
    stream.synchronize()?;
    let buffer = device.alloc::<u8>(1 << 20)?;
    stream.fill(&buffer, 1)?;
    stream.flush()?;
    stream.synchronize()?;
    same("idle", stream.is_idle()?, true)?;
    stream.fill(&buffer, 2)?;
    block_on(stream.synchronize_async())?;
    stream.fill(&buffer, 3)?;
    device.synchronize()?;
    same("idle after all", stream.is_idle()?, true)?;
    stream.fill(&buffer, 4)?;
    block_on(device.synchronize_async())?;
    same("idle after all, awaited", stream.is_idle()?, true)
}

fn outlives(device: &Device) -> Check {
    let stream = device.create_stream()?;
    let (a, b) = (device.alloc::<u32>(1 << 20)?, device.alloc::<u32>(1 << 20)?);
    for i in 0..10 {
        stream.fill(&a, i)?;
        stream.copy(&a, &b)?;
    }
    let last = stream.record()?;
    drop((stream, a));
    last.synchronize()?;
    same_all("after the stream", &b.read()?, &vec![9; 1 << 20])
}

fn elapsed(device: &Device) -> Check {
    let stream = device.create_stream()?;
    let buffer = device.alloc::<u8>(64 << 20)?;
    let start = stream.record()?;
    for i in 0..4 {
        stream.fill(&buffer, i)?;
    }
    let end = stream.record()?;
    stream.synchronize()?;
    let time = end.elapsed_since(&start)?;
    let clock = std::time::Duration::from_secs(60);
    if time > clock {
        return Err(Failure(format!("four fills of 64 MiB took {time:?}")));
    }
    // The null device works in no time.
    if time.is_zero() && Need::Compute.missing(device).is_none() {
        return Err(Failure("four fills of 64 MiB took no time".into()));
    }
    Ok(())
}

fn many(device: &Device) -> Check {
    let mut all = Vec::new();
    for i in 0..64u8 {
        let stream = device.create_stream()?;
        let buffer = device.alloc::<u8>(10_000)?;
        stream.write(&buffer, &pattern(10_000, i))?;
        all.push((stream, buffer, i));
    }
    for (stream, buffer, i) in &all {
        same_all("content", &stream.read(buffer)?, &pattern(10_000, *i))?;
    }
    Ok(())
}

// Fills, writes and copies of parts, on streams chosen at random, each ordered by events after the last one that touched the
// same buffers. Small and large sizes, so that backends with a threshold cross it.
fn random_programs(device: &Device) -> Check {
    const LEN: usize = 90_001;
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move |below: usize| {
        // An LCG's upper bits (Knuth's constants).
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    for program in 0..6 {
        let streams = (0..3)
            .map(|_| device.create_stream())
            .collect::<Result<Vec<_>, _>>()?;
        let buffers = (0..4)
            .map(|_| device.zeros::<u32>(LEN))
            .collect::<Result<Vec<_>, _>>()?;
        let mut model = vec![vec![0u32; LEN]; buffers.len()];
        device.synchronize()?;
        let mut last: Vec<Option<Event>> = vec![None; buffers.len()];
        for step in 0..60u32 {
            let stream = &streams[random(streams.len())];
            let (to, from) = (random(buffers.len()), random(buffers.len()));
            let len = [1, 3, 64, 1000, LEN / 2][random(5)];
            let (t, f) = (random(LEN - len), random(LEN - len));
            for event in [&last[to], &last[from]].into_iter().flatten() {
                stream.wait(event)?;
            }
            let target = buffers[to].slice(t..t + len)?;
            match random(3) {
                0 => {
                    stream.fill(&target, step)?;
                    model[to][t..t + len].fill(step);
                }
                1 if to != from => {
                    stream.copy(&buffers[from].slice(f..f + len)?, &target)?;
                    let copied = model[from][f..f + len].to_vec();
                    model[to][t..t + len].copy_from_slice(&copied);
                }
                _ => {
                    let values: Vec<u32> = (0..len as u32).map(|i| i ^ (step << 20)).collect();
                    stream.write(&target, &values)?;
                    model[to][t..t + len].copy_from_slice(&values);
                }
            }
            let done = stream.record()?;
            last[to] = Some(done.clone());
            last[from] = Some(done);
        }
        device.synchronize()?;
        for (i, (buffer, expect)) in buffers.iter().zip(&model).enumerate() {
            same_all(&format!("program {program}, buffer {i}"), &buffer.read()?, expect)?;
        }
    }
    Ok(())
}

fn replay(device: &Device) -> Check {
    let stream = device.create_stream()?;
    let (a, b) = (device.zeros::<u8>(1000)?, device.zeros::<u8>(1000)?);
    let host = pattern(500, 10);
    device.synchronize()?;
    let graph = stream.capture(|s| {
        s.write(&a.slice(3..503)?, &host)?;
        s.copy(&a.slice(..500)?, &b.slice(500..)?)?;
        s.fill(&a.slice(..3)?, 9)
    })?;
    same("nodes", graph.node_count(), 3)?;
    same_all("captured, not run", &stream.read(&a)?, &[0; 1000])?;
    graph.launch(&stream)?;
    let mut expect = vec![0; 1000];
    expect[503..1000].copy_from_slice(&host[..497]);
    same_all("first replay", &stream.read(&b)?, &expect)?;
    // The second replay sees what the first one left.
    let other = device.create_stream()?;
    other.launch_graph(&graph)?;
    expect[500..503].fill(9);
    same_all("second replay, on another stream", &other.read(&b)?, &expect)?;
    for _ in 0..50 {
        stream.launch_graph(&graph)?;
    }
    same_all("many replays", &stream.read(&b)?, &expect)?;
    let nothing = stream.capture(|_| Ok(()))?;
    same("an empty graph", nothing.node_count(), 0)?;
    nothing.launch(&stream)?;
    Ok(stream.synchronize()?)
}

fn keeps_alive(device: &Device) -> Check {
    let stream = device.create_stream()?;
    let result = device.zeros::<u8>(100_000)?;
    let inner = device.upload(&pattern(100_000, 11))?;
    device.synchronize()?;
    let graph = stream.capture(|s| s.copy(&inner, &result))?;
    drop(inner);
    // Memory that the graph still needs must not be handed out.
    let others = [1u8, 2, 3].map(|v| device.full(100_000, v));
    device.synchronize()?;
    graph.launch(&stream)?;
    drop(graph);
    same_all("replayed", &stream.read(&result)?, &pattern(100_000, 11))?;
    others.into_iter().try_for_each(|o| o.map(drop))?;
    Ok(())
}

fn misuse(device: &Device) -> Check {
    let stream = device.create_stream()?;
    let buffer = device.zeros::<u8>(10)?;
    device.synchronize()?;
    let is_state = |e: &Error| matches!(e, Error::InvalidState { .. });
    fails("ending without beginning", stream.inner().end_capture(), is_state)?;
    let captured = stream.capture(|s| {
        let wrong = [
            ("beginning twice", s.inner().begin_capture()),
            ("reading", s.read(&buffer).map(drop)),
            (
                "reading asynchronously",
                block_on(s.read_async(&buffer)).map(drop),
            ),
            ("synchronising", s.synchronize()),
            ("recording an event", s.record().map(drop)),
        ];
        Ok(wrong.map(|(what, result)| fails(what, result, is_state)).to_vec()).and_then(|checks| match checks
            .into_iter()
            .find_map(Result::err)
        {
            None => Ok(()),
            Some(Failure(message)) => Err(Error::Frontend {
                kernel: "capture".into(),
                message,
            }),
        })
    })?;
    same("nodes", captured.node_count(), 0)?;
    stream.fill(&buffer, 1)?;
    same("the stream works on", stream.read(&buffer)?, vec![1; 10])
}

fn one_threads(device: &Device) -> Check {
    let stream = device.create_stream()?;
    let (a, b) = (device.zeros::<u8>(1000)?, device.zeros::<u8>(1000)?);
    let is_state = |e: &Error| matches!(e, Error::InvalidState { .. });
    let mut refused = Ok(());
    let graph = stream.capture(|s| {
        s.fill(&a, 1)?;
        refused = std::thread::scope(|scope| {
            let other = scope.spawn(|| -> Check {
                fails("another thread's fill", s.fill(&a, 2), is_state)?;
                fails("another thread's write", s.write(&a, &[3; 1000]), is_state)?;
                fails("another thread's copy", s.copy(&a, &b), is_state)?;
                fails("another thread's end", s.inner().end_capture(), is_state)
            });
            let panicked = |_| Err(Failure("a thread panicked".into()));
            other.join().unwrap_or_else(panicked)
        });
        s.copy(&a, &b)
    })?;
    refused?;
    same("nodes", graph.node_count(), 2)?;
    stream.launch_graph(&graph)?;
    same_all("replayed", &stream.read(&b)?, &[1; 1000])?;
    // While one thread captures, again and again, another's work is run or refused, never captured.
    let (launched, ended) = (
        &std::sync::atomic::AtomicU32::new(0),
        &std::sync::atomic::AtomicBool::new(false),
    );
    // Relaxed: the scope's end orders what is read afterwards.
    let order = std::sync::atomic::Ordering::Relaxed;
    let counter = device.zeros::<u32>(1)?;
    let count = match Need::Compute.missing(device) {
        None => Some(super::kernels::count(device)?),
        Some(_) => None,
    };
    let graphs = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(order) {
                let submitted = match &count {
                    Some(count) => stream.launch(count, LaunchConfig::new(1, 1), args![&counter]),
                    None => stream.fill(&a, 4),
                };
                if submitted.is_ok() {
                    launched.fetch_add(1, order);
                }
            }
        });
        let graphs = (0..200).map(|_| stream.capture(|s| (0..3).try_for_each(|_| s.fill(&b, 5))));
        let graphs: Result<Vec<_>, Error> = graphs.collect();
        ended.store(true, order);
        graphs
    })?;
    for graph in &graphs {
        same("nodes of each capture", graph.node_count(), 3)?;
    }
    if count.is_some() {
        same(
            "what was not refused has run",
            stream.read(&counter)?,
            vec![launched.load(order)],
        )?;
    }
    Ok(())
}
