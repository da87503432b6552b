//! The protocol's page: text around the tables of the code, with frames that the code writes.

use std::fmt::Write;

use perpetua_device::LaunchConfig;

use super::frame::Frame;
use super::job::{Content, Data, Job};
use super::protocol::{Code, HEADER, Kind, MAGIC, VERSION};
use crate::executor::Arguments;

/// The protocol as Markdown.
pub fn markdown() -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write(&mut text);
    text
}

fn write(text: &mut String) -> std::fmt::Result {
    let magic = String::from_utf8_lossy(&MAGIC);
    writeln!(
        text,
        "# The protocol of `perpetua isa serve`, version {VERSION}

A client connects over a Unix socket or TCP on loopback and sends frames; each gets one answer, in order. A client may send frames ahead: they wait
in the system's buffer until the answers before them have been taken. A client that closes the connection, or its sending side alone, has
gone: its job is ended as soon as the server sees that, and where it was done before, its answer is still sent. Numbers are little-endian. A text is a `u16` with its length, and UTF-8.

## Frames

| bytes | what |
|---|---|
| 4 | `{magic}` |
| 2 | version, {VERSION} |
| 2 | kind |
| 4 | the client's number for the frame; its answer has the same |
| 4 | bytes of the payload |
| … | the payload |

The header has {HEADER} bytes. Kinds:

| kind | name | meaning |
|---|---|---|"
    )?;
    for kind in Kind::ALL {
        writeln!(
            text,
            "| {} | `{}` | {} |",
            kind.code(),
            kind.name(),
            kind.meaning()
        )?;
    }
    text.push_str(PAYLOADS);
    text.push_str(BOUNDS);
    text.push_str("\n## Errors\n\n| code | name | meaning |\n|---|---|---|\n");
    for code in Code::ALL {
        writeln!(
            text,
            "| {} | `{}` | {} |",
            code.code(),
            code.name(),
            code.meaning()
        )?;
    }
    text.push_str(EXAMPLE);
    let program = crate::Program {
        name: "p".into(),
        ..crate::Program::default()
    };
    let job = Job {
        program,
        config: LaunchConfig::new(1, 64),
        arguments: Arguments::new(),
        contents: vec![Content {
            name: "x",
            data: Data::Zeros(8),
            is_returned: true,
        }],
    };
    let mut bytes = Vec::new();
    if let Ok(payload) = job.encode() {
        let frame = Frame {
            kind: Kind::Run,
            id: 7,
            payload,
        };
        // A vector takes all.
        let _ = frame.write(&mut bytes);
    }
    text.push_str("```text\n");
    for row in bytes.chunks(16) {
        let row: Vec<String> = row.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(text, "{}", row.join(" "))?;
    }
    text.push_str("```\n");
    Ok(())
}

const PAYLOADS: &str = "
## Payloads

`run`, a job:

| what | as |
|---|---|
| blocks along x, y, z, each at least 1 | 3 `u32` |
| lanes of a block along x, y, z, each at least 1 | 3 `u32` |
| bytes of the program | `u32` |
| the program | its binary form |
| number of parameters | `u16` |
| each: name, type (as `f32`), value | text, text, 8 bytes, the rest zero |
| number of buffers and pools | `u16` |
| each: name | text |
| 0 for a buffer with its bytes, 1 for one of zeros, 2 for a pool | `u8` |
| 1 if the result is to have it, else 0 | `u8` |
| its bytes | `u64` |
| what it holds, for kind 0 | bytes |

Each parameter of the program has one value, and each buffer and pool one content, a buffer in whole elements. Handles in the program mean nothing. Nothing of a job is left for the next one.

`result`: a `u16` with the number of buffers, and for each its name (text), its length (`u64`) and its bytes.

`allowed`: five `u64`: most bytes of a payload, most milliseconds of a job, most bytes of its buffers and pools, most instructions that a
lane may run in loops, most instructions of a program.

`error`: the code (`u16`) and a message (text) of at most 4,096 bytes.
";

const BOUNDS: &str = "
## What a client is held to

A client is a connection. It has one job in the server at a time and one message of `--message` bytes, so that memory is bounded by `--clients` times
that. It may be quiet for `--idle` between two frames, also before its first; a frame takes at most `--transfer` from its first byte to its last. An
answer that is not taken within `--transfer` ends the connection without a word, since part of the answer is on its way. Whose job is next depends on
what clients have used of the processes' time lately; processes are never shared, and end with their client.

Places go to those who use them. Where a client comes and all `--clients` places are taken, the client for which the server has waited longest makes way:
for its next frame, for the rest of one, or, from the second second on, until it has taken an answer. It is told so (`waited`), but where part of an answer is on its way. None of its
jobs is lost, since none waits or runs; `Client::run` connects anew by itself. A new client is sent away (`full`) only while all places belong to clients with jobs that
wait or run, each of which ends within `--seconds` of its turn.

## What a child process is held to

| what | how | where |
|---|---|---|
| time of a job | the server ends the process after `--seconds` | all systems |
| memory | the server looks each 20 ms and ends it above `--process-memory` | Linux |
| memory, however fast it is taken | `RLIMIT_DATA` of twice that, when the device is open | Linux, CPU backend |
| files | `RLIMIT_FSIZE` 0: it writes none; `RLIMIT_NOFILE` 64 | Unix, CPU backend |
| core files | `RLIMIT_CORE` 0 | Unix |
| more rights by programs that have them | `no_new_privs` | Linux |
| others of the same user that read its memory, as another client's child | not dumpable, so not to be traced, when the device is open | Linux |
| whom the system ends first when memory is short | `oom_score_adj` 1000 | Linux |
| caches on disk | off: what one client compiled is not another's | all systems |

Programs of the instruction set name no file, process or address, so these hold what a hole in a driver or a compiler would let through. What is
not done: a child keeps the server's user, its environment, its network, and its right to read what this user may read; it may start processes;
a GPU's driver needs files and memory that no general limit fits, and a GPU's own memory is limited for a job's buffers and pools alone. A server for
people whom one does not trust at all belongs under a user of its own, or into a container.
";

const EXAMPLE: &str = "
## An example

A `run` frame with the number 7: the empty program `p` on one block of 64 lanes, and a buffer `x` of eight zeros that is to be returned. (The
server answers with an error of the code `job`, because the program has no such buffer.)

";

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_is_the_code() {
        let page = include_str!("../../../../docs/serve.md");
        assert!(
            page == super::markdown(),
            "docs/serve.md is old: write it anew with `perpetua isa spec --protocol > docs/serve.md`"
        );
    }
}
