//! Where a configuration is read from: a file and environment variables, real or made up.
//!
//! It deliberately reads nothing but the environment; the file is opened when the configuration is loaded, so that its
//! errors stand in the same list as all others.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// Names the configuration file when no `--config` does.
const FILE_VARIABLE: &str = "POSTRIDER_CONFIG";

/// The file and the variables that [`crate::load`] puts over the defaults.
#[derive(Clone, Default)]
pub struct Sources {
    pub(crate) file: Option<File>,
    pub(crate) variables: BTreeMap<String, String>,
}

#[derive(Clone)]
pub(crate) enum File {
    OnDisk(PathBuf),
    InMemory { name: PathBuf, yaml: String },
}

impl Sources {
    /// The environment of this process and the file given on the command line, or else the one `POSTRIDER_CONFIG` names.
    pub fn of_process(file: Option<PathBuf>) -> Self {
        let variables: BTreeMap<String, String> = std::env::vars_os()
            .map(|(name, value)| {
                (
                    name.to_string_lossy().into_owned(),
                    value.to_string_lossy().into_owned(),
                )
            })
            .collect();
        let named = variables
            .get(FILE_VARIABLE)
            .filter(|path| !path.is_empty())
            .map(PathBuf::from);
        Self {
            file: file.or(named).map(File::OnDisk),
            variables,
        }
    }

    /// Adds the configuration file, replacing an earlier one.
    pub fn with_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.file = Some(File::OnDisk(path.into()));
        self
    }

    /// Adds a configuration file that exists in memory only, replacing an earlier one. The name is for error messages.
    pub fn with_yaml(mut self, name: impl Into<PathBuf>, yaml: impl Into<String>) -> Self {
        self.file = Some(File::InMemory {
            name: name.into(),
            yaml: yaml.into(),
        });
        self
    }

    /// Adds an environment variable, replacing an earlier one of the same name. An empty one counts as not set.
    pub fn with_variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }
}

/// Values of variables may be secrets of this or any other program, so only their names are shown.
impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.as_ref().map(|file| match file {
            File::OnDisk(path) | File::InMemory { name: path, .. } => path,
        });
        f.debug_struct("Sources")
            .field("file", &file)
            .field("variables", &self.variables.keys())
            .finish()
    }
}
