//! Blocks that messages bring from one home to another, watched by the race detector: what a sender has written there must be
//! ordered before what the receiver reads, whichever of its lanes saw the packet come.

use perpetua::actors::span::{BLOCK_FLAG, HEAD_WORDS, SpanU32};

use super::*;

/// Words of a block in this test, its head included.
const WORDS: u32 = 16;
/// Messages at once: as many as a home takes from the host in one look.
const AT_ONCE: u32 = 4;
/// Elements of a vector.
const LEN: u32 = 5;

#[derive(Clone, Debug, PartialEq, RingMessage)]
struct Pass {
    to: u32,
    values: Vec<u32>,
}

/// Counts each element up and passes the vector on, the second time to the host.
#[ring_kernel]
fn pass(ctx: &mut Context, state: &mut u32, message: PassView) {
    *state += 1;
    for i in 0..message.values.len() {
        ctx.set(message.values, i, ctx.get(message.values, i) + 1);
    }
    let on = PassView {
        to: u32::MAX,
        values: message.values,
    };
    ctx.send(message.to, on);
}

pub(crate) fn blocks_without_races() {
    let device = Device::new(BackendKind::Cpu, 0).unwrap();
    let cpu: &CpuContext = device.context().as_any().downcast_ref().unwrap();
    cpu.detect_races(true);
    let commons = Arc::new(Commons::new(&device, Shape::new(2, 2 * AT_ONCE)).unwrap());
    let rounds = 8;
    let blocks = rounds * AT_ONCE;
    let arena = commons.arena((blocks * WORDS) as usize).unwrap().clone();
    // Actor `n` is at home `n % 2`: the even ones pass on to the odd ones.
    let options = GridOptions::new(2 * AT_ONCE, 2);
    let grid = active(Grid::new(&commons, &pass::handler(), &[0; 4], &options).unwrap());
    for round in 0..rounds {
        let packets: Vec<[u32; 24]> = (0..AT_ONCE)
            .map(|i| {
                let block = round * AT_ONCE + i;
                let at = block * WORDS;
                let head = [WORDS - HEAD_WORDS as u32, LEN, 1, block + 1];
                let words = head.into_iter().chain((0..LEN).map(|i| block + 10 * i));
                for (at, word) in (at as usize..).zip(words) {
                    arena.store(at, word).unwrap();
                }
                let message = PassView {
                    to: 2 * i + 1,
                    values: SpanU32::new(0, LEN),
                };
                let mut words = packet(Kind::Message, 2 * i, &message, 0);
                words[6] |= BLOCK_FLAG << 16;
                words[22] = block + 1;
                words[23] = at;
                words
            })
            .collect();
        // All together, so that the lanes of one look handle them side by side, and the other home's box gets several at once.
        assert_eq!(grid.push(0, &packets), AT_ONCE as usize);
        for _ in 0..AT_ONCE {
            let started = Instant::now();
            while !grid.drain_waits(1) {
                if started.elapsed() > Duration::from_secs(20) {
                    // What the detector has found ends the launch, which tells so when it is waited for.
                    panic!("round {round}: {:?}, {:?}", grid.take_fault(), grid.end());
                }
            }
            let packet = receive(&grid);
            assert_eq!(packet.header.kind, Kind::Message);
            let block = packet.payload[14] - 1;
            for i in 0..LEN {
                let at = (block * WORDS + i) as usize + HEAD_WORDS;
                assert_eq!(arena.load(at).unwrap(), block + 10 * i + 2);
            }
        }
    }
    grid.end()
        .unwrap_or_else(|error| panic!("{error}: {:?}", grid.take_fault()));
}
