//! Seeds that ever failed because of the product. They are run again by `make chaos ARGS=--regressions`.

/// The file, whose head explains it.
const FILE: &str = include_str!("../seeds.txt");

/// A seed and how it was run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The seed.
    pub seed: u64,
    /// For how many seconds faults came.
    pub seconds: u64,
    /// Which kinds of faults came; all when empty.
    pub kinds: Vec<String>,
    /// What was wrong, and how it was put right.
    pub cause: String,
}

/// All of them.
///
/// # Panics
///
/// When the file is not as its head says, which a test finds out.
pub fn known() -> Vec<Known> {
    let lines = FILE
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| read(line).unwrap_or_else(|| panic!("invariant: seeds.txt has no line such as {line:?}")))
        .collect()
}

fn read(line: &str) -> Option<Known> {
    let (how, cause) = line.split_once(" | ")?;
    let mut words = how.split_whitespace();
    let seed = words.next()?.parse().ok()?;
    let seconds = words.next()?.parse().ok()?;
    let kinds = words
        .next()
        .map_or("", |kinds| if kinds == "all" { "" } else { kinds });
    Some(Known {
        seed,
        seconds,
        kinds: kinds
            .split(',')
            .filter(|kind| !kind.is_empty())
            .map(str::to_owned)
            .collect(),
        cause: cause.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_can_be_read_and_names_faults_that_there_are() {
        for seed in known() {
            assert!(
                seed.kinds.iter().all(|kind| crate::plan::is_kind(kind)),
                "{seed:?}"
            );
            assert!(!seed.cause.is_empty(), "{seed:?}");
        }
    }

    #[test]
    fn a_line_says_how_to_run_it_again() {
        let known = read("17 60 freeze,kill | a lease was taken twice; fenced since").unwrap();
        assert_eq!((known.seed, known.seconds, known.kinds.len()), (17, 60, 2));
        assert_eq!(read("17 60 all | x").unwrap().kinds.len(), 0);
        assert_eq!(read("17 x | y"), None);
    }
}
