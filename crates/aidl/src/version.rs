//! [`Version`]: the versions of the interface.

use nnhal_hal::HalVersion;

/// A frozen version of `android.hardware.neuralnetworks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// Feature level 5: the operations of 1.3.
    V1,
    /// Feature level 6.
    V2,
    /// Feature level 7.
    V3,
    /// Feature level 8: reusable executions, and hints.
    V4,
}

impl Version {
    /// All, oldest first.
    pub const ALL: [Self; 4] = [Self::V1, Self::V2, Self::V3, Self::V4];

    /// What `getInterfaceVersion` says.
    pub const fn number(self) -> i32 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
            Self::V3 => 3,
            Self::V4 => 4,
        }
    }

    /// The version with this number; of a newer one, the newest that is known here.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().rev().find(|version| version.number() <= number)
    }

    /// What `getInterfaceHash` says: the hash of the frozen files.
    pub const fn hash(self) -> &'static str {
        match self {
            Self::V1 => "ae57b48403df6752d8d8d56d215c3e31db74935d",
            Self::V2 => "04c95c94c96062e5faf35c00b4ae0e50a3f11d0d",
            Self::V3 => "8c2c4ca2327e6f779dad6119c03d832ea4e1def1",
            Self::V4 => crate::interface::nn::IDevice::HASH,
        }
    }

    /// The operations and types that it has.
    pub const fn hal(self) -> HalVersion {
        match self {
            Self::V1 => HalVersion::V1_3,
            Self::V2 => HalVersion::FeatureLevel6,
            Self::V3 | Self::V4 => HalVersion::FeatureLevel7,
        }
    }

    /// The newest version whose operations and types a device of this version of the HAL has; `None` for
    /// devices older than 1.3, which do not have all of version 1.
    pub fn of_hal(version: HalVersion) -> Option<Self> {
        Self::ALL.into_iter().rev().find(|offered| offered.hal() <= version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_numbers_hashes_and_operations() {
        for version in Version::ALL {
            assert_eq!(Version::from_number(version.number()), Some(version));
            assert_eq!(version.hash().len(), 40);
        }
        assert_eq!(Version::from_number(9), Some(Version::V4));
        assert_eq!(Version::from_number(0), None);
        assert_eq!(Version::of_hal(HalVersion::LATEST), Some(Version::V4));
        assert_eq!(Version::of_hal(HalVersion::V1_3), Some(Version::V1));
        assert_eq!(Version::of_hal(HalVersion::V1_2), None);
        assert_eq!(Version::V4.number(), crate::interface::nn::IDevice::VERSION);
    }
}
