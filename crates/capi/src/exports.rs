//! How C comes by the functions: each under its name, in the version that `neuralnetworks.map` says.
//!
//! Where there are versions (`cfg(versioned)`), each name is a jump to the function, see
//! [`nnhal_c_boundary::names!`].

#![cfg(versioned)]
#![allow(unsafe_code, reason = "names that the linker can give versions")]

use crate::{burst::*, compilation::*, device::*, event::*, execution::*, extension::*};
use crate::{memory::*, model::*, own::*, support_library::*};

nnhal_c_boundary::names! {
    ANeuralNetworks_getRuntimeFeatureLevel
    ANeuralNetworks_getDeviceCount
    ANeuralNetworks_getDevice
    ANeuralNetworksDevice_getName
    ANeuralNetworksDevice_getType
    ANeuralNetworksDevice_getVersion
    ANeuralNetworksDevice_getFeatureLevel
    ANeuralNetworksDevice_wait
    ANeuralNetworksModel_getSupportedOperationsForDevices
    ANeuralNetworksModel_create
    ANeuralNetworksModel_free
    ANeuralNetworksModel_finish
    ANeuralNetworksModel_addOperand
    ANeuralNetworksModel_setOperandValue
    ANeuralNetworksModel_setOperandSymmPerChannelQuantParams
    ANeuralNetworksModel_setOperandValueFromMemory
    ANeuralNetworksModel_setOperandValueFromModel
    ANeuralNetworksModel_addOperation
    ANeuralNetworksModel_identifyInputsAndOutputs
    ANeuralNetworksModel_relaxComputationFloat32toFloat16
    ANeuralNetworksCompilation_create
    ANeuralNetworksCompilation_createForDevices
    ANeuralNetworksCompilation_free
    ANeuralNetworksCompilation_setPreference
    ANeuralNetworksCompilation_setCaching
    ANeuralNetworksCompilation_setPriority
    ANeuralNetworksCompilation_setTimeout
    ANeuralNetworksCompilation_addExtensionAttribute
    ANeuralNetworksCompilation_finish
    ANeuralNetworksCompilation_getPreferredMemoryAlignmentForInput
    ANeuralNetworksCompilation_getPreferredMemoryPaddingForInput
    ANeuralNetworksCompilation_getPreferredMemoryAlignmentForOutput
    ANeuralNetworksCompilation_getPreferredMemoryPaddingForOutput
    ANeuralNetworks_getDefaultLoopTimeout
    ANeuralNetworks_getMaximumLoopTimeout
    ANeuralNetworksExecution_create
    ANeuralNetworksExecution_free
    ANeuralNetworksExecution_setInput
    ANeuralNetworksExecution_setInputFromMemory
    ANeuralNetworksExecution_setOutput
    ANeuralNetworksExecution_setOutputFromMemory
    ANeuralNetworksExecution_enableInputAndOutputPadding
    ANeuralNetworksExecution_setReusable
    ANeuralNetworksExecution_setMeasureTiming
    ANeuralNetworksExecution_setTimeout
    ANeuralNetworksExecution_setLoopTimeout
    ANeuralNetworksExecution_addExtensionAttribute
    ANeuralNetworksExecution_compute
    ANeuralNetworksExecution_burstCompute
    ANeuralNetworksExecution_startCompute
    ANeuralNetworksExecution_startComputeWithDependencies
    ANeuralNetworksExecution_getOutputOperandRank
    ANeuralNetworksExecution_getOutputOperandDimensions
    ANeuralNetworksExecution_getDuration
    ANeuralNetworksMemory_createFromFd
    ANeuralNetworksMemory_createFromAHardwareBuffer
    ANeuralNetworksMemory_free
    ANeuralNetworksMemory_copy
    ANeuralNetworksMemoryDesc_create
    ANeuralNetworksMemoryDesc_free
    ANeuralNetworksMemoryDesc_addInputRole
    ANeuralNetworksMemoryDesc_addOutputRole
    ANeuralNetworksMemoryDesc_setDimensions
    ANeuralNetworksMemoryDesc_finish
    ANeuralNetworksMemory_createFromDesc
    ANeuralNetworksEvent_wait
    ANeuralNetworksEvent_free
    ANeuralNetworksEvent_createFromSyncFenceFd
    ANeuralNetworksEvent_getSyncFenceFd
    ANeuralNetworksBurst_create
    ANeuralNetworksBurst_free
    ANeuralNetworksDevice_getExtensionSupport
    ANeuralNetworksModel_getExtensionOperandType
    ANeuralNetworksModel_getExtensionOperationType
    ANeuralNetworksModel_setOperandExtensionData
    ANeuralNetworks_getSLDriverImpl
    nnhal_lastError
    nnhal_resultName
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_the_map_is_here_and_no_other() {
        let map = include_str!("../neuralnetworks.map");
        let in_map = map.lines().filter_map(|line| line.strip_prefix("    ")?.strip_suffix(';'));
        let mut in_map: Vec<&str> = in_map.collect();
        let mut here = NAMES.to_vec();
        in_map.sort_unstable();
        here.sort_unstable();
        assert_eq!(in_map, here);
    }
}
