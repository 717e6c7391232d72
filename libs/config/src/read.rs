//! From the layered values to a checked [`Config`].

use std::time::Duration;

use crate::layers::Layers;
use crate::reader::Reader;
use crate::section::Section as _;
use crate::{Config, Errors, Origin, Sources, Swrve, rules};

/// Reads the configuration: the defaults, the file over them, the environment over that.
pub fn load(sources: &Sources) -> Result<Config, Errors> {
    load_with(sources, rules::check)
}

/// Reads the configuration and asks, besides, for what an installation needs before others rely on it.
pub fn load_for_production(sources: &Sources) -> Result<Config, Errors> {
    load_with(sources, |config, reader| {
        rules::check(config, reader);
        rules::check_for_production(config, reader);
    })
}

/// `swrve.averageProcessingMillis`, when the file or the environment sets it. What else a service needs may be missing.
pub fn given_average_processing(sources: &Sources) -> Result<Option<Duration>, Errors> {
    const KEY: &str = "swrve.averageProcessingMillis";
    let layers = Layers::new(sources);
    let unread = layers.problems.len();
    let given = layers.entry(KEY).origin != Origin::Default;
    let mut reader = Reader::new(layers);
    let average = Swrve::read(&mut reader, "swrve").average_processing;
    let mut problems = reader.into_problems();
    let others = problems.split_off(unread);
    problems.extend(others.into_iter().filter(|problem| problem.subject == KEY));
    Errors::unless_none(problems)?;
    Ok(given.then_some(average))
}

fn load_with(sources: &Sources, check: impl FnOnce(&Config, &mut Reader)) -> Result<Config, Errors> {
    let mut reader = Reader::new(Layers::new(sources));
    let config = Config::read(&mut reader, "");
    check(&config, &mut reader);
    Errors::unless_none(reader.into_problems())?;
    Ok(config)
}
