//! Frames on their way into an animated PNG or, through ffmpeg, a video. Must not know what they show.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use perpetua::wave::picture::Animation;

use super::Failure;
use crate::files::{Partial, Writer, is_named_file};

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

/// Whether a video can go to a path.
pub(super) fn judge(path: &Path) -> Result<(), Failure> {
    let failed = |why: String| Failure::from(format!("--video {}: {why}", path.display()));
    let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
    if !ENDINGS.iter().any(|known| ending == *known) {
        return Err(failed(format!(
            "name a file that ends in .{}",
            ENDINGS.join(", .")
        )));
    }
    match is_named_file(path) {
        Ok(true) => Ok(()),
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
    Video(Partial, Child),
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
    pub(super) fn video(path: &Path, [width, height]: [u32; 2]) -> Result<Film, Failure> {
        let partial = Partial::new(path)?;
        let mut ffmpeg = Command::new("ffmpeg");
        // Ctrl-C in a terminal is ours to see to.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut ffmpeg, 0);
        let child = ffmpeg
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
            .spawn();
        match child {
            Ok(child) => Ok(Film::Video(partial, child)),
            Err(e) => Err(format!(
                "--video {}: ffmpeg cannot be started ({e}); install it, or use --animate FILE.png",
                path.display()
            )
            .into()),
        }
    }

    /// Adds a frame, 8-bit RGB.
    pub(super) fn frame(&mut self, rgb: &[u8]) -> Result<(), Failure> {
        match self {
            Film::Animation(partial, animation) => animation.frame(rgb).map_err(|e| partial.failed(e)),
            Film::Video(partial, child) => {
                let written = child.stdin.as_mut().map_or(Ok(()), |pipe| pipe.write_all(rgb));
                written.map_err(|_| {
                    let words = last_words(child, partial);
                    partial.failed(format!("ffmpeg takes no more frames: {words}"))
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
            Film::Video(partial, mut child) => {
                drop(child.stdin.take());
                let words = last_words(&mut child, &partial);
                let status = child.wait()?;
                // A disk that is full when it closes the file is a complaint, and no failure, to some versions.
                match (status.success(), words.is_empty()) {
                    (true, true) => partial.finish(),
                    (false, true) => Err(partial.failed(format!("ffmpeg ended with {status}"))),
                    (_, false) => Err(partial.failed(format!("ffmpeg says: {words}"))),
                }
            }
        }
    }

    /// Gives it up; nothing stays.
    pub(super) fn abandon(self) {
        if let Film::Video(_, mut child) = self {
            // It has ended by itself if these fail.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What ffmpeg has to say when it ends, of the file as its user calls it.
fn last_words(child: &mut Child, partial: &Partial) -> String {
    drop(child.stdin.take());
    let mut words = String::new();
    if let Some(pipe) = &mut child.stderr {
        // What cannot be read is not said.
        let _ = pipe.read_to_string(&mut words);
    }
    let (own, users) = (
        partial.place().display().to_string(),
        partial.path().display().to_string(),
    );
    words.trim().replace(&own, &users)
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
