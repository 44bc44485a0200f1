//! The small enumerations of the interface, each value with its numeric code, and [`HalVersion`].

use std::fmt;

/// A number that is no code of the enumeration it was meant for (contract: GEN-7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{found} is not a code of {enumeration}")]
pub struct UnknownCode {
    /// Name of the enumeration in the interface files.
    pub enumeration: &'static str,
    /// The number that was found.
    pub found: i64,
}

/// Declares an enumeration that crosses the HAL as a number. One row a value: its name here, its
/// code, its name in the interface files, and the version that brought it.
macro_rules! coded {
    ($(#[$meta:meta])* $Name:ident : $Int:ty, $interface_name:literal {
        $( $(#[$row_meta:meta])* $Row:ident = $code:literal, $name:literal, $since:ident; )*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $Name {
            $(
                #[doc = concat!("`", $name, "`, code ", stringify!($code), ".")]
                $(#[$row_meta])*
                $Row,
            )*
        }

        impl $Name {
            /// Every value, in the order of their codes.
            pub const ALL: &'static [Self] = &[$(Self::$Row),*];

            /// The number that stands for this value on the wire.
            pub const fn code(self) -> $Int {
                match self { $(Self::$Row => $code),* }
            }

            /// The value behind a number from the wire.
            ///
            /// # Errors
            /// [`UnknownCode`] if the enumeration has no such code.
            pub const fn from_code(code: $Int) -> Result<Self, $crate::codes::UnknownCode> {
                match code {
                    $($code => Ok(Self::$Row),)*
                    _ => Err($crate::codes::UnknownCode {
                        enumeration: $interface_name,
                        found: code as i64,
                    }),
                }
            }

            /// The name in the interface files.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$Row => $name),* }
            }

            /// The value with this name in the interface files, if there is one.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.name() == name)
            }

            /// The oldest version of the interface that has this value.
            pub const fn since(self) -> $crate::codes::HalVersion {
                match self { $(Self::$Row => $crate::codes::HalVersion::$since),* }
            }
        }

        impl std::fmt::Display for $Name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.name())
            }
        }
    };
}

/// Declares one of the two enumerations that vendors can extend: the rows are as in [`coded`], and
/// a code with any of its high 16 bits set is an extension's (contract: EXT-1).
macro_rules! extensible {
    ($(#[$meta:meta])* $Name:ident, $interface_name:literal {
        $( $(#[$row_meta:meta])* $Row:ident = $code:literal, $name:literal, $since:ident; )*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $Name {
            $(
                #[doc = concat!("`", $name, "`, code ", stringify!($code), ".")]
                $(#[$row_meta])*
                $Row,
            )*
            /// One that a vendor's extension defines.
            Extension($crate::extension::ExtensionType),
        }

        impl $Name {
            /// The interface's own values, in the order of their codes.
            pub const FUNDAMENTAL: &'static [Self] = &[$(Self::$Row),*];

            /// The number that stands for this value on the wire.
            pub const fn code(self) -> u32 {
                match self {
                    $(Self::$Row => $code,)*
                    Self::Extension(extension) => extension.code(),
                }
            }

            /// The value behind a number from the wire.
            ///
            /// # Errors
            /// [`UnknownCode`](crate::codes::UnknownCode) if the number is below 2^16 and the
            /// interface does not define it.
            pub const fn from_code(code: u32) -> Result<Self, $crate::codes::UnknownCode> {
                if let Some(extension) = $crate::extension::ExtensionType::from_code(code) {
                    return Ok(Self::Extension(extension));
                }
                match code {
                    $($code => Ok(Self::$Row),)*
                    _ => Err($crate::codes::UnknownCode {
                        enumeration: $interface_name,
                        found: code as i64,
                    }),
                }
            }

            /// The name in the interface files; `None` for an extension's.
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$Row => Some($name),)*
                    Self::Extension(_) => None,
                }
            }

            /// The value with this name in the interface files, if there is one.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::FUNDAMENTAL.iter().copied().find(|value| value.name() == Some(name))
            }

            /// The oldest version of the interface that has this value.
            pub const fn since(self) -> $crate::codes::HalVersion {
                match self {
                    $(Self::$Row => $crate::codes::HalVersion::$since,)*
                    Self::Extension(_) => $crate::codes::HalVersion::V1_2,
                }
            }
        }

        impl std::fmt::Display for $Name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $(Self::$Row => formatter.write_str($name),)*
                    Self::Extension(extension) => extension.fmt(formatter),
                }
            }
        }
    };
}
pub(crate) use extensible;

/// A version of the interface. Later is a superset of earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HalVersion {
    /// `android.hardware.neuralnetworks@1.0`
    V1_0,
    /// `android.hardware.neuralnetworks@1.1`
    V1_1,
    /// `android.hardware.neuralnetworks@1.2`
    V1_2,
    /// `android.hardware.neuralnetworks@1.3`
    V1_3,
    /// NNAPI feature level 6, which is version 2 of the AIDL interface.
    FeatureLevel6,
    /// NNAPI feature level 7, which is version 3 of the AIDL interface.
    FeatureLevel7,
}

impl HalVersion {
    /// Every version, oldest first.
    pub const ALL: &'static [Self] =
        &[Self::V1_0, Self::V1_1, Self::V1_2, Self::V1_3, Self::FeatureLevel6, Self::FeatureLevel7];
    /// The newest version there is.
    pub const LATEST: Self = Self::FeatureLevel7;

    /// The version's short name: `1.0` to `1.3`, `fl6`, `fl7`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1_0 => "1.0",
            Self::V1_1 => "1.1",
            Self::V1_2 => "1.2",
            Self::V1_3 => "1.3",
            Self::FeatureLevel6 => "fl6",
            Self::FeatureLevel7 => "fl7",
        }
    }

    /// The version with this short name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|version| version.name() == name)
    }

    /// The later of two versions, usable in constants.
    pub const fn max(self, other: Self) -> Self {
        if (self as u8) < (other as u8) { other } else { self }
    }
}

impl fmt::Display for HalVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

coded! {
    /// The outcome of a call (`ErrorStatus`).
    ErrorStatus: i32, "ErrorStatus" {
        None = 0, "NONE", V1_0;
        DeviceUnavailable = 1, "DEVICE_UNAVAILABLE", V1_0;
        GeneralFailure = 2, "GENERAL_FAILURE", V1_0;
        OutputInsufficientSize = 3, "OUTPUT_INSUFFICIENT_SIZE", V1_0;
        InvalidArgument = 4, "INVALID_ARGUMENT", V1_0;
        MissedDeadlineTransient = 5, "MISSED_DEADLINE_TRANSIENT", V1_3;
        MissedDeadlinePersistent = 6, "MISSED_DEADLINE_PERSISTENT", V1_3;
        ResourceExhaustedTransient = 7, "RESOURCE_EXHAUSTED_TRANSIENT", V1_3;
        ResourceExhaustedPersistent = 8, "RESOURCE_EXHAUSTED_PERSISTENT", V1_3;
    }
}

impl ErrorStatus {
    /// This status as an interface of `version` may return it: the codes that 1.3 added become
    /// `GENERAL_FAILURE` in older ones (contract: GEN-2).
    #[must_use]
    pub fn in_version(self, version: HalVersion) -> Self {
        if self.since() > version { Self::GeneralFailure } else { self }
    }
}

coded! {
    /// What a device is doing (`DeviceStatus`).
    DeviceStatus: i32, "DeviceStatus" {
        Available = 0, "AVAILABLE", V1_0;
        Busy = 1, "BUSY", V1_0;
        Offline = 2, "OFFLINE", V1_0;
        Unknown = 3, "UNKNOWN", V1_0;
    }
}

coded! {
    /// Where an operand's value comes from (`OperandLifeTime`). Up to 1.2 the two argument
    /// lifetimes are called `MODEL_INPUT` and `MODEL_OUTPUT`.
    OperandLifeTime: i32, "OperandLifeTime" {
        TemporaryVariable = 0, "TEMPORARY_VARIABLE", V1_0;
        SubgraphInput = 1, "SUBGRAPH_INPUT", V1_0;
        SubgraphOutput = 2, "SUBGRAPH_OUTPUT", V1_0;
        ConstantCopy = 3, "CONSTANT_COPY", V1_0;
        ConstantReference = 4, "CONSTANT_REFERENCE", V1_0;
        NoValue = 5, "NO_VALUE", V1_0;
        Subgraph = 6, "SUBGRAPH", V1_3;
    }
}

impl OperandLifeTime {
    /// Whether the model itself holds the value.
    pub const fn is_constant(self) -> bool {
        matches!(self, Self::ConstantCopy | Self::ConstantReference)
    }
}

coded! {
    /// An activation that some operations apply to their result (`FusedActivationFunc`).
    FusedActivation: i32, "FusedActivationFunc" {
        None = 0, "NONE", V1_0;
        /// `max(0, x)`
        Relu = 1, "RELU", V1_0;
        /// `min(1, max(-1, x))`
        Relu1 = 2, "RELU1", V1_0;
        /// `min(6, max(0, x))`
        Relu6 = 3, "RELU6", V1_0;
    }
}

coded! {
    /// What the client would rather have of a prepared model (`ExecutionPreference`).
    ExecutionPreference: i32, "ExecutionPreference" {
        LowPower = 0, "LOW_POWER", V1_1;
        FastSingleAnswer = 1, "FAST_SINGLE_ANSWER", V1_1;
        SustainedSpeed = 2, "SUSTAINED_SPEED", V1_1;
    }
}

coded! {
    /// The kind of processor behind a device (`DeviceType`).
    DeviceType: i32, "DeviceType" {
        Other = 1, "OTHER", V1_2;
        Cpu = 2, "CPU", V1_2;
        Gpu = 3, "GPU", V1_2;
        Accelerator = 4, "ACCELERATOR", V1_2;
    }
}

coded! {
    /// Whether an execution is to be timed (`MeasureTiming`).
    MeasureTiming: i32, "MeasureTiming" {
        No = 0, "NO", V1_2;
        Yes = 1, "YES", V1_2;
    }
}

coded! {
    /// Rank among one client's prepared models (`Priority`).
    Priority: i32, "Priority" {
        Low = 0, "LOW", V1_3;
        Medium = 1, "MEDIUM", V1_3;
        High = 2, "HIGH", V1_3;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_go_there_and_back() {
        for status in ErrorStatus::ALL {
            assert_eq!(ErrorStatus::from_code(status.code()), Ok(*status));
            assert_eq!(ErrorStatus::from_name(status.name()), Some(*status));
        }
        assert_eq!(ErrorStatus::ResourceExhaustedPersistent.code(), 8);
    }

    #[test]
    fn gen_7_codes_outside_the_enumeration_are_refused() {
        assert_eq!(DeviceType::from_code(0).unwrap_err().found, 0);
        assert!(Priority::from_code(3).is_err());
        assert!(ExecutionPreference::from_code(-1).is_err());
        assert_eq!(
            MeasureTiming::from_code(2).unwrap_err().to_string(),
            "2 is not a code of MeasureTiming"
        );
    }

    #[test]
    fn gen_2_newer_statuses_become_general_failure_in_older_interfaces() {
        let missed = ErrorStatus::MissedDeadlineTransient;
        assert_eq!(missed.in_version(HalVersion::V1_2), ErrorStatus::GeneralFailure);
        assert_eq!(missed.in_version(HalVersion::V1_3), missed);
        assert_eq!(
            ErrorStatus::InvalidArgument.in_version(HalVersion::V1_0),
            ErrorStatus::InvalidArgument
        );
    }

    #[test]
    fn versions_are_ordered() {
        assert!(HalVersion::ALL.is_sorted());
        assert_eq!(HalVersion::V1_2.max(HalVersion::V1_0), HalVersion::V1_2);
        assert_eq!(HalVersion::from_name("fl6"), Some(HalVersion::FeatureLevel6));
    }
}
