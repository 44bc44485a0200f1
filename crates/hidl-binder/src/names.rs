//! The interfaces by name, and what they extend.

use nnhal_hal::HalVersion;
use nnhal_hwbinder::Interface;

macro_rules! interfaces {
    ($($constant:ident $version:literal $name:literal $hash:literal;)*) => {$(
        pub(crate) const $constant: Interface = Interface::new(
            concat!("android.hardware.neuralnetworks@", $version, "::", $name),
            $hash,
        );
    )*};
}

interfaces! {
    DEVICE_1_0 "1.0" "IDevice" "5804ca86611d72e5481f022b3a0c1b334217f2e4988dad25730c42af2d1f4d1c";
    DEVICE_1_1 "1.1" "IDevice" "7698dc2382a2eeb43541840e3ee624f34108efdfb976b2bfa7c13ef15fb8c4c4";
    DEVICE_1_2 "1.2" "IDevice" "cd84ab19c590e0e73dd2307b591a3093ee18147ef95e6d5418644463a6620076";
    DEVICE_1_3 "1.3" "IDevice" "c3fec5bd470984402997f78a74b6511efc4063b270f2bd9ee7b78f48b683a1bb";
    MODEL_1_0 "1.0" "IPreparedModel" "eb2fa0c883c2185d514be0b84c179b283753ef0c1b77b45b4f359bd23bba8b75";
    MODEL_1_2 "1.2" "IPreparedModel" "40e71cd693de5b832325c5d8f081f2ff20a7ba2b89d401cee5b4b3eb0e241681";
    MODEL_1_3 "1.3" "IPreparedModel" "0fdfad62c2ec33b52e6687004e5a1971c02d10b93ee4d26df5ccff7ce032494a";
    PREPARED_1_0 "1.0" "IPreparedModelCallback" "73e03573494ba96f0e711ab7f1956c5b2d54c3da690cd7ecf4d6d0f287447730";
    PREPARED_1_2 "1.2" "IPreparedModelCallback" "e1c734d1545e1a4ae749ff1dd9704a8e594c59aea7c8363159dc258e93e0df3b";
    PREPARED_1_3 "1.3" "IPreparedModelCallback" "eee3430cc86c97c7b407495863d8fb61da6f1a64b7721e77b9b4909b11b174e9";
    EXECUTED_1_0 "1.0" "IExecutionCallback" "12e8dca4ab7d8aadd0ef8f1b438021938e2396139e85db2ed65783b08800aa52";
    EXECUTED_1_2 "1.2" "IExecutionCallback" "92714960d1a53fc2ec557302b41c7cc93d2636d8364a44bd0f85be0c92927ff8";
    EXECUTED_1_3 "1.3" "IExecutionCallback" "127ba11efb8220dc3aec9a8f441b59eaf1c68d7f03f577833e1824de75a36b17";
    FENCED "1.3" "IFencedExecutionCallback" "6e904be0ddca5ae1de8eba020e6c38ed935ea7d80cd08f47787f137a0ca58555";
    BUFFER "1.3" "IBuffer" "65c16331e57f6dd68b3971f06f78fe9e3209afb60630c31705aa355f9a52bf0d";
    BURST_CALLBACK "1.2" "IBurstCallback" "5f6b6b99ffd0d51a5713174a3030a2a69273bcd476fc1b5ce814491437685857";
    BURST_CONTEXT "1.2" "IBurstContext" "19877e466ad8c6ed42b38050b77bd010cf7800ff365fdc8574f45bbfda03a758";
}

/// What all names of the interfaces of devices begin and end with; between them is the version.
pub(crate) const DEVICE_PREFIX: &str = "android.hardware.neuralnetworks@";
pub(crate) const DEVICE_SUFFIX: &str = "::IDevice";

/// A device of this version, and what it extends.
pub(crate) fn device_chain(version: HalVersion) -> &'static [Interface] {
    const ALL: &[Interface] = &[DEVICE_1_3, DEVICE_1_2, DEVICE_1_1, DEVICE_1_0];
    let newer = match version {
        HalVersion::V1_0 => 3,
        HalVersion::V1_1 => 2,
        HalVersion::V1_2 => 1,
        _ => 0,
    };
    &ALL[newer..]
}

/// One of three interfaces of which each extends the next.
pub(crate) fn chain_of(all: &'static [Interface; 3], version: HalVersion) -> &'static [Interface] {
    match version {
        HalVersion::V1_0 | HalVersion::V1_1 => &all[2..],
        HalVersion::V1_2 => &all[1..],
        _ => all,
    }
}

/// Prepared models.
pub(crate) const MODELS: &[Interface; 3] = &[MODEL_1_3, MODEL_1_2, MODEL_1_0];
/// Callbacks of preparations.
pub(crate) const PREPARED: &[Interface; 3] = &[PREPARED_1_3, PREPARED_1_2, PREPARED_1_0];
/// Callbacks of executions.
pub(crate) const EXECUTED: &[Interface; 3] = &[EXECUTED_1_3, EXECUTED_1_2, EXECUTED_1_0];
