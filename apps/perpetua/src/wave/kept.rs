//! What a checkpoint keeps beside the state: the scene's text or picture, and the options of the command line; so that it goes on
//! by itself, as far as [`trust`](super::trust) lets it. Must not know steps.

use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{ArgMatches, Args as _, Command, FromArgMatches, ValueEnum};
use perpetua::wave::checkpoint;
use serde::{Deserialize, Serialize};

use super::steps::steps_of;
use super::trust::{Key, OUTPUTS, may_make};
use super::{Args, Failure, Source, read};
#[cfg(unix)]
use crate::files::Lock;
use crate::say::{file as file_name, say, word};

/// A run as the command line or a checkpoint describes it.
pub(super) struct Run {
    pub(super) args: Args,
    pub(super) source: Source,
    /// The checkpoint to go on from.
    pub(super) state: Option<Vec<u8>>,
    /// What this run's checkpoints keep.
    pub(super) note: Vec<u8>,
    /// Options with files that are written because the checkpoint says so.
    pub(super) written: Vec<String>,
    /// Of the checkpoint that is kept, where the run goes on from it.
    #[cfg(unix)]
    pub(super) lock: Option<Lock>,
}

#[derive(Serialize, Deserialize)]
struct Note {
    options: Vec<String>,
    /// Where they were given: names of files are relative to it for who made the checkpoint, and to where they are for others.
    folder: PathBuf,
    scene: Source,
    /// Of all the rest, by the key of who made it; 0 where that has none, or no file is named.
    mark: u128,
}

impl Note {
    fn marked_by(&self, key: &Key) -> u128 {
        let folder = self.folder.as_os_str().as_encoded_bytes();
        let parts = [folder, self.scene.name.as_bytes(), &self.scene.bytes];
        key.mark(parts.into_iter().chain(self.options.iter().map(String::as_bytes)))
    }

    /// Whether this user has made it on this machine.
    fn is_own(&self) -> bool {
        Key::known().is_some_and(|key| self.mark == self.marked_by(&key))
    }

    /// The options that name files which are written: name, endings of such files, file.
    fn outputs(&self) -> impl Iterator<Item = (&'static str, &'static [&'static str], &str)> {
        self.options.iter().filter_map(|option| {
            let (name, file) = option.trim_start_matches('-').split_once('=')?;
            let (name, endings) = OUTPUTS.iter().find(|(known, _)| *known == name)?;
            Some((*name, *endings, file))
        })
    }

    /// From another folder, too, a run goes on with the same files.
    fn name_outputs(&mut self) {
        for option in &mut self.options {
            let parts = option.trim_start_matches('-').split_once('=');
            let is_output = |name: &str| OUTPUTS.iter().any(|(known, _)| *known == name);
            if let Some((name, file)) = parts.filter(|(name, _)| is_output(name)) {
                *option = format!("--{name}={}", self.folder.join(file).display());
            }
        }
    }
}

/// The run that `args`, read from `matches`, ask for.
pub(super) fn run(args: &Args, matches: Option<&ArgMatches>) -> Result<Run, Failure> {
    match (&args.resume, matches) {
        (Some(path), Some(matches)) => resumed(path, matches),
        _ => Run::new(args.clone(), matches, Source::load(&args.scene)?, None),
    }
}

impl Run {
    fn new(
        args: Args,
        matches: Option<&ArgMatches>,
        source: Source,
        state: Option<Vec<u8>>,
    ) -> Result<Run, Failure> {
        let note = match matches.filter(|_| args.checkpoint.is_some()) {
            Some(matches) => {
                let mut options = options(matches)?;
                options.retain(|option| !option.starts_with("--resume="));
                let mut note = Note {
                    options,
                    folder: std::env::current_dir().map_err(|e| format!("the present folder: {e}"))?,
                    scene: source.clone(),
                    mark: 0,
                };
                if note.outputs().next().is_some() {
                    match Key::known_or_new() {
                        Ok(key) => note.mark = note.marked_by(&key),
                        Err(why) => say(format!(
                            "note: there is no key for checkpoints ({why}): to replace files, --resume will want them named again"
                        )),
                    }
                }
                postcard::to_allocvec(&note)?
            }
            None => Vec::new(),
        };
        Ok(Run {
            args,
            source,
            state,
            note,
            written: Vec::new(),
            #[cfg(unix)]
            lock: None,
        })
    }
}

/// The options of `perpetua wave` that were given, one a string.
pub(super) fn options(matches: &ArgMatches) -> Result<Vec<String>, Failure> {
    let mut out = Vec::new();
    for arg in command().get_arguments() {
        let given = matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
        let Some(long) = arg.get_long().filter(|_| given) else {
            continue;
        };
        if !arg.get_action().takes_values() {
            out.push(format!("--{long}"));
            continue;
        }
        for value in matches.get_raw(arg.get_id().as_str()).into_iter().flatten() {
            let Some(value) = value.to_str() else {
                return Err(format!(
                    "--{long} {}: the name is not Unicode, and a checkpoint cannot keep it",
                    file_name(Path::new(value))
                )
                .into());
            };
            out.push(format!("--{long}={value}"));
        }
    }
    Ok(out)
}

fn command() -> Command {
    Args::augment_args(Command::new("wave"))
        .no_binary_name(true)
        .args_override_self(true)
}

fn parse(options: &[String]) -> Result<(Args, ArgMatches), Failure> {
    let matches = command().try_get_matches_from(options)?;
    Ok((Args::from_arg_matches(&matches)?, matches))
}

/// A checkpoint's run: its own scene and options, and over these what is given now. Nothing that the state depends on may differ.
fn resumed(path: &Path, matches: &ArgMatches) -> Result<Run, Failure> {
    let failed = |why: String| Failure::from(format!("--resume {}: {why}", file_name(path)));
    // What another run still keeps there is not read before it has ended.
    #[cfg(unix)]
    let lock = match matches.value_source("checkpoint") {
        Some(ValueSource::CommandLine) => None,
        _ if path.exists() => Lock::take(path)?,
        _ => None,
    };
    let state = read(path, u64::MAX).map_err(|why| format!("--resume: {why}"))?;
    let note = checkpoint::note(&state).map_err(|e| failed(e.to_string()))?;
    let mut note: Note = postcard::from_bytes(note).map_err(|_| {
        failed("another program made this checkpoint; it says nothing of scene and options".into())
    })?;
    let is_own = note.is_own();
    if is_own {
        note.name_outputs();
    }
    let given = options(matches)?;
    let (now, _) = parse(&given)?;
    let (kept, _) = parse(&note.options).map_err(|e| failed(e.to_string()))?;
    let is_given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    if is_given("scene") && Source::load(&now.scene)?.bytes != note.scene.bytes {
        return Err(failed(format!(
            "it is of the scene {} as that was then, not of --scene {}; leave --scene out",
            note.scene.name,
            file_name(&now.scene)
        )));
    }
    let scene = note.scene.scene()?;
    let model = scene
        .model(kept.size, kept.time_step)
        .map_err(|error| note.scene.wrong(&kept, error))?;
    let fixed = [
        (
            "size",
            now.size.unwrap_or(0).to_string(),
            model.size[0].to_string(),
        ),
        (
            "time-step",
            now.time_step.unwrap_or(0.0).to_string(),
            model.time_step.to_string(),
        ),
        ("dtype", name_of(&now.dtype), name_of(&kept.dtype)),
    ];
    for (option, now, kept) in fixed {
        if is_given(&option.replace('-', "_")) && now != kept {
            return Err(failed(format!(
                "it was made with --{option} {kept}; --{option} {now} cannot go on from it"
            )));
        }
    }
    let written = written(&note, path, is_own, is_given).map_err(failed)?;
    let (mut args, all) = parse(&[note.options, given].concat())?;
    // The file goes on, unless another is named.
    if !is_given("checkpoint") {
        args.checkpoint = Some(path.to_owned());
    }
    args.resume = Some(path.to_owned());
    let run = Run::new(args, Some(&all), note.scene, Some(state))?;
    Ok(Run {
        written,
        #[cfg(unix)]
        lock,
        ..run
    })
}

/// Whether a run that does not go on from what lies at `path` may keep its state there: not where somebody would lose the state of
/// a run that has not ended, or a file that is no checkpoint.
pub(super) fn may_replace(path: &Path) -> Result<(), Failure> {
    // Devices and pipes hold nothing.
    let holds = |there: std::fs::Metadata| there.is_file() && there.len() > 0;
    if !std::fs::metadata(path).is_ok_and(holds) {
        return Ok(());
    }
    let refused = |why: String| Failure::from(format!("--checkpoint {}: {why}", file_name(path)));
    let other = |why: String| {
        refused(format!(
            "this file is there already, and {why}: remove it, or name another"
        ))
    };
    let state = read(path, u64::MAX).map_err(|why| refused(why.to_string()))?;
    let done = checkpoint::steps(&state).map_err(|_| other("is no checkpoint of this program's".into()))?;
    let note = checkpoint::note(&state).map_err(|e| refused(e.to_string()))?;
    let note: Note = postcard::from_bytes(note)
        .map_err(|_| other(format!("has {done} steps of another program's run")))?;
    let (kept, _) = parse(&note.options)?;
    let scene = note.scene.scene()?;
    let steps = steps_of(
        &kept,
        &note.scene,
        &scene,
        &scene.model(kept.size, kept.time_step)?,
    )?;
    if done < steps {
        return Err(other(format!(
            "has {done} of {steps} steps of a run of {}; `perpetua wave --resume {}` goes on with it",
            note.scene.name,
            word(path)
        )));
    }
    Ok(())
}

/// The options of a checkpoint's that name files to be written. What somebody else's must not write has to be named again.
fn written(
    note: &Note,
    path: &Path,
    is_own: bool,
    is_given: impl Fn(&str) -> bool,
) -> Result<Vec<String>, String> {
    let outputs = note.outputs().filter(|(name, ..)| !is_given(name));
    let option = |(name, _, file): &(&str, &[&str], &str)| format!("--{name} {}", word(Path::new(file)));
    let refused = |(_, endings, file): &(&str, &[&str], &str)| !is_own && !may_make(endings, file);
    let outputs: Vec<_> = outputs.collect();
    let again: Vec<String> = outputs
        .iter()
        .filter(|output| refused(output))
        .map(option)
        .collect();
    if !again.is_empty() {
        let again = again.join(" ");
        return Err(format!(
            "it was made by another user, on another machine or in another container, and it would write {again}; by itself it makes \
             new files in this folder only: if that is meant, say so, or name other files: perpetua wave --resume {} {again}",
            word(path)
        ));
    }
    Ok(outputs.iter().map(option).collect())
}

fn name_of(value: &impl ValueEnum) -> String {
    value
        .to_possible_value()
        .map_or_else(String::new, |value| value.get_name().to_owned())
}
