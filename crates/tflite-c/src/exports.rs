//! How C comes by the functions: each under its name, in the version that `tensorflowlite_c.map` says.
//!
//! Where there are versions (`cfg(versioned)`), each name is a jump to the function, see
//! [`nnhal_c_boundary::names!`].

#![cfg(versioned)]
#![allow(unsafe_code, reason = "names that the linker can give versions")]

use crate::access::*;
use crate::asynchronous::*;
use crate::delegate::*;
use crate::interpreter::*;
use crate::kernels_of_programs::*;
use crate::model::*;
use crate::operator::*;
use crate::options::*;
use crate::own_structures::*;
use crate::signature::*;
use crate::version::*;

nnhal_c_boundary::names! {
    TfLiteBackendBufferCreate
    TfLiteBackendBufferDelete
    TfLiteBackendBufferGetPtr
    TfLiteBackendBufferSetPtr
    TfLiteDelegateCreate
    TfLiteExtensionApisVersion
    TfLiteFloatArrayCopy
    TfLiteFloatArrayCreate
    TfLiteFloatArrayFree
    TfLiteFloatArrayGetSizeInBytes
    TfLiteIntArrayCopy
    TfLiteIntArrayCreate
    TfLiteIntArrayEqual
    TfLiteIntArrayEqualsArray
    TfLiteIntArrayFree
    TfLiteIntArrayGetSizeInBytes
    TfLiteInterpreterAllocateTensors
    TfLiteInterpreterCancel
    TfLiteInterpreterCreate
    TfLiteInterpreterCreateWithSelectedOps
    TfLiteInterpreterDelete
    TfLiteInterpreterEnsureTensorDataIsReadable
    TfLiteInterpreterGetBufferHandle
    TfLiteInterpreterGetInputTensor
    TfLiteInterpreterGetInputTensorCount
    TfLiteInterpreterGetInputTensorIndex
    TfLiteInterpreterGetOutputTensor
    TfLiteInterpreterGetOutputTensorCount
    TfLiteInterpreterGetOutputTensorIndex
    TfLiteInterpreterGetSignatureCount
    TfLiteInterpreterGetSignatureKey
    TfLiteInterpreterGetSignatureRunner
    TfLiteInterpreterGetTensor
    TfLiteInterpreterGetVariableTensor
    TfLiteInterpreterGetVariableTensorCount
    TfLiteInterpreterInputTensorIndices
    TfLiteInterpreterInvoke
    TfLiteInterpreterModifyGraphWithDelegate
    TfLiteInterpreterOptionsAddBuiltinOp
    TfLiteInterpreterOptionsAddCustomOp
    TfLiteInterpreterOptionsAddDelegate
    TfLiteInterpreterOptionsAddOperator
    TfLiteInterpreterOptionsCopy
    TfLiteInterpreterOptionsCreate
    TfLiteInterpreterOptionsDelete
    TfLiteInterpreterOptionsEnableCancellation
    TfLiteInterpreterOptionsSetEnableDelegateFallback
    TfLiteInterpreterOptionsSetErrorReporter
    TfLiteInterpreterOptionsSetNumThreads
    TfLiteInterpreterOptionsSetOpResolver
    TfLiteInterpreterOptionsSetOpResolverExternal
    TfLiteInterpreterOptionsSetOpResolverExternalWithFallback
    TfLiteInterpreterOptionsSetOpResolverV1
    TfLiteInterpreterOptionsSetOpResolverV2
    TfLiteInterpreterOptionsSetOpResolverV3
    TfLiteInterpreterOptionsSetTelemetryProfiler
    TfLiteInterpreterOptionsSetUseNNAPI
    TfLiteInterpreterOutputTensorIndices
    TfLiteInterpreterResetVariableTensors
    TfLiteInterpreterResizeInputTensor
    TfLiteInterpreterSetBufferHandle
    TfLiteInterpreterSetCustomAllocationForTensor
    TfLiteModelCreate
    TfLiteModelCreateFromFile
    TfLiteModelCreateFromFileWithErrorReporter
    TfLiteModelCreateWithErrorReporter
    TfLiteModelDelete
    TfLiteNnapiDelegateCreate
    TfLiteNnapiDelegateDelete
    TfLiteNnapiDelegateOptionsDefault
    TfLiteOpaqueContextAcquireSubgraphContext
    TfLiteOpaqueContextAddTensor
    TfLiteOpaqueContextGetExecutionPlan
    TfLiteOpaqueContextGetExternalContext
    TfLiteOpaqueContextGetInputs
    TfLiteOpaqueContextGetMetadata
    TfLiteOpaqueContextGetName
    TfLiteOpaqueContextGetNodeAndRegistration
    TfLiteOpaqueContextGetNodeInitDataMmapInfo
    TfLiteOpaqueContextGetNumNodes
    TfLiteOpaqueContextGetNumTensors
    TfLiteOpaqueContextGetOpaqueTensor
    TfLiteOpaqueContextGetOutputs
    TfLiteOpaqueContextGetSizeOfType
    TfLiteOpaqueContextGetVariables
    TfLiteOpaqueContextMarkSubgraphAsDelegationSkippable
    TfLiteOpaqueContextReleaseSubgraphContext
    TfLiteOpaqueContextReplaceNodeSubsetsWithDelegateKernels
    TfLiteOpaqueContextReportError
    TfLiteOpaqueContextReportErrorVa
    TfLiteOpaqueContextResizeTensor
    TfLiteOpaqueDelegateCreate
    TfLiteOpaqueDelegateDelete
    TfLiteOpaqueDelegateGetData
    TfLiteOpaqueNodeGetBuiltinData
    TfLiteOpaqueNodeGetCustomInitialData
    TfLiteOpaqueNodeGetInput
    TfLiteOpaqueNodeGetInputTensorIndex
    TfLiteOpaqueNodeGetOutput
    TfLiteOpaqueNodeGetOutputTensorIndex
    TfLiteOpaqueNodeGetUserData
    TfLiteOpaqueNodeInputs
    TfLiteOpaqueNodeNumberOfInputs
    TfLiteOpaqueNodeNumberOfOutputs
    TfLiteOpaqueNodeOutputs
    TfLiteOpaqueNodeSetTemporaries
    TfLiteOpaqueNodeTemporaries
    TfLiteOpaqueTensorBuilderCreate
    TfLiteOpaqueTensorBuilderDelete
    TfLiteOpaqueTensorBuilderSetAllocationType
    TfLiteOpaqueTensorBuilderSetData
    TfLiteOpaqueTensorBuilderSetQuantization
    TfLiteOpaqueTensorBuilderSetQuantizationParams
    TfLiteOpaqueTensorBuilderSetType
    TfLiteOpaqueTensorByteSize
    TfLiteOpaqueTensorCopyFromBuffer
    TfLiteOpaqueTensorCopyToBuffer
    TfLiteOpaqueTensorData
    TfLiteOpaqueTensorDim
    TfLiteOpaqueTensorGetAllocationStrategy
    TfLiteOpaqueTensorGetAllocationType
    TfLiteOpaqueTensorGetBufferAddressStability
    TfLiteOpaqueTensorGetDataKnownStep
    TfLiteOpaqueTensorGetDataStability
    TfLiteOpaqueTensorGetDimSignature
    TfLiteOpaqueTensorGetNumDimsSignature
    TfLiteOpaqueTensorGetQuantization
    TfLiteOpaqueTensorGetQuantizationParams
    TfLiteOpaqueTensorGetShapeKnownStep
    TfLiteOpaqueTensorGetString
    TfLiteOpaqueTensorGetStringCount
    TfLiteOpaqueTensorIsVariable
    TfLiteOpaqueTensorName
    TfLiteOpaqueTensorNumDims
    TfLiteOpaqueTensorSetAllocationTypeToDynamic
    TfLiteOpaqueTensorSetNonCpuAllocation
    TfLiteOpaqueTensorType
    TfLiteOpaqueTensorWriteString
    TfLiteOpaqueTensorWriteStrings
    TfLiteOperatorCreate
    TfLiteOperatorCreateWithData
    TfLiteOperatorDelete
    TfLiteOperatorGetBuiltInCode
    TfLiteOperatorGetCustomName
    TfLiteOperatorGetUserData
    TfLiteOperatorGetVersion
    TfLiteOperatorSetAsyncKernel
    TfLiteOperatorSetAsyncKernelWithData
    TfLiteOperatorSetFree
    TfLiteOperatorSetFreeWithData
    TfLiteOperatorSetInit
    TfLiteOperatorSetInitWithData
    TfLiteOperatorSetInplaceOperator
    TfLiteOperatorSetInvoke
    TfLiteOperatorSetInvokeWithData
    TfLiteOperatorSetPrepare
    TfLiteOperatorSetPrepareWithData
    TfLiteQuantizationFree
    TfLiteSchemaVersion
    TfLiteSetAllowBufferHandleOutput
    TfLiteSignatureRunnerAllocateTensors
    TfLiteSignatureRunnerCancel
    TfLiteSignatureRunnerDelete
    TfLiteSignatureRunnerGetInputCount
    TfLiteSignatureRunnerGetInputName
    TfLiteSignatureRunnerGetInputTensor
    TfLiteSignatureRunnerGetOutputCount
    TfLiteSignatureRunnerGetOutputName
    TfLiteSignatureRunnerGetOutputTensor
    TfLiteSignatureRunnerInvoke
    TfLiteSignatureRunnerResizeInputTensor
    TfLiteSparsityFree
    TfLiteSynchronizationCreate
    TfLiteSynchronizationDelete
    TfLiteSynchronizationGetPtr
    TfLiteSynchronizationSetPtr
    TfLiteTelemetryConversionMetadataGetModelOptimizationModes
    TfLiteTelemetryConversionMetadataGetNumModelOptimizationModes
    TfLiteTelemetryGpuDelegateSettingsGetBackend
    TfLiteTelemetryGpuDelegateSettingsGetNumNodesDelegated
    TfLiteTelemetryInterpreterSettingsGetConversionMetadata
    TfLiteTelemetryInterpreterSettingsGetNumSubgraphInfo
    TfLiteTelemetryInterpreterSettingsGetSubgraphInfo
    TfLiteTelemetrySubgraphInfoGetNumQuantizations
    TfLiteTelemetrySubgraphInfoGetQuantizations
    TfLiteTensorByteSize
    TfLiteTensorCopy
    TfLiteTensorCopyFromBuffer
    TfLiteTensorCopyToBuffer
    TfLiteTensorData
    TfLiteTensorDataFree
    TfLiteTensorDim
    TfLiteTensorFree
    TfLiteTensorGetAllocationStrategy
    TfLiteTensorGetBufferAddressStability
    TfLiteTensorGetDataKnownStep
    TfLiteTensorGetDataStability
    TfLiteTensorGetDimsSignature
    TfLiteTensorGetShapeKnownStep
    TfLiteTensorName
    TfLiteTensorNumDims
    TfLiteTensorQuantizationParams
    TfLiteTensorRealloc
    TfLiteTensorReset
    TfLiteTensorResizeMaybeCopy
    TfLiteTensorType
    TfLiteTypeGetName
    TfLiteVersion
    TfLiteXNNPackDelegateCreate
    TfLiteXNNPackDelegateCreateWithThreadpool
    TfLiteXNNPackDelegateDelete
    TfLiteXNNPackDelegateGetFlags
    TfLiteXNNPackDelegateGetOptions
    TfLiteXNNPackDelegateGetThreadPool
    TfLiteXNNPackDelegateOptionsDefault
    TfLiteXNNPackDelegateWeightsCacheCreate
    TfLiteXNNPackDelegateWeightsCacheCreateWithSize
    TfLiteXNNPackDelegateWeightsCacheDelete
    TfLiteXNNPackDelegateWeightsCacheFinalizeHard
    TfLiteXNNPackDelegateWeightsCacheFinalizeSoft
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_the_map_is_here_and_no_other() {
        let map = include_str!("../tensorflowlite_c.map");
        let in_map = map.lines().filter_map(|line| line.strip_prefix("    ")?.strip_suffix(';'));
        let mut in_map: Vec<&str> = in_map.collect();
        let mut here = NAMES.to_vec();
        in_map.sort_unstable();
        here.sort_unstable();
        assert_eq!(in_map, here);
    }
}
