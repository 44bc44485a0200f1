//! The [`Suite`]s: the forms in which a vector is run. [`Suite::run`] is in [`verdict`](crate::verdict).

use crate::instance::{Instance, with_signed_quantization};
use crate::vectors::Case;
use nnhal_hal::{Device, ErrorStatus, HalVersion};

/// A form in which vectors are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Suite {
    /// As the vector stands, twice on one prepared model.
    Generated,
    /// The same with every dimension of the outputs unknown to the model.
    DynamicOutputShape,
    /// Unknown output dimensions, and a buffer one byte too short: it must be said which, with the
    /// right shape.
    ShortOutput,
    /// The same with unsigned quantized tensors made signed.
    QuantizationCoupling,
    /// The model validates for the version it claims, and for nothing older.
    Compliance,
    /// The model is valid, but an operation is not supported, or its execution fails.
    Validation,
    /// A loop that never ends is broken off.
    Timeout,
    /// Each way to break the model gives one that is refused: see [`mutation`](crate::mutation).
    Mutation,
}

/// For whom a vector is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// For any device.
    All,
    /// For the C library; a device may refuse the model, as the text of the interface would have it
    /// (contract: CF-4).
    CLibrary,
    /// For the C library alone: a device must refuse the model, in which a WHILE has operands of
    /// unknown size (contract: CF-4).
    CLibraryOnly,
}

impl Suite {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Generated,
        Self::DynamicOutputShape,
        Self::ShortOutput,
        Self::QuantizationCoupling,
        Self::Compliance,
        Self::Validation,
        Self::Timeout,
        Self::Mutation,
    ];

    /// The suite's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Generated => "generated",
            Self::DynamicOutputShape => "dynamic_output_shape",
            Self::ShortOutput => "short_output",
            Self::QuantizationCoupling => "quantization_coupling",
            Self::Compliance => "compliance",
            Self::Validation => "validation",
            Self::Timeout => "timeout",
            Self::Mutation => "mutation",
        }
    }

    /// The suite with this name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|suite| suite.name() == name)
    }

    /// Whether a vector is run in this form.
    pub fn includes(self, case: &Case) -> bool {
        match self {
            Self::Mutation => true,
            Self::ShortOutput => case.is_in_suite(Self::DynamicOutputShape.name()),
            other => case.is_in_suite(other.name()),
        }
    }

    /// The oldest version of the interfaces in which a vector can be run in this form. What the
    /// vector claims counts; of a vector without a claim, and of its signed counterpart, what the `ops`
    /// crate knows. Any version can be asked whether it has what a model needs.
    pub fn needs(self, case: &Case) -> HalVersion {
        let oldest = |case: &Case| {
            Instance::new(case).map_or(HalVersion::V1_0, |instance| instance.oldest_version())
        };
        let plain = || case.min_hal.unwrap_or_else(|| oldest(case));
        match self {
            Self::Compliance => HalVersion::V1_0,
            Self::Generated | Self::Validation | Self::Timeout | Self::Mutation => plain(),
            Self::DynamicOutputShape | Self::ShortOutput => plain().max(HalVersion::V1_2),
            Self::QuantizationCoupling => oldest(&with_signed_quantization(case)),
        }
    }

    /// What a device that is not the C library may do with a vector's model.
    pub fn audience(case: &Case) -> Audience {
        let is_open_loop = || {
            let Ok(Instance { model, .. }) = Instance::new(case) else { return false };
            let refused = nnhal_ops::validate::check(&model, HalVersion::LATEST);
            refused.is_err_and(|error| error.rule() == "CF-4")
        };
        if !case.referenced.is_empty() && is_open_loop() {
            return Audience::CLibraryOnly;
        }
        // The vendor suite leaves these out.
        if case.spec.starts_with("V1_3_cts_only/") { Audience::CLibrary } else { Audience::All }
    }

    /// Whether a device refuses a vector's model wherever it is asked.
    ///
    /// # Errors
    /// It refuses it, but not each time, or not with `INVALID_ARGUMENT`.
    pub fn is_refused(device: &dyn Device, case: &Case) -> Result<bool, String> {
        let instance = Instance::new(case).map_err(|error| error.to_string())?;
        let version = HalVersion::LATEST;
        let Err(error) = device.supported_operations(&instance.model, version) else {
            return Ok(false);
        };
        let Err(other) = instance.prepare(device) else {
            return Err(format!("supported_operations answered {error}, but it was prepared"));
        };
        for error in [error, other] {
            if error.status() != ErrorStatus::InvalidArgument {
                return Err(format!("refused with {error}, expected INVALID_ARGUMENT"));
            }
        }
        Ok(true)
    }
}

impl std::fmt::Display for Suite {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}
