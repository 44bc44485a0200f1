//! The environment variables of nnhal, in one table ([`ALL`]), for the program, the Rust library, the
//! Python package and the C library.
//!
//! A variable that is empty counts as one that is not set. A value that is not allowed is a
//! [`SettingError`], which says what is allowed. `docs/settings.md` is this table.
//!
//! ```
//! // The threads that share the work of one execution: NNHAL_THREADS, or the number of processors.
//! let threads = nnhal_settings::threads()?;
//! assert!(threads.get() <= nnhal_settings::MOST_THREADS);
//!
//! let winograd = nnhal_settings::WINOGRAD.is_on()?.unwrap_or(true);
//! for setting in nnhal_settings::ALL {
//!     println!("{}: {}", setting.name, setting.meaning);
//! }
//! # Ok::<(), nnhal_settings::SettingError>(())
//! ```

use std::fmt;
use std::num::NonZeroUsize;

/// An environment variable.
#[derive(Debug, PartialEq, Eq)]
pub struct Setting {
    /// The variable, such as `NNHAL_THREADS`.
    pub name: &'static str,
    /// The values that are allowed, in words.
    pub values: &'static str,
    /// The value if it is not set or empty, in words.
    pub default: &'static str,
    /// Its effect, as a sentence.
    pub meaning: &'static str,
    /// Which of program, libraries and package read it.
    pub readers: &'static str,
}

/// Threads of an execution.
pub const THREADS: Setting = Setting {
    name: "NNHAL_THREADS",
    values: "a number from 1 to 1024",
    default: "as many as the process may use processors",
    meaning: "The most threads that share the work of one execution on `nnhal-cpu`.",
    readers: "all; an option of the program or of a session goes before it",
};

/// Which kernels are used.
pub const INSTRUCTION_SET: Setting = Setting {
    name: "NNHAL_INSTRUCTION_SET",
    values: "`portable`, `avx2`, `avx-vnni`, `avx512`, `avx512-vnni`, `avx512-amx`, `neon`, `neon-dotprod`, `neon-i8mm`, \
             as far as the processor has it",
    default: "the fastest that the processor has",
    meaning: "The kernels that `nnhal-cpu` uses.",
    readers: "all",
};

/// Whether Winograd's transforms are used.
pub const WINOGRAD: Setting = Setting {
    name: "NNHAL_WINOGRAD",
    values: "`on` or `off`",
    default: "`on`",
    meaning: "With `off`, convolutions are plain sums of products, which take longer; those of floats round less. \
              Those of 8-bit numbers are the same to the bit.",
    readers: "all",
};

/// Which rewritings of models do not run.
pub const PASSES_OFF: Setting = Setting {
    name: "NNHAL_PASSES_OFF",
    values: "names of passes, separated by commas, as `chains,tables`; or `all`",
    default: "all run",
    meaning: "The passes, which rewrite a model's graph into one of less work, that `nnhal-cpu` leaves out, to \
              find the one that a result or a time depends on. [Its README](../crates/cpu/README.md) lists \
              them.",
    readers: "all",
};

/// Which devices the C library offers.
pub const DEVICES: Setting = Setting {
    name: "NNHAL_DEVICES",
    values: "names, separated by commas, of `nnhal-cpu` and `nnhal-reference`, or of devices of other \
             processes as `unix:/run/nnhal/nnhal.sock`; `aidl:*` and `hidl:*` are all of a kind",
    default: "all, the fast one first",
    meaning: "The devices that are offered, in this order. The last one takes over where another \
              one fails.",
    readers: "the C libraries",
};

/// Which device of the C library is called `nnapi-reference`.
pub const NNAPI_REFERENCE: Setting = Setting {
    name: "NNHAL_NNAPI_REFERENCE",
    values: "the name of a device that is offered, also with `,renamed` behind it; or `off`",
    default: "the first device that is offered",
    meaning: "The device that is also listed as `nnapi-reference`, the name by which programs choose \
              Android's CPU device or leave it out. It is one more entry, the last; with `,renamed` \
              the device has this name only. With `off` none has it.",
    readers: "the C library",
};

/// Where HIDL services are.
pub const HWBINDER: Setting = Setting {
    name: "NNHAL_HWBINDER",
    values: "the path of a binder device",
    default: "`/dev/hwbinder`",
    meaning: "The device behind which devices `hidl:NAME` are, such as a container's \
              `/dev/anbox-hwbinder`.",
    readers: "all that take names of devices of other processes",
};

/// What is written to standard error.
pub const LOG: Setting = Setting {
    name: "NNHAL_LOG",
    values: "`off`, `error`, `warn`, `info`, `debug` or `trace`; or such levels for modules, separated \
             by commas, as `warn,driver=debug`; `1` is `error` and `0` is `off`",
    default: "`off`; the program `error`",
    meaning: "What is written to standard error. With `error` each call of a C library that fails \
              writes a line; with `debug` one says how long each import, validation, preparation, pass \
              and execution took, and with `trace` each step.",
    readers: "the program, the C libraries",
};

/// Whether misuse of a C library ends the process.
pub const ABORT_ON_MISUSE: Setting = Setting {
    name: "NNHAL_ABORT_ON_MISUSE",
    values: "`1` or `0`",
    default: "`0`",
    meaning: "With `1`, a pointer to an object that was freed, or never was, ends the process, for \
              debuggers.",
    readers: "the C libraries",
};

/// What the C library says that it is as a support library.
pub const SUPPORT_LIBRARY_LEVEL: Setting = Setting {
    name: "NNHAL_SUPPORT_LIBRARY_LEVEL",
    values: "`7` or `8`",
    default: "`7`",
    meaning: "The feature level that the library has as an NNAPI support library. LiteRT takes support \
              libraries of levels 5 to 7; `8` is for programs that give attributes of extensions to one. \
              It has no effect on programs that call its functions by name, which are those of level 8.",
    readers: "the C library",
};

/// What the libraries for LiteRT's compiled models do.
pub const LITERT_OPTIONS: Setting = Setting {
    name: "NNHAL_LITERT_OPTIONS",
    values: "keys and values, as `threads:4;log:info`: `device`, `threads`, `cache_dir`, `priority`, \
             `profile`, `allow_fp16`, `log`, `share_weights`",
    default: "no options",
    meaning: "Options of compiled models, with the meaning that they have for the delegate.",
    readers: "the libraries for LiteRT's compiled models",
};

/// All of them.
pub const ALL: [&Setting; 11] = [
    &THREADS,
    &INSTRUCTION_SET,
    &WINOGRAD,
    &PASSES_OFF,
    &DEVICES,
    &NNAPI_REFERENCE,
    &HWBINDER,
    &LOG,
    &ABORT_ON_MISUSE,
    &SUPPORT_LIBRARY_LEVEL,
    &LITERT_OPTIONS,
];

/// The most threads that one execution can be given.
pub const MOST_THREADS: usize = 1024;

/// A value that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is {found:?}, expected {}{}", setting.name, setting.values, Because(why))]
pub struct SettingError {
    /// The variable with the wrong value.
    pub setting: &'static Setting,
    /// The value, as text.
    pub found: String,
    /// What is wrong, if that says more than what is possible.
    pub why: Option<String>,
}

struct Because<'a>(&'a Option<String>);

impl fmt::Display for Because<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |why| write!(formatter, " ({why})"))
    }
}

impl Setting {
    /// Its value; `None` where it is not set, or empty.
    ///
    /// # Errors
    /// It is no text.
    pub fn read(&'static self) -> Result<Option<String>, SettingError> {
        let Some(value) = std::env::var_os(self.name) else { return Ok(None) };
        match value.into_string() {
            Ok(text) => Ok(Some(text).filter(|text| !text.trim().is_empty())),
            Err(value) => Err(self.wrong(&value.to_string_lossy(), Some("it is no text".into()))),
        }
    }

    /// Its value as something else; `None` where it is not set, or empty.
    ///
    /// # Errors
    /// It is no text, or `parse` refuses it, with what is wrong about it.
    pub fn parse<T>(
        &'static self,
        parse: impl FnOnce(&str) -> Result<T, Option<String>>,
    ) -> Result<Option<T>, SettingError> {
        let Some(text) = self.read()? else { return Ok(None) };
        parse(text.trim()).map(Some).map_err(|why| self.wrong(&text, why))
    }

    /// The error about a value that makes no sense.
    pub fn wrong(&'static self, found: &str, why: Option<String>) -> SettingError {
        SettingError { setting: self, found: found.to_owned(), why }
    }

    /// Whether it is switched on: `1`, `on`, `true` or `yes`; `None` where it is not set.
    ///
    /// # Errors
    /// It is neither on nor off.
    pub fn is_on(&'static self) -> Result<Option<bool>, SettingError> {
        self.parse(|text| match &*text.to_ascii_lowercase() {
            "1" | "on" | "true" | "yes" => Ok(true),
            "0" | "off" | "false" | "no" => Ok(false),
            _ => Err(None),
        })
    }
}

/// How many threads share the work of an execution unless somebody asks for another number:
/// [`THREADS`], or [`processors`].
///
/// # Errors
/// [`THREADS`] is no number, or one that is out of range.
pub fn threads() -> Result<NonZeroUsize, SettingError> {
    threads_unless(None)
}

/// The number that somebody asks for, or else as [`threads`]. Processors are only counted if it depends on them, for which the
/// system is asked for some files.
///
/// # Errors
/// As [`threads`].
pub fn threads_unless(asked: Option<NonZeroUsize>) -> Result<NonZeroUsize, SettingError> {
    let parse = |text: &str| match text.parse::<NonZeroUsize>() {
        Ok(threads) if threads.get() <= MOST_THREADS => Ok(threads),
        _ => Err(None),
    };
    let set = THREADS.parse(parse)?;
    Ok(asked.or(set).unwrap_or_else(processors))
}

/// How many processors this process may use at a time: those of its affinity mask, and no more than
/// the quotas of its control group and of the groups around that (version 1 or 2) amount to. A part
/// of a processor is left out, one is always there. A thousand at most.
///
/// That is what the standard library finds; it looks once for each call.
pub fn processors() -> NonZeroUsize {
    let found = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    found.min(NonZeroUsize::new(MOST_THREADS).unwrap_or(NonZeroUsize::MIN))
}

/// What [`LOG`] asks for, in the words of `tracing`: a level, or levels for modules. `None` where it is
/// not set.
///
/// # Errors
/// It has a level that there is not.
pub fn log() -> Result<Option<String>, SettingError> {
    LOG.parse(|text| log_filter(text).map_err(Some))
}

/// A filter as [`LOG`] takes it, in the words of `tracing`, which itself takes any word for the name of a module.
///
/// # Errors
/// Why it is none.
pub fn log_filter(text: &str) -> Result<String, String> {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    let directive = |directive: &str| {
        let (module, level) = match directive.trim().split_once('=') {
            Some((module, level)) => (format!("{}=", module.trim()), level.trim()),
            None => (String::new(), directive.trim()),
        };
        let level = match &*level.to_ascii_lowercase() {
            "0" => "off".to_owned(),
            "1" => "error".to_owned(),
            level if LEVELS.contains(&level) => level.to_owned(),
            _ => return Err(format!("there is no level {level:?}")),
        };
        Ok(module + &level)
    };
    let all: Vec<String> = text.split(',').map(directive).collect::<Result<_, _>>()?;
    Ok(all.join(","))
}

/// The table of `docs/settings.md`.
pub fn table() -> String {
    let mut text = String::from(
        "| variable | values | where it is not set | what it does | who reads it |\n|---|---|---|---|---|\n",
    );
    for Setting { name, values, default, meaning, readers } in ALL {
        text += &format!("| `{name}` | {values} | {default} | {meaning} | {readers} |\n");
    }
    text
}
