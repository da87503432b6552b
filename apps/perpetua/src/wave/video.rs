//! Frames on their way into an animated PNG or, through ffmpeg, a video. Must not know what they show.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use perpetua::wave::picture::Animation;

use super::Failure;
use crate::files::{Partial, Pipe, Writer, is_named_file, pause};
use crate::say::{self, say};
use crate::signals::{self, Interrupted};

/// Longest side of a frame.
pub(super) const LONGEST_SIDE: usize = 640;

/// An RGB picture made smaller by taking the mean of squares of `by` pixels a side.
pub(super) fn shrink(rgb: &[u8], width: usize, by: usize) -> Vec<u8> {
    let height = rgb.len() / 3 / width.max(1);
    let (columns, rows) = (width / by, height / by);
    let mut out = Vec::with_capacity(columns * rows * 3);
    for row in 0..rows {
        for column in 0..columns {
            for channel in 0..3 {
                let mut sum = 0u32;
                for y in 0..by {
                    let start = ((row * by + y) * width + column * by) * 3 + channel;
                    sum += (0..by).map(|x| u32::from(rgb[start + 3 * x])).sum::<u32>();
                }
                out.push((sum / (by * by) as u32) as u8);
            }
        }
    }
    out
}

/// Endings by which ffmpeg knows a container that takes these frames.
pub(super) const ENDINGS: [&str; 9] = ["mp4", "m4v", "mov", "mkv", "webm", "avi", "mpg", "ts", "ogv"];

/// What to say when a video cannot go to a path.
fn refused(path: &Path, why: impl std::fmt::Display) -> Failure {
    format!("--video {}: {why}", say::file(path)).into()
}

/// The same where ffmpeg cannot be started.
fn without_ffmpeg(path: &Path, error: &io::Error) -> Failure {
    let why = format!("ffmpeg cannot be started ({error}); install it, or use --animate FILE.png");
    refused(path, why)
}

/// Whether a video can go to a path.
pub(super) fn judge(path: &Path) -> Result<(), Failure> {
    let failed = |why: String| refused(path, why);
    let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
    if !ENDINGS.iter().any(|known| ending == *known) {
        return Err(failed(format!(
            "name a file that ends in .{}",
            ENDINGS.join(", .")
        )));
    }
    match is_named_file(path) {
        Ok(true) => {
            let mut ffmpeg = Command::new("ffmpeg");
            let silent = ffmpeg.arg("-version").stdin(Stdio::null()).stdout(Stdio::null());
            let ran = silent.stderr(Stdio::null()).status();
            ran.map(drop).map_err(|error| without_ffmpeg(path, &error))
        }
        // What is open already, as /dev/stdout is, ffmpeg would begin anew.
        Ok(false) => Err(failed("ffmpeg needs a file of its own, and this is none".into())),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Where frames go.
pub(super) enum Film {
    /// An animated PNG.
    Animation(Partial, Animation<Writer>),
    /// ffmpeg, which reads raw frames.
    Video(Partial, Encoder),
}

impl Film {
    /// An animated PNG of exactly so many frames.
    pub(super) fn animation(path: &Path, [width, height]: [u32; 2], frames: u32) -> Result<Film, Failure> {
        let partial = Partial::new(path)?;
        let file = partial.create()?;
        let animation = Animation::new(file, width, height, frames).map_err(|e| partial.failed(e))?;
        Ok(Film::Animation(partial, animation))
    }

    /// A video; starts ffmpeg.
    pub(super) fn video(path: &Path, size: [u32; 2]) -> Result<Film, Failure> {
        let partial = Partial::new(path)?;
        match Encoder::start(&partial, size) {
            Ok(encoder) => Ok(Film::Video(partial, encoder)),
            Err(error) => Err(without_ffmpeg(path, &error)),
        }
    }

    /// Adds a frame, 8-bit RGB.
    pub(super) fn frame(&mut self, rgb: &[u8]) -> Result<(), Failure> {
        match self {
            Film::Animation(partial, animation) => animation.frame(rgb).map_err(|e| partial.failed(e)),
            Film::Video(partial, encoder) => {
                let written = encoder.frames.as_mut().map_or(Ok(()), |pipe| pipe.write_all(rgb));
                written.or_else(|_| {
                    encoder.end()?;
                    let words = encoder.words(partial);
                    Err(partial.failed(format!("ffmpeg takes no more frames: {words}")))
                })
            }
        }
    }

    /// Ends it, and gives the file its name.
    pub(super) fn finish(self) -> Result<(), Failure> {
        match self {
            Film::Animation(partial, animation) => {
                animation.finish().map_err(|e| partial.failed(e))?;
                partial.finish()
            }
            Film::Video(partial, mut encoder) => {
                let status = encoder.end()?;
                let words = encoder.words(&partial);
                let is_there = fs::metadata(partial.place()).is_ok_and(|file| file.len() > 0);
                match (status.success(), words.as_str()) {
                    (false, "") => Err(partial.failed(format!("ffmpeg ended with {status}"))),
                    (false, words) => Err(partial.failed(format!("ffmpeg says: {words}"))),
                    (true, "") if !is_there => Err(partial.failed("ffmpeg has written nothing")),
                    (true, words) if !is_there || tells_of_a_disk(words) => {
                        Err(partial.failed(format!("ffmpeg says: {words}")))
                    }
                    (true, words) => {
                        partial.finish()?;
                        if !words.is_empty() {
                            say(format!("note: ffmpeg says: {words}"));
                        }
                        Ok(())
                    }
                }
            }
        }
    }

    /// Gives it up; nothing stays.
    pub(super) fn abandon(self) {
        if let Film::Video(_, mut encoder) = self {
            encoder.kill();
        }
    }
}

/// Most bytes of what ffmpeg says that are kept.
const MOST_WORDS: usize = 2000;

/// ffmpeg while it runs.
pub(super) struct Encoder {
    child: Child,
    /// Where it reads frames; none when there are no more.
    frames: Option<Pipe>,
    /// What it has said so far, and who listens.
    said: Arc<Mutex<Vec<u8>>>,
    listener: JoinHandle<()>,
}

impl Encoder {
    fn start(partial: &Partial, [width, height]: [u32; 2]) -> io::Result<Encoder> {
        let mut ffmpeg = Command::new("ffmpeg");
        // Ctrl-C in a terminal is ours to see to.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut ffmpeg, 0);
        let mut child = ffmpeg
            .args([
                "-v", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24", "-r", "25", "-s",
            ])
            .arg(format!("{width}x{height}"))
            .args([
                "-i",
                "-",
                "-vf",
                "pad=ceil(iw/2)*2:ceil(ih/2)*2",
                "-pix_fmt",
                "yuv420p",
            ])
            .arg(partial.place())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let said = Arc::new(Mutex::new(Vec::new()));
        let (stderr, heard) = (child.stderr.take(), Arc::clone(&said));
        let listener = thread::spawn(move || listen(stderr, &heard));
        let frames = child.stdin.take().map(Pipe::to).transpose();
        let mut encoder = Encoder {
            child,
            frames: None,
            said,
            listener,
        };
        match frames {
            Ok(frames) => {
                encoder.frames = frames;
                Ok(encoder)
            }
            Err(error) => {
                encoder.kill();
                Err(error)
            }
        }
    }

    /// Waits until it has ended, now that it gets no more frames.
    fn end(&mut self) -> Result<ExitStatus, Failure> {
        drop(self.frames.take());
        loop {
            if let Some(status) = self.child.try_wait().map_err(|e| format!("ffmpeg: {e}"))? {
                return Ok(status);
            }
            if pause().is_err() {
                let signal = signals::asked().unwrap_or_default();
                self.kill();
                let message = "interrupted while ffmpeg took its time".into();
                return Err(Interrupted { signal, message }.into());
            }
        }
    }

    /// Ends it where it stands, with what it has started.
    fn kill(&mut self) {
        #[cfg(unix)]
        if let (Ok(group), Ok(None)) = (i32::try_from(self.child.id()), self.child.try_wait()) {
            // SAFETY: it sends a signal. The child has not been waited for, so the number is its group's and nobody else's.
            unsafe { libc::kill(-group, libc::SIGKILL) };
        }
        // It has ended by itself if these fail.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// What it had to say, of the file as its user calls it. To be called when it has ended.
    fn words(&self, partial: &Partial) -> String {
        // What it has started may live on, and hold the pipe.
        for _ in 0..MOST_PAUSES {
            if self.listener.is_finished() || pause().is_err() {
                break;
            }
        }
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let words = String::from_utf8_lossy(&said);
        let (own, users) = (
            partial.place().display().to_string(),
            partial.path().display().to_string(),
        );
        words.trim().replace(&own, &users)
    }
}

/// How often a look is taken at a pipe that should have been closed.
const MOST_PAUSES: u32 = 50;

/// Hears what a program says to its end, and keeps the beginning.
fn listen(from: Option<ChildStderr>, heard: &Mutex<Vec<u8>>) {
    let Some(mut from) = from else { return };
    let mut bytes = [0; 1024];
    // What cannot be read is not said.
    while let Ok(n @ 1..) = from.read(&mut bytes) {
        let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MOST_WORDS.saturating_sub(heard.len());
        heard.extend(&bytes[..n.min(room)]);
    }
}

/// Whether a text tells that a disk did not take what was written: some versions end well all the same when they cannot close the file.
fn tells_of_a_disk(words: &str) -> bool {
    #[cfg(unix)]
    const NUMBERS: [i32; 4] = [libc::ENOSPC, libc::EDQUOT, libc::EFBIG, libc::EIO];
    #[cfg(not(unix))]
    const NUMBERS: [i32; 1] = [112];
    let words = words.to_lowercase();
    NUMBERS.iter().any(|number| {
        let text = io::Error::from_raw_os_error(*number).to_string().to_lowercase();
        let text = text
            .split(" (os error")
            .next()
            .unwrap_or_default()
            .trim_end_matches('.');
        words.contains(text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_shrink_to_the_mean_of_squares() {
        // 4 x 2 pixels, each grey as its column.
        let rgb: Vec<u8> = (0..8).flat_map(|i| [(i % 4) as u8 * 10; 3]).collect();
        assert_eq!(shrink(&rgb, 4, 2), [[5; 3], [25; 3]].concat());
        assert_eq!(shrink(&rgb, 4, 1), rgb);
    }
}
