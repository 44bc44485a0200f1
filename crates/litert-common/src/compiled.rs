//! What the two libraries for compiled models have in common: the facts of LiteRT's C API, and the border to it.
//!
//! Source: `litert/c/litert_common.h`, `litert_model_types.h`, `litert_layout.h` and `internal/litert_abi_header.h`
//! of LiteRT 2.3.0, and for tables that LiteRT asks for by number those of 2.4.

use crate::error::Error;
use crate::options::{COMPILED_KEYS, Options};
use crate::{Result, guarded, telling};
use nnhal_c_boundary::handle::Dead;
use nnhal_settings::LITERT_OPTIONS;
use std::ffi::c_int;

/// The version of LiteRT 2.3's C API, which takes libraries of its own version only.
pub const API_VERSION: ApiVersion = ApiVersion { major: 0, minor: 1, patch: 0 };

/// The major version of the tables of functions that LiteRT 2.4 asks for.
pub const TABLE_VERSION: u16 = 1;

/// `kLiteRtInterfaceBasic` and `kLiteRtCompilerPluginInterfaceBasic`: the number of the only table that there is.
const BASIC_TABLE: c_int = 0;

/// Whether a table of functions is one that there is, when LiteRT asks for it by its number.
///
/// # Errors
/// With [`Status::Unsupported`], which for tables of other numbers is no fault of anyone: LiteRT asks whether they are there.
pub fn check_asked_table(number: c_int, version: ApiVersion) -> Outcome {
    if version.major != c_int::from(TABLE_VERSION) {
        let sentence = format!(
            "LiteRT asks for functions of version {}.{}, expected {TABLE_VERSION}",
            version.major, version.minor
        );
        return Err(Failure::new(Status::Unsupported, sentence));
    }
    if number != BASIC_TABLE {
        let sentence = format!("there is no table of functions {number}");
        return Err(Failure::quiet(Status::Unsupported, sentence));
    }
    Ok(())
}

/// A version of the C API.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApiVersion {
    /// Its first number.
    pub major: c_int,
    /// Its second number.
    pub minor: c_int,
    /// Its third number.
    pub patch: c_int,
}

/// What tables of functions begin with: they grow at their ends.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Bytes that the table has, these included.
    pub size: u16,
    /// Another one is another table.
    pub major: u16,
    /// How often functions have been added.
    pub minor: u16,
    /// 0
    pub reserved: u16,
}

/// The most dimensions of a tensor.
pub const MOST_DIMENSIONS: usize = 8;

/// The type of a tensor whose rank is known.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankedTensorType {
    /// As in TensorFlow Lite's C API.
    pub element_type: c_int,
    /// The rank in the lower 7 bits, and above them whether there are strides.
    pub rank: u32,
    /// Lengths, of which those below 0 are not known.
    pub dimensions: [i32; MOST_DIMENSIONS],
    /// Elements between neighbours.
    pub strides: [u32; MOST_DIMENSIONS],
}

impl RankedTensorType {
    /// One without dimensions, for LiteRT to fill in.
    pub const EMPTY: Self = Self {
        element_type: 0,
        rank: 0,
        dimensions: [0; MOST_DIMENSIONS],
        strides: [0; MOST_DIMENSIONS],
    };

    /// Its lengths; `None`: more than there can be.
    pub fn shape(&self) -> Option<&[i32]> {
        self.dimensions.get(..(self.rank & 0x7F) as usize)
    }

    /// Whether elements are not simply behind each other.
    pub fn has_strides(&self) -> bool {
        self.rank & 0x80 != 0
    }
}

const _: () = {
    assert!(size_of::<ApiVersion>() == 12);
    assert!(size_of::<Header>() == 8);
    assert!(size_of::<RankedTensorType>() == 72);
};

/// A status of LiteRT.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// It is done.
    Ok = 0,
    /// What was passed makes no sense.
    InvalidArgument = 1,
    /// It was tried, and failed.
    RuntimeFailure = 3,
    /// It is not done here.
    Unsupported = 5,
    /// There is no such thing.
    NotFound = 6,
    /// The byte code is no model.
    InvalidFlatbuffer = 501,
    /// A model has no counterpart.
    Compilation = 504,
    /// An index is beyond the last one.
    IndexOutOfBounds = 1000,
    /// The library is for another version of LiteRT.
    UnsupportedRuntimeVersion = 4000,
    /// As above, for the compiler.
    UnsupportedCompilerVersion = 4001,
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[error("{sentence}")]
pub struct Failure {
    /// What LiteRT gets.
    pub status: Status,
    /// What is written to standard error.
    pub sentence: String,
    /// Whether only the log has the sentence: nothing is wrong.
    pub is_quiet: bool,
}

/// What a call gives.
pub type Outcome<T = ()> = std::result::Result<T, Failure>;

impl Failure {
    /// With a status and a sentence.
    pub fn new(status: Status, sentence: impl Into<String>) -> Self {
        Self { status, sentence: sentence.into(), is_quiet: false }
    }

    /// With a status that is no fault of anyone.
    pub fn quiet(status: Status, sentence: impl Into<String>) -> Self {
        Self { is_quiet: true, ..Self::new(status, sentence) }
    }

    /// Something that was passed makes no sense.
    pub fn argument(sentence: impl Into<String>) -> Self {
        Self::new(Status::InvalidArgument, sentence)
    }

    /// A pointer that leads nowhere.
    pub fn null(what: &str) -> Self {
        Self::argument(format!("{what} is null"))
    }

    /// A handle of something that is not there.
    pub fn dead(what: &str, why: Dead) -> Self {
        Self::argument(match why {
            Dead::Freed => format!("the {what} has been destroyed"),
            Dead::Unknown => format!("this is no {what}"),
        })
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::new(Status::RuntimeFailure, error.to_string())
    }
}

impl From<nnhal::Error> for Failure {
    fn from(error: nnhal::Error) -> Self {
        Self::new(Status::RuntimeFailure, error.to_string())
    }
}

impl From<nnhal::hal::memory::MemoryError> for Failure {
    fn from(error: nnhal::hal::memory::MemoryError) -> Self {
        Self::new(Status::RuntimeFailure, error.to_string())
    }
}

/// The status of a call by this name. No panic crosses; the sentence of a failure goes to standard error, as
/// LiteRT's own errors do: its table of functions has none for them.
pub fn answer(name: &str, call: impl FnOnce() -> Outcome) -> c_int {
    match guarded(call) {
        Ok(()) => Status::Ok as c_int,
        Err(failure) => {
            telling(|| {
                if failure.is_quiet {
                    tracing::info!("{name}: {failure}");
                } else {
                    nnhal_c_boundary::log::say(&format!("{name}: {failure}"));
                }
            });
            failure.status as c_int
        }
    }
}

/// What the environment says: `NNHAL_LITERT_OPTIONS`.
///
/// # Errors
/// [`Error::Option`]
pub fn options_of_environment() -> Result<Options> {
    let wrong = |error: nnhal_settings::SettingError| Error::Option(error.to_string());
    let Some(text) = LITERT_OPTIONS.read().map_err(wrong)? else { return Ok(Options::default()) };
    Options::parse_text(&text, &COMPILED_KEYS)
        .map_err(|error| Error::Option(format!("{}: {error}", LITERT_OPTIONS.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_and_panics_are_statuses() {
        assert_eq!(answer("a", || Ok(())), 0);
        assert_eq!(answer("a", || Err(Failure::null("b"))), 1);
        assert_eq!(answer("a", || panic!("words")), 3);
        assert_eq!(Failure::dead("model", Dead::Freed).to_string(), "the model has been destroyed");
    }

    #[test]
    fn only_the_basic_table_of_one_version_is_there() {
        let asked = |number, major, minor| {
            check_asked_table(number, ApiVersion { major, minor, patch: 0 })
                .map_err(|failure| (failure.status, failure.is_quiet))
        };
        assert_eq!(asked(0, 1, 0), Ok(()));
        assert_eq!(asked(0, 1, 7), Ok(()));
        for (major, minor) in [(0, 1), (2, 0), (-1, 0)] {
            assert_eq!(asked(0, major, minor), Err((Status::Unsupported, false)));
        }
        for number in [1, 2, 3, -1, c_int::MAX] {
            assert_eq!(asked(number, 1, 0), Err((Status::Unsupported, true)));
        }
    }

    #[test]
    fn a_rank_beyond_what_there_can_be_has_no_shape() {
        let mut of = RankedTensorType { rank: 2 | 0x80, ..RankedTensorType::EMPTY };
        assert_eq!(of.shape(), Some(&[0, 0][..]));
        assert!(of.has_strides());
        of.rank = 9;
        assert_eq!(of.shape(), None);
    }
}
