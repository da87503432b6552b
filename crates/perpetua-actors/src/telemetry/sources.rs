//! Who in this process has actors to tell of. A process is watched as a whole: its runtimes and whatever else registers. Must not
//! know what a source is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::reading::Reading;

type Read = Arc<dyn Fn() -> Option<Reading> + Send + Sync>;

struct Source {
    number: u64,
    name: String,
    read: Read,
}

struct Sources {
    next: u64,
    all: Vec<Source>,
}

static SOURCES: Mutex<Sources> = Mutex::new(Sources {
    next: 0,
    all: Vec::new(),
});

/// A source is told of while this lives.
#[derive(Debug)]
#[must_use = "the source is told of while this lives"]
pub struct Registration(u64);

/// Lets `read` be asked, whenever somebody looks, what the actors called `name` do: `None` once they are gone. It is called on the
/// threads of those who look, several at once, and should return within milliseconds.
pub fn register(
    name: impl Into<String>,
    read: impl Fn() -> Option<Reading> + Send + Sync + 'static,
) -> Registration {
    let mut sources = SOURCES.lock().unwrap_or_else(PoisonError::into_inner);
    let number = sources.next;
    sources.next += 1;
    sources.all.push(Source {
        number,
        name: name.into(),
        read: Arc::new(read),
    });
    Registration(number)
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut sources = SOURCES.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = sources.all.iter().position(|source| source.number == self.0);
        let gone = gone.map(|at| sources.all.remove(at));
        drop(sources);
        // Only now, since it may own what has registrations of its own.
        drop(gone);
    }
}

/// What all sources say now, by their names, in the order in which they registered. Names are made different by a number.
pub fn readings() -> Vec<(String, Reading)> {
    let asked: Vec<(String, Read)> = {
        let sources = SOURCES.lock().unwrap_or_else(PoisonError::into_inner);
        let ask = |source: &Source| (source.name.clone(), Arc::clone(&source.read));
        sources.all.iter().map(ask).collect()
    };
    let mut met: HashMap<String, u32> = HashMap::new();
    let said = asked.into_iter().filter_map(|(name, read)| {
        let reading = read()?;
        let times = met.entry(name.clone()).or_default();
        *times += 1;
        let name = match *times {
            1 => name,
            times => format!("{name} {times}"),
        };
        Some((name, reading))
    });
    said.collect()
}

#[cfg(all(test, not(perpetua_loom)))]
mod tests {
    use super::*;

    // The list is the process's: other tests may have entries there.
    fn names(of: &str) -> Vec<String> {
        let names = readings().into_iter().map(|(name, _)| name);
        names.filter(|name| name.starts_with(of)).collect()
    }

    #[test]
    fn sources_are_told_of_while_they_are_registered() {
        let one = register("sources_test", || Some(Reading::new("CPU")));
        let gone = register("sources_test gone", || None);
        let two = register("sources_test", || Some(Reading::new("CPU")));
        assert_eq!(names("sources_test"), ["sources_test", "sources_test 2"]);
        drop(one);
        assert_eq!(names("sources_test"), ["sources_test"]);
        drop((two, gone));
        assert!(names("sources_test").is_empty());
    }
}
