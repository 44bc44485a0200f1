//! [`Options`]: what a program says about the library, as pairs of texts.

use crate::error::{Error, Result};
use nnhal::hal::Priority;
use nnhal_settings::MOST_THREADS;
use std::path::PathBuf;
use tracing_subscriber::filter::Targets;

/// The keys of the delegate, and what each takes.
pub const DELEGATE_KEYS: [(&str, &str); 11] = [
    ("device", "nnhal-cpu, nnhal-reference, or device of another process such as unix:PATH"),
    ("threads", "number from 0 to 1024, where 0 is as many as there are processors"),
    ("cache_dir", "folder for prepared models"),
    ("model_token", "name of the model in that folder"),
    ("min_nodes_per_partition", "number"),
    ("max_partitions", "number, 0: any"),
    ("priority", "low, medium or high"),
    ("profile", "file for the trace"),
    ("allow_fp16", "true or false"),
    ("log", "error, warn, info, debug or trace"),
    ("share_weights", "true or false"),
];

/// The keys of the libraries for compiled models: LiteRT makes the partitions, and keeps what was compiled.
pub const COMPILED_KEYS: [(&str, &str); 8] = [
    DELEGATE_KEYS[0],
    DELEGATE_KEYS[1],
    DELEGATE_KEYS[2],
    DELEGATE_KEYS[6],
    DELEGATE_KEYS[7],
    DELEGATE_KEYS[8],
    DELEGATE_KEYS[9],
    DELEGATE_KEYS[10],
];

/// What a program says about the library.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The name of a device.
    pub device: Option<String>,
    /// Threads that share a run; 0: as many as there are processors.
    pub threads: Option<usize>,
    /// The folder for prepared models.
    pub cache_dir: Option<PathBuf>,
    /// Whether packed weights are used where they are in it.
    pub share_weights: bool,
    /// What the model is called there.
    pub model_token: Option<String>,
    /// A partition of fewer nodes is left to the interpreter.
    pub min_nodes_per_partition: usize,
    /// The largest ones are taken; 0: all.
    pub max_partitions: usize,
    /// The rank of its runs.
    pub priority: Priority,
    /// The file for the trace.
    pub profile: Option<PathBuf>,
    /// Whether floats may be computed with 16 bits.
    pub allow_fp16: bool,
    /// Which lines go to standard error.
    pub log: Option<Targets>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            device: None,
            threads: None,
            cache_dir: None,
            share_weights: false,
            model_token: None,
            min_nodes_per_partition: 1,
            max_partitions: 0,
            priority: Priority::Medium,
            profile: None,
            allow_fp16: false,
            log: None,
        }
    }
}

impl Options {
    /// Of pairs of keys and values; each key is one of `keys`.
    ///
    /// # Errors
    /// [`Error::Option`]: another key, which lists those that there are; a value that a key does not take; a key that is
    /// there twice.
    pub fn parse(pairs: &[(String, String)], keys: &[(&'static str, &str)]) -> Result<Self> {
        let mut options = Self::default();
        let mut seen: Vec<&str> = Vec::new();
        for (key, value) in pairs {
            let Some((known, takes)) = keys.iter().find(|(known, _)| known == key) else {
                let all: Vec<_> =
                    keys.iter().map(|(key, takes)| format!("{key} ({takes})")).collect();
                let all = all.join(", ");
                return Err(Error::Option(format!("unknown option {key:?}; there are: {all}")));
            };
            if seen.contains(known) {
                return Err(Error::Option(format!("option {known} is there twice")));
            }
            seen.push(known);
            let wrong = || Error::Option(format!("option {known}: {value:?} is no {takes}"));
            options.set(known, value).ok_or_else(wrong)?;
        }
        Ok(options)
    }

    /// Of one text, `key:value;key:value`, as the tools of TensorFlow have the options of delegates.
    ///
    /// # Errors
    /// As [`Options::parse`]; [`Error::Option`]: a part without a colon.
    pub fn parse_text(text: &str, keys: &[(&'static str, &str)]) -> Result<Self> {
        let parts = text.split(';').map(str::trim).filter(|part| !part.is_empty());
        let pair = |part: &str| {
            let missing = || Error::Option(format!("{part:?} is no option: no colon is in it"));
            let (key, value) = part.split_once(':').ok_or_else(missing)?;
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        };
        Self::parse(&parts.map(pair).collect::<Result<Vec<_>>>()?, keys)
    }

    /// `None` if the option does not take the value.
    fn set(&mut self, key: &str, value: &str) -> Option<()> {
        match key {
            "device" => {
                let is_known =
                    nnhal::devices::names().contains(&value) || nnhal::devices::is_remote(value);
                self.device = Some(is_known.then(|| value.to_owned())?);
            }
            "threads" => {
                // More than the library takes is found out here, and not at the first model.
                let threads: usize = value.parse().ok()?;
                self.threads = Some(Some(threads).filter(|it| *it <= MOST_THREADS)?);
            }
            "cache_dir" => self.cache_dir = Some(Some(value).filter(|it| !it.is_empty())?.into()),
            "model_token" => {
                self.model_token = Some(Some(value).filter(|it| !it.is_empty())?.into());
            }
            "min_nodes_per_partition" => self.min_nodes_per_partition = value.parse().ok()?,
            "max_partitions" => self.max_partitions = value.parse().ok()?,
            "priority" => {
                self.priority = match value {
                    "low" => Priority::Low,
                    "medium" => Priority::Medium,
                    "high" => Priority::High,
                    _ => return None,
                }
            }
            "profile" => self.profile = Some(Some(value).filter(|it| !it.is_empty())?.into()),
            "allow_fp16" => self.allow_fp16 = truth(value)?,
            "share_weights" => self.share_weights = truth(value)?,
            "log" => self.log = Some(nnhal_settings::log_filter(value).ok()?.parse().ok()?),
            _ => return None,
        }
        Some(())
    }
}

fn truth(value: &str) -> Option<bool> {
    match value {
        "true" | "1" | "True" => Some(true),
        "false" | "0" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Result<Options> {
        let pairs: Vec<_> = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Options::parse(&pairs, &DELEGATE_KEYS)
    }

    #[test]
    fn every_key_is_taken() {
        let all = [
            ("device", "nnhal-reference"),
            ("threads", "1"),
            ("cache_dir", "/tmp"),
            ("model_token", "a"),
            ("min_nodes_per_partition", "3"),
            ("max_partitions", "2"),
            ("priority", "high"),
            ("profile", "trace.json"),
            ("allow_fp16", "true"),
            ("log", "info"),
            ("share_weights", "true"),
        ];
        assert_eq!(all.map(|(key, _)| key), DELEGATE_KEYS.map(|(key, _)| key));
        let options = parse(&all).unwrap();
        assert_eq!(options.device.as_deref(), Some("nnhal-reference"));
        assert_eq!((options.min_nodes_per_partition, options.max_partitions), (3, 2));
        assert_eq!((options.priority, options.allow_fp16), (Priority::High, true));
        assert!(options.share_weights);
    }

    #[test]
    fn an_unknown_key_is_an_error_that_lists_the_known_ones() {
        let error = parse(&[("treads", "2")]).unwrap_err().to_string();
        assert!(error.contains("\"treads\""), "{error}");
        for (key, _) in DELEGATE_KEYS {
            assert!(error.contains(key), "{key} is not in: {error}");
        }
    }

    #[test]
    fn bad_values_are_errors_that_say_what_is_taken() {
        for (key, value) in [
            ("device", "npu"),
            ("threads", "two"),
            ("threads", "-1"),
            ("threads", "100000"),
            ("cache_dir", ""),
            ("min_nodes_per_partition", "1.5"),
            ("priority", "highest"),
            ("allow_fp16", "perhaps"),
            ("share_weights", "2"),
            ("log", "=="),
            ("log", "loud"),
        ] {
            let error = parse(&[(key, value)]).unwrap_err().to_string();
            assert!(error.contains(key) && error.contains(value), "{error}");
        }
        assert!(parse(&[("threads", "1"), ("threads", "2")]).is_err());
        let most = MOST_THREADS.to_string();
        assert_eq!(parse(&[("threads", &most)]).unwrap().threads, Some(MOST_THREADS));
        let error = parse(&[("threads", "99999")]).unwrap_err().to_string();
        let expected = format!("option threads: \"99999\" is no number from 0 to {most}");
        assert!(error.starts_with(&expected), "{error}");
    }

    #[test]
    fn one_text_is_taken_as_the_tools_have_it() {
        let options =
            Options::parse_text(" threads:2; profile:/tmp/a:b.json;", &COMPILED_KEYS).unwrap();
        assert_eq!(options.threads, Some(2));
        assert_eq!(options.profile.unwrap().to_str(), Some("/tmp/a:b.json"));
        let options = Options::parse_text("device:unix:/run/n.sock", &COMPILED_KEYS).unwrap();
        assert_eq!(options.device.as_deref(), Some("unix:/run/n.sock"));
        assert!(Options::parse_text("threads", &COMPILED_KEYS).is_err());
        let error = Options::parse_text("max_partitions:1", &COMPILED_KEYS).unwrap_err();
        assert!(error.to_string().contains("allow_fp16"), "{error}");
    }
}
