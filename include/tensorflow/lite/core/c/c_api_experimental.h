/*
 * More of the C API of TensorFlow Lite. What concerns kernels, delegates and profilers of the program fails, and
 * says so: this library calls none.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef NNHAL_TENSORFLOW_LITE_CORE_C_C_API_EXPERIMENTAL_H
#define NNHAL_TENSORFLOW_LITE_CORE_C_C_API_EXPERIMENTAL_H

#include <stdint.h>
#include "tensorflow/lite/builtin_ops.h"
#include "tensorflow/lite/core/c/c_api.h"
#include "tensorflow/lite/core/c/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets variable tensors to 0. */
TFL_CAPI_EXPORT extern TfLiteStatus TfLiteInterpreterResetVariableTensors(
    TfLiteInterpreter* interpreter);

TFL_CAPI_EXPORT extern int32_t TfLiteInterpreterGetVariableTensorCount(
    const TfLiteInterpreter* interpreter);

/* Its elements are brought up to date by each Invoke, and what is written to them counts for the next. */
TFL_CAPI_EXPORT extern TfLiteTensor* TfLiteInterpreterGetVariableTensor(
    const TfLiteInterpreter* interpreter, int32_t variable_index);

TFL_CAPI_EXPORT extern int32_t TfLiteInterpreterGetInputTensorIndex(
    const TfLiteInterpreter* interpreter, int32_t input_index);
TFL_CAPI_EXPORT extern int32_t TfLiteInterpreterGetOutputTensorIndex(
    const TfLiteInterpreter* interpreter, int32_t output_index);

/* Memory of the program for an input or output. TfLiteInterpreterAllocateTensors comes before the next run. */
TFL_CAPI_EXPORT extern TfLiteStatus TfLiteInterpreterSetCustomAllocationForTensor(
    TfLiteInterpreter* interpreter, int tensor_index, const TfLiteCustomAllocation* allocation,
    int64_t flags);

TFL_CAPI_EXPORT extern TfLiteStatus TfLiteInterpreterEnsureTensorDataIsReadable(
    TfLiteInterpreter* interpreter, int tensor_index);
TFL_CAPI_EXPORT extern TfLiteStatus TfLiteSignatureRunnerCancel(
    TfLiteSignatureRunner* signature_runner);

/* The same as TfLiteInterpreterCreate: all operators are here. */
TFL_CAPI_EXPORT extern TfLiteInterpreter* TfLiteInterpreterCreateWithSelectedOps(
    const TfLiteModel* model, const TfLiteInterpreterOptions* options);

/* Operators of the program are noted for messages and not called. */
TFL_CAPI_EXPORT extern void TfLiteInterpreterOptionsAddBuiltinOp(
    TfLiteInterpreterOptions* options, TfLiteBuiltinOperator op,
    const TfLiteRegistration* registration, int32_t min_version, int32_t max_version);
TFL_CAPI_EXPORT extern void TfLiteInterpreterOptionsAddCustomOp(
    TfLiteInterpreterOptions* options, const char* name, const TfLiteRegistration* registration,
    int32_t min_version, int32_t max_version);
TFL_CAPI_EXPORT extern void TfLiteInterpreterOptionsSetOpResolver(
    TfLiteInterpreterOptions* options,
    const TfLiteRegistration* (*find_builtin_op)(void* user_data, TfLiteBuiltinOperator op,
                                                 int version),
    const TfLiteRegistration* (*find_custom_op)(void* user_data, const char* custom_op, int version),
    void* op_resolver_user_data);
TFL_CAPI_EXPORT extern void TfLiteInterpreterOptionsSetOpResolverV1(
    TfLiteInterpreterOptions* options,
    const TfLiteRegistration_V1* (*find_builtin_op_v1)(void* user_data, TfLiteBuiltinOperator op,
                                                       int version),
    const TfLiteRegistration_V1* (*find_custom_op_v1)(void* user_data, const char* op, int version),
    void* op_resolver_user_data);
TFL_CAPI_EXPORT extern void TfLiteInterpreterOptionsSetOpResolverV2(
    TfLiteInterpreterOptions* options,
    const TfLiteRegistration_V2* (*find_builtin_op_v2)(void* user_data, TfLiteBuiltinOperator op,
                                                       int version),
    const TfLiteRegistration_V2* (*find_custom_op_v2)(void* user_data, const char* op, int version),
    void* op_resolver_user_data);
TFL_CAPI_EXPORT extern void TfLiteInterpreterOptionsSetOpResolverV3(
    TfLiteInterpreterOptions* options,
    const TfLiteRegistration_V3* (*find_builtin_op_v3)(void* user_data, TfLiteBuiltinOperator op,
                                                       int version),
    const TfLiteRegistration_V3* (*find_custom_op_v3)(void* user_data, const char* op, int version),
    void* op_resolver_user_data);
TFL_CAPI_EXPORT extern void TfLiteInterpreterOptionsSetOpResolverExternal(
    TfLiteInterpreterOptions* options,
    const TfLiteOperator* (*find_builtin_op)(void* user_data, int op, int version),
    const TfLiteOperator* (*find_custom_op)(void* user_data, const char* custom_op, int version),
    void* op_resolver_user_data);
TFL_CAPI_EXPORT extern void TfLiteInterpreterOptionsSetOpResolverExternalWithFallback(
    TfLiteInterpreterOptions* options,
    const TfLiteOperator* (*find_builtin_op_external)(void* user_data, int op, int version),
    const TfLiteOperator* (*find_custom_op_external)(void* user_data, const char* custom_op,
                                                     int version),
    const TfLiteRegistration* (*find_builtin_op)(void* user_data, TfLiteBuiltinOperator op,
                                                 int version),
    const TfLiteRegistration* (*find_custom_op)(void* user_data, const char* op, int version),
    void* op_resolver_user_data);

/* Nothing changes: NNAPI's devices compute anyway. */
TFL_CAPI_EXPORT extern void TfLiteInterpreterOptionsSetUseNNAPI(TfLiteInterpreterOptions* options,
                                                                bool enable);

/* Whether an interpreter is made without the delegates that it cannot have. */
TFL_CAPI_EXPORT extern void TfLiteInterpreterOptionsSetEnableDelegateFallback(
    TfLiteInterpreterOptions* options, bool enable);

/* kTfLiteDelegateError for a delegate that is not nnhal's. */
TFL_CAPI_EXPORT extern TfLiteStatus TfLiteInterpreterModifyGraphWithDelegate(
    const TfLiteInterpreter* interpreter, TfLiteDelegate* delegate);

/* These fail: there are no buffers of delegates, and no profilers. */
TFL_CAPI_EXPORT extern TfLiteStatus TfLiteInterpreterSetBufferHandle(
    TfLiteInterpreter* interpreter, TfLiteTensor* tensor, TfLiteBufferHandle buffer_handle,
    TfLiteOpaqueDelegate* delegate);
TFL_CAPI_EXPORT extern TfLiteStatus TfLiteInterpreterGetBufferHandle(
    TfLiteInterpreter* interpreter, int tensor_index, TfLiteBufferHandle* buffer_handle,
    TfLiteOpaqueDelegate** delegate);
TFL_CAPI_EXPORT extern void TfLiteSetAllowBufferHandleOutput(const TfLiteInterpreter* interpreter,
                                                             bool allow_buffer_handle_output);
struct TfLiteTelemetryProfilerStruct;
TFL_CAPI_EXPORT extern void TfLiteInterpreterOptionsSetTelemetryProfiler(
    TfLiteInterpreterOptions* options, struct TfLiteTelemetryProfilerStruct* profiler);

#ifdef __cplusplus
}
#endif

#endif
