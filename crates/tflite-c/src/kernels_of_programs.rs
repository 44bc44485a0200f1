//! Functions for the kernels, delegates and profilers of programs.
//!
//! Each takes what only such a kernel, delegate or profiler is given (a `TfLiteOpaqueContext`, a
//! `TfLiteOpaqueNode`, telemetry settings). This library calls none, so no program can have one, and whatever
//! it passes is not followed: every call fails and says so. The names are here so that programs which
//! are linked with the stock library load.

use crate::abi::{TfLiteQuantization, TfLiteQuantizationParams};
use crate::border::{Failure, export};
use crate::report::VaList;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};

fn none() -> Failure {
    Failure::new("this library calls no kernels, delegates or profilers of programs")
}

export! {
    /// For what this library does not call.
    fn TfLiteOpaqueContextAcquireSubgraphContext(
        _context: *mut c_void,
        _index: c_int,
        _acquired: *mut c_void,
    ) {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueContextReleaseSubgraphContext(_context: *mut c_void, _index: c_int) {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueContextMarkSubgraphAsDelegationSkippable(_context: *mut c_void, _index: c_int) {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueContextAddTensor(
        _context: *mut c_void,
        _builder: *mut c_void,
        _index: *mut c_void,
    ) {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueContextGetExecutionPlan(_context: *mut c_void, _plan: *mut c_void) {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueContextGetExternalContext(
        _context: *mut c_void,
        _external: *mut c_void,
        _type: c_int,
    ) {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueContextGetInputs(
        _context: *mut c_void,
        _inputs: *mut c_void,
        _count: *mut c_void,
    ) {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueContextGetOutputs(
        _context: *mut c_void,
        _outputs: *mut c_void,
        _count: *mut c_void,
    ) {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueContextGetVariables(
        _context: *mut c_void,
        _variables: *mut c_void,
        _count: *mut c_void,
    ) {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueContextGetMetadata(
        _context: *mut c_void,
        _name: *const c_void,
        _pointer: *mut c_void,
        _bytes: *mut c_void,
    ) {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueContextGetName(_context: *mut c_void) -> *const c_char, null(); {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueContextGetNodeAndRegistration(
        _context: *mut c_void,
        _index: c_int,
        _node: *mut c_void,
        _operator: *mut c_void,
    ) {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueContextGetNodeInitDataMmapInfo(
        _context: *mut c_void,
        _node: *const c_void,
        _descriptor: *mut c_void,
        _offset: *mut c_void,
        _size: *mut c_void,
    ) {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueContextGetNumNodes(_context: *mut c_void) -> usize, 0; {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueContextGetNumTensors(_context: *mut c_void) -> usize, 0; {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueContextGetOpaqueTensor(
        _context: *mut c_void,
        _index: c_int,
    ) -> *mut c_void, null_mut(); {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueContextGetSizeOfType(_context: *mut c_void, _type: c_int, _bytes: *mut c_void) {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueContextReplaceNodeSubsetsWithDelegateKernels(
        _context: *mut c_void,
        _operator: *mut c_void,
        _nodes: *const c_void,
        _delegate: *mut c_void,
    ) {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueContextReportError(_context: *mut c_void, _format: *const c_void) -> (), (); {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueContextReportErrorVa(
        _context: *mut c_void,
        _format: *const c_void,
        _arguments: VaList,
    ) -> (), (); {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueContextResizeTensor(
        _context: *mut c_void,
        _tensor: *mut c_void,
        _size: *mut c_void,
    ) {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueNodeGetBuiltinData(_node: *const c_void) -> *mut c_void, null_mut(); {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueNodeGetCustomInitialData(
        _node: *const c_void,
        _data: *mut c_void,
        _size: *mut c_void,
    ) {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueNodeGetInput(
        _context: *mut c_void,
        _node: *const c_void,
        _index: c_int,
    ) -> *const c_void, null(); {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueNodeGetInputTensorIndex(_node: *const c_void, _index: c_int) -> c_int, -1; {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueNodeGetOutput(
        _context: *mut c_void,
        _node: *const c_void,
        _index: c_int,
    ) -> *mut c_void, null_mut(); {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueNodeGetOutputTensorIndex(_node: *const c_void, _index: c_int) -> c_int, -1; {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueNodeGetUserData(_node: *const c_void) -> *mut c_void, null_mut(); {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueNodeInputs(_node: *const c_void, _inputs: *mut c_void, _count: *mut c_void) {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueNodeOutputs(_node: *const c_void, _outputs: *mut c_void, _count: *mut c_void) {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueNodeNumberOfInputs(_node: *const c_void) -> c_int, 0; {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueNodeNumberOfOutputs(_node: *const c_void) -> c_int, 0; {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueNodeSetTemporaries(
        _node: *const c_void,
        _temporaries: *const c_void,
        _count: c_int,
    ) {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueNodeTemporaries(
        _node: *const c_void,
        _temporaries: *mut c_void,
        _count: *mut c_void,
    ) {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueTensorBuilderCreate() -> *mut c_void, null_mut(); {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueTensorBuilderDelete(_builder: *mut c_void) -> (), (); {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueTensorBuilderSetAllocationType(
        _builder: *mut c_void,
        _type: c_int,
    ) -> *mut c_void, null_mut(); {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueTensorBuilderSetData(
        _builder: *mut c_void,
        _data: *mut c_void,
    ) -> *mut c_void, null_mut(); {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueTensorBuilderSetQuantization(
        _builder: *mut c_void,
        _quantization: TfLiteQuantization,
    ) -> *mut c_void, null_mut(); {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueTensorBuilderSetQuantizationParams(
        _builder: *mut c_void,
        _params: TfLiteQuantizationParams,
    ) -> *mut c_void, null_mut(); {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteOpaqueTensorBuilderSetType(
        _builder: *mut c_void,
        _type: c_int,
    ) -> *mut c_void, null_mut(); {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteTelemetryConversionMetadataGetModelOptimizationModes(
        _settings: *const c_void,
    ) -> *const c_void, null(); {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteTelemetryConversionMetadataGetNumModelOptimizationModes(
        _settings: *const c_void,
    ) -> usize, 0; {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteTelemetryGpuDelegateSettingsGetBackend(_settings: *const c_void) -> c_int, 0; {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteTelemetryGpuDelegateSettingsGetNumNodesDelegated(
        _settings: *const c_void,
    ) -> usize, 0; {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteTelemetryInterpreterSettingsGetConversionMetadata(
        _settings: *const c_void,
    ) -> *const c_void, null(); {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteTelemetryInterpreterSettingsGetNumSubgraphInfo(_settings: *const c_void) -> usize, 0; {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteTelemetryInterpreterSettingsGetSubgraphInfo(
        _settings: *const c_void,
    ) -> *const c_void, null(); {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteTelemetrySubgraphInfoGetNumQuantizations(_settings: *const c_void) -> usize, 0; {
        Err(none())
    }

    /// For what this library does not call.
    fn TfLiteTelemetrySubgraphInfoGetQuantizations(
        _settings: *const c_void,
    ) -> *const c_void, null(); {
        Err(none())
    }
}
